"""The history of a store as archives hold it: memshelf's own, below `/memshelf`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from memshelf.files.archive import version_json
from memshelf.service.call import Call
from memshelf.service.operation import Operation
from memshelf.service.wire.files import OriginAnswer
from memshelf.stores.archive import PastOf

__all__ = ["OPERATIONS"]


class HistoryQuery(BaseModel):
    model_config = ConfigDict(extra="ignore")

    after: Annotated[int, Field(ge=0, le=2**63 - 1, description="The number of the last version already read.")] = 0
    limit: Annotated[int, Field(ge=1, le=50)] = 50


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_mode_override="serialization")


class ArchivedVersion(_Answer):
    """Times are in microseconds since 1970; salt, commitment and link in hex."""

    type: Literal["version"]
    seq: int
    id: str
    file_id: str
    parent_id: str | None
    operation: Literal["created", "modified", "deleted"]
    moved: bool
    path: str | None
    sha256: str | None
    size: int | None
    salt: str | None
    commitment: str
    link: str
    origin: OriginAnswer
    created_at: int
    redacted_at: int | None
    redacted_by: str | None
    content: str | None


class HistoryAnswer(_Answer):
    type: Literal["memshelf_history"]
    epoch: str
    created_at: int
    head_seq: int
    head: str
    data: list[ArchivedVersion]


async def _history(call: Call, query: HistoryQuery) -> Any:
    """Read the versions of a memory store in order, with the hash chain that proves them"""
    past = PastOf(call.state.shelf, call.caller.workspace_id, call.path["memory_store_id"])
    head, created_at, versions = await past.page(query.after, query.limit)
    return {
        "type": "memshelf_history",
        "epoch": head.epoch,
        "created_at": created_at,
        "head_seq": head.seq,
        "head": head.link.hex(),
        "data": [version_json(version) for version in versions],
    }


OPERATIONS = (
    Operation("GET", "/memshelf/memory_stores/{memory_store_id}/history", _history, HistoryAnswer, query=HistoryQuery),
)
