"""Where a service keeps its data: a directory with a SQLite database, or a PostgreSQL database."""

from __future__ import annotations

import os
from pathlib import Path

from memshelf.errors import MemoryStoreError
from memshelf.presence import is_file
from memshelf.storage.sqlite_connection import may_write
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.storage.transaction import Engine

__all__ = ["DATABASE_NAME", "engine_for", "has_data", "require_writable"]

DATABASE_NAME = "memshelf.db"


def engine_for(data: str | os.PathLike[str] | None, database: str | None) -> Engine:
    """The engine of a PostgreSQL URL if there is one, else of the database in the directory `data`. Nothing is opened
    before it is used. `ValueError` without either; `ModuleNotFoundError` that names the extra for PostgreSQL."""
    if database is not None:
        from memshelf.storage.postgres import PostgresEngine  # an optional package

        return PostgresEngine(database)
    if data is None:
        raise ValueError("A service needs a data directory or a database.")
    return SqliteEngine(Path(data) / DATABASE_NAME, recreate=False)


def has_data(data: str | os.PathLike[str]) -> bool:
    """Whether the directory holds a service's SQLite database."""
    return is_file(Path(data) / DATABASE_NAME)


def require_writable(data: str | os.PathLike[str]) -> None:
    """`unavailable` for a database that may be read only: a service would refuse every change until it starts again, as
    SQLite asks only when it opens a file."""
    file = Path(data) / DATABASE_NAME
    if has_data(data) and not may_write(file):
        raise MemoryStoreError("unavailable", f"{file} is read-only for this user, and a service writes to it.")
