"""Scripts within one transaction of a PostgreSQL connection."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

from memshelf.storage.transaction import Change, Row

__all__ = ["PostgresTransaction"]


class PostgresTransaction:
    """The transaction that the connection is in, or the one that its next statement is, if it is in none."""

    __slots__ = ("_connection", "_single", "changed", "found", "left")

    for_update = " FOR NO KEY UPDATE"

    def __init__(self, connection: Any, *, single: bool = False, found: object | None = None) -> None:
        self._connection = connection  # asyncpg has no types
        self.found = found
        self.left: object | None = None
        self._single: bool | None = True if single else None
        self.changed = False
        """Whether a statement changed something."""

    async def fetch(self, sql: str, *values: object) -> Sequence[Row]:
        self._count()
        rows: Sequence[Row] = await self._connection.fetch(sql, *values)
        self.changed = self.changed or not sql.startswith(("SELECT", "WITH"))
        return rows

    async def fetch_one(self, sql: str, *values: object) -> Row | None:
        self._count()
        row: Row | None = await self._connection.fetchrow(sql, *values)
        self.changed = self.changed or not sql.startswith(("SELECT", "WITH"))
        return row

    async def execute(self, sql: str, *values: object) -> int:
        self._count()
        status: str = await self._connection.execute(sql, *values)
        count = status.rpartition(" ")[2]
        rows = int(count) if count.isdecimal() else 0
        self.changed = self.changed or rows > 0 or not count.isdecimal()
        return rows

    async def change(self, *changes: Change) -> None:
        values = [value for _, each in changes for value in each]
        await self.execute(_together(tuple(sql for sql, _ in changes)), *values)
        self.changed = True

    def _count(self) -> None:
        if self._single is None:
            return
        if not self._single:
            raise RuntimeError("A script that is said to run a single statement runs another.")
        self._single = False


_PLACEHOLDER = re.compile(r"\$(\d+)")


@cache
def _together(statements: tuple[str, ...]) -> str:
    """One statement that does what all of them do, with their values one after the other."""
    numbered, before = list[str](), 0
    for sql in statements:
        numbered.append(_renumbered(sql, before))
        before += max((int(number) for number in _PLACEHOLDER.findall(sql)), default=0)
    *first, last = numbered
    named = ", ".join(f"change_{number} AS ({sql})" for number, sql in enumerate(first))
    return f"WITH {named} {last}" if first else last


def _renumbered(sql: str, before: int) -> str:
    return _PLACEHOLDER.sub(lambda found: f"${int(found[1]) + before}", sql)
