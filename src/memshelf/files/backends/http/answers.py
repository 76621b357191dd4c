"""Values from the answers of a server, which may hold anything: what is not as it must be is a `LostReplyError`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar

from memshelf.files.backends.http.connection import Json, LostReplyError
from memshelf.files.model import FileEntry, FileText, GrepMatch, Operation, Version
from memshelf.origin import Origin
from memshelf.untrusted import is_sound

__all__ = ["entry", "field", "file", "items", "match", "maybe", "placed", "version"]

T = TypeVar("T")

_OPERATIONS: dict[str, Operation] = {"created": "created", "modified": "modified", "deleted": "deleted"}


def field(data: Any, name: str, type: type[T]) -> T:
    """A field that must be there."""
    found = maybe(data, name, type)
    if found is None:
        raise LostReplyError(f"The server's answer has no {name} as a memory store gives it.")
    return found


def maybe(data: Any, name: str, type: type[T]) -> T | None:
    """A field that may be null."""
    value = data.get(name) if isinstance(data, dict) else None
    if value is not None and (not isinstance(value, type) or isinstance(value, bool) is not (type is bool)):
        raise LostReplyError(f"The server's answer has another {name} than a memory store gives.")
    if isinstance(value, str) and not is_sound(value):
        raise LostReplyError(f"The server's answer has a {name} with half a surrogate pair.")
    return value


def placed(path: str) -> str:
    """The path, which names a place below a memory's root: it may become one on a disk."""
    if "\0" in path or any(segment in ("", ".", "..") for segment in path.split("/")):
        raise LostReplyError("The server's answer has a path that no file of a memory has.")
    return path


def items(data: Json, name: str = "data") -> list[Any]:
    return field(data, name, list)


def entry(data: Any) -> FileEntry:
    return FileEntry(
        placed(field(data, "path", str)),
        field(data, "version", str),
        field(data, "size", int),
        maybe(data, "description", str),
    )


def file(data: Any) -> FileText:
    return FileText(placed(field(data, "path", str)), field(data, "text", str), field(data, "version", str))


def match(data: Any) -> GrepMatch:
    return GrepMatch(
        placed(field(data, "path", str)),
        field(data, "line", int),
        field(data, "text", str),
        field(data, "version", str),
    )


def version(data: Any) -> Version:
    operation = _OPERATIONS.get(field(data, "operation", str))
    if operation is None:
        raise LostReplyError("The server's answer has an operation that is none of a memory store's.")
    path, redacted_at = maybe(data, "path", str), maybe(data, "redacted_at", str)
    return Version(
        id=field(data, "id", str),
        file_id=field(data, "file_id", str),
        parent_id=maybe(data, "parent_id", str),
        operation=operation,
        path=placed(path) if path is not None else None,
        text=maybe(data, "text", str),
        sha256=maybe(data, "sha256", str),
        size=maybe(data, "size", int),
        origin=_origin(field(data, "origin", dict)),
        created_at=_time(field(data, "created_at", str)),
        redacted_at=_time(redacted_at) if redacted_at is not None else None,
        redacted_by=maybe(data, "redacted_by", str),
    )


def _origin(data: Any) -> Origin:
    names = ("run_id", "principal_id", "tool_call_id", "session_id", "api_key_id")
    try:
        return Origin(*(maybe(data, name, str) for name in names))
    except ValueError:
        raise LostReplyError("The server's answer has an origin that is none.") from None


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise LostReplyError("The server's answer has a time that is none.") from None
    if moment.tzinfo is None:
        raise LostReplyError("The server's answer has a time without a time zone.")
    return moment
