"""What requests and answers hold where a store is used as a file memory, below `/memshelf/.../files`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, StringConstraints

from memshelf.errors import MemoryStoreError
from memshelf.files.model import FileText, GrepMatch, Version
from memshelf.service.wire.requests import InDigits, Moment

__all__ = [
    "ChangedAnswer",
    "ChangesAnswer",
    "ChangesQuery",
    "ClientOrigin",
    "DeleteFile",
    "FileAnswer",
    "FileQuery",
    "FileVersionAnswer",
    "FileVersionPage",
    "FileVersionsQuery",
    "FilesAnswer",
    "FilesQuery",
    "FoundAnswer",
    "FoundQuery",
    "GrepAnswer",
    "GrepQuery",
    "MoveFile",
    "OriginAnswer",
    "PurgedAnswer",
    "RedactFileVersion",
    "RestoreFile",
    "WriteFile",
    "file_json",
    "file_version_json",
    "match_json",
    "refusal_json",
]

Json = dict[str, Any]  # JSON has many types

_Name = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=r"^[^\x00]*$")]
_ChangeId = Annotated[
    str,
    StringConstraints(pattern=r"^[0-9a-f]{12}7[0-9a-f]{3}[89ab][0-9a-f]{15}$"),
    Field(description="A version 7 UUID in hex, made for this change alone: made again, it answers as the first time."),
]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Query(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", json_schema_mode_override="serialization")


class ClientOrigin(_Body):
    """Whom the client says that it acts for. The session or key that it signed in with is recorded beside it."""

    run_id: _Name | None = None
    principal_id: _Name | None = None
    tool_call_id: _Name | None = None


class _Change(_Body):
    origin: ClientOrigin = Field(default_factory=ClientOrigin)
    change_id: _ChangeId | None = None


class WriteFile(_Change):
    path: str
    text: str
    expected: Annotated[str | None, Field(description="The version that must be current; null: the path is free.")]


class MoveFile(_Change):
    source: str
    destination: str
    expected: str


class DeleteFile(_Change):
    path: str
    expected: str


class RestoreFile(_Change):
    version_id: str
    expected: str | None


class RedactFileVersion(_Body):
    version_id: str
    by: _Name


class FilesQuery(_Query):
    known: Annotated[str | None, Field(description="A cursor: data is null when nothing changed since.")] = None


class FileQuery(_Query):
    path: str


class ChangesQuery(_Query):
    since: str | None = None


class GrepQuery(_Query):
    pattern: Annotated[str, StringConstraints(min_length=1)]
    regex: bool = False
    case_sensitive: bool = False
    path: Annotated[str, Field(description='A directory: "", or ends with "/".')] = ""
    limit: Annotated[int, Field(ge=1, le=10_000), InDigits] = 200


class FileVersionsQuery(_Query):
    path: str | None = None
    since: Moment | None = None
    limit: Annotated[int, Field(ge=1, le=50), InDigits] = 50
    cursor: str | None = None


class FoundQuery(_Query):
    """One of: `version_id`; `change_id`; `run_id` and `tool_call_id`."""

    version_id: str | None = None
    change_id: _ChangeId | None = None
    run_id: _Name | None = None
    tool_call_id: _Name | None = None


class FileEntryAnswer(_Answer):
    path: str
    version: str
    size: int
    description: str | None


class FilesAnswer(_Answer):
    type: Literal["memshelf_files"]
    cursor: str
    data: list[FileEntryAnswer] | None


class FileAnswer(_Answer):
    type: Literal["memshelf_file"]
    path: str
    text: str
    version: str


class ChangedAnswer(_Answer):
    type: Literal["memshelf_change"]
    version: str


class ChangesAnswer(_Answer):
    type: Literal["memshelf_changes"]
    cursor: str
    paths: Annotated[list[str] | None, Field(description="null: read everything.")]


class MatchAnswer(_Answer):
    path: str
    line: int
    text: str
    version: str


class GrepAnswer(_Answer):
    type: Literal["memshelf_matches"]
    data: list[MatchAnswer]
    more: bool


class OriginAnswer(_Answer):
    run_id: str | None
    principal_id: str | None
    tool_call_id: str | None
    session_id: str | None
    api_key_id: str | None


class FileVersionAnswer(_Answer):
    id: str
    file_id: str
    parent_id: str | None
    operation: Literal["created", "modified", "deleted"]
    path: str | None
    text: str | None
    sha256: str | None
    size: int | None
    origin: OriginAnswer
    created_at: AwareDatetime
    redacted_at: AwareDatetime | None
    redacted_by: str | None


class FoundAnswer(_Answer):
    type: Literal["memshelf_file_version"]
    version: FileVersionAnswer | None


class FileVersionPage(_Answer):
    type: Literal["memshelf_file_versions"]
    data: list[FileVersionAnswer]
    next_cursor: str | None


class PurgedAnswer(_Answer):
    type: Literal["memshelf_purged"]


def file_json(file: FileText) -> Json:
    return {"path": file.path, "text": file.text, "version": file.version}


def match_json(match: GrepMatch) -> Json:
    return {"path": match.path, "line": match.line, "text": match.text, "version": match.version}


def file_version_json(version: Version) -> Json:
    origin, redacted_at = version.origin, version.redacted_at
    return {
        "id": version.id,
        "file_id": version.file_id,
        "parent_id": version.parent_id,
        "operation": version.operation,
        "path": version.path,
        "text": version.text,
        "sha256": version.sha256,
        "size": version.size,
        "origin": {
            "run_id": origin.run_id,
            "principal_id": origin.principal_id,
            "tool_call_id": origin.tool_call_id,
            "session_id": origin.session_id,
            "api_key_id": origin.api_key_id,
        },
        "created_at": version.created_at.isoformat(),
        "redacted_at": redacted_at.isoformat() if redacted_at is not None else None,
        "redacted_by": version.redacted_by,
    }


def refusal_json(error: MemoryStoreError) -> Json:
    """What a client needs to raise the refusal itself."""
    current = file_json(error.current) if error.current is not None else None
    return {"memshelf_code": error.code, "memshelf_current": current}
