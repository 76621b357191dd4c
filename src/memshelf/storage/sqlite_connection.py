"""Opening one connection to a SQLite database, and what its errors mean."""

from __future__ import annotations

import contextlib
import os
import random
import sqlite3
import stat
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from memshelf.errors import MemoryStoreError
from memshelf.storage.migrations import migrate, require_ours
from memshelf.storage.private import settle

__all__ = [
    "CHECKPOINT_PAGES",
    "PATIENCE",
    "Connection",
    "begin",
    "connect",
    "error_kind",
    "identify",
    "is_busy",
    "may_write",
    "reason",
    "refusal",
    "require_not_emptied",
    "unavailable",
]

PATIENCE = 30.0
"""How many seconds to wait for other processes before the database is `unavailable`."""

_OLDEST = (3, 35, 0)
CHECKPOINT_PAGES = 2_000
"""How long the write-ahead log grows (8 MB) before it is folded in and written from its start again. SQLite's own 1,000
pages are full after twenty shared commits, and folding them in takes two syncs."""
_NO_FILES = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""What SQLite says where it may not make files beside the database, which even a reader of a write-ahead log needs."""
_MAKING = 1.0
_EMPTIED = (
    "{0} was emptied, and the write-ahead log beside it, {0}-wal, was not: put the file back as it was, and the log is "
    "read again. To begin anew, remove both; nothing changed."
)
_T = TypeVar("_T")

_creating = threading.Lock()


class Connection(sqlite3.Connection):
    """A connection that keeps what a script leaves to the next one of its transaction."""

    _left: tuple[int, int | None, object] = 0, None, None

    def leave(self, key: int | None, left: object) -> None:
        self._left = self.total_changes, key, left

    def found(self, key: int | None) -> object:
        """What the last script left, unless its key was another one or something was changed since."""
        changes, left_by, left = self._left
        return left if key is not None and key == left_by and changes == self.total_changes else None


def connect(path: str, *, durable: bool, query_only: bool) -> Connection:
    """A connection for the calling thread, to a database that is created and migrated when needed. `unavailable`.

    A new database file is 0600, as are the files that SQLite puts beside it; missing directories are made 0700.
    A `query_only` connection waits for other processes by itself; for the other kind, see `begin`.
    """
    if sqlite3.sqlite_version_info < _OLDEST:
        raise MemoryStoreError(
            "unavailable",
            f"SQLite {'.'.join(map(str, _OLDEST))} or newer is needed; this Python has {sqlite3.sqlite_version}.",
        )
    try:
        _create(path)
        _open_up(path)
        connection = sqlite3.connect(
            path, timeout=PATIENCE, isolation_level=None, cached_statements=256, factory=Connection
        )
    except (OSError, sqlite3.Error) as error:
        raise unavailable(error) from error
    try:
        _patiently(partial(require_ours, connection))  # before the switch to WAL, which would stay in a foreign file
        _configure(connection, durable)
        migrate(connection, begin)
        connection.execute("PRAGMA query_only = ON" if query_only else "PRAGMA busy_timeout = 0")
    except BaseException as error:
        connection.close()
        if isinstance(error, sqlite3.Error):
            raise unavailable(error, path) from error
        raise
    return connection


def _create(path: str) -> None:
    # One thread at a time: closing any descriptor of a file drops the locks that this process holds on it, also those
    # of a connection that another thread has just opened.
    with _creating:
        missing = []
        parent = os.path.dirname(path)
        while not os.path.isdir(parent) and parent != os.path.dirname(parent):
            missing.append(parent)
            parent = os.path.dirname(parent)
        for directory in reversed(missing):
            with contextlib.suppress(FileExistsError):
                os.mkdir(directory, 0o700)
            settle(directory)  # SQLite makes its own files last, but not the directories that they are in
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
            settle(path)
        except FileExistsError:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise OSError(f"{os.path.basename(path)} is not a file") from None
            require_not_emptied(path)


def require_not_emptied(path: str) -> None:
    """`unavailable` for a database file that something emptied, while its write-ahead log is there.

    SQLite would take it for a new database, and drop the log, which may hold all that was in the old one.
    """
    deadline = time.monotonic() + _MAKING
    while _size(f"{path}-wal") and _size(path) == 0:
        if time.monotonic() > deadline:
            raise MemoryStoreError("unavailable", _EMPTIED.format(os.path.basename(path)))
        time.sleep(0.01)  # somebody may be making it anew, beside the log of one that was removed


def _size(path: str) -> int | None:
    try:
        return os.stat(path).st_size
    except FileNotFoundError:
        return None


def _open_up(path: str) -> None:
    # SQLite gives the files beside a database its mode when it makes them. Those from when it was read-only, which a
    # reader leaves behind, would keep it so.
    for beside in (f"{path}-wal", f"{path}-shm"):
        with contextlib.suppress(OSError):
            mode = os.lstat(beside).st_mode
            if stat.S_ISREG(mode) and may_write(path) and not may_write(beside):
                os.chmod(beside, stat.S_IMODE(os.stat(path).st_mode))


def _configure(connection: sqlite3.Connection, durable: bool) -> None:
    connection.execute("PRAGMA secure_delete = ON")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
    connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    if durable:  # on macOS, fsync alone leaves data in the drive's cache
        connection.execute("PRAGMA fullfsync = ON")
        connection.execute("PRAGMA checkpoint_fullfsync = ON")
    # The switch needs the file alone for a moment, and SQLite does not wait for that by itself.
    (mode,) = _patiently(lambda: connection.execute("PRAGMA journal_mode = WAL").fetchone())
    if mode != "wal":
        raise MemoryStoreError("unavailable", "The database cannot keep a write-ahead log where it is.")


def begin(connection: sqlite3.Connection) -> None:
    """Start a write transaction, waiting up to `PATIENCE` for the writers of other processes.

    SQLite's own wait sleeps up to 100 ms between two attempts, so a process that writes without a break keeps others
    waiting for hundreds of milliseconds; a millisecond of sleep gives every process its turn.
    """
    _patiently(partial(connection.execute, "BEGIN IMMEDIATE"))


def _patiently(attempt: Callable[[], _T]) -> _T:
    deadline: float | None = None
    while True:
        try:
            return attempt()
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
            deadline = deadline or time.monotonic() + PATIENCE
            if time.monotonic() > deadline:
                raise
        time.sleep(random.uniform(0.0005, 0.0015))  # noqa: S311  # so that two waiting processes do not keep step


def identify(path: str) -> tuple[int, int] | None:
    """Which file stands at the path now; `None` when there is none. `unavailable` when the system does not say."""
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise unavailable(error) from error
    return status.st_dev, status.st_ino


def may_write(path: str | os.PathLike[str], mode: int = os.W_OK) -> bool:
    """Whether this process may write what is at the path, whoever it runs as."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def is_busy(error: sqlite3.Error) -> bool:
    """Whether another connection is in the way, and the same may succeed later."""
    return error_kind(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def error_kind(error: sqlite3.Error) -> int:
    """SQLite's primary error code, 0 for an error that is not SQLite's own."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


def unavailable(error: Exception, path: str | None = None) -> MemoryStoreError:
    """The refusal that stands for an error of SQLite or of the operating system, with a database at a path."""
    if isinstance(error, MemoryStoreError):
        return error
    return MemoryStoreError("unavailable", f"The database could not do it ({reason(error, path)}); nothing changed.")


def reason(error: Exception, path: str | None = None) -> str:
    """What SQLite or the operating system says, and more where SQLite does not say that it is the folder's fault."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    no_files = isinstance(error, sqlite3.Error) and error_kind(error) in _NO_FILES
    if no_files and path is not None and not may_write(os.path.dirname(path) or "."):
        return "SQLite cannot open a database in a folder that it cannot write, not even to read"
    return str(error)


def refusal(error: Exception) -> Exception:
    """`unavailable` for what SQLite could not do; any other error, such as a mistake in a statement, as it is."""
    if isinstance(error, MemoryStoreError):
        return error.with_traceback(None)  # it leads to the job, which is to have the error, and would hold itself
    if isinstance(error, sqlite3.OperationalError) or type(error) is sqlite3.DatabaseError:
        return unavailable(error)
    return error
