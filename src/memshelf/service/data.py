"""Where a service keeps its data: a directory with a SQLite database, or a PostgreSQL database."""

from __future__ import annotations

import os
from pathlib import Path

from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.storage.transaction import Engine

__all__ = ["DATABASE_NAME", "engine_for", "has_data"]

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
    return (Path(data) / DATABASE_NAME).is_file()
