"""A SQLite database, shared by everything in this process that uses the same file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import weakref
from collections import deque
from typing import Any, TypeAlias

from memshelf.errors import MemoryStoreError
from memshelf.storage.jobs import Job, Work
from memshelf.storage.sqlite_connection import identify
from memshelf.storage.sqlite_threads import DatabaseThread, Reader
from memshelf.storage.sqlite_writer import Writer

__all__ = ["Database"]

_GONE = "The database's file was removed while it was in use: put it back, or a backup of it."
_OLD_LOG = (
    "Another file was put in the place of the database while it was in use, and the write-ahead log of the old one "
    "beside it would damage it: put the old one back, or remove the files that end in -wal and -shm."
)


class Database:
    """Runs work on one database file, from any task and any event loop. The file is opened with the first work.

    Each call raises what its work raises, and `unavailable` when the database could not do it.
    """

    def __init__(self, path: str, *, durable: bool, recreate: bool = True) -> None:
        """`path` is absolute. See `shared`, which most callers want."""
        self.path = path
        self._recreate = recreate
        self._was_there = False
        self._reader = DatabaseThread("memshelf-sqlite-reader", lambda: Reader(path, durable))
        self._writer = DatabaseThread("memshelf-sqlite-writer", lambda: Writer(path, durable))
        self._users: weakref.WeakSet[object] = weakref.WeakSet()
        self._asked: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Asked] = weakref.WeakKeyDictionary()
        self._generation = 0
        # Without this, the threads of a database that nobody uses any more would stay for good.
        weakref.finalize(self, _stop, self._reader, self._writer).atexit = False

    @classmethod
    def shared(cls, path: str | os.PathLike[str], user: object, *, durable: bool, recreate: bool = True) -> Database:
        """The database at `path`, for `user` to use until its `release`, or until the user is gone."""
        key = os.path.realpath(path), durable, recreate
        with _registry_lock:
            database = _registry.get(key)
            if database is None:
                database = _registry[key] = cls(key[0], durable=durable, recreate=recreate)
            database._users.add(user)
        return database

    async def release(self, user: object) -> None:
        """Close the file unless somebody else uses it. What was submitted before is done first."""
        with _registry_lock:
            self._users.discard(user)
            if self._users:
                return
            for asked in list(self._asked.values()):
                _submit(asked)
            reader_ended = self._reader.stop()
        # One after the other: of two connections that close at the same moment, neither may see that it is the last,
        # and what was written would stay in the write-ahead log.
        try:
            await asyncio.to_thread(reader_ended)
        finally:
            writer_ended = self._writer.stop()
        await asyncio.to_thread(writer_ended)

    def generation(self) -> int:
        """Grows when the file at the path turns out to be another one than was opened, which is then opened instead.

        What was learned from the database in an earlier generation does not hold any more. `unavailable` while no file
        is there, unless it may be created again; and while the write-ahead log of the earlier file lies beside another
        one, which it would damage.
        """
        if self._asked_in_this_turn():
            return self._generation  # it was looked at for those who asked before
        current, reader, writer = identify(self.path), self._reader.identity, self._writer.identity
        self._was_there = self._was_there or reader is not None or writer is not None
        if current is None and not self._recreate and self._was_there:
            raise MemoryStoreError("unavailable", _GONE)
        if (reader is None or reader == current) and (writer is None or writer == current):
            return self._generation
        with _registry_lock:
            threads = [each for each in (self._reader, self._writer) if each.identity not in (None, current)]
            if threads:
                # SQLite drops a log beside a file that it creates, but would write what is in it into another one.
                log = identify(f"{self.path}-wal") if current is not None else None
                if log is not None and log in [each.log for each in threads]:
                    raise MemoryStoreError("unavailable", _OLD_LOG)
                _stop(self._reader, self._writer)
                self._generation += 1
            return self._generation

    async def read(self, work: Work, *, single: bool = False) -> Any:
        """Run work on a snapshot of the database, which it cannot change. It never waits for a commit. Work that is
        `single` runs no more than one statement."""
        return await self._run(self._reader, work, single=single)

    async def write(self, work: Work) -> Any:
        """Run work in a transaction; when this returns, what it did is committed. `write_unconfirmed` when the disk
        does not confirm the commit, so that what was done may or may not be found later."""
        return await self._run(self._writer, work)

    async def erase(self, work: Work) -> Any:
        """`write` for work that deletes what must leave no trace, and counts itself in `erasures`.

        When this returns, no byte of it is left in the database's files. If other processes keep them from being
        rewritten, `unavailable` says so: the deletion itself is committed, and the next erasure finishes the rest.
        """
        return await self._run(self._writer, work, erases=True)

    def forget_parent(self) -> None:
        """In a forked child: the parent does what was asked there and is not handed over yet."""
        self._asked = weakref.WeakKeyDictionary()

    def _asked_in_this_turn(self) -> bool:
        try:
            return bool(self._asked.get(asyncio.get_running_loop()))
        except RuntimeError:  # there is no loop
            return False

    def _run(
        self, thread: DatabaseThread, work: Work, *, erases: bool = False, single: bool = False
    ) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        job = Job(work, loop, erases=erases, single=single)
        if (asked := self._asked.get(loop)) is None:
            for closed in [each for each in list(self._asked) if each.is_closed()]:
                self._asked.pop(closed, None)  # what is still asked there keeps it from being collected
            asked = self._asked[loop] = deque()
        if not asked:
            # All that tasks ask for in one turn of the loop is handed over at its end: a thread that woke for the first
            # of it would take the interpreter from the tasks that are about to ask, and share its commit with fewer.
            loop.call_soon(_submit, asked)
        asked.append((thread, job))
        return job.future


_Asked: TypeAlias = deque[tuple[DatabaseThread, Job]]


def _submit(asked: _Asked) -> None:
    # Safe from any thread: each job is taken by one.
    with contextlib.suppress(IndexError):
        while True:
            thread, job = asked.popleft()
            if not job.loop.is_closed():  # or else it would be done at some later time, and nobody waits for it
                thread.submit(job)


_registry_lock = threading.Lock()
_registry: weakref.WeakValueDictionary[tuple[str, bool, bool], Database] = weakref.WeakValueDictionary()


def _forget_parent() -> None:
    # Another thread may have held the lock when the process forked, and is not here to give it back.
    global _registry_lock
    _registry_lock = threading.Lock()
    for database in list(_registry.values()):
        database.forget_parent()


os.register_at_fork(after_in_child=_forget_parent)


def _stop(*threads: DatabaseThread) -> None:
    for thread in threads:
        thread.stop()
