"""Searching stores by meaning: indexes in the memory of this process, and vectors in the database for the next one."""

from __future__ import annotations

import asyncio
import builtins
from collections import OrderedDict

from memshelf.errors import MemoryStoreError
from memshelf.files.model import FileEntry, FileText
from memshelf.meaning.files import FileHit, FileMeaning
from memshelf.meaning.kept import DatabaseVectors
from memshelf.stores.files import StoreFiles
from memshelf.stores.shelf import Shelf

__all__ = ["Meanings"]

_STORES = 4
_PATIENCE = 20.0


class Meanings:
    """Indexes of the stores that were searched last. Each search first takes in what has changed."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._indexes: OrderedDict[tuple[str, str], FileMeaning] = OrderedDict()
        self._reading: set[asyncio.Task[list[FileHit]]] = set()

    async def search(
        self, workspace_id: str, store_id: str, query: str, *, limit: int, directory: str
    ) -> builtins.list[FileHit]:
        """`FileMeaning.search` of one store. `not_found`; `unavailable` while a large store is read for the first
        time, which goes on meanwhile."""
        key = workspace_id, store_id
        index = self._indexes.get(key)
        if index is None:
            files = _Files(StoreFiles(self._shelf, workspace_id, store_id))
            await files.list()  # there may be no such store
            index = self._indexes.setdefault(key, FileMeaning(files, DatabaseVectors(self._shelf.engine, store_id)))
        self._indexes.move_to_end(key)
        while len(self._indexes) > _STORES:
            _, oldest = self._indexes.popitem(last=False)
            await oldest.aclose()
        searching = asyncio.ensure_future(index.search(query, limit=limit, directory=directory))
        self._reading.add(searching)
        searching.add_done_callback(self._reading.discard)
        await asyncio.wait([searching], timeout=_PATIENCE)
        if not searching.done():
            searching.add_done_callback(_looked_at)
            raise MemoryStoreError(
                "unavailable", "The store is read for the first time, which takes a while; ask again."
            )
        try:
            return searching.result()
        except MemoryStoreError as error:
            if error.code == "not_found":
                self._indexes.pop(key, None)
            raise

    async def aclose(self) -> None:
        """Stop reading, and end the threads that search."""
        for searching in list(self._reading):
            searching.cancel()
        if self._reading:
            await asyncio.wait(self._reading)
        for index in self._indexes.values():
            await index.aclose()
        self._indexes.clear()


def _looked_at(searching: asyncio.Task[list[FileHit]]) -> None:
    if not searching.cancelled():
        searching.exception()  # the next search meets the same, and says so


class _Files:
    """A store, as `FileMeaning` reads it."""

    def __init__(self, files: StoreFiles) -> None:
        self._files = files
        self._known: tuple[str, builtins.list[FileEntry]] | None = None

    async def list(self) -> builtins.list[FileEntry]:
        known = self._known
        fresh = await self._files.entries(known[0] if known is not None else None)
        if fresh is not None:
            self._known = known = fresh
        return known[1] if known is not None else []

    async def read(self, path: str) -> FileText:
        return await self._files.file(path)
