"""The entries of one user, as far as they are known in this process."""

from __future__ import annotations

import asyncio
from threading import Lock
from weakref import WeakKeyDictionary

from memshelf.errors import MemoryStoreError
from memshelf.files.edits import find
from memshelf.files.format import validate_path
from memshelf.files.model import FullResync
from memshelf.files.protocol import FileStore
from memshelf.workspace.config import WorkspaceConfig
from memshelf.workspace.entries import EntryInfo, MemoryEntry, MemoryType, read_entry_file
from memshelf.workspace.index import listed_files
from memshelf.workspace.relevance import Relevance

__all__ = ["Catalogue"]

_NOT_ENTRIES = ("conversations/", "experiences/", ".")


class Catalogue:
    """What every entry is called and which words it has; follows the store with `refresh`.

    Entries have an order: of those that the index lists, the order of its rows, after all others; whatever is seen to
    be written later comes later.
    """

    def __init__(self, store: FileStore, config: WorkspaceConfig) -> None:
        self._store = store
        self._config = config
        self._cursor: str | None = None
        self._versions: dict[str, str] = {}
        self._changing = Lock()
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self.entries: dict[str, EntryInfo] = {}
        self.order: dict[str, int] = {}
        self.relevance = Relevance()

    def path_of(self, file: str) -> str:
        """The path of an entry's file in the store, which callers may name with or without the directory.

        `invalid_path` for what leads anywhere else.
        """
        under = self._config.entries_under
        path = validate_path(file if file.startswith(under) else under + file)
        if self._entry_file(path) is None:
            raise MemoryStoreError("invalid_path", "An entry's file is a Markdown file in the memory's directory.")
        return path

    def _entry_file(self, path: str) -> str | None:
        under, config = self._config.entries_under, self._config
        if not path.startswith(under) or not path.endswith(".md") or path in (config.memory_md, config.agent_md):
            return None
        file = path[len(under) :]
        if not under and file.startswith((*_NOT_ENTRIES, f"{config.conversations_dir}/")):
            return None
        return file

    def named(self, memory_type: MemoryType, title: str) -> list[EntryInfo]:
        """The entries of that type and title."""
        return [each for each in self.entries.values() if each.title == title and each.memory_type == memory_type]

    def newest(self) -> list[EntryInfo]:
        """All entries, the newest first."""
        return sorted(self.entries.values(), key=lambda each: (self.order[each.file], each.file), reverse=True)

    def rank(self, query: str, limit: int, without: frozenset[str]) -> list[str]:
        """The files of at most `limit` entries that the query is about, best first; of equals, the newest."""
        with self._changing:
            return [file for file, _ in self.relevance.rank(query, limit, without, self.order)]

    async def refresh(self) -> None:
        """Take in what was changed since the last time, by whomever."""
        turn = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with turn:
            await self._refresh()

    async def _refresh(self) -> None:
        changes = await self._store.changes(self._cursor)
        first = self._cursor is None
        if isinstance(changes, FullResync):
            listed = {each.path: each.version for each in await self._store.list() if self._entry_file(each.path)}
            moved = [path for path, version in listed.items() if self._versions.get(path) != version]
            gone = [path for path in self._versions if path not in listed]
        else:
            moved, gone = [path for path in changes.paths if self._entry_file(path)], []
        for path in gone:
            self.forget(path)
        if first:
            index = await find(self._store, self._config.memory_md)
            rows = listed_files(index.text if index is not None else "", self._config.entries_under)
            place = {file: number for number, file in enumerate(rows)}
            moved.sort(key=lambda path: (place.get(self._entry_file(path) or "", -1), path))
        for path in moved:
            await self._read(path)
        self._cursor = changes.cursor

    async def _read(self, path: str) -> None:
        try:
            found = await find(self._store, path)
        except MemoryStoreError as error:
            if error.code not in ("invalid_file", "invalid_path"):
                raise
            found = None  # no text, or replaced by something that is no file
        if found is None:
            self.forget(path)
        else:
            self.take(path, found.version, read_entry_file(path[len(self._config.entries_under) :], found.text))

    def take(self, path: str, version: str, entry: MemoryEntry) -> None:
        """Remember what a file holds at a version."""
        with self._changing:
            if self._versions.get(path) == version:
                return
            self._versions[path] = version
            self.entries[entry.file] = entry.info
            self.order[entry.file] = max(self.order.values(), default=0) + 1
            self.relevance.put(entry)

    def forget(self, path: str) -> None:
        """The file is gone."""
        file = path[len(self._config.entries_under) :]
        with self._changing:
            self._versions.pop(path, None)
            self.entries.pop(file, None)
            self.order.pop(file, None)
            self.relevance.remove(file)
