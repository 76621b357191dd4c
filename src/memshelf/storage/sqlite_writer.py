"""The writing thread of a SQLite database: group commit, and erasing for good."""

from __future__ import annotations

import sqlite3
import time

from memshelf.errors import MemoryStoreError
from memshelf.storage import sqlite_connection
from memshelf.storage.jobs import Job, settle
from memshelf.storage.sqlite_connection import (
    Connection,
    begin,
    error_kind,
    identify,
    is_busy,
    refusal,
    unavailable,
)
from memshelf.storage.sqlite_log import LogRoom
from memshelf.storage.sqlite_threads import Session, Stop

__all__ = ["Writer"]

_MOST_PER_COMMIT = 256
_SWEEP_EVERY = 0.002
_NOTHING_WRITTEN = (
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_CONSTRAINT,
)


class Writer(Session):
    """Runs the jobs that wait together in one transaction, and commits them at once.

    Nobody is answered before the commit: neither with a success, nor with a refusal that may rest on what an earlier
    job did.
    """

    query_only = False

    def __init__(self, path: str, durable: bool) -> None:
        super().__init__(path, durable)
        self._erasing: list[tuple[Job, float]] = []
        self._rewritten = 0
        self._room: LogRoom | None = None

    def open(self) -> Connection:
        connection = super().open()
        if self._room is None and self._durable:
            self._room = LogRoom(self._path, connection)
            if self._moved() is not None:
                self._room.close()  # it may be the log of another file
        return connection

    def _close(self) -> None:
        if self._room is not None:
            self._room.close()
            self._room = None
        super()._close()

    def serve(self, job: Job) -> None:
        jobs = [job]
        failure = self._commit(jobs)
        if failure is not None:
            # Whoever came while this transaction waited for its turn shares its failure.
            self._join(jobs)
            for each in jobs:
                each.error = MemoryStoreError(failure.code, failure.message)
        erasing = [each for each in jobs if each.erases and each.error is None]
        if erasing:
            deadline = time.monotonic() + sqlite_connection.PATIENCE
            self._erasing += ((each, deadline) for each in erasing)
            jobs = [each for each in jobs if each not in erasing]
        settle(jobs)
        if self._room is not None:
            self._room.make()

    def _join(self, jobs: list[Job]) -> bool:
        """Add the jobs that wait, as many as may share a commit; whether there were any."""
        before = len(jobs)
        while len(jobs) < _MOST_PER_COMMIT and (another := self.next(0)) is not None:
            jobs.append(another)
        return len(jobs) > before

    def _commit(self, jobs: list[Job]) -> MemoryStoreError | None:
        """Run and commit the jobs, and those that come meanwhile, or change nothing and say why."""
        try:
            connection = self.open()
            _begin(connection)
        except Exception as error:  # noqa: BLE001  # whatever it is, the callers must hear of it
            return unavailable(error)
        try:
            done, apart = 0, False
            while done < len(jobs) or self._join(jobs):
                if apart:
                    _attempt_apart(connection, jobs[done])
                elif not _attempt(connection, jobs[done]):
                    # Savepoints cost every job something, and few jobs fail after they have changed something: only
                    # then is all undone, and done again with savepoints.
                    connection.execute("ROLLBACK")
                    _begin(connection)
                    done, apart = 0, True
                    continue
                done += 1
        except sqlite3.Error as error:
            _roll_back(connection)
            return unavailable(error)
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            _roll_back(connection)
            return unavailable(error) if error_kind(error) in _NOTHING_WRITTEN else _unconfirmed(str(error))
        return self._moved()

    def _moved(self) -> MemoryStoreError | None:
        try:
            if identify(self._path) == self.identity:
                return None
        except MemoryStoreError:
            return _unconfirmed("the system does not say whether its file is still there")
        return _unconfirmed("its file was removed or replaced")

    def longest_wait(self) -> float | None:
        return _SWEEP_EVERY if self._erasing else None

    def between_jobs(self) -> None:
        """Bring committed erasures to their end, one attempt at a time so that other jobs go on."""
        while self._erasing:
            done, failure = False, None
            try:
                done = self._sweep(self.open())
            except (sqlite3.Error, MemoryStoreError) as error:
                failure = error
            now, waiting = time.monotonic(), []
            for job, deadline in self._erasing:
                if not done and failure is None and now < deadline:
                    waiting.append((job, deadline))
                    continue
                if not done:
                    job.error = _unfinished(str(failure or "another process is reading the database"))
                settle([job])
            self._erasing = waiting
            if not isinstance(self.control, Stop):
                return
            time.sleep(_SWEEP_EVERY)

    def _sweep(self, connection: Connection) -> bool:
        """Rewrite the database without what was deleted and empty its log; `False` if another process is in the way.

        `secure_delete` zeroes what a deletion frees. But when SQLite rearranges a page it leaves stale copies of rows
        in the page's unused part, where no later deletion finds them: only a rewrite is certain to drop them.
        """
        try:
            wanted, done = connection.execute("SELECT wanted, done FROM erasures").fetchone()
            if done < wanted:
                if self._rewritten < wanted:
                    connection.execute("VACUUM")
                    self._rewritten = wanted
                busy, _, _ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                if busy:
                    return False
                connection.execute("UPDATE erasures SET done = max(done, ?)", (wanted,))
        except sqlite3.OperationalError as error:
            if is_busy(error):
                return False
            raise
        return True


def _begin(connection: Connection) -> None:
    begin(connection)
    connection.leave(None, None)  # others may have changed what was left


def _roll_back(connection: Connection) -> None:
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def _attempt(connection: Connection, job: Job) -> bool:
    """Run a job; `False` when it failed and left changes behind."""
    if job.future.cancelled():
        return True
    changes = connection.total_changes
    try:
        job.result = job.work(connection)
    except Exception as error:  # every failure belongs to its caller, and the other jobs go on
        if isinstance(error, sqlite3.Error) and not connection.in_transaction:
            raise  # no space or an I/O error: SQLite has rolled the whole transaction back
        job.error = refusal(error)
        return connection.total_changes == changes
    return True


def _attempt_apart(connection: Connection, job: Job) -> None:
    """Run a job so that it leaves nothing behind when it fails."""
    job.error = None
    connection.execute("SAVEPOINT job")
    if not _attempt(connection, job):
        connection.execute("ROLLBACK TO job")
    connection.execute("RELEASE job")


def _unconfirmed(reason: str) -> MemoryStoreError:
    # What was written may all be on the disk although it could not be synced: then whoever next recovers the database
    # finds it committed.
    return MemoryStoreError(
        "write_unconfirmed",
        f"The database could not confirm the write ({reason}): it may or may not have happened. Read before you write "
        "again.",
    )


def _unfinished(reason: str) -> MemoryStoreError:
    return MemoryStoreError(
        "unavailable",
        f"What was to be erased is deleted, but bytes of it may remain in the database's files ({reason}). "
        "Call this again to finish.",
    )
