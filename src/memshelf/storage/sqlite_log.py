"""Room in the write-ahead log of a SQLite database.

To sync a file that grew, a file system also writes its own journal: that costs a commit a fifth more than to overwrite
what is there. SQLite overwrites its log from the second time through it; until then, every commit would grow it.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3

from memshelf.storage.sqlite_connection import CHECKPOINT_PAGES, Connection

__all__ = ["LogRoom"]

_HEADER = 32
_FRAME_HEADER = 24
_AHEAD = 96
"""How many pages are to be free: what is written between two looks."""
_STEP = 256
"""How many pages a log gets at once, which takes a millisecond or two."""
_LOOK_EVERY = 24
"""After how many changed rows to look: who opens a database for one change has none of this."""


class LogRoom:
    """Lengthens the log of a connection that writes ahead of its commits, by zeros, which SQLite takes for its end.

    It does so where it can, and nothing depends on it.
    """

    def __init__(self, path: str, connection: Connection) -> None:
        self._connection = connection
        self._looked = 0
        (page,) = connection.execute("PRAGMA page_size").fetchone()
        self._page = _FRAME_HEADER + int(page)
        self._file: int | None = None
        with contextlib.suppress(OSError):
            self._file = os.open(f"{path}-wal", os.O_RDWR | os.O_CLOEXEC)

    def close(self) -> None:
        if self._file is not None:
            with contextlib.suppress(OSError):
                os.close(self._file)
            self._file = None

    def make(self) -> None:
        """For the time between two transactions, when nobody waits."""
        changes = self._connection.total_changes
        if self._file is None or changes - self._looked < _LOOK_EVERY:
            return
        self._looked = changes
        try:
            if self._is_short(self._file):
                self._lengthen(self._file)
        except (OSError, MemoryError, sqlite3.Error):
            self.close()

    def _is_short(self, file: int) -> bool:
        pages = (os.fstat(file).st_size - _HEADER) // self._page
        if not 0 < pages < CHECKPOINT_PAGES:
            return False
        # The first bytes of what SQLite writes for a page are its number, which is never 0.
        return pages < _AHEAD or any(os.pread(file, 4, _HEADER + (pages - _AHEAD) * self._page))

    def _lengthen(self, file: int) -> None:
        try:
            # Other processes write to the log, or empty it, only while they hold this lock.
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return  # it is theirs now: another time
        try:
            if self._is_short(file):  # still, now that nobody else empties or lengthens it
                self._append(file, bytes(_STEP * self._page))
        finally:
            self._connection.execute("ROLLBACK")

    def _append(self, file: int, room: bytes) -> None:
        end, done = os.fstat(file).st_size, False
        try:
            if os.pwrite(file, room, end) == len(room):
                os.fsync(file)
                done = True
        finally:
            if not done:  # what is left of the disk is for what people write
                os.ftruncate(file, end)
                self.close()
