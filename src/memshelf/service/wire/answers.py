"""What answers hold, for the published description of the API. Every field is always there; what does not apply is
null."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from memshelf.service.errors import ErrorType

__all__ = [
    "DeletedMemory",
    "DeletedSession",
    "DeletedStore",
    "Diff",
    "ErrorAnswer",
    "MemoryAnswer",
    "MemoryPage",
    "PromptNote",
    "Report",
    "ResourcePage",
    "SearchAnswer",
    "SessionAnswer",
    "SessionPage",
    "StoreAnswer",
    "StorePage",
    "TokenAnswer",
    "Undo",
    "VersionAnswer",
    "VersionPage",
]


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_mode_override="serialization")


class _PageOf(_Answer):
    next_page: str | None


class CurrentFile(_Answer):
    path: str
    text: str
    version: str


class ErrorBody(_Answer):
    type: ErrorType
    message: str
    conflicting_memory_id: str = Field(default="", description="With a path conflict only.")
    conflicting_path: str = Field(default="", description="With a path conflict only.")
    memshelf_code: str = Field(default="", description="Below /v1/memshelf only: the code of the refusal.")
    memshelf_current: CurrentFile | None = Field(default=None, description="With it: the file as it is now.")


class ErrorAnswer(_Answer):
    type: Literal["error"]
    error: ErrorBody
    request_id: str


class StoreAnswer(_Answer):
    id: str
    type: Literal["memory_store"]
    name: str
    description: str
    metadata: dict[str, str]
    created_at: AwareDatetime
    updated_at: AwareDatetime
    archived_at: AwareDatetime | None


class StorePage(_PageOf):
    data: list[StoreAnswer]


class DeletedStore(_Answer):
    id: str
    type: Literal["memory_store_deleted"]


class MemoryAnswer(_Answer):
    id: str
    type: Literal["memory"]
    memory_store_id: str
    path: str
    content: str | None
    content_size_bytes: int
    content_sha256: str
    memory_version_id: str
    created_at: AwareDatetime
    updated_at: AwareDatetime


class PrefixAnswer(_Answer):
    type: Literal["memory_prefix"]
    path: str


class MemoryPage(_PageOf):
    data: list[Annotated[MemoryAnswer | PrefixAnswer, Field(discriminator="type")]]


class DeletedMemory(_Answer):
    id: str
    type: Literal["memory_deleted"]


class SessionActor(_Answer):
    type: Literal["session_actor"]
    session_id: str


class ApiActor(_Answer):
    type: Literal["api_actor"]
    api_key_id: str


class UserActor(_Answer):
    type: Literal["user_actor"]
    user_id: str


Actor = Annotated[SessionActor | ApiActor | UserActor, Field(discriminator="type")]


class VersionAnswer(_Answer):
    id: str
    type: Literal["memory_version"]
    memory_store_id: str
    memory_id: str
    operation: Literal["created", "modified", "deleted"]
    path: str | None
    content: str | None
    content_size_bytes: int | None
    content_sha256: str | None
    created_at: AwareDatetime
    created_by: Actor | None
    redacted_at: AwareDatetime | None
    redacted_by: Actor | None


class VersionPage(_PageOf):
    data: list[VersionAnswer]


class MountAnswer(_Answer):
    type: Literal["memory_store"]
    memory_store_id: str
    access: Literal["read_write", "read_only"]
    instructions: str | None
    name: str
    description: str
    mount_path: str


class ResourcePage(_PageOf):
    data: list[MountAnswer]


class ModelAnswer(_Answer):
    id: str


class ExecutionIdentity(_Answer):
    type: Literal["service_account"]


class AgentAnswer(_Answer):
    """The agent as the session was created with it: memshelf knows its id and version, and runs none."""

    type: Literal["agent"]
    id: str
    version: int
    name: str
    description: str | None
    system: str | None
    model: ModelAnswer
    execution_identity: ExecutionIdentity
    mcp_servers: list[None]
    skills: list[None]
    tools: list[None]
    multiagent: None


class SessionStats(_Answer):
    active_seconds: None
    duration_seconds: float


class SessionUsage(_Answer):
    """memshelf runs no model: it knows of no usage."""

    input_tokens: None
    output_tokens: None


class SessionAnswer(_Answer):
    id: str
    type: Literal["session"]
    agent: AgentAnswer
    environment_id: str
    title: str | None
    metadata: dict[str, str]
    status: Literal["rescheduling", "running", "idle", "terminated"]
    resources: list[MountAnswer]
    vault_ids: list[None]
    outcome_evaluations: list[None]
    stats: SessionStats
    usage: SessionUsage
    created_at: AwareDatetime
    updated_at: AwareDatetime
    archived_at: AwareDatetime | None
    budget: None
    deployment_id: None


class SessionPage(_PageOf):
    data: list[SessionAnswer]


class DeletedSession(_Answer):
    id: str
    type: Literal["session_deleted"]


class UndoneAnswer(_Answer):
    memory_id: str
    outcome: Literal["restored", "deleted", "kept"]
    reason: str | None
    memory: MemoryAnswer | None


class Undo(_Answer):
    type: Literal["memshelf_undo"]
    data: list[UndoneAnswer]


class HitAnswer(_Answer):
    memory: MemoryAnswer
    score: float
    line: int | None
    excerpt: str | None


class SearchAnswer(_Answer):
    type: Literal["memshelf_search"]
    data: list[HitAnswer]


class Diff(_Answer):
    type: Literal["memshelf_diff"]
    from_version_id: str | None
    to_version_id: str
    diff: str


class Report(_Answer):
    type: Literal["memshelf_verification"]
    intact: bool
    versions: int
    head: str
    problems: list[str]


class PromptNote(_Answer):
    type: Literal["memshelf_prompt_note"]
    text: str


class TokenAnswer(_Answer):
    type: Literal["memshelf_session_token"]
    session_id: str
    token: str
