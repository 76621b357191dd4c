"""File memories in a SQL database: history, search, and one durable commit for all who write at the same time."""

from __future__ import annotations

import asyncio
import builtins
from collections.abc import Callable, Coroutine, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any, Self, TypeVar

from memshelf.arguments import checked_argument
from memshelf.closing import Closes
from memshelf.errors import MemoryStoreError
from memshelf.files import grep
from memshelf.files.archive import Archived, Checked
from memshelf.files.backends.sql import archive, changes
from memshelf.files.backends.sql.memory import Head, Memory, Stood, find_memory
from memshelf.files.backends.sql.verify import verify
from memshelf.files.chain import ChainReport
from memshelf.files.decide import Delete, Move, Request, Write
from memshelf.files.format import FileFormat, describe, validate_directory, validate_path
from memshelf.files.model import Changes, FileEntry, FileText, FullResync, GrepMatch, Version, VersionPage
from memshelf.files.protocol import FileStore, HistoryFileStore, SearchableFileStore, documented_by
from memshelf.limits import page_limit
from memshelf.origin import Origin
from memshelf.storage.ids import Mint
from memshelf.storage.transaction import Announced, Engine, Transaction

__all__ = ["SqlFileStore"]

_T = TypeVar("_T")

_SEARCH_BYTES = 4_194_304


@documented_by(FileStore, SearchableFileStore, HistoryFileStore)
class SqlFileStore(Closes):
    """The file memory named `memory` in a database, which holds any number of them.

    Use the store as it is, from any task and any event loop, or as an async context manager. `aclose` closes the
    engine that the store was given; a closed store opens again when used. Many stores may share one engine: then close
    the engine, and none of the stores.

    `mint` is where times, ids and salts come from.
    """

    def __init__(
        self, engine: Engine, memory: str = "default", *, format: FileFormat | None = None, mint: Mint | None = None
    ) -> None:
        if not checked_argument("memory", memory, str) or not memory.isprintable():
            raise ValueError(f"A memory's name is one or more printable characters, not {memory!r}.")
        self.format = checked_argument("format", format, FileFormat, None) or FileFormat()
        self._engine = engine
        self._name = memory
        self._mint = mint or Mint()
        self._opened: tuple[int, int] | None = None
        self._listing: tuple[str, builtins.list[FileEntry]] | None = None

    async def __aenter__(self) -> Self:
        await self._open()
        return self

    async def aclose(self) -> None:
        """Close the engine, after what was called before."""
        self._opened = None
        await self._engine.aclose()

    async def list(self) -> builtins.list[FileEntry]:
        known = self._listing
        fresh = await self._read(lambda memory: memory.entries(known[0] if known is not None else None))
        if fresh is not None:
            self._listing = known = fresh
        assert known is not None  # noqa: S101  # nothing is fresher only than a listing that is known
        return known[1].copy()

    async def read(self, path: str) -> FileText:
        path = validate_path(path, self.format)
        live = await self._read(lambda memory: memory.live(path), single=True)
        if live is None:
            raise MemoryStoreError("not_found", f"{path} does not exist.")
        return live.file

    async def write(self, path: str, text: str, *, expected: str | None, origin: Origin) -> str:
        return await self._apply(Write.checked(path, text, expected, self.format), origin)

    async def move(self, source: str, destination: str, *, expected: str, origin: Origin) -> str:
        return await self._apply(Move.checked(source, destination, expected, self.format), origin)

    async def delete(self, path: str, *, expected: str, origin: Origin) -> None:
        await self._apply(Delete.checked(path, expected, self.format), origin)

    async def changes(self, since: str | None) -> Changes | FullResync:
        return await self._read(lambda memory: memory.changes(since))

    async def search(
        self, pattern: str, *, regex: bool, case_sensitive: bool, path: str, limit: int
    ) -> tuple[builtins.list[GrepMatch], bool]:
        directory = validate_directory(path, self.format)
        compiled = grep.Pattern.compile(pattern, regex=regex, case_sensitive=case_sensitive)
        await self._open()
        texts = self._texts(directory, asyncio.get_running_loop())
        return await asyncio.to_thread(grep.search, texts, compiled, limit)

    async def versions(
        self,
        path: str | None = None,
        *,
        since: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> VersionPage:
        """`ValueError` when `since` has no time zone, or `limit` is no whole number from 1 on."""
        checked_argument("since", since, datetime, None)
        if since is not None and since.tzinfo is None:
            raise ValueError("`since` is a time with a time zone.")
        limit = page_limit(limit)
        path = validate_path(path, self.format) if path is not None else None
        return await self._read(lambda memory: memory.versions(path, since, limit, cursor))

    async def read_version(self, version_id: str) -> Version:
        checked_argument("version_id", version_id, str)
        return await self._read(lambda memory: memory.version(version_id), single=True)

    async def restore(self, version_id: str, *, expected: str | None, origin: Origin) -> str:
        checked_argument("version_id", version_id, str)
        checked_argument("origin", origin, Origin)
        return await self._write(
            lambda memory: changes.restore(memory, version_id, expected, origin, self.format, self._mint)
        )

    async def replayed(self, origin: Origin) -> Version | None:
        checked_argument("origin", origin, Origin)
        return await self._read(lambda memory: memory.version_of_call(origin), single=True)

    async def redact(self, version_id: str, *, by: str) -> Version:
        """When others keep reading the database for so long that it cannot be rewritten, `unavailable` says so: the
        version is redacted, and redacting it again removes the last bytes. `by` is as in `Origin.principal_id`."""
        checked_argument("version_id", version_id, str)
        Origin(principal_id=checked_argument("by", by, str))  # or a `ValueError`
        return await self._erase(lambda memory: changes.redact(memory, version_id, by, self._mint))

    async def purge(self) -> None:
        """Other memories of the database stay as they are. `unavailable` as for `redact`."""
        await self._erase(lambda memory: changes.purge(memory, self._mint))
        self._listing = None

    async def verify(self, *, head: str | None = None) -> ChainReport:
        """Check the whole history: every version follows from the one before it and holds what was written, none is
        missing, and the live files are what the history says. Others may go on writing meanwhile.

        `head` is that of an earlier report, kept where who can write to the database cannot: the history has to lead
        through it still. `ValueError` for what is no head.
        """
        return await verify(self._read, checked_argument("head", head, str, None))

    async def history(self, after: int, most: int) -> tuple[Head, int, builtins.list[Archived]]:
        """For archives: where the history stands, when the memory was made, and at most so many versions that follow
        the one with the number `after`."""
        return await self._read(lambda memory: archive.history(memory, after, most))

    async def import_versions(self, checked: Checked, versions: Callable[[], Iterable[Archived]]) -> archive.Imported:
        """Make the history that of a checked archive, or go on with it where it has more; all of it or nothing.
        `conflict` when there is another history. `versions` may be called more than once."""

        async def write(transaction: Transaction) -> archive.Imported:
            memory_id = await find_memory(transaction, self._name)
            _, imported = await archive.import_versions(
                transaction, memory_id, self._name, checked, versions, self._described
            )
            return imported

        self._listing = None
        return await self._engine.write(write)

    def _described(self, text: str) -> str | None:
        try:
            return describe(text, self.format)
        except MemoryStoreError:  # what another store took in is kept, whatever this one would take
            return None

    async def _apply(self, request: Request, origin: Origin) -> str:
        checked_argument("origin", origin, Origin)
        return await self._write(
            lambda memory: changes.apply(memory, request, origin, self._mint),
            partial(changes.announced, request, origin),
            unlocked=True,
        )

    async def _read(self, query: Callable[[Memory], Coroutine[Any, Any, _T]], *, single: bool = False) -> _T:
        memory_id = self._known() or await self._open()
        return await self._engine.read(lambda transaction: query(Memory(transaction, memory_id)), single=single)

    async def _write(
        self,
        change: Callable[[Memory], Coroutine[Any, Any, _T]],
        announced: Announced = tuple,
        *,
        unlocked: bool = False,
    ) -> _T:
        memory_id = self._known() or await self._open()

        async def write(transaction: Transaction) -> _T:
            memory = Memory(transaction, memory_id)
            if isinstance(transaction.found, Stood):
                memory.goes_on(transaction.found)
            result = await change(memory)
            transaction.left = memory.stood
            return result

        return await self._engine.write(write, key=memory_id, announced=announced, unlocked=unlocked)

    async def _erase(self, change: Callable[[Memory], Coroutine[Any, Any, _T]]) -> _T:
        memory_id = self._known() or await self._open()
        return await self._engine.erase(lambda transaction: change(Memory(transaction, memory_id)))

    def _known(self) -> int | None:
        """The id that this store's memory has in the database as it is now, if it was asked for before."""
        opened = self._opened
        return opened[1] if opened is not None and opened[0] == self._engine.generation() else None

    async def _open(self) -> int:
        if (known := self._known()) is not None:
            return known
        generation = self._engine.generation()
        memory_id = await self._engine.read(lambda transaction: find_memory(transaction, self._name), single=True)
        if memory_id is None:
            memory_id = await self._engine.write(
                lambda transaction: changes.create_memory(transaction, self._name, self._mint)
            )
        self._opened = generation, memory_id
        return memory_id

    def _texts(self, directory: str, loop: asyncio.AbstractEventLoop) -> Iterator[FileText]:
        """For another thread than the loop's: the files below a directory, a few megabytes at a time."""
        after = ""
        while True:
            query = partial(Memory.texts, directory=directory, after=after, most_bytes=_SEARCH_BYTES)
            page = asyncio.run_coroutine_threadsafe(self._read(query), loop).result()
            if not page:
                return
            yield from page
            after = page[-1].path
