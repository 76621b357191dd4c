"""The entries of one user, as far as they are known in this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import TypeAlias
from weakref import WeakKeyDictionary

from memshelf.arguments import checked_argument
from memshelf.errors import MemoryStoreError
from memshelf.files.edits import find_text
from memshelf.files.format import validate_path
from memshelf.files.model import Changes, FileEntry, FullResync
from memshelf.files.protocol import FileStore, ListsWithChanges
from memshelf.records.recall import EmbedderChoice
from memshelf.workspace.config import WorkspaceConfig
from memshelf.workspace.entries import EntryInfo, MemoryEntry, MemoryType, read_entry_file
from memshelf.workspace.index import listed_files
from memshelf.workspace.recall import EntryRecall
from memshelf.workspace.remembered import Learned, Remembered

__all__ = ["Catalogue", "Glance"]

Glance: TypeAlias = Callable[[Collection[str]], object]
"""A cheap look at some directories of the store, by path: the answer differs when files were added, removed or replaced
there, though not when a file was changed in place."""

_NOT_ENTRIES = ("experiences/", ".")
_WORTH_KEEPING = 100
"""So many entries take longer to read than what is remembered of them."""

_MANY, _RARELY = 1_000, 20
"""Over so many entries, a full look at the store is taken only if a glance shows a change, or after so many times as
long as it takes."""


class Catalogue:
    """What every entry is called and which words it has; follows the store with `refresh`.

    Entries have an order: of those that the index lists, the order of its rows, after all others; whatever is seen to
    be written later comes later.
    """

    def __init__(
        self,
        store: FileStore,
        config: WorkspaceConfig,
        embedder: EmbedderChoice,
        glance: Glance | None = None,
        kept_at: Path | None = None,
    ) -> None:
        self._store = store
        self._config = config
        self._glance = glance
        self._glanced: object = None
        self._looked, self._took = 0.0, 0.0
        self._cursor: str | None = None
        self._wrote = False
        self._versions: dict[str, str] = {}
        self._changing = Lock()
        self._last = 0
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._directories: set[str] = {config.memory_dir}
        self.entries: dict[str, EntryInfo] = {}
        self.order: dict[str, int] = {}
        self._named: dict[tuple[MemoryType, str], set[str]] = {}
        self.recall = EntryRecall(embedder)
        self._remembered = Remembered(kept_at, self.recall.model) if kept_at is not None else None
        self._news = 0

    def path_of(self, file: str) -> str:
        """The path of an entry's file in the store, which callers may name with or without the directory.

        `invalid_path` for what leads anywhere else.
        """
        under, path = self._config.entries_under, validate_path(checked_argument("file", file, str))
        path = path if path.startswith(under) else validate_path(under + path)
        if not self._is_entry(path):
            raise MemoryStoreError("invalid_path", "An entry is named by its file, such as user_tea.md.")
        return path

    def file_of(self, path: str) -> str:
        return path[len(self._config.entries_under) :]

    def _is_entry(self, path: str) -> bool:
        under, config = self._config.entries_under, self._config
        if not path.startswith(under) or not path.endswith(".md") or path in (config.memory_md, config.agent_md):
            return False
        return bool(under) or not path.startswith((*_NOT_ENTRIES, f"{config.conversations_dir}/"))

    def named(self, memory_type: MemoryType, title: str) -> list[EntryInfo]:
        """The entries of that type and title."""
        with self._changing:
            return [self.entries[file] for file in sorted(self._named.get((memory_type, title), ()))]

    def newest(self) -> list[EntryInfo]:
        """All entries, the newest first."""
        with self._changing:
            return sorted(self.entries.values(), key=lambda each: self.order[each.file], reverse=True)

    async def rank(self, query: str, limit: int, without: frozenset[str] = frozenset()) -> list[str]:
        """The files of at most `limit` entries that the query is about, best first; of equals, the newest."""
        files = await self.recall.rank(query, limit, without, self.order)
        if self._remembered is not None and self._news - self.recall.waiting >= _WORTH_KEEPING:
            await asyncio.to_thread(self._keep, self._remembered)
        return files

    def _keep(self, remembered: Remembered) -> None:
        """Spare the next process the reading and embedding, once there is much to spare."""
        with self._changing:
            self._news = self.recall.waiting
            versions, entries = dict(self._versions), dict(self.entries)
        known = {path: self.recall.learned(version, entries[self.file_of(path)]) for path, version in versions.items()}
        remembered.save({path: each for path, each in known.items() if each is not None})

    async def refresh(self, *, hurried: bool = False) -> None:
        """Take in what was changed since the last time, by whomever.

        Among very many entries in a directory, a file that somebody changed in place may be noticed a moment later.
        `hurried`, as before a write, takes no notice of those, and among very many also not of others.
        """
        turn = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with turn:
            glanced = self._glance(self._directories) if self._glance is not None else None
            started = time.monotonic()
            same = self._glance is not None and self._cursor is not None and glanced == self._glanced
            recent = len(self._versions) > _MANY and started - self._looked < _RARELY * self._took
            if (same and (hurried or recent)) or (hurried and recent and self._glance is not None):
                return
            try:
                await self._refresh()
            except BaseException:  # what was written here is yet to be looked at
                self._wrote = True
                raise
            self._looked, self._glanced = time.monotonic(), glanced
            self._took = self._looked - started

    async def _refresh(self) -> None:
        first, moved, listed = self._cursor is None, list[str](), dict[str, str]()
        learned: dict[str, Learned] = {}
        if first and self._remembered is not None:
            kept = asyncio.to_thread(self._remembered.load)
            (changes, listing), learned = await asyncio.gather(self._changes(), kept)
        else:
            changes, listing = await self._changes()
        if listing is not None:
            listed = {each.path: each.version for each in listing if self._is_entry(each.path)}
            moved = [path for path, version in listed.items() if self._versions.get(path) != version]
            for path in [path for path in self._versions if path not in listed]:
                self._gone(path)
        elif isinstance(changes, Changes):
            moved = [path for path in changes.paths if self._is_entry(path)]
        if first:
            moved = await self._oldest_first(moved)
            moved = await asyncio.to_thread(self._recalled, moved, dict(listed), learned) if learned else moved
        for path in moved:
            await self._read(path)
        self._cursor = changes.cursor

    async def _changes(self) -> tuple[Changes | FullResync, Iterable[FileEntry] | None]:
        """What changed and, where the paths of that do not tell, everything that is there."""
        wrote, self._wrote = self._wrote, False
        if isinstance(self._store, ListsWithChanges):
            return await self._store.changes_and_list(self._cursor)
        changes = await self._store.changes(self._cursor)
        # What was written here and taken back since looks like no change to a cursor that is a digest.
        unclear = isinstance(changes, FullResync) or (wrote and not changes.paths)
        return changes, await self._store.list() if unclear else None

    def _recalled(self, paths: list[str], versions: dict[str, str], learned: dict[str, Learned]) -> list[str]:
        """Take in what an earlier process learned of files that are as they were then. The rest is to be read."""
        rest = []
        with self._changing:
            for path in paths:
                known = learned.get(path)
                if known is None or known.version != versions[path] or not self.recall.restore(known):
                    rest.append(path)
                else:
                    self._note(path, known.version, known.info)
        return rest

    async def _oldest_first(self, paths: list[str]) -> list[str]:
        index = await find_text(self._store, self._config.memory_md)
        rows = listed_files(index.text if index is not None else "", self._config.entries_under)
        place = {file: number for number, file in enumerate(rows)}
        return sorted(paths, key=lambda path: (place.get(self.file_of(path), -1), path))

    async def _read(self, path: str) -> None:
        found = await find_text(self._store, path)
        if found is None:
            self._gone(path)
        else:
            self.take(path, found.version, read_entry_file(self.file_of(path), found.text))

    @asynccontextmanager
    async def changing(self, path: str) -> AsyncIterator[None]:
        """Within it, one file is changed here, which a glance need not show."""
        before = self._glance(self._directories) if self._glance is not None else None
        self._wrote = True
        yield
        if self._glance is not None and before == self._glanced:
            self._directories.add(path.rpartition("/")[0])
            self._glanced = self._glance(self._directories)

    def take(self, path: str, version: str, entry: MemoryEntry) -> None:
        """Remember what a file holds at a version."""
        with self._changing:
            if self._versions.get(path) == version:
                return
            self._news += 1
            self._note(path, version, entry.info)
            self.recall.put(entry)

    def _note(self, path: str, version: str, info: EntryInfo) -> None:
        if (before := self.entries.get(info.file)) is not None:
            self._named[before.memory_type, before.title].discard(before.file)
        self._named.setdefault((info.memory_type, info.title), set()).add(info.file)
        self._versions[path] = version
        self._directories.add(path.rpartition("/")[0])
        self.entries[info.file] = info
        self._last += 1
        self.order[info.file] = self._last

    def forget(self, path: str) -> None:
        """Keep nothing of a file that was removed. `write_unconfirmed` when something of it may be kept for the next
        process."""
        try:
            self._forget(path)
        except OSError as error:
            raise MemoryStoreError(
                "write_unconfirmed",
                f"{self.file_of(path)} is removed, but words of it may be left in what the next process begins with: "
                f"{error.strerror}. Forget it again.",
            ) from error

    def _gone(self, path: str) -> None:
        with suppress(OSError):  # somebody else removed it, and nobody asked for it to be forgotten here
            self._forget(path)

    def _forget(self, path: str) -> None:
        file = self.file_of(path)
        with self._changing:
            self._versions.pop(path, None)
            if (before := self.entries.pop(file, None)) is not None:
                self._named[before.memory_type, before.title].discard(file)
            self.order.pop(file, None)
            self.recall.remove(file)
        if self._remembered is not None:  # which may know of a file that nobody has looked at in this process
            self._remembered.drop()
