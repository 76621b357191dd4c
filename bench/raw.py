"""What a durable write costs without memshelf: a file that is replaced; in a database, what a version's row holds, with
no index but its key."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path

import asyncpg

from bench.measure import median_async, median_sync

__all__ = ["postgres_commit", "sqlite_commit", "synced_file"]

_COLUMNS = (
    *("memory", "seq", "id", "file", "parent", "operation", "path", "sha256", "size", "salt", "commitment", "link"),
    *("created", "content"),
)
_ROUNDS = 200


def _values(each: int) -> tuple[object, ...]:
    content = (f"{each} " * 200).encode()
    id, blob = "memver_" + "0" * 32, bytes(32)
    return (1, each, id, id, id, "modified", "a.md", "0" * 64, len(content), blob, blob, blob, each, content)


def synced_file(place: Path) -> float:
    """The median seconds of writing, syncing and renaming a file, and syncing its directory."""
    place.mkdir()

    def write(each: int) -> None:
        staged = os.open(place / "staged", os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        os.write(staged, (f"{each} " * 200).encode())
        os.fsync(staged)
        os.close(staged)
        os.rename(place / "staged", place / "file")
        directory = os.open(place, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

    return median_sync(write, _ROUNDS)


def sqlite_commit(database: Path) -> float:
    """The median seconds."""
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute(f"CREATE TABLE versions ({', '.join(_COLUMNS)}, PRIMARY KEY (memory, seq))")
    insert = f"INSERT INTO versions VALUES ({', '.join('?' * len(_COLUMNS))})"

    def write(each: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(insert, _values(each))
        connection.execute("COMMIT")

    median = median_sync(write, _ROUNDS)
    connection.close()
    return median


async def postgres_commit(dsn: str) -> float:
    """The median seconds of a statement that commits by itself, which is a single round trip."""
    kinds = {str: "text", int: "bigint", bytes: "bytea"}
    columns = ", ".join(f"{name} {kinds[type(value)]}" for name, value in zip(_COLUMNS, _values(0), strict=True))
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            f"DROP TABLE IF EXISTS versions; CREATE TABLE versions ({columns}, PRIMARY KEY (memory, seq))"
        )
        marks = ", ".join(f"${number}" for number in range(1, len(_COLUMNS) + 1))
        insert = await connection.prepare(f"INSERT INTO versions VALUES ({marks})")
        return await median_async(lambda each: insert.fetch(*_values(each)), _ROUNDS)
    finally:
        await connection.close()


if __name__ == "__main__":
    print(sqlite_commit(Path(sys.argv[1])))
