"""The threads of a SQLite database. Each has its own connection, and one queue of jobs.

Threads start with their first job and are daemons: whatever was answered is committed, so the interpreter may exit at
any moment. No connection is open while the process forks: SQLite's own table of open files does not survive a fork,
and a child that opened the database again beside its parent's connection would hold no locks, and lose writes.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable
from queue import Empty, SimpleQueue

from memshelf.errors import MemoryStoreError
from memshelf.storage.jobs import Job, settle
from memshelf.storage.sqlite_connection import Connection, connect, identify, refusal, unavailable

__all__ = ["DatabaseThread", "Reader", "Session", "Stop"]

_LONGEST_TO_ANSWER = 0.001
"""How many seconds a job that is done may wait for others."""


class Stop:
    """Finish what is queued before, and end."""


class _Pause:
    """Close the connection until `resume`."""

    def __init__(self) -> None:
        self.closed = threading.Event()
        self.resume = threading.Event()


class Session:
    """One thread's work, from its first job until it is stopped. It knows nothing of who sends the jobs."""

    query_only = True

    def __init__(self, path: str, durable: bool) -> None:
        self.queue: SimpleQueue[Job | Stop | _Pause] = SimpleQueue()
        self.ended = threading.Event()
        self.identity: tuple[int, int] | None = None
        """The file that the connection was opened on, and the write-ahead log beside it."""
        self.log: tuple[int, int] | None = None
        self.control: Stop | _Pause | None = None
        """What to do as soon as the jobs before it are done."""
        self._path = path
        self._durable = durable
        self._connection: Connection | None = None

    def run(self) -> None:
        try:
            while self._turn():
                pass
        finally:
            try:
                self._close()
            finally:  # somebody waits for it
                self.ended.set()
                with _guard:
                    _running.discard(self)

    def _turn(self) -> bool:
        # Nothing outlives a turn, so an idle thread keeps no caller's objects alive.
        if (job := self.next(self.longest_wait())) is not None:
            self.serve(job)
        self.between_jobs()
        control, self.control = self.control, None
        if isinstance(control, _Pause):
            self._close()
            control.closed.set()
            control.resume.wait()
        return not isinstance(control, Stop)

    def next(self, timeout: float | None) -> Job | None:
        """The next job; `None` when there is none in time, or when `control` comes first."""
        if self.control is not None or (timeout == 0 and self.queue.empty()):
            return None
        try:
            item = self.queue.get(timeout=timeout)
        except Empty:
            return None
        if isinstance(item, Job):
            return item
        self.control = item
        return None

    def open(self) -> Connection:
        if self._connection is None:
            before = identify(self._path)  # what is put in its place meanwhile is not what is opened
            connection = connect(self._path, durable=self._durable, query_only=self.query_only)
            try:
                self.identity, self.log = before or identify(self._path), identify(f"{self._path}-wal")
            except MemoryStoreError:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def serve(self, job: Job) -> None:
        """Do a job and answer it: what a kind of session is made for."""
        raise NotImplementedError

    def longest_wait(self) -> float | None:
        """How long to wait for a job before `between_jobs` is due."""
        return None

    def between_jobs(self) -> None:
        """What a session does of its own accord."""


class Reader(Session):
    """Runs each job on a snapshot of its own. It never waits for a commit."""

    def serve(self, job: Job) -> None:
        # To wake the event loop takes longer than a short job, so those that wait are answered together.
        done, until = [job], time.monotonic() + _LONGEST_TO_ANSWER
        self._read(job)
        while time.monotonic() < until and (another := self.next(0)) is not None:
            self._read(another)
            done.append(another)
        settle(done)

    def _read(self, job: Job) -> None:
        if job.future.cancelled():
            return
        try:
            connection = self.open()
            if job.single:
                job.result = job.work(connection)
                return
            connection.execute("BEGIN")
            try:
                job.result = job.work(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("COMMIT")
        except Exception as error:  # noqa: BLE001  # every failure belongs to the caller, and the thread goes on
            job.error = refusal(error)


class DatabaseThread:
    """Runs a session in a thread whenever there are jobs for one."""

    def __init__(self, name: str, session: Callable[[], Session]) -> None:
        self._name = name
        self._new_session = session
        self._lock = threading.Lock()
        self._session: Session | None = None
        _all.add(self)

    @property
    def identity(self) -> tuple[int, int] | None:
        session = self._session
        return session.identity if session is not None else None

    @property
    def log(self) -> tuple[int, int] | None:
        session = self._session
        return session.log if session is not None else None

    def submit(self, job: Job) -> None:
        try:
            with self._lock:
                if self._session is None:
                    self._session = _start(self._new_session(), self._name)
                self._session.queue.put(job)
        except RuntimeError as error:  # the system has no thread to give
            job.error = unavailable(error)
            settle([job])

    def stop(self) -> Callable[[], object]:
        """End the thread once it has done what was submitted; call the answer to wait for that."""
        with self._lock:
            session, self._session = self._session, None
        if session is None:
            return lambda: None
        session.queue.put(Stop())
        return session.ended.wait

    def forget_parent(self) -> None:
        """In a forked child: the parent's thread is not here."""
        self._lock = threading.Lock()
        self._session = None


_guard = threading.Lock()
_running: set[Session] = set()
_all: weakref.WeakSet[DatabaseThread] = weakref.WeakSet()
_paused: list[_Pause] = []


def _start(session: Session, name: str) -> Session:
    with _guard:
        threading.Thread(target=session.run, name=name, daemon=True).start()
        _running.add(session)
    return session


def _before_fork() -> None:
    _guard.acquire()  # no thread starts until the fork is over
    waiting = []
    for session in _running:
        pause = _Pause()
        session.queue.put(pause)
        waiting.append((session, pause))
    for session, pause in waiting:
        while not pause.closed.wait(0.01) and not session.ended.is_set():
            pass  # the session was stopped before it saw the pause, and is closing its connection
        _paused.append(pause)


def _after_fork_in_parent() -> None:
    for pause in _paused:
        pause.resume.set()
    _paused.clear()
    _guard.release()


def _after_fork_in_child() -> None:
    global _guard
    _guard = threading.Lock()
    _running.clear()
    _paused.clear()
    for thread in list(_all):
        thread.forget_parent()


# Costs nothing until the process forks.
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


_EXIT_SECONDS = 2.0


@atexit.register
def _at_exit() -> None:
    # Nothing would be lost without this. But what is closed folds the write-ahead log into the database, so that a
    # memory whose program has ended is one file again, which people copy as one file.
    deadline = time.monotonic() + _EXIT_SECONDS
    for session in sorted(_running.copy(), key=lambda session: not session.query_only):
        session.queue.put(Stop())
        session.ended.wait(max(0.0, deadline - time.monotonic()))
