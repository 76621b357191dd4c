"""The writing connection of a PostgreSQL database, for one event loop: group commit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import asyncpg

from memshelf.errors import MemoryStoreError
from memshelf.storage.postgres_connection import (
    CONNECTING,
    Place,
    close,
    connect,
    is_lost,
    is_refused_for_now,
    is_transient,
    refusal,
    unavailable,
    unconfirmed,
)
from memshelf.storage.postgres_transaction import PostgresTransaction, Together
from memshelf.storage.postgres_unlocked import NeedsLockError, UnlockedTransaction
from memshelf.storage.transaction import Announced, Script

__all__ = ["Writer"]

T = TypeVar("T")

_MOST_PER_COMMIT = 256
_MOST_ATTEMPTS = 5
_CAUTION = 16
_MOST_LEFT = 64


class _Job:
    """A script, and the caller that waits for what becomes of it."""

    __slots__ = ("announced", "error", "future", "key", "result", "script", "unlocked")

    def __init__(self, script: Script[Any], key: int | None, announced: Announced, *, unlocked: bool) -> None:
        self.script = script
        self.key = key
        self.announced = announced
        self.unlocked = unlocked
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.result: object = None
        self.error: Exception | None = None


class _UndoneError(Exception):
    """The transaction changed nothing, and the same may succeed in another."""


class Writer:
    """Runs the scripts that wait together in one transaction, and commits them at once.

    Nobody is answered before the commit: neither with a success, nor with a refusal that may rest on what an earlier
    script did.
    """

    def __init__(self, place: Place, make_room: Callable[[], Awaitable[bool]]) -> None:
        """`make_room` closes another connection, for a server that takes no more; it says whether there was one."""
        self._place = place
        self._make_room = make_room
        self._connection: Any = None  # asyncpg has no types
        self._waiting: list[_Job] = []
        self._running: list[_Job] = []
        self._wake = asyncio.Event()
        self._ending = False
        self._with_lock = 1
        """How many commits to come are made with a lock in any case: the first one of a connection, which shows that it
        does not lead to a standby, the next one after one that was shared, and some after somebody else was faster."""
        self._left: dict[int, object | None] = {}
        """What the last scripts have left, by their keys: others may have changed it since."""

    def run(self, script: Script[T], key: int | None, announced: Announced, *, unlocked: bool) -> asyncio.Future[T]:
        job = _Job(script, key, announced, unlocked=unlocked)
        self._waiting.append(job)
        self._wake.set()
        return job.future

    def end(self) -> None:
        """Let `serve` return, when it has done what was asked before."""
        self._ending = True
        self._wake.set()

    async def serve(self) -> None:
        """Do what is asked for, until `end`."""
        try:
            while self._waiting or not self._ending:
                await self._wake.wait()
                # Those whom the last commit answered may ask again now, and share the next one.
                await asyncio.sleep(0)
                self._wake.clear()
                while self._waiting:
                    self._running = self._next()
                    await self._serve(self._running)
            if self._connection is not None:
                await close(self._connection)
        finally:
            self._drop()
            for job in (*self._running, *self._waiting):
                job.future.cancel()

    def _next(self) -> list[_Job]:
        """Jobs that may share a commit. The lock that a job without a key takes is not known, so it goes alone."""
        if self._waiting[0].key is None:
            return [self._waiting.pop(0)]
        return self._take(_MOST_PER_COMMIT, None)

    def _join(self, jobs: list[_Job]) -> bool:
        """Add the jobs that came while these ran and may share their commit; whether there were any."""
        last = jobs[-1].key
        if not self._waiting or last is None or jobs is not self._running:
            return False  # what is tried once more, one by one, is tried alone
        joining = self._take(_MOST_PER_COMMIT - len(jobs), last)
        jobs += joining
        return bool(joining)

    def _take(self, most: int, last: int | None) -> list[_Job]:
        """Jobs that wait, in the order of their keys from `last` on, so that no two processes take the locks that they
        need in different orders."""
        taken = [job for job in self._waiting if job.key is not None and (last is None or job.key >= last)][:most]
        rest = set(self._waiting).difference(taken)
        self._waiting = [job for job in self._waiting if job in rest]
        return sorted(taken, key=lambda job: job.key or 0)

    async def _serve(self, jobs: list[_Job]) -> None:
        failure: MemoryStoreError | None = None
        for _ in range(_MOST_ATTEMPTS):
            try:
                if not await self._commit_unlocked(jobs):
                    await self._commit(jobs)
                    self._with_lock = max(self._with_lock - 1, int(len(jobs) > 1))
                failure = None
            except _UndoneError as undone:
                if len(jobs) > 1:
                    for job in jobs:
                        await self._serve([job])
                    return
                failure = unavailable(undone)
                continue
            except MemoryStoreError as error:
                failure = error
            break
        for job in jobs:
            _answer(job, job.error if failure is None else MemoryStoreError(failure.code, failure.message))

    async def _commit_unlocked(self, jobs: list[_Job]) -> bool:
        """Run and commit a job that is alone, without a lock. `False` when nothing came of it and it needs one, as does
        whatever is not clear here."""
        job = jobs[0]
        if len(jobs) > 1 or not job.unlocked or job.key is None:
            return False
        found = self._left.pop(job.key, None)
        if found is None:
            return await self._try_unlocked(job, job.key, None)
        return await self._try_unlocked(job, job.key, found) or await self._try_unlocked(job, None, None)

    async def _try_unlocked(self, job: _Job, keeps: int | None, found: object | None) -> bool:
        """`_commit_unlocked`, with what a script of its key has left, which is kept for the next one under `keeps`."""
        if self._waiting or self._with_lock:
            return False
        connection = self._connection
        transaction = UnlockedTransaction(connection, found)
        try:
            await _attempt(connection, job, transaction)
        except Exception as error:  # noqa: BLE001  # nothing was changed, and whatever it is will show again
            if is_lost(connection, error):
                self._drop()
            return False
        if job.error is not None or not transaction.has_changes:  # what a single query has found, stood at one time
            return found is None and transaction.asked <= 1 and not isinstance(job.error, NeedsLockError)
        if self._waiting or connection.is_closed():  # others can share its commit; the loss can be made up for
            return False
        try:
            await transaction.commit()
        except NeedsLockError:
            if found is None:
                self._with_lock = _CAUTION
            return False
        except asyncpg.UniqueViolationError as error:
            if transaction.supposes:
                return False
            job.error = refusal(error)
        except asyncpg.ReadOnlySQLTransactionError:  # a standby, which has done nothing
            self._drop()
            return False
        except Exception as error:
            if is_transient(error):
                return False
            if is_lost(connection, error):
                self._drop()
                raise unconfirmed(error) from error
            job.error = refusal(error)
        if keeps is not None:
            self._keep(keeps, transaction.left)
        return True

    def _keep(self, key: int, left: object | None) -> None:
        self._left.pop(key, None)
        if left is None:
            return
        if len(self._left) >= _MOST_LEFT:
            del self._left[next(iter(self._left))]
        self._left[key] = left

    async def _commit(self, jobs: list[_Job]) -> None:
        """Run and commit the jobs, or change nothing and say why."""
        apart = False
        while True:
            kept = self._connection is not None
            if self._connection is None:
                self._connection = await self._connect()
            connection = self._connection
            try:
                # It waits for no lock: a server that does not begin in this time takes no new connection either.
                await connection.execute("BEGIN", timeout=CONNECTING)
                if apart:
                    await _run_apart(connection, jobs)
                    break
                if await self._run_together(connection, jobs):
                    break
                # Savepoints cost every job two round trips, and few jobs fail after they have changed something: only
                # then is all undone, and done again with savepoints.
                await connection.execute("ROLLBACK")
                apart = True
            except Exception as error:
                if not is_lost(connection, error):
                    await self._roll_back()
                    raise _UndoneError(str(error)) if is_transient(error) else unavailable(error) from error
                self._drop()
                if not kept:  # otherwise it may have been lost since it was last used: a new one will tell
                    raise unavailable(error) from error
        try:
            await connection.execute("COMMIT")
        except Exception as error:
            if not is_lost(connection, error):
                await self._roll_back()
                raise unavailable(error) from error
            self._drop()
            raise unconfirmed(error) from error

    async def _connect(self) -> Any:
        try:
            while True:
                try:
                    return await connect(self._place, query_only=False)
                except MemoryStoreError as error:
                    if not is_refused_for_now(error) or not await self._make_room():
                        raise
        except MemoryStoreError as error:
            waiting, self._waiting = self._waiting, []
            for job in waiting:  # one after the other, they would wait long to hear the same
                _answer(job, MemoryStoreError(error.code, error.message))
            raise

    async def _run_together(self, connection: Any, jobs: list[_Job]) -> bool:
        """Run the jobs, and those that come meanwhile; `False` when one failed that may have left changes behind."""
        done = 0
        while done < len(jobs) or self._join(jobs):
            key = jobs[done].key
            if done == 0 or key != jobs[done - 1].key:
                together = Together(connection)
            alike = [job for job in jobs[done:] if job.key == key]
            together.several = together.several or len(alike) > 1
            if not await _run_alike(connection, alike, together):
                return False
            done += len(alike)
            if key is not None:
                self._keep(key, together.left)
            else:
                self._left.clear()  # what was erased is not to stay here either
        return True

    async def _roll_back(self) -> None:
        try:
            await self._connection.execute("ROLLBACK")
        except (OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
            self._drop()

    def _drop(self) -> None:
        connection, self._connection = self._connection, None
        self._with_lock = 1
        self._left.clear()  # what was not confirmed may be committed later, between what a script reads and its change
        if connection is not None:
            connection.terminate()


def _answer(job: _Job, error: Exception | None) -> None:
    if job.future.done():  # the caller was cancelled
        return
    if error is not None:
        job.future.set_exception(error)
    else:
        job.future.set_result(job.result)


async def _run_alike(connection: Any, jobs: list[_Job], together: Together) -> bool:
    """Run jobs that lock the same row; `False` when one failed that may have left changes behind."""
    together.announce(keyed for job in jobs for keyed in job.announced())
    for job in jobs:
        transaction = PostgresTransaction(connection, found=together.left, together=together)
        if await _attempt(connection, job, transaction):
            together.left = transaction.left
        elif transaction.changed or together.failed:
            return False
    try:
        await together.flush()
    except Exception as error:
        if is_lost(connection, error) or is_transient(error):
            raise
        return False
    return True


async def _run_apart(connection: Any, jobs: list[_Job]) -> None:
    """Run each job so that it leaves nothing behind when it fails."""
    for job in jobs:
        await connection.execute("SAVEPOINT job")
        if not await _attempt(connection, job, PostgresTransaction(connection)):
            await connection.execute("ROLLBACK TO SAVEPOINT job")
        await connection.execute("RELEASE SAVEPOINT job")


async def _attempt(connection: Any, job: _Job, transaction: PostgresTransaction) -> bool:
    """Run a job, unless nobody waits for it any more; whether it succeeded."""
    if job.future.done():
        return False
    job.result, job.error = None, None
    try:
        job.result = await job.script(transaction)
    except Exception as error:  # every failure belongs to its caller, and the other jobs go on
        if is_lost(connection, error) or is_transient(error):
            raise
        job.error = refusal(error)
        if isinstance(error, asyncpg.PostgresError):
            transaction.changed = True  # the transaction takes no more statements
        return False
    return True
