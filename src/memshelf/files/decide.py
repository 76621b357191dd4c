"""The rules of a mutation, as pure functions.

A store builds a request (`Write.checked` and so on validate it), loads what the request names, asks `decide`, and
commits. Every store asks here, so none can disagree about compare-and-swap, obstacles or codes.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias, assert_never

from memshelf.errors import MemoryStoreError
from memshelf.files.format import describe, validate_path
from memshelf.files.model import FileText, Operation
from memshelf.limits import FileFormat

__all__ = ["Commit", "Delete", "Move", "Recorded", "Request", "Write", "ancestors", "call_reused", "decide", "replay"]


@dataclass(frozen=True, slots=True)
class Write:
    """Create `path` (`expected` is `None`) or replace the version `expected` of it."""

    path: str
    text: str
    expected: str | None
    description: str | None

    @classmethod
    def checked(cls, path: str, text: str, expected: str | None, format: FileFormat) -> Write:
        path = validate_path(path, format)
        return cls(path, text, expected, describe(text, format))

    @property
    def loads(self) -> str | None:
        """The path whose file the decision needs."""
        return None if self.expected is None else self.path

    @property
    def must_be_free(self) -> str | None:
        """The path for which the decision needs to know what is in the way."""
        return self.path if self.expected is None else None


@dataclass(frozen=True, slots=True)
class Move:
    """Rename the version `expected` of `source`, and replace its content unless `text` is `None`."""

    source: str
    destination: str
    expected: str
    text: str | None = None
    description: str | None = None

    @classmethod
    def checked(cls, source: str, destination: str, expected: str, format: FileFormat) -> Move:
        return cls(validate_path(source, format), validate_path(destination, format), expected)

    @property
    def loads(self) -> str:
        return self.source

    @property
    def must_be_free(self) -> str:
        return self.destination


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove the version `expected` of `path`."""

    path: str
    expected: str

    @classmethod
    def checked(cls, path: str, expected: str, format: FileFormat) -> Delete:
        return cls(validate_path(path, format), expected)

    @property
    def loads(self) -> str:
        return self.path

    @property
    def must_be_free(self) -> None:
        return None


Request: TypeAlias = Write | Move | Delete


class Commit(NamedTuple):
    """What to store: the file at `path` becomes `text`, or is gone (`deleted`); `source` is where it moved from."""

    # A tuple, as these are made for each write: to make a frozen dataclass takes twice as long.

    operation: Operation
    path: str
    text: str
    source: str | None = None

    @property
    def data(self) -> bytes:
        return self.text.encode()

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def decide(request: Request, current: FileText | None, obstacle: FileText | None) -> Commit | None:
    """The commit that fulfils `request`, `None` when everything already stands as asked, or a refusal (raised).

    `current` is the file at `request.loads`; `obstacle` a file at `request.must_be_free`, or at one of its
    `ancestors`, or the first one below it.
    """
    match request:
        case Write(path=path, text=text, expected=None):
            _require_free(path, obstacle)
            return Commit("created", path, text)
        case Write(path=path, text=text):
            current = _require_version(path, current, request.expected)
            return None if current.text == text else Commit("modified", path, text)
        case Move(source=source, destination=destination):
            current = _require_version(source, current, request.expected)
            _require_free(destination, obstacle)
            return Commit("modified", destination, current.text if request.text is None else request.text, source)
        case Delete(path=path):
            current = _require_version(path, current, request.expected)
            return Commit("deleted", path, current.text)
        case _:
            assert_never(request)


def ancestors(path: str) -> list[str]:
    """Every path above `path` at which a file would be in the way: `["a", "a/b"]` for `a/b/c`."""
    segments = path.split("/")
    return ["/".join(segments[:depth]) for depth in range(1, len(segments))]


def _require_version(path: str, current: FileText | None, expected: str | None) -> FileText:
    if current is None:
        raise MemoryStoreError("version_mismatch", f"{path} no longer exists; nothing changed.")
    if current.version != expected:
        raise MemoryStoreError(
            "version_mismatch", f"{path} is no longer at version {expected}; nothing changed.", current=current
        )
    return current


def _require_free(path: str, obstacle: FileText | None) -> None:
    if obstacle is None:
        return
    if obstacle.path == path:
        reason = f"{path} already exists; nothing changed."
    else:
        reason = f"{path} is not free: {obstacle.path} exists, and a file cannot be a directory; nothing changed."
    raise MemoryStoreError("already_exists", reason, current=obstacle)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What a tool call already did: the version that it wrote, and the one that it found."""

    version: str
    operation: Operation
    path: str | None
    text: str | None
    parent: str | None
    parent_path: str | None


def replay(request: Request, recorded: Recorded) -> str:
    """The first result of a call that is made again with the same arguments; `forbidden` with others."""
    match request:
        case Write(path=path, text=text, expected=expected):
            same = recorded.operation != "deleted" and (recorded.path, recorded.text) == (path, text)
            same = same and recorded.parent == expected and recorded.parent_path in (None, path)
        case Move(source=source, destination=destination, expected=expected):
            same = (recorded.path, recorded.parent_path, recorded.parent) == (destination, source, expected)
            same = same and request.text in (None, recorded.text)
        case Delete(path=path, expected=expected):
            same = recorded.operation == "deleted" and (recorded.path, recorded.parent) == (path, expected)
        case _:
            assert_never(request)
    if not same:
        raise call_reused()
    return recorded.version


def call_reused() -> MemoryStoreError:
    return MemoryStoreError(
        "forbidden",
        "This tool call already made a change with other arguments; nothing changed. Use a new call for a new change.",
    )
