"""File memories in a SQLite database file: the embedded default with history."""

from __future__ import annotations

import os

from memshelf.files.backends.sql.store import SqlFileStore
from memshelf.files.format import FileFormat
from memshelf.storage.ids import Mint
from memshelf.storage.sqlite_engine import SqliteEngine

__all__ = ["SqliteFileStore"]


class SqliteFileStore(SqlFileStore):
    """The file memory named `memory` in a SQLite database file, which holds any number of them.

    Many processes may use one file at once, on one machine. The file is created, 0600, when it is first used; use the
    store as it is, from any task and any event loop, or as an async context manager. Stores on the same file share
    their connections; `aclose` closes them with the last of these stores, and a closed store opens again when used.

    With `durable`, what was written survives a power cut; without, only the end of the process.

    `mint` is where times, ids and salts come from.
    """

    def __init__(
        self,
        database: str | os.PathLike[str],
        memory: str = "default",
        *,
        format: FileFormat | None = None,
        durable: bool = True,
        mint: Mint | None = None,
    ) -> None:
        super().__init__(SqliteEngine(database, durable=durable), memory, format=format, mint=mint)
