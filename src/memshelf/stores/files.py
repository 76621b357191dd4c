"""A store as a file memory: what `HistoryFileStore` and `SearchableFileStore` promise, for whoever brings them to the
network. The rules of a store hold here as well: its paths, its limits, its archiving."""

from __future__ import annotations

import asyncio
import builtins
import hashlib
from collections.abc import Callable, Coroutine, Iterator
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar

from memshelf.errors import MemoryStoreError
from memshelf.files import grep
from memshelf.files.backends.sql import changes
from memshelf.files.backends.sql.memory import Memory
from memshelf.files.decide import Delete, Move, Request, Write
from memshelf.files.model import Changes, FileEntry, FileText, FullResync, GrepMatch, Version, VersionPage
from memshelf.origin import Origin
from memshelf.stores.change import described
from memshelf.stores.lifecycle import require_writable
from memshelf.stores.rules import checked_path, checked_prefix, wire_path
from memshelf.stores.shelf import Opened, StoreAccess

__all__ = ["StoreFiles"]

T = TypeVar("T")
Script: TypeAlias = Callable[[Opened], Coroutine[Any, Any, T]]

_SEARCH_BYTES = 4_194_304


class StoreFiles(StoreAccess):
    """The files of one store. Paths are those of files, without a `/` before them, and are in NFC.

    Calls and codes are those of the contracts; besides, every call raises `NoSuchStoreError`, and what writes files
    `store_archived` and `memory_full`. Content is any Unicode text within the store's limits.

    A mutation may bear a `change_id`, which its caller made up and uses for nothing else: 32 hexadecimal digits, a
    version 7 UUID. When it is made again with the same id it answers with its first result, and `change` tells whether
    it was made at all.
    """

    async def entries(self, known: str | None = None) -> tuple[str, list[FileEntry]] | None:
        """A cursor and the listing at it; `None` when that is the one at the cursor `known`."""
        return await self.read(lambda opened: opened.memory.entries(known))

    async def file(self, path: str) -> FileText:
        path = self._path(path)
        live = await self.read(lambda opened: opened.memory.live(path))
        if live is None:
            raise MemoryStoreError("not_found", f"{path} does not exist.")
        return live.file

    async def put(
        self, path: str, text: str, *, expected: str | None, origin: Origin, change_id: str | None = None
    ) -> str:
        """`FileStore.write`."""
        request = Write(self._path(path), text, expected, self._described(text))
        return await self._apply(lambda opened: self._creating(opened, request, origin, change_id), unlocked=True)

    async def move(
        self, source: str, destination: str, *, expected: str, origin: Origin, change_id: str | None = None
    ) -> str:
        request = Move(self._path(source), self._path(destination), expected)
        return await self._apply(lambda opened: self._changing(opened, request, origin, change_id), unlocked=True)

    async def delete(self, path: str, *, expected: str, origin: Origin, change_id: str | None = None) -> str:
        """Also of an archived store. The answer is the version that says so."""
        request = Delete(self._path(path), expected)
        return await self.write(lambda opened: self._changing(opened, request, origin, change_id), unlocked=True)

    async def restore(
        self, version_id: str, *, expected: str | None, origin: Origin, change_id: str | None = None
    ) -> str:
        async def restore(opened: Opened) -> str:
            version = await opened.memory.version(version_id)
            if version.path is None or version.text is None:
                raise MemoryStoreError("not_found", f"Version {version_id} has no content to restore; nothing changed.")
            description = described(version.text, self.shelf.limits)
            request = Write(version.path, version.text, expected, description)
            return await self._creating(opened, request, origin, change_id)

        return await self._apply(restore)

    async def changes(self, since: str | None) -> Changes | FullResync:
        return await self.read(lambda opened: opened.memory.changes(since))

    async def versions(self, path: str | None, since: datetime | None, limit: int, cursor: str | None) -> VersionPage:
        path = self._path(path) if path is not None else None
        return await self.read(lambda opened: opened.memory.versions(path, since, limit, cursor))

    async def version(self, version_id: str) -> Version:
        return await self.read(lambda opened: opened.memory.version(version_id))

    async def change(self, change_id: str) -> Version:
        """The version that the change with this id wrote. `not_found` when it has written none, so far."""
        return await self.version(self._version_id(change_id))

    async def replayed(self, origin: Origin) -> Version | None:
        return await self.read(lambda opened: opened.memory.version_of_call(origin))

    async def redact(self, version_id: str, *, by: str) -> Version:
        return await self.erase(lambda opened: changes.redact(opened.memory, version_id, by, self.shelf.mint))

    async def purge(self) -> None:
        """Also of an archived store, as its deletion would."""
        await self.erase(lambda opened: changes.purge(opened.memory, self.shelf.mint))

    async def search(
        self, pattern: str, *, regex: bool, case_sensitive: bool, path: str, limit: int
    ) -> tuple[builtins.list[GrepMatch], bool]:
        directory = checked_prefix(wire_path(path), self.shelf.limits)
        compiled = grep.Pattern.compile(pattern, regex=regex, case_sensitive=case_sensitive)
        await self.shelf.memory_id(self.workspace_id, self.store_id)
        texts = self._texts(directory, asyncio.get_running_loop())
        return await asyncio.to_thread(grep.search, texts, compiled, limit)

    def _texts(self, directory: str, loop: asyncio.AbstractEventLoop) -> Iterator[FileText]:
        """For another thread than the loop's: the files below a directory, a few megabytes at a time."""
        after = ""
        while True:
            query = partial(Memory.texts, directory=directory, after=after, most_bytes=_SEARCH_BYTES)
            page = asyncio.run_coroutine_threadsafe(self.read(partial(_asked, query=query)), loop).result()
            if not page:
                return
            yield from page
            after = page[-1].path

    async def _apply(self, script: Script[str], *, unlocked: bool = False) -> str:
        async def apply(opened: Opened) -> str:
            require_writable(opened.archived_at)
            return await script(opened)

        return await self.write(apply, unlocked=unlocked)

    async def _creating(self, opened: Opened, request: Write, origin: Origin, change_id: str | None) -> str:
        """`_changing`, for what may need room for one more memory."""
        memory, limit = opened.memory, self.shelf.limits.memories
        if (
            request.expected is None
            and opened.head.files >= limit
            and await memory.recorded(origin, self._maybe_version_id(change_id)) is None
            and await memory.in_the_way(request.path) is None
        ):
            raise MemoryStoreError("memory_full", f"The memory store is full: it holds at most {limit} memories.")
        return await self._changing(opened, request, origin, change_id)

    async def _changing(self, opened: Opened, request: Request, origin: Origin, change_id: str | None) -> str:
        return await changes.apply(opened.memory, request, origin, self.shelf.mint, self._maybe_version_id(change_id))

    def _version_id(self, change_id: str) -> str:
        # It belongs to this store alone: who knows the id of another's version or change learns nothing of it here.
        bound = hashlib.sha256(f"{self.store_id} {change_id}".encode()).hexdigest()
        return f"memver_{change_id[:16]}{0x8 | int(bound[0], 16) & 0x3:x}{bound[1:16]}"

    def _maybe_version_id(self, change_id: str | None) -> str | None:
        return self._version_id(change_id) if change_id is not None else None

    def _path(self, path: str) -> str:
        return checked_path(wire_path(path), self.shelf.limits)

    def _described(self, text: str) -> str | None:
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            raise MemoryStoreError("invalid_file", "A memory is UTF-8 text, without lone surrogates.") from None
        if size > (most := self.shelf.limits.content_bytes):
            raise MemoryStoreError("too_large", f"A memory has at most {most} bytes; this one has {size}.")
        return described(text, self.shelf.limits)


async def _asked(opened: Opened, query: Callable[[Memory], Coroutine[Any, Any, list[FileText]]]) -> list[FileText]:
    return await query(opened.memory)
