"""Scripts on a SQLite database."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Awaitable, Iterable, Sequence
from functools import cache, partial
from typing import TypeVar

from memshelf.arguments import checked_argument, checked_path
from memshelf.storage.sqlite import Database
from memshelf.storage.sqlite_connection import Connection
from memshelf.storage.transaction import Announced, Change, Keyed, Row, Script, for_one_key

__all__ = ["SqliteEngine"]

T = TypeVar("T")


class SqliteEngine:
    """The database file at a path, which is created when it is first used. See `Database`.

    With `durable`, what was written survives a power cut; without, only the end of the process. A file that is removed
    while it is in use is created anew; without `recreate` it is missed, and `generation` raises `unavailable`.
    `TypeError` and `ValueError` for what is no path of a file.
    """

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True, recreate: bool = True) -> None:
        if path == "" or (isinstance(path, str) and path.startswith((":memory:", "file:"))):
            raise ValueError(
                "A SQLite memory is kept in a file, named by its path. For one that is not kept, use an "
                "InProcessFileStore or an InProcessRecordStore."
            )
        self._path = os.path.abspath(checked_path("database", path))
        self._durable = checked_argument("durable", durable, bool)
        self._recreate = recreate
        self._database: Database | None = None

    @property
    def database(self) -> Database:
        """The database, for work that is not a script. It is this engine's until `aclose`."""
        if self._database is None:
            self._database = Database.shared(self._path, self, durable=self._durable, recreate=self._recreate)
        return self._database

    def read(self, script: Script[T], *, single: bool = False) -> Awaitable[T]:
        return self.database.read(partial(_run, script), single=single)

    def write(
        self,
        script: Script[T],
        *,
        key: int | None = None,
        announced: Announced = tuple,  # noqa: ARG002  # no way is long here
        unlocked: bool = False,  # noqa: ARG002  # one lock is for all
    ) -> Awaitable[T]:
        return self.database.write(partial(_run, script, key=key))

    def erase(self, script: Script[T]) -> Awaitable[T]:
        return self.database.erase(partial(_run, script))

    def generation(self) -> int:
        return self.database.generation()

    async def aclose(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            await database.release(self)


def _run(script: Script[T], connection: Connection, *, key: int | None = None) -> T:
    transaction = _Transaction(connection, key)
    running = script(transaction)
    try:
        running.send(None)
    except StopIteration as end:
        connection.leave(key, transaction.left)
        result: T = end.value
        return result
    running.close()
    raise RuntimeError("A script awaits nothing but its transaction.")


class _Transaction:
    """Its calls never suspend, so that a script runs to its end on the database's thread."""

    __slots__ = ("_cursor", "found", "left")

    for_update = ""
    heads = "memory_heads"
    supposes = False
    shared = False
    one_at_a_time = True

    def __init__(self, connection: Connection, key: int | None) -> None:
        self._cursor = connection.cursor()
        self.found = connection.found(key)
        self.left: object | None = None

    async def fetch(self, sql: str, *values: object) -> list[Row]:
        return self._ask(sql, values).fetchall()

    async def fetch_one(self, sql: str, *values: object) -> Row | None:
        row: Row | None = self._ask(sql, values).fetchone()
        return row

    async def fetch_keyed(self, sql: str, owner: int, *key: str) -> Row | None:
        row: Row | None = self._ask(for_one_key(sql, len(key)), (owner, *key)).fetchone()
        return row

    def announce(self, looked_up: Iterable[Keyed]) -> None:
        pass

    async def finds_nothing(self, sql: str, owner: int, key: str) -> bool:  # noqa: ARG002  # it asks for one at a time
        return False

    def rests_on(self, query: str, key: Sequence[object], row: Row) -> None:
        pass

    def forget(self, *key: str) -> None:
        pass

    async def execute(self, sql: str, *values: object) -> int:
        return self._ask(sql, values).rowcount

    async def change(self, *changes: Change, of: str | None = None, stands: Change | None = None) -> None:  # noqa: ARG002  # each is made at once
        for sql, values in changes if stands is None else (*changes, stands):
            self._ask(sql, values)

    def _ask(self, sql: str, values: Sequence[object]) -> sqlite3.Cursor:
        text, order = _with_question_marks(sql)
        return self._cursor.execute(text, values if order is None else [values[at] for at in order])


# Plain question marks, since some releases of Python take `?1` for a name and warn.
@cache
def _with_question_marks(sql: str) -> tuple[str, tuple[int, ...] | None]:
    order = tuple(int(number) - 1 for number in re.findall(r"\$(\d+)", sql))
    return re.sub(r"\$\d+", "?", sql), None if order == tuple(range(len(order))) else order
