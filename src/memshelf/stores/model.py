"""The values of named stores. All are frozen; ids and cursors are opaque to everyone but the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Generic, TypeVar

from memshelf.errors import MemoryStoreError

__all__ = ["Memory", "NoSuchStoreError", "Page", "PathConflictError", "Prefix", "Store"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """A store. `updated_at` moves with its own fields and with its archiving, not with its memories."""

    id: str
    name: str
    description: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A memory as it was when it was read. `id` stays when the path changes; `version_id` is its current version.
    `content` is `None` where it was not asked for."""

    id: str
    store_id: str
    path: str
    version_id: str
    sha256: str
    size: int
    created_at: datetime
    updated_at: datetime
    content: str | None = None


@dataclass(frozen=True, slots=True)
class Prefix:
    """A directory that stands for the memories below it. `path` starts and ends with `/`."""

    path: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a listing. `next_page` is the cursor of the part that follows, `None` on the last; a page without
    items is the last."""

    items: tuple[T, ...]
    next_page: str | None


class NoSuchStoreError(MemoryStoreError):
    """`not_found`: the workspace has no such store."""

    def __init__(self, message: str) -> None:
        super().__init__("not_found", message)

    def __reduce__(self) -> tuple[object, ...]:
        return NoSuchStoreError, (self.message,)


class PathConflictError(MemoryStoreError):
    """`already_exists`: another memory is in the way, at the path, above it or below it."""

    def __init__(self, message: str, memory_id: str, path: str) -> None:
        super().__init__("already_exists", message)
        self.memory_id = memory_id
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return PathConflictError, (self.message, self.memory_id, self.path)
