"""One change of a memory within a transaction that has locked its store."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.sql.changes import record
from memshelf.files.backends.sql.rows import LIVE_FIELDS, Live, live_of
from memshelf.files.decide import Delete, Move, Request, Write, ancestors, decide
from memshelf.files.format import describe
from memshelf.files.model import FileText, Version
from memshelf.limits import FileFormat, StoreLimits
from memshelf.origin import Origin
from memshelf.storage.ids import askable, from_micros
from memshelf.stores.model import Memory, PathConflictError
from memshelf.stores.rules import wire_path
from memshelf.stores.shelf import Opened, Shelf, no_such_memory

__all__ = [
    "CURRENT_MEMORY",
    "Current",
    "changed",
    "current_memory",
    "described",
    "requested",
    "require_content",
    "stored_version",
]


CURRENT_MEMORY = (
    f"SELECT f.file_id, {LIVE_FIELDS} FROM files f JOIN file_versions v ON v.id = f.version_id "  # noqa: S608  # no value
    "WHERE f.memory_id = $1 AND f.file_id {key}"
)
"""For `Transaction.fetch_keyed`: what `current_memory` looks up by the memory's id."""


class Current(NamedTuple):
    """A memory as it stands now."""

    store_id: str
    live: Live

    @property
    def file(self) -> FileText:
        return self.live.file

    @property
    def memory(self) -> Memory:
        return Memory(
            id=self.live.file_id,
            store_id=self.store_id,
            path=wire_path(self.file.path),
            version_id=self.file.version,
            sha256=self.live.sha256,
            size=self.live.size,
            created_at=from_micros(self.live.created_at),
            updated_at=from_micros(self.live.changed_at),
            content=self.file.text,
        )


async def current_memory(opened: Opened, memory_id: str) -> Current:
    """`not_found`."""
    live = opened.memory.last
    if live is None or live.file_id != memory_id:
        row = await opened.transaction.fetch_keyed(CURRENT_MEMORY, opened.memory.id, askable(memory_id))
        live = live_of(row[1:]) if row is not None else None
    if live is None:
        raise no_such_memory(memory_id)
    return Current(opened.store_id, live)


def requested(
    current: Current, path: str | None, content: str | None, description: str | None, expected_sha256: str | None
) -> Write | Move | None:
    """What makes a memory stand as asked; `None` when it does already, whatever hash was expected. A pure rule.
    `version_mismatch` when the content has another hash."""
    moves = path is not None and path != current.file.path
    rewrites = content is not None and content != current.file.text
    if not moves and not rewrites:
        return None
    require_content(current, expected_sha256)
    if path is not None and moves:
        text = content if rewrites else None
        return Move(current.file.path, path, current.file.version, text, description if rewrites else None)
    assert content is not None  # noqa: S101  # as it does not move, it is rewritten
    return Write(current.file.path, content, current.file.version, description)


def require_content(current: Current, expected_sha256: str | None) -> None:
    if expected_sha256 is not None and expected_sha256 != current.live.sha256:
        raise MemoryStoreError(
            "version_mismatch",
            f"The content of memory {current.live.file_id} does not have the expected hash; nothing changed. Read it "
            "and decide again.",
        )


async def changed(opened: Opened, request: Request, current: Current | None, origin: Origin, shelf: Shelf) -> Memory:
    """Decide on a request and record it as a version: the memory as it stands then, or last stood if it is deleted.

    `current` is the memory that the request speaks of, `None` to create one. `PathConflictError`, `memory_full`.
    """
    if current is None and opened.head.files >= shelf.limits.memories:
        raise MemoryStoreError(
            "memory_full",
            f"The memory store is full: it holds at most {shelf.limits.memories} memories. Delete some, or use another "
            "store.",
        )
    own = current.live.file_id if current is not None else ""
    await _require_free(opened, request.must_be_free, own)
    commit = decide(request, current.file if current is not None else None, None)
    assert commit is not None  # noqa: S101  # what already stands as asked is no request
    description = current.live.description if current is not None else None
    if isinstance(request, Write) or (isinstance(request, Move) and request.text is not None):
        description = request.description
    live = current.live if current is not None else None
    written = await record(opened.memory, commit, live, description, origin, shelf.mint)
    return Memory(
        id=written.facts.file_id,
        store_id=opened.store_id,
        path=wire_path(written.path),
        version_id=written.facts.id,
        sha256=written.sha256 or "",
        size=written.size or 0,
        created_at=from_micros(written.file_created_at),
        updated_at=from_micros(written.facts.created_at),
        content=None if isinstance(request, Delete) else commit.text,
    )


async def _require_free(opened: Opened, path: str | None, own: str) -> None:
    """A memory is never in its own way: `/a` may become `/a/b`."""
    if path is None or await opened.memory.free(path):
        return
    paths = (path, *ancestors(path))
    marks = ", ".join(f"${number}" for number in range(5, len(paths) + 5))
    row = await opened.memory.one(
        f"SELECT file_id, path FROM files WHERE memory_id = $1 AND path IN ({marks}) AND file_id <> $2 "  # noqa: S608  # marks
        "UNION ALL SELECT file_id, path FROM (SELECT file_id, path FROM files WHERE memory_id = $1 AND file_id <> $2 "
        "AND path > $3 AND path < $4 ORDER BY path LIMIT 1) below",
        own,
        f"{path}/",
        f"{path}0",  # "0" follows "/": between them lies everything below the path
        *paths,
    )
    if row is None:
        return
    memory_id, found = row[0], wire_path(row[1])
    if row[1] == path:
        message = f"path `{found}` is already used by `{memory_id}`; use update to modify it"
    else:
        message = f"path `{wire_path(path)}` is not free: `{memory_id}` is at `{found}`, and no memory is a directory"
    raise PathConflictError(message, memory_id, found)


@cache
def _format(limits: StoreLimits) -> FileFormat:
    return FileFormat(max_file_bytes=limits.content_bytes)


def described(content: str, limits: StoreLimits) -> str | None:
    """What a listing says of the content. Here any text is a memory's, also one whose frontmatter is malformed."""
    try:
        return describe(content, _format(limits))
    except MemoryStoreError:
        return None


async def stored_version(opened: Opened, version_id: str) -> Version:
    """`not_found`."""
    try:
        return await opened.memory.version(version_id)
    except MemoryStoreError as error:
        if error.code != "not_found":
            raise
        raise MemoryStoreError("not_found", f"This memory store has no version {version_id}.") from None
