"""What requests hold. Bodies with other fields than these are refused; other query parameters are ignored."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints
from pydantic_core import PydanticCustomError

__all__ = [
    "CreateMemory",
    "CreateSession",
    "CreateStore",
    "DeleteMemory",
    "DiffQuery",
    "InDigits",
    "ListMemories",
    "ListResources",
    "ListSessions",
    "ListStores",
    "ListVersions",
    "Moment",
    "MomentQuery",
    "Nothing",
    "RestoreVersion",
    "SearchQuery",
    "SetStatus",
    "UndoChanges",
    "UpdateMemory",
    "UpdateSession",
    "UpdateStore",
    "VerifyQuery",
    "ViewBasic",
    "ViewFull",
]

View = Literal["basic", "full"]
Status = Literal["rescheduling", "running", "idle", "terminated"]
# Said of a field in the published description; `memshelf.stores.rules` is what holds it to its rules.
Name = Annotated[str, Field(json_schema_extra={"minLength": 1, "maxLength": 255})]
Description = Annotated[str, Field(json_schema_extra={"maxLength": 1024})]
Instructions = Annotated[str, Field(json_schema_extra={"maxLength": 4096})]
Path = Annotated[str, Field(json_schema_extra={"pattern": "^(/[^/]+){1,20}$", "maxLength": 1024})]
Prefix = Annotated[
    str, Field(json_schema_extra={"pattern": "^/([^/]+/)*$"}, description='"/", or starts and ends with "/".')
]
_TIME = re.compile(r"(\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?) ?([Zz]|[+-]?\d\d:?\d\d)")


def _time(text: object) -> object:
    """What must be a time with its time zone. A number is none, which would be taken for seconds since 1970; the `+` of
    an offset that is not percent-encoded arrives as a space."""
    parts = _TIME.fullmatch(text) if isinstance(text, str) else None
    if parts is None:
        raise PydanticCustomError("time", "Input should be an RFC 3339 time, such as 2026-09-17T08:00:00Z")
    time, offset = parts.groups()
    return f"{time}{'+' if offset[0].isdigit() else ''}{offset}"


_DIGITS = re.compile("-?[0-9]+")


def _number(text: object) -> object:
    """What must be a whole number, in a query: `1_0`, ` 10 `, `+10` and `10.0` would be one, too."""
    if isinstance(text, str) and _DIGITS.fullmatch(text) is None:
        raise PydanticCustomError("number", "Input should be a valid integer, unable to parse string as an integer")
    return text


InDigits = BeforeValidator(_number)
AgentVersion = Annotated[int, Field(ge=1, le=2**31 - 1)]
Empty = Annotated[list[str], Field(max_length=0)]
Moment = Annotated[AwareDatetime, BeforeValidator(_time)]
Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Query(BaseModel):
    model_config = ConfigDict(extra="ignore")


class Nothing(_Body):
    """No body, or an empty object."""


class _Paged(_Query):
    limit: Annotated[int, Field(ge=1, description="At most 100; 20 with view=full."), InDigits] = 20
    page: Annotated[str | None, Field(description="The next_page of the page before.")] = None


class CreateStore(_Body):
    name: Name
    description: Description | None = None
    metadata: dict[str, str] | None = None


class UpdateStore(_Body):
    """A field that is left out stays. In metadata, null removes a key; as a whole, null removes all."""

    name: Name | None = None
    description: Description | None = None
    metadata: dict[str, str | None] | None = None


class _CreatedRange(_Paged):
    created_at_gte: Annotated[Moment | None, Field(alias="created_at[gte]")] = None
    created_at_lte: Annotated[Moment | None, Field(alias="created_at[lte]")] = None


class ListStores(_CreatedRange):
    include_archived: bool = False


class CreateMemory(_Body):
    path: Path
    content: str


class Precondition(_Body):
    type: Literal["content_sha256"]
    content_sha256: Sha256


class UpdateMemory(_Body):
    """Content, path or both; null and absent leave a field as it is."""

    content: str | None = None
    path: Path | None = None
    precondition: Precondition | None = None


class ViewBasic(_Query):
    view: View = "basic"


class ViewFull(_Query):
    view: View = "full"


class ListMemories(_Paged):
    path_prefix: Prefix = "/"
    depth: Annotated[
        int, Field(ge=0, le=1024, description="Levels below the prefix; 0 lists every memory."), InDigits
    ] = 0
    view: View = "basic"


class DeleteMemory(_Query):
    expected_content_sha256: Sha256 | None = None


class ListVersions(_CreatedRange):
    memory_id: str | None = None
    operation: Literal["created", "modified", "deleted"] | None = None
    session_id: str | None = None
    api_key_id: str | None = None
    service_account_id: Annotated[str | None, Field(description="None has ever written here.")] = None
    view: View = "basic"


class AgentReference(_Body):
    type: Literal["agent"]
    id: str
    version: AgentVersion = 1


class MemoryStoreResource(_Body):
    type: Literal["memory_store"]
    memory_store_id: str
    access: Literal["read_write", "read_only"] | None = None
    instructions: Instructions | None = None


class CreateSession(_Body):
    """What needs more than memory, such as vaults, may be there only as far as it asks for nothing."""

    agent: str | AgentReference
    environment_id: str
    resources: list[MemoryStoreResource] | None = None
    title: str | None = None
    metadata: dict[str, str] | None = None
    vault_ids: Empty | None = None
    initial_events: Empty | None = None
    budget: None = None


class UpdateSession(_Body):
    """A field that is left out stays. In metadata, null removes a key; as a whole, null removes all."""

    title: str | None = None
    metadata: dict[str, str | None] | None = None
    vault_ids: Empty | None = None
    budget: None = None


class ListSessions(_CreatedRange):
    created_at_gt: Annotated[Moment | None, Field(alias="created_at[gt]")] = None
    created_at_lt: Annotated[Moment | None, Field(alias="created_at[lt]")] = None
    memory_store_id: str | None = None
    agent_id: str | None = None
    agent_version: Annotated[AgentVersion | None, InDigits] = None
    deployment_id: Annotated[str | None, Field(description="No session comes from one.")] = None
    statuses: list[Status] = Field(default_factory=list)
    include_archived: bool = False
    order: Literal["asc", "desc"] = "desc"


class ListResources(_Query):
    limit: Annotated[int | None, Field(ge=1, le=1000), InDigits] = None
    page: str | None = None


class SetStatus(_Body):
    status: Status


class RestoreVersion(_Body):
    precondition: Precondition | None = None


class UndoActor(_Body):
    """Whose changes: exactly the id that goes with the type."""

    type: Literal["session_actor", "api_actor", "user_actor"]
    session_id: str | None = None
    api_key_id: str | None = None
    user_id: str | None = None


class UndoChanges(_Body):
    actor: UndoActor
    since: Annotated[Moment, Field(strict=False)]


class MomentQuery(_Paged):
    at: Moment
    path_prefix: Prefix = "/"
    view: View = "basic"


class SearchQuery(_Query):
    query: Annotated[str, StringConstraints(min_length=1, max_length=400)]
    path_prefix: Prefix = "/"
    limit: Annotated[int, Field(ge=1, le=100), InDigits] = 20
    by: Annotated[
        Literal["words", "meaning"],
        Field(description="Memories that have a word of the query, or those that are closest to it in meaning."),
    ] = "words"


class DiffQuery(_Query):
    to: Annotated[str | None, Field(description="Another version: shows the way to it.")] = None


class VerifyQuery(_Query):
    head: Annotated[
        str | None,
        StringConstraints(pattern="^[0-9a-f]{64}$"),
        Field(description="The head of an earlier report, which the history must lead through still."),
    ] = None
