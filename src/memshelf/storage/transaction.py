"""What runs inside a database, whichever engine keeps it.

A script is an `async def` function over a `Transaction`. It is plain SQL that every engine understands: placeholders
are `$1`, `$2`, ..., in any order and as often as needed. A script awaits nothing but its transaction. It may be run
again from its beginning when an attempt at it came to nothing, so what it does besides SQL has no effect that lasts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from functools import cache
from typing import Any, Protocol, TypeAlias, TypeVar

__all__ = ["Announced", "Change", "Engine", "Keyed", "Row", "Script", "Transaction", "for_one_key"]

T = TypeVar("T")

Row: TypeAlias = Sequence[Any]  # the values of one row, each of its column's type


Change: TypeAlias = tuple[str, tuple[object, ...]]
"""A statement, and its values."""

Keyed: TypeAlias = tuple[str, tuple[str, ...]]
"""A query of `Transaction.fetch_keyed`, and a key."""

Announced: TypeAlias = Callable[[], Iterable[Keyed]]
"""What a script will ask for by a key: called where it is of use."""


class Transaction(Protocol):
    """One transaction, as a script sees it: it neither begins nor commits, and raises to undo what it did."""

    left: object | None
    """What the script leaves to the next one that shares its commit, if it does not raise: plain values, without the
    transaction, which would hold itself and be freed late."""

    @property
    def found(self) -> object | None:
        """What the last script left that did not raise, if it had the same key. Nothing was changed since, and its
        locks still hold; or, where a script runs without a lock, nothing comes of it if that is not so any more. Then
        too the script says what it `rests_on`. May always be `None`."""
        ...

    @property
    def supposes(self) -> bool:
        """Whether the script may take what the database keeps unique for new. If it is not, nothing comes of it."""
        ...

    @property
    def shared(self) -> bool:
        """Whether `fetch_keyed` may ask for several keys at once."""
        ...

    @property
    def for_update(self) -> str:
        """What ends a SELECT that keeps its rows to this transaction, so that nobody changes them before it ends.
        Empty where there is one writer at a time, and where a script runs without a lock."""
        ...

    @property
    def heads(self) -> str:
        """The table or view that says where memories stand. If it is not `memories` itself, that follows from their
        versions, and their own rows have only to say when a file comes or goes."""
        ...

    @property
    def one_at_a_time(self) -> bool:
        """Whether readers wait for each other, so that what may take long is better asked for a part at a time."""
        ...

    async def fetch(self, sql: str, *values: object) -> Sequence[Row]:
        """All rows of a query."""
        ...

    async def fetch_one(self, sql: str, *values: object) -> Row | None:
        """The first row of a query, or `None`."""
        ...

    async def fetch_keyed(self, sql: str, owner: int, *key: str) -> Row | None:
        """The row of a query for one key, or `None`: `$1` is the owner, `{key}` stands where a column, or several in
        parentheses, are compared with the key, and the query's first columns are the same.

        An engine may ask at the same time for what later scripts of the commit announced: see `Engine.write`.
        """
        ...

    def announce(self, looked_up: Iterable[Keyed]) -> None:
        """The script itself will give this to `fetch_keyed` or `finds_nothing`, with one owner: an engine may ask for
        all of it at once."""
        ...

    async def finds_nothing(self, sql: str, owner: int, key: str) -> bool:
        """Whether a query finds nothing for a key, if an engine looks up several at once; otherwise `False`, and the
        script asks in its own way. Here `{value}` may stand for the key itself."""
        ...

    def rests_on(self, query: str, key: Sequence[object], row: Row) -> None:
        """The script has found this row, and locked it with `for_update`, which could follow the query: see
        `Engine.write`. The query's values are the key."""
        ...

    def forget(self, *key: str) -> None:
        """What any query found for a key changes, and be it nothing: the next script asks again. `execute` forgets
        everything."""
        ...

    async def execute(self, sql: str, *values: object) -> int:
        """Run a statement; how many rows it inserted, changed or deleted."""
        ...

    async def change(self, *changes: Change, of: str | None = None, stands: Change | None = None) -> None:
        """Run statements that change rows, each another row than the others, and none seeing what another did.
        `of` names what they change, for scripts that change it again without having asked for it, as they go on from
        what they `found`. `stands` says how a row that the script has locked stands from then on, and its first value
        which row.

        On a server that is one round trip, for the scripts of a commit that ask for nothing in between, and change
        different things, together: then only the last of what they say of how a row stands is done.
        """
        ...


Script: TypeAlias = Callable[[Transaction], Coroutine[Any, Any, T]]  # as every `async def` function


class Engine(Protocol):
    """A database. Each call raises what its script raises, and `unavailable` when the database could not do it."""

    def read(self, script: Script[T], *, single: bool = False) -> Awaitable[T]:
        """Run a script on a snapshot of the database, which it cannot change. A script that is `single` runs no more
        than one statement, so that no transaction is needed around it."""
        ...

    def write(
        self,
        script: Script[T],
        *,
        key: int | None = None,
        announced: Announced = tuple,
        unlocked: bool = False,
    ) -> Awaitable[T]:
        """Run a script; when this returns, what it did is committed. Many may share one commit.

        `write_unconfirmed` when the commit's outcome is not known.

        `key` orders the scripts that share a commit. Scripts that wait for each other's rows must use one order, so
        that no two commits wait for each other: `key` is the id of the one row that the script locks. A script
        without a key shares its commit with none where that matters. `announced` is what the script will give to
        `fetch_keyed`, with the same owner as the others of its key.

        `unlocked` promises that nothing that decides on the script's changes is different while the row that it says it
        `rests_on` stays the same, and that it changes only what it gives to `change`. Then an engine may run it without
        a lock, and make the changes only if that row is still the same when it is locked for them.
        """
        ...

    def erase(self, script: Script[T]) -> Awaitable[T]:
        """`write` for a script that deletes what must leave no trace, and counts itself in `erasures`.

        When this returns, the database has been rewritten without it, as far as the engine can tell. If others keep
        it from that, `unavailable` says so: the deletion itself is committed, and the next erasure finishes the rest.
        """
        ...

    def generation(self) -> int:
        """Grows when the database turns out to be another one than before: what was learned from it in an earlier
        generation does not hold any more. `unavailable` when there is one that must not be used."""
        ...

    async def aclose(self) -> None:
        """Let go of the database, after what was called before. A closed engine opens again when it is used."""
        ...


@cache
def for_one_key(sql: str, parts: int) -> str:
    """A query of `Transaction.fetch_keyed`, for a key in `$2` and what follows."""
    marks = ", ".join(f"${number}" for number in range(2, 2 + parts))
    return sql.format(key=f"= ({marks})", value=marks)
