"""Numbered plain-SQL migrations, and how SQLite's are applied when a database is opened."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import Literal

from memshelf.errors import MemoryStoreError

__all__ = ["APPLICATION_ID", "migrate", "require_ours", "steps", "too_new"]

APPLICATION_ID = 0x4D534C46
"""Marks a SQLite file as ours ("MSLF")."""


def migrate(connection: sqlite3.Connection, begin: Callable[[sqlite3.Connection], None]) -> None:
    """Bring the schema up to date. Safe when several processes do it at once.

    `begin` starts a write transaction. `unavailable` for a database that is not ours, or that a newer memshelf wrote.
    """
    known = steps("sqlite")
    if _applied(connection, len(known)) == len(known):
        return
    begin(connection)
    try:
        # Another process may have migrated while this one waited for its turn.
        applied = _applied(connection, len(known))
        for step in known[applied:]:
            for statement in _statements(step):
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(known)}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def require_ours(connection: sqlite3.Connection) -> None:
    """`unavailable` for a database that is not ours, or that a newer memshelf wrote. Nothing is changed."""
    _applied(connection, len(steps("sqlite")))


def _applied(connection: sqlite3.Connection, known: int) -> int:
    # The owner is read last: whoever wrote the tables and the version meanwhile has written it as well.
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (owner,) = connection.execute("PRAGMA application_id").fetchone()
    if owner != APPLICATION_ID and (tables or version):
        raise MemoryStoreError("unavailable", "The file is another application's database; nothing changed.")
    if version > known:
        raise too_new(version, known)
    return int(version)


def too_new(version: int, known: int) -> MemoryStoreError:
    """The refusal of a schema that a newer memshelf made."""
    return MemoryStoreError(
        "unavailable",
        f"The database has schema {version}, and this memshelf knows up to {known}: upgrade memshelf. Nothing changed.",
    )


@cache
def steps(engine: Literal["sqlite", "postgres"]) -> tuple[str, ...]:
    """The scripts that make the schema, in order: a schema's version is how many of them it has had."""
    folder = files("memshelf.storage").joinpath("migrations", engine)
    scripts = sorted((entry for entry in folder.iterdir() if entry.name.endswith(".sql")), key=lambda entry: entry.name)
    return tuple(script.read_text(encoding="utf-8") for script in scripts)


def _statements(script: str) -> Iterator[str]:
    # `executescript` would commit the transaction that keeps a migration whole.
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
