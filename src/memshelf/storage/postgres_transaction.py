"""Scripts within one transaction of a PostgreSQL connection."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any, TypeAlias

from memshelf.storage.transaction import Change, Keyed, Row, for_one_key

__all__ = ["PostgresTransaction", "Together", "for_each_row", "in_one"]

_Key: TypeAlias = tuple[str, ...]

_MOST_WAITING = 1_000


class Together:
    """What scripts share that lock the same row and run one after the other, before any other: changes that are made
    at once, and rows that were asked for at once.

    A change waits until a script asks the server for something, or changes again what a change that waits is of. A
    script that changes a row has asked for it, or found it among the rows that were asked for ahead, which it then
    forgets, or goes on from what another has left: so what waits are changes of different rows, but for how the rows
    stand that all have locked, of which the last counts.
    """

    __slots__ = ("_ahead", "_announced", "_connection", "_of", "_stands", "_waiting", "failed", "left", "several")

    def __init__(self, connection: Any) -> None:
        self._connection = connection  # asyncpg has no types
        self._announced: dict[str, set[_Key]] = {}
        self._ahead: dict[_Key, dict[str, Row | None]] = {}
        self._waiting: list[Change] = []
        self._of: set[str] = set()
        self._stands: dict[tuple[str, object], Change] = {}
        self.several = False
        """Whether there are several scripts, or one that looks up several keys."""
        self.left: object | None = None
        """What the last script that succeeded has left."""
        self.failed = False
        """Whether something failed that may be another script's than the one that was told."""

    def announce(self, looked_up: Iterable[Keyed]) -> None:
        """A script will ask for this."""
        for sql, key in looked_up:
            if sql not in self._ahead.get(key, ()):
                self._announced.setdefault(sql, set()).add(key)

    async def change(self, changes: tuple[Change, ...], of: str | None, stands: Change | None) -> None:
        if of is not None:
            if of in self._of:
                await self.flush()
            self._of.add(of)
        self._waiting += changes
        if stands is not None:
            self._stands[stands[0], stands[1][0]] = stands
        if len(self._waiting) >= _MOST_WAITING:
            await self.flush()

    async def flush(self) -> None:
        """Make the changes that wait."""
        changes = [*self._waiting, *self._stands.values()]
        self._waiting.clear()
        self._of.clear()
        self._stands.clear()
        if not changes:
            return
        try:
            await _change(self._connection, changes)
        except BaseException:
            self.failed = True
            raise

    async def row(self, sql: str, owner: int, key: _Key) -> Row | None:
        found = self._ahead.get(key)
        if found is None or sql not in found:
            keys = self._announced.pop(sql, set()) | {key}
            await self.flush()
            await self._look_ahead(sql, owner, keys)
            found = self._ahead[key]
        return found[sql]

    async def _look_ahead(self, sql: str, owner: int, keys: set[_Key]) -> None:
        columns = [[*column] for column in zip(*keys, strict=True)]
        try:
            if len(keys) == 1:
                rows = await self._connection.fetch(for_one_key(sql, len(columns)), owner, *next(iter(keys)))
            else:
                rows = await self._connection.fetch(_for_many_keys(sql, len(columns)), owner, *columns)
        except BaseException:
            self.failed = True
            raise
        for key in keys:
            self._ahead.setdefault(key, {})[sql] = None
        for row in rows:
            self._ahead[tuple(row[: len(columns)])][sql] = row

    def forget(self, key: _Key | None = None) -> None:
        """The rows of a key, or all rows, may change."""
        if key is None:
            self._ahead.clear()
        else:
            self._ahead.pop(key, None)


class PostgresTransaction:
    """The transaction that the connection is in, or the one that its next statement is, if it is in none."""

    __slots__ = ("_connection", "_single", "_together", "changed", "found", "left")

    for_update = " FOR NO KEY UPDATE"
    heads = "memories"
    one_at_a_time = False
    patience: float | None = None
    """How many seconds a query may take, if less than the connection's own."""

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

    @property
    def supposes(self) -> bool:
        return False

    @property
    def shared(self) -> bool:
        return self._together is not None and self._together.several

    async def fetch(self, sql: str, *values: object) -> Sequence[Row]:
        await self._ask(sql)
        rows: Sequence[Row] = await self._connection.fetch(sql, *values, timeout=self.patience)
        self._asked(sql)
        return rows

    async def fetch_one(self, sql: str, *values: object) -> Row | None:
        await self._ask(sql)
        row: Row | None = await self._connection.fetchrow(sql, *values, timeout=self.patience)
        self._asked(sql)
        return row

    async def fetch_keyed(self, sql: str, owner: int, *key: str) -> Row | None:
        if self._together is not None:
            return await self._together.row(sql, owner, key)
        return await self.fetch_one(for_one_key(sql, len(key)), owner, *key)

    def announce(self, looked_up: Iterable[Keyed]) -> None:
        if self._together is not None:
            self._together.several = True
            self._together.announce(looked_up)

    async def finds_nothing(self, sql: str, owner: int, key: str) -> bool:
        together = self._together
        return together is not None and together.several and await together.row(sql, owner, (key,)) is None

    def forget(self, *key: str) -> None:
        if self._together is not None:
            self._together.forget(key)

    def rests_on(self, query: str, key: Sequence[object], row: Row) -> None:
        pass  # it is locked

    async def execute(self, sql: str, *values: object) -> int:
        await self._ask(sql)
        if self._together is not None:
            self._together.forget()
        status: str = await self._connection.execute(sql, *values)
        count = status.rpartition(" ")[2]
        rows = int(count) if count.isdecimal() else 0
        self.changed = self.changed or rows > 0 or not count.isdecimal()
        return rows

    async def change(self, *changes: Change, of: str | None = None, stands: Change | None = None) -> None:
        self.changed = True
        if self._together is not None:
            await self._together.change(changes, of, stands)
        else:
            await _change(self._connection, changes if stands is None else (*changes, stands))

    async def _ask(self, sql: str) -> None:  # noqa: ARG002  # it may be any
        if self._together is not None:
            await self._together.flush()
        if self._single is None:
            return
        if not self._single:
            raise RuntimeError("A script that is said to run a single statement runs another.")
        self._single = False

    def _asked(self, sql: str) -> None:
        if sql.startswith(("SELECT", "WITH")):
            return
        self.changed = True
        if self._together is not None:
            self._together.forget()


async def _change(connection: Any, changes: Sequence[Change]) -> None:
    """Make all changes with one statement, in which those that differ in their values only are one."""
    alike: dict[str, list[tuple[object, ...]]] = {}
    for sql, values in changes:
        alike.setdefault(sql, []).append(values)
    statements, arguments = list[str](), list[object]()
    for sql in sorted(alike):
        rows = alike[sql]
        if len(rows) == 1:
            statements.append(sql)
            arguments += rows[0]
        else:
            statements.append(_for_many_rows(sql, await _types(connection, sql)))
            arguments += ([*column] for column in zip(*rows, strict=True))
    await connection.execute(in_one(tuple(statements)), *arguments)


_PLACEHOLDER = re.compile(r"\$(\d+)")
_VALUES = re.compile(r"VALUES \((.*?)\)")
_known_types: dict[str, tuple[str, ...]] = {}


async def _types(connection: Any, sql: str) -> tuple[str, ...]:
    """The types of a statement's values, which the server finds out."""
    if sql not in _known_types:
        prepared = await connection.prepare(sql)
        _known_types[sql] = tuple(type.name for type in prepared.get_parameters())
    return _known_types[sql]


@cache
def in_one(statements: tuple[str, ...]) -> str:
    """One statement that does what all of them do, with their values one after the other."""
    numbered, before = list[str](), 0
    for sql in statements:
        numbered.append(_renumbered(sql, before))
        before += max((int(number) for number in _PLACEHOLDER.findall(sql)), default=0)
    *first, last = numbered
    named = ", ".join(f"change_{number} AS ({sql})" for number, sql in enumerate(first))
    return f"WITH {named} {last}" if first else last


@cache
def _for_many_rows(sql: str, types: tuple[str, ...]) -> str:
    """A statement for as many rows as its values have, which are arrays."""
    arrays = ", ".join(f"${number}::{type}[]" for number, type in enumerate(types, start=1))
    names = ", ".join(f"value_{number}" for number in range(1, len(types) + 1))
    rows = f"unnest({arrays}) AS each ({names})"
    return for_each_row(_PLACEHOLDER.sub(r"each.value_\1", sql), rows)


@cache
def for_each_row(sql: str, rows: str) -> str:
    """A statement of `Transaction.change` that is done once for each of these rows."""
    if sql.startswith("INSERT"):
        return _VALUES.sub(rf"SELECT \1 FROM {rows}", sql)  # noqa: S608  # no value
    return sql.replace(" WHERE ", f" {'USING' if sql.startswith('DELETE') else 'FROM'} {rows} WHERE ")


@cache
def _for_many_keys(sql: str, parts: int) -> str:
    """A query for keys whose parts are in arrays. Each key is looked up by itself: on a table that was filled just now,
    of which PostgreSQL has no statistics yet, a plan for all of them at once may read the whole memory."""
    arrays = ", ".join(f"${number}::text[]" for number in range(2, 2 + parts))
    names = ", ".join(f"key_{number}" for number in range(parts))
    each = ", ".join(f"keys.key_{number}" for number in range(parts))
    looked_up = sql.format(key=f"= ({each})", value=each)
    return f"SELECT found.* FROM unnest({arrays}) AS keys ({names}), LATERAL ({looked_up} OFFSET 0) AS found"  # noqa: S608  # no value


def _renumbered(sql: str, before: int) -> str:
    return _PLACEHOLDER.sub(lambda found: f"${int(found[1]) + before}", sql)
