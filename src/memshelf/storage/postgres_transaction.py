"""Scripts within one transaction of a PostgreSQL connection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import chain
from typing import Any

from memshelf.storage.transaction import Change, Row, for_one_key

__all__ = ["PostgresTransaction", "Together"]


class Together:
    """What scripts share that lock the same row and run one after the other, before any other: changes that are made
    at once, and rows that were asked for at once.

    A change waits until a script asks the server for something. A script that changes a row has asked for it, or found
    it among the rows that were asked for ahead, which it then forgets: so what waits are changes of different rows, but
    for the row that all have locked, whose changes stay in order.
    """

    __slots__ = ("_ahead", "_announced", "_connection", "_waiting", "failed")

    def __init__(self, connection: Any, announced: Iterable[str]) -> None:
        self._connection = connection  # asyncpg has no types
        self._announced = set(announced)
        self._ahead: dict[str, Row | None] = {}
        self._waiting: list[tuple[Change, ...]] = []
        self.failed = False
        """Whether changes failed that may be another script's than the one that was told."""

    def change(self, changes: tuple[Change, ...]) -> None:
        self._waiting.append(changes)

    async def flush(self) -> None:
        """Make the changes that wait."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            if len(waiting) == 1:
                await change(self._connection, waiting[0])
                return
            alike: dict[str, list[tuple[object, ...]]] = {}
            for sql, values in chain.from_iterable(waiting):
                alike.setdefault(sql, []).append(values)
            for sql, rows in alike.items():
                await self._connection.executemany(sql, rows)
        except BaseException:
            self.failed = True
            raise

    async def row(self, sql: str, owner: int, key: str) -> Row | None:
        if key not in self._ahead:
            keys = list(self._announced | {key})
            self._announced.clear()
            await self.flush()
            if len(keys) == 1:
                row: Row | None = await self._connection.fetchrow(for_one_key(sql), owner, key)
                return row
            rows = await self._connection.fetch(_for_many_keys(sql), owner, keys)
            self._ahead.update(dict.fromkeys(keys))
            self._ahead.update((row[0], row) for row in rows)
        return self._ahead[key]

    def forget(self, key: str | None = None) -> None:
        """The row of a key, or all rows, may change."""
        if key is None:
            self._ahead.clear()
        else:
            self._ahead.pop(key, None)


class PostgresTransaction:
    """The transaction that the connection is in, or the one that its next statement is, if it is in none."""

    __slots__ = ("_connection", "_single", "_together", "changed", "found", "left")

    for_update = " FOR NO KEY UPDATE"

    def __init__(
        self,
        connection: Any,
        *,
        single: bool = False,
        found: object | None = None,
        together: Together | None = None,
    ) -> None:
        self._connection = connection  # asyncpg has no types
        self.found = found
        self.left: object | None = None
        self._single: bool | None = True if single else None
        self._together = together
        self.changed = False
        """Whether a statement changed something."""

    async def fetch(self, sql: str, *values: object) -> Sequence[Row]:
        await self._ask()
        rows: Sequence[Row] = await self._connection.fetch(sql, *values)
        self.changed = self.changed or not sql.startswith(("SELECT", "WITH"))
        return rows

    async def fetch_one(self, sql: str, *values: object) -> Row | None:
        await self._ask()
        row: Row | None = await self._connection.fetchrow(sql, *values)
        self.changed = self.changed or not sql.startswith(("SELECT", "WITH"))
        return row

    async def fetch_keyed(self, sql: str, owner: int, key: str) -> Row | None:
        if self._together is not None:
            return await self._together.row(sql, owner, key)
        return await self.fetch_one(for_one_key(sql), owner, key)

    def forget(self, key: str) -> None:
        if self._together is not None:
            self._together.forget(key)

    async def execute(self, sql: str, *values: object) -> int:
        await self._ask()
        if self._together is not None:
            self._together.forget()
        status: str = await self._connection.execute(sql, *values)
        count = status.rpartition(" ")[2]
        rows = int(count) if count.isdecimal() else 0
        self.changed = self.changed or rows > 0 or not count.isdecimal()
        return rows

    async def change(self, *changes: Change) -> None:
        self.changed = True
        if self._together is not None:
            self._together.change(changes)
        else:
            await change(self._connection, changes)

    async def _ask(self) -> None:
        if self._together is not None:
            await self._together.flush()
        if self._single is None:
            return
        if not self._single:
            raise RuntimeError("A script that is said to run a single statement runs another.")
        self._single = False


async def change(connection: Any, changes: tuple[Change, ...]) -> None:
    values = [value for _, each in changes for value in each]
    await connection.execute(_in_one(tuple(sql for sql, _ in changes)), *values)


_PLACEHOLDER = re.compile(r"\$(\d+)")


@cache
def _in_one(statements: tuple[str, ...]) -> str:
    """One statement that does what all of them do, with their values one after the other."""
    numbered, before = list[str](), 0
    for sql in statements:
        numbered.append(_renumbered(sql, before))
        before += max((int(number) for number in _PLACEHOLDER.findall(sql)), default=0)
    *first, last = numbered
    named = ", ".join(f"change_{number} AS ({sql})" for number, sql in enumerate(first))
    return f"WITH {named} {last}" if first else last


@cache
def _for_many_keys(sql: str) -> str:
    return sql.format(key="= ANY($2::text[])")


def _renumbered(sql: str, before: int) -> str:
    return _PLACEHOLDER.sub(lambda found: f"${int(found[1]) + before}", sql)
