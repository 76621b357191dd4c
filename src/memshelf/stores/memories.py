"""The memories of a store, by id: create, page, retrieve, update, delete."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.sql.paths import obstacles
from memshelf.files.decide import Delete, Write
from memshelf.origin import Origin
from memshelf.storage.ids import askable, from_micros
from memshelf.storage.transaction import Row
from memshelf.stores.change import CURRENT_MEMORY, changed, current_memory, described, requested, require_content
from memshelf.stores.cursors import decoded, encoded
from memshelf.stores.lifecycle import require_writable
from memshelf.stores.listing import after_directory, after_file, rolled_up
from memshelf.stores.model import Memory, Page, Prefix
from memshelf.stores.rules import checked_content, checked_path, checked_prefix, wire_path
from memshelf.stores.shelf import Opened, StoreAccess, no_such_memory

__all__ = ["Memories", "memories_at"]

_FEW = 8

_FIELDS = "f.file_id, f.path, f.version_id, v.sha256, f.size, f.created_at, v.created_at"
_SELECT = f"SELECT {_FIELDS} FROM files f JOIN file_versions v ON v.id = f.version_id"  # noqa: S608  # no value
_FROM_STORE = (
    "FROM stores s JOIN files f ON f.memory_id = s.memory_id JOIN file_versions v ON v.id = f.version_id "
    "WHERE s.id = $1 AND s.workspace_id = $2 AND f.file_id = $3"
)
_RETRIEVE = f"SELECT {_FIELDS} {_FROM_STORE}"
_RETRIEVE_FULL = f"SELECT {_FIELDS}, v.content {_FROM_STORE}"


class Memories(StoreAccess):
    """The memories of one store. What is not in it is `not_found`."""

    async def create(self, path: str, content: str, *, origin: Origin) -> Memory:
        """Store a memory at a path that is free.

        `PathConflictError` when a memory is at the path, above it or below it; `invalid_path`, `invalid_file`,
        `too_large`, `store_archived`, `memory_full`.
        """
        limits = self.shelf.limits
        file_path, content = checked_path(path, limits), checked_content(content, limits)
        description = described(content, limits)

        async def create(opened: Opened) -> Memory:
            require_writable(opened.archived_at)
            request = Write(file_path, content, None, description)
            return await changed(opened, request, None, origin, self.shelf)

        return await self.write(create, keeps=True, announced=partial(obstacles, file_path), unlocked=True)

    async def retrieve(self, memory_id: str, *, content: bool = True) -> Memory:
        """`content` says whether to read it as well."""
        row = await self.shelf.engine.read(
            lambda transaction: transaction.fetch_one(
                _RETRIEVE_FULL if content else _RETRIEVE, self.store_id, self.workspace_id, askable(memory_id)
            ),
            single=True,
        )
        if row is None:
            raise no_such_memory(memory_id)
        return _memory(self.store_id, row)

    async def page(
        self, *, limit: int, prefix: str = "/", depth: int = 0, page: str | None = None, content: bool = False
    ) -> Page[Memory | Prefix]:
        """The memories below a prefix, in byte-wise path order. With a depth, those more levels below the prefix are
        represented by the directory at that depth, once. `invalid_path`, `invalid_cursor`."""
        directory = checked_prefix(prefix, self.shelf.limits)
        listing = ("memories", self.store_id, directory, depth)
        start = directory
        if page is not None:
            last = str(decoded(listing, page, str)[0])
            start = after_directory(last) if last.endswith("/") else after_file(last)

        async def walk(opened: Opened) -> list[Memory | Prefix]:
            if depth:
                items = await _rolled(opened, directory, depth, start, limit + 1)
            else:
                items = await _listed(opened, directory, start, limit + 1)
            return await _with_content(opened, items[:limit]) + items[limit:] if content else items

        items = await self.read(walk)
        if len(items) <= limit:
            return Page(tuple(items), None)
        return Page(tuple(items[:limit]), encoded(listing, (items[limit - 1].path[1:],)))

    async def update(
        self,
        memory_id: str,
        *,
        content: str | None = None,
        path: str | None = None,
        expected_sha256: str | None = None,
        origin: Origin,
    ) -> Memory:
        """Change the content, the path or both, as one version; `None` leaves either as it is.

        When everything already is as asked, that is the answer, whatever `expected_sha256` says: so an update may be
        repeated. Otherwise it must be the hash of the current content (`version_mismatch`), and the path must be free
        (`PathConflictError`). Codes as for `create`; `invalid_value` when nothing is asked for.
        """
        limits = self.shelf.limits
        if content is None and path is None:
            raise MemoryStoreError("invalid_value", "An update gives content, path or both.")
        try:
            file_path = checked_path(path, limits) if path is not None else None
            description = described(checked_content(content, limits), limits) if content is not None else None
        except MemoryStoreError:
            await self.retrieve(memory_id, content=False)  # what is not there is `not_found`, whatever is asked of it
            raise

        async def update(opened: Opened) -> Memory:
            current = await current_memory(opened, memory_id)
            require_writable(opened.archived_at)
            request = requested(current, file_path, content, description, expected_sha256)
            if request is None:
                return current.memory
            return await changed(opened, request, current, origin, self.shelf)

        known = askable(memory_id)
        return await self.write(
            update,
            keeps=True,
            announced=lambda: [(CURRENT_MEMORY, (known,)), *(obstacles(file_path) if file_path is not None else ())],
            memory_id=known,
            unlocked=True,
        )

    async def delete(self, memory_id: str, *, expected_sha256: str | None = None, origin: Origin) -> None:
        """Remove a memory; its versions stay. `version_mismatch` when its content has another hash."""

        async def delete(opened: Opened) -> None:
            current = await current_memory(opened, memory_id)
            require_content(current, expected_sha256)
            await changed(opened, Delete(current.file.path, current.file.version), current, origin, self.shelf)

        known = askable(memory_id)
        await self.write(
            delete, keeps=True, announced=lambda: [(CURRENT_MEMORY, (known,))], memory_id=known, unlocked=True
        )


async def _listed(opened: Opened, directory: str, start: str, most: int) -> list[Memory | Prefix]:
    """The first `most` memories below a directory from `start` on."""
    rows = await opened.memory.all(f"{_SELECT} {_below(directory)} LIMIT {most}", *_from(directory, start))
    return [_memory(opened.store_id, row) for row in rows]


async def _rolled(opened: Opened, directory: str, depth: int, start: str, most: int) -> list[Memory | Prefix]:
    """The same with directories that stand for what is deeper. What they stand for is passed over, not read."""
    paths: list[str] = []
    batch = most
    while True:
        rows = await opened.memory.all(
            f"SELECT f.path FROM files f {_below(directory)} LIMIT {batch}",  # noqa: S608  # no value
            *_from(directory, start),
        )
        passed_over = False
        for (path,) in rows:
            if path < start:
                passed_over = True
                continue
            rolled = rolled_up(path, directory, depth)
            paths.append(rolled or path)
            start = after_directory(rolled) if rolled is not None else after_file(path)
            if len(paths) == most:
                break
        if len(paths) == most or len(rows) < batch:
            break
        batch = _FEW if passed_over else min(2 * batch, most)
    live = await _at_paths(opened, [path for path in paths if not path.endswith("/")])
    return [Prefix(wire_path(path)) if path.endswith("/") else live[path] for path in paths]


def _below(directory: str) -> str:
    return f"WHERE f.memory_id = $1 AND f.path >= $2{' AND f.path < $3' if directory else ''} ORDER BY f.path"


def _from(directory: str, start: str) -> list[str]:
    return [start, after_directory(directory)] if directory else [start]


async def _at_paths(opened: Opened, paths: Sequence[str]) -> dict[str, Memory]:
    if not paths:
        return {}
    marks = ", ".join(f"${number}" for number in range(2, len(paths) + 2))
    rows = await opened.memory.all(f"{_SELECT} WHERE f.memory_id = $1 AND f.path IN ({marks})", *paths)
    return {row[1]: _memory(opened.store_id, row) for row in rows}


async def memories_at(opened: Opened, version_ids: Sequence[str]) -> dict[str, Memory]:
    """The memories that stand at these versions now, by version, with content."""
    if not version_ids:
        return {}
    marks = ", ".join(f"${number}" for number in range(2, len(version_ids) + 2))
    rows = await opened.memory.all(
        # The pluses keep an engine from beginning with all files of the memory, or with all its versions.
        f"SELECT {_FIELDS}, v.content FROM file_versions v "  # noqa: S608  # marks
        f"JOIN files f ON f.memory_id = +v.memory_id AND f.file_id = v.file_id AND f.version_id = v.id "
        f"WHERE +v.memory_id = $1 AND v.id IN ({marks})",
        *version_ids,
    )
    found = [_memory(opened.store_id, row) for row in rows]
    return {memory.version_id: memory for memory in found}


async def _with_content(opened: Opened, items: Sequence[Memory | Prefix]) -> list[Memory | Prefix]:
    ids = [item.version_id for item in items if isinstance(item, Memory)]
    full = await memories_at(opened, ids)
    return [full[item.version_id] if isinstance(item, Memory) else item for item in items]


def _memory(store_id: str, row: Row) -> Memory:
    id, path, version_id, sha256, size, created_at, updated_at, *content = row
    return Memory(
        id=id,
        store_id=store_id,
        path=wire_path(path),
        version_id=version_id,
        sha256=sha256,
        size=size,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        content=content[0].decode() if content else None,
    )
