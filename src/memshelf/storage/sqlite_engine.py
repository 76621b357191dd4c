"""Scripts on a SQLite database."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Coroutine
from functools import cache
from typing import Any, TypeVar

from memshelf.storage.jobs import Work
from memshelf.storage.sqlite import Database
from memshelf.storage.transaction import Row, Script

__all__ = ["SqliteEngine"]

T = TypeVar("T")


class SqliteEngine:
    """The database file at a path, which is created when it is first used. See `Database`.

    With `durable`, what was written survives a power cut; without, only the end of the process.
    """

    def __init__(self, path: str | os.PathLike[str], *, durable: bool = True) -> None:
        self._path = os.path.abspath(path)
        self._durable = durable
        self._database: Database | None = None

    @property
    def database(self) -> Database:
        """The database, for work that is not a script. It is this engine's until `aclose`."""
        if self._database is None:
            self._database = Database.shared(self._path, self, durable=self._durable)
        return self._database

    async def read(self, script: Script[T]) -> T:
        result: T = await self.database.read(_work(script))
        return result

    async def write(self, script: Script[T], *, key: int | None = None) -> T:  # noqa: ARG002  # there is one writer
        result: T = await self.database.write(_work(script))
        return result

    async def erase(self, script: Script[T]) -> T:
        result: T = await self.database.erase(_work(script))
        return result

    def generation(self) -> int:
        return self.database.generation()

    async def aclose(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            await database.release(self)


def _work(script: Script[T]) -> Work:
    def work(connection: sqlite3.Connection) -> T:
        running = script(_Transaction(connection))
        assert isinstance(running, Coroutine)  # noqa: S101  # a script is an `async def` function
        try:
            running.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        running.close()
        raise RuntimeError("A script awaits nothing but its transaction.")

    return work


class _Transaction:
    """Its calls never suspend, so that a script runs to its end on the database's thread."""

    __slots__ = ("_execute",)

    for_update = ""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._execute = connection.execute

    async def fetch(self, sql: str, *values: object) -> list[Row]:
        return self._execute(*_translated(sql, values)).fetchall()

    async def fetch_one(self, sql: str, *values: object) -> Row | None:
        row: Row | None = self._execute(*_translated(sql, values)).fetchone()
        return row

    async def execute(self, sql: str, *values: object) -> int:
        return self._execute(*_translated(sql, values)).rowcount


def _translated(sql: str, values: tuple[object, ...]) -> tuple[str, tuple[Any, ...]]:
    text, order = _with_question_marks(sql)
    return text, values if order is None else tuple([values[at] for at in order])


# Plain question marks, since some releases of Python take `?1` for a name and warn.
@cache
def _with_question_marks(sql: str) -> tuple[str, tuple[int, ...] | None]:
    order = tuple(int(number) - 1 for number in re.findall(r"\$(\d+)", sql))
    return re.sub(r"\$\d+", "?", sql), None if order == tuple(range(len(order))) else order
