"""The writing thread of a SQLite database: group commit, and erasing for good."""

from __future__ import annotations

import sqlite3
import time

from memshelf.errors import MemoryStoreError
from memshelf.storage import sqlite_connection
from memshelf.storage.jobs import Job, settle
from memshelf.storage.sqlite_connection import begin, is_busy, refusal, unavailable
from memshelf.storage.sqlite_threads import Session, Stop

__all__ = ["Writer"]

_MOST_PER_COMMIT = 256
_SWEEP_EVERY = 0.002


class Writer(Session):
    """Runs the jobs that wait together in one transaction, each in a savepoint, and commits them at once.

    Nobody is answered before the commit: neither with a success, nor with a refusal that may rest on what an earlier
    job did.
    """

    query_only = False

    def __init__(self, path: str, durable: bool) -> None:
        super().__init__(path, durable)
        self._erasing: list[tuple[Job, float]] = []
        self._rewritten = 0

    def serve(self, job: Job) -> None:
        jobs, failure = [job], None
        try:
            begin(self.open())
        except Exception as error:  # noqa: BLE001  # whatever it is, the callers must hear of it
            failure = unavailable(error)
        # Whoever came while this transaction waited for its turn shares it, or its failure.
        while len(jobs) < _MOST_PER_COMMIT and (another := self.next(0)) is not None:
            jobs.append(another)
        if failure is None:
            failure = _commit(self.open(), jobs)
        if failure is not None:
            for each in jobs:
                each.error = MemoryStoreError(failure.code, failure.message)
        deadline = time.monotonic() + sqlite_connection.PATIENCE
        self._erasing += ((each, deadline) for each in jobs if each.erases and each.error is None)
        settle(each for each in jobs if not each.erases or each.error is not None)

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

    def _sweep(self, connection: sqlite3.Connection) -> bool:
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


def _commit(connection: sqlite3.Connection, jobs: list[Job]) -> MemoryStoreError | None:
    """Run and commit the jobs, or change nothing and say why."""
    try:
        for job in jobs:
            if not job.future.cancelled():
                _attempt(connection, job)
        connection.execute("COMMIT")
    except sqlite3.Error as error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        return unavailable(error)
    return None


def _attempt(connection: sqlite3.Connection, job: Job) -> None:
    connection.execute("SAVEPOINT job")
    try:
        job.result = job.work(connection)
    except Exception as error:  # every failure belongs to its caller, and the other jobs go on
        if isinstance(error, sqlite3.Error) and not connection.in_transaction:
            raise  # no space or an I/O error: SQLite has rolled the whole transaction back
        connection.execute("ROLLBACK TO job")
        job.error = refusal(error)
    connection.execute("RELEASE job")


def _unfinished(reason: str) -> MemoryStoreError:
    return MemoryStoreError(
        "unavailable",
        f"What was to be erased is deleted, but bytes of it may remain in the database's files ({reason}). "
        "Call this again to finish.",
    )
