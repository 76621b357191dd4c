"""A script on PostgreSQL that locks nothing: it reads, and one statement makes its changes if nothing has moved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from memshelf.storage.postgres_connection import CONNECTING
from memshelf.storage.postgres_transaction import PostgresTransaction, for_each_row, in_one
from memshelf.storage.transaction import Change, Row

__all__ = ["NeedsLockError", "UnlockedTransaction"]


class NeedsLockError(Exception):
    """Nothing was changed, and the script is to be run again with a lock."""


class UnlockedTransaction(PostgresTransaction):
    """The connection is in no transaction: each query sees the database as it is then, and the changes wait for
    `commit`. See `Engine.write`."""

    __slots__ = ("_changes", "_of", "_rests_on", "asked")

    for_update = ""
    patience = CONNECTING  # where nothing is locked, nobody is waited for

    def __init__(self, connection: Any, found: object | None = None) -> None:  # Any: asyncpg has no types
        super().__init__(connection, found=found)
        self._rests_on: tuple[str, Sequence[object], Row] | None = None
        self._changes: list[Change] = []
        self._of: set[str] = set()
        self.asked = 0
        """How many queries there were. What several found need not have stood at the same time."""

    @property
    def supposes(self) -> bool:
        return self.found is not None

    @property
    def has_changes(self) -> bool:
        return bool(self._changes)

    def rests_on(self, query: str, key: Sequence[object], row: Row) -> None:
        self._rests_on = query, key, row

    async def execute(self, sql: str, *values: object) -> int:  # noqa: ARG002  # it would be committed at once
        raise NeedsLockError

    async def change(self, *changes: Change, of: str | None = None, stands: Change | None = None) -> None:
        if of is not None:
            if of in self._of:
                raise NeedsLockError
            self._of.add(of)
        self._changes += changes if stands is None else (*changes, stands)

    async def commit(self) -> None:
        """Make the changes, all or none, which a single statement commits. `NeedsLockError` when the row that they rest
        on is not what it was, or somebody has locked it.

        Nobody is waited for: who is, mostly moves the row. And a statement that still waits when its connection is lost
        would be committed at some later time, when its caller has long looked whether it was.
        """
        statements = tuple(sql for sql, _ in self._changes)
        if self._rests_on is None or len({*statements}) < len(statements):
            raise NeedsLockError
        query, key, row = self._rests_on
        sql = _if_it_stands(f"{query}{PostgresTransaction.for_update} SKIP LOCKED", len(key), len(row), statements)
        values = [value for _, values in self._changes for value in values]
        if await self._connection.execute(sql, *key, *row, *values) != "SELECT 1":
            raise NeedsLockError

    async def _ask(self, sql: str) -> None:
        if self._changes or not sql.startswith(("SELECT", "WITH")):
            raise NeedsLockError
        self.asked += 1


@cache
def _if_it_stands(locking: str, values: int, columns: int, statements: tuple[str, ...]) -> str:
    """One statement that does what all of them do if a query, which has so many values, finds a certain row, and that
    selects a row if it did. The row is locked before it is compared."""
    names = ", ".join(f"column_{number}" for number in range(columns))
    marks = ", ".join(f"${number}" for number in range(values + 1, values + columns + 1))
    stands = f"SELECT FROM ({locking}) AS held ({names}) WHERE ({names}) IS NOT DISTINCT FROM ({marks})"  # noqa: S608  # no value
    return in_one((stands, *(for_each_row(sql, "change_0") for sql in statements), "SELECT FROM change_0"))
