"""What the history of a store is asked for and answered with, below `/memshelf`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from memshelf.service.wire.files import OriginAnswer
from memshelf.service.wire.requests import InDigits

__all__ = ["HistoryAnswer", "HistoryQuery"]


class HistoryQuery(BaseModel):
    model_config = ConfigDict(extra="ignore")

    after: Annotated[
        int, Field(ge=0, le=2**63 - 1, description="The number of the last version already read."), InDigits
    ] = 0
    limit: Annotated[int, Field(ge=1, le=50), InDigits] = 50


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
