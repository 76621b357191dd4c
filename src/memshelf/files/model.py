"""The values of file memory. All are frozen; versions and cursors are opaque to everyone but the store."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import Literal, TypeAlias

from memshelf.origin import Origin

__all__ = [
    "Changes",
    "FileEntry",
    "FileText",
    "FullResync",
    "GrepMatch",
    "Operation",
    "Version",
    "VersionPage",
    "in_order",
]

Operation: TypeAlias = Literal["created", "modified", "deleted"]


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One line of a listing. `size` is in UTF-8 bytes; `description` is what `describe` says of the content."""

    path: str
    version: str
    size: int
    description: str | None


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as it was when it was read."""

    path: str
    text: str
    version: str


@dataclass(frozen=True, slots=True)
class Changes:
    """The paths created, changed, moved or deleted after the caller's cursor, and the cursor that covers them."""

    cursor: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FullResync:
    """The store cannot list the changes since the caller's cursor: read everything, as of `cursor`."""

    cursor: str


@dataclass(frozen=True, slots=True)
class GrepMatch:
    """A matching line, counted from 1, of the file at `version`."""

    path: str
    line: int
    text: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """One immutable version of a file: what a change left behind.

    `id` is also the `version` that `FileStore` speaks of. `file_id` stays the same when a file moves, and `parent_id`
    is the version of the file before this one. `path` is where the change left the file; a move is a `modified`
    version at its new path. `text`, `sha256` and `size` are `None` for `deleted`; those three and `path` are `None`
    once the version is redacted. `created_at` is aware, in UTC.
    """

    id: str
    file_id: str
    parent_id: str | None
    operation: Operation
    path: str | None
    text: str | None
    sha256: str | None
    size: int | None
    origin: Origin
    created_at: datetime
    redacted_at: datetime | None = None
    redacted_by: str | None = None


@dataclass(frozen=True, slots=True)
class VersionPage:
    """Versions, newest first. `next_cursor` is `None` on the last page."""

    versions: tuple[Version, ...]
    next_cursor: str | None


def in_order(entries: Iterable[FileEntry]) -> list[FileEntry]:
    """A listing in byte-wise path order, which that of code points is, too: not every store lists in it."""
    return sorted(entries, key=attrgetter("path"))
