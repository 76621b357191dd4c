"""The requests of the Memory Store API that a file memory needs, and the paths and ids behind them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import quote

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.http.answers import field, items, maybe, placed
from memshelf.files.backends.http.connection import Connection, Json, RefusedError
from memshelf.files.model import FileText

__all__ = ["Memories", "Memory", "Past"]

T = TypeVar("T")

_MOST_PAGES = 100_000


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory as the server answered it. `path` is its file's; `text` is `None` where it was not asked for."""

    id: str
    path: str
    version: str
    sha256: str
    size: int
    text: str | None

    @property
    def file(self) -> FileText:
        if self.text is None:
            raise MemoryStoreError("unavailable", "The server answered without the content of a memory.")
        return FileText(self.path, self.text, self.version)


@dataclass(frozen=True, slots=True)
class Past:
    """A version as the server's history has it, or as a change would write it."""

    operation: str
    path: str
    sha256: str | None
    id: str = ""

    def matches(self, other: Past) -> bool:
        return (self.operation, self.path, self.sha256) == (other.operation, other.path, other.sha256)


class Memories:
    """One store. It remembers which memory stood at which path, and asks before it relies on that."""

    def __init__(self, connection: Connection, store: str) -> None:
        self._connection = connection
        self._root = f"/v1/memory_stores/{quote(store, safe='', errors='replace')}"
        self._ids: dict[str, str] = {}

    async def archived(self) -> bool:
        return bool(await self._connection.ask(self._root, lambda answer: maybe(answer, "archived_at", str)))

    async def all(self, *, full: bool = False) -> list[Memory]:
        """Every memory, also when others come and go meanwhile."""
        found = {memory.id: memory async for memory in self._pages("/", full=full)}
        self._ids = {memory.path: memory.id for memory in found.values()}
        return list(found.values())

    async def below(self, path: str) -> list[Memory]:
        """The memories below a path, in byte-wise order."""
        return sorted([memory async for memory in self._pages(f"/{path}/")], key=lambda memory: memory.path.encode())

    async def at(self, path: str) -> Memory | None:
        """The memory at a path, with its content."""
        if (known := self._ids.get(path)) is not None:
            memory = await self.retrieve(known)
            if memory is not None and memory.path == path:
                return memory
            self._ids.pop(path, None)
        directory = path.rpartition("/")[0]
        prefix = f"/{directory}/" if directory else "/"
        async for item in self._pages(prefix, depth=1):
            self._ids[item.path] = item.id
        if (found := self._ids.get(path)) is None:
            return None
        memory = await self.retrieve(found)
        return memory if memory is not None and memory.path == path else None

    async def retrieve(self, memory_id: str) -> Memory | None:
        try:
            return await self._connection.ask(self._one(memory_id), _memory, {"view": "full"})
        except RefusedError as refused:
            if refused.status == 404:
                return None
            raise

    async def create(self, path: str, text: str) -> Memory:
        body = {"path": f"/{path}", "content": text}
        try:
            return self._known(await self._connection.change("POST", f"{self._root}/memories", _memory, body))
        except RefusedError as refused:
            raise _gone(refused) from None

    async def update(self, memory_id: str, body: Json) -> Memory:
        return self._known(await self._connection.change("POST", self._one(memory_id), _memory, body))

    async def delete(self, memory_id: str, sha256: str | None) -> None:
        query = {"expected_content_sha256": sha256} if sha256 is not None else None
        await self._connection.change(
            "DELETE", self._one(memory_id), lambda answer: field(answer, "id", str), None, query
        )

    async def remove(self, memory_id: str) -> None:
        """Delete a memory, whatever it holds, if it is still there."""
        try:
            await self.delete(memory_id, None)
        except RefusedError as refused:
            if refused.status != 404:
                raise

    async def redact(self, version_id: str) -> None:
        path = f"{self._root}/memory_versions/{quote(version_id, safe='', errors='replace')}/redact"
        await self._connection.change("POST", path, lambda answer: field(answer, "id", str), {})

    async def text_of(self, version_id: str) -> str | None:
        """The content of a version; `None` when it is not to be had any more."""
        path = f"{self._root}/memory_versions/{quote(version_id, safe='', errors='replace')}"
        try:
            return await self._connection.ask(path, lambda answer: maybe(answer, "content", str), {"view": "full"})
        except RefusedError as refused:
            if refused.status == 404:
                return None
            raise

    async def unredacted(self) -> list[str]:
        """The ids of the versions that can be redacted."""
        found = self._items(f"{self._root}/memory_versions", {"limit": 100}, _unredacted)
        return [version_id async for version_id in found if version_id is not None]

    async def after(self, memory_id: str, version_id: str) -> tuple[bool, Past | None]:
        """Whether the memory's history has the version, and the one that followed it, if any did."""
        following = None
        async for past in self._history(memory_id):
            if past.id == version_id:
                return True, following
            following = past
        return False, None

    async def first_version(self, memory_id: str) -> Past | None:
        first = None
        async for past in self._history(memory_id):
            first = past
        return first

    def _history(self, memory_id: str) -> AsyncIterator[Past]:
        return self._items(f"{self._root}/memory_versions", {"memory_id": memory_id, "limit": 100}, _past)

    async def _pages(self, prefix: str, *, depth: int = 0, full: bool = False) -> AsyncIterator[Memory]:
        query: dict[str, str | int] = {"path_prefix": prefix, "depth": depth, "limit": 20 if full else 100}
        query["view"] = "full" if full else "basic"
        async for memory in self._items(f"{self._root}/memories", query, _listed):
            if memory is not None:
                yield memory

    async def _items(self, path: str, query: dict[str, str | int], parse: Callable[[Any], T]) -> AsyncIterator[T]:
        def page(answer: Json) -> tuple[list[T], str | None]:
            return [parse(item) for item in items(answer)], maybe(answer, "next_page", str)

        seen: set[str] = set()
        while True:
            try:
                data, following = await self._connection.ask(path, page, query)
            except RefusedError as refused:
                raise _gone(refused) from None
            for item in data:
                yield item
            if not following:
                return
            if following in seen or len(seen) > _MOST_PAGES:
                raise MemoryStoreError("unavailable", "The server's listing does not end.")
            seen.add(following)
            query = {**query, "page": following}

    def _one(self, memory_id: str) -> str:
        return f"{self._root}/memories/{quote(memory_id, safe='', errors='replace')}"

    def _known(self, memory: Memory) -> Memory:
        self._ids[memory.path] = memory.id
        return memory


def _gone(refused: RefusedError) -> MemoryStoreError:
    """What is not found where no memory is named is the store."""
    if refused.status == 404:
        return MemoryStoreError(
            "memory_deleted", "The server has no such memory store: check its ID, and the server's address."
        )
    return refused


def _listed(item: Any) -> Memory | None:
    """`None` for a prefix."""
    return _memory(item) if maybe(item, "type", str) == "memory" else None


def _unredacted(item: Any) -> str | None:
    return field(item, "id", str) if maybe(item, "redacted_at", str) is None else None


def _memory(answer: Json) -> Memory:
    path = field(answer, "path", str)
    return Memory(
        id=field(answer, "id", str),
        path=placed(path.removeprefix("/")),
        version=field(answer, "memory_version_id", str),
        sha256=field(answer, "content_sha256", str),
        size=field(answer, "content_size_bytes", int),
        text=maybe(answer, "content", str),
    )


def _past(item: Any) -> Past:
    path = maybe(item, "path", str)
    return Past(
        operation=field(item, "operation", str),
        path=path.removeprefix("/") if path is not None else "",
        sha256=maybe(item, "content_sha256", str),
        id=field(item, "id", str),
    )
