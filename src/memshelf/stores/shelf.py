"""What stores are kept in, and the transactions of one store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import NamedTuple, TypeVar

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.sql.memory import Head, Memory, Stood
from memshelf.files.backends.sql.rows import LIVE_FIELDS, Live, live_of
from memshelf.limits import StoreLimits
from memshelf.storage.ids import Mint, askable, from_micros, micros
from memshelf.storage.transaction import Announced, Engine, Row, Transaction
from memshelf.stores.model import NoSuchStoreError

__all__ = ["Opened", "Shelf", "StoreAccess", "no_such_memory", "no_such_store"]

T = TypeVar("T")

_MOST_KNOWN = 10_000


@cache
def _store(heads: str, lock: str) -> str:
    return (
        "SELECT m.id, m.epoch, m.head_seq, m.head_link, m.files, s.archived_at FROM stores s "  # noqa: S608  # no value
        f"JOIN {heads} m ON m.id = s.memory_id WHERE s.id = $1 AND s.workspace_id = $2{lock}"
    )


@cache
def _store_and_memory(heads: str, lock: str) -> str:
    # `last` is the store as it stands when its lock is had, `seen` as it stood when the statement began to wait.
    seen = f"JOIN {heads} seen ON seen.id = last.id" if lock else ""
    return (
        f"WITH last AS ({_store(heads, lock)}) SELECT last.*, {'seen' if seen else 'last'}.head_link, {LIVE_FIELDS} "  # noqa: S608  # no value
        f"FROM last {seen} LEFT JOIN files f ON f.memory_id = last.id AND f.file_id = $3 "
        "LEFT JOIN file_versions v ON v.id = f.version_id"
    )


@dataclass(frozen=True, slots=True)
class Shelf:
    """A database of stores, with the limits that hold for new writes. `mint` is where times and ids come from."""

    engine: Engine
    limits: StoreLimits = field(default_factory=StoreLimits)
    mint: Mint = field(default_factory=Mint)
    _known: dict[tuple[str, str], int] = field(default_factory=dict)

    async def memory_id(self, workspace_id: str, store_id: str) -> int:
        """The row that everything about this store locks. It never changes, but the store may be gone. `not_found`."""
        known = self._known.get((workspace_id, store_id))
        if known is not None:
            return known
        row = await self.engine.read(
            lambda transaction: transaction.fetch_one(
                "SELECT memory_id FROM stores WHERE id = $1 AND workspace_id = $2", store_id, workspace_id
            ),
            single=True,
        )
        if row is None:
            raise no_such_store(store_id)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        memory_id = self._known[workspace_id, store_id] = int(row[0])
        return memory_id


@dataclass(slots=True)
class Opened:
    """A store within one transaction, which has locked it if it may write."""

    store_id: str
    memory: Memory
    archived_at: datetime | None

    @property
    def head(self) -> Head:
        """How the store stands now: it moves with what the transaction changes."""
        assert self.memory.stands is not None  # noqa: S101  # it is known from the beginning
        return self.memory.stands

    @property
    def transaction(self) -> Transaction:
        return self.memory.transaction


class _Left(NamedTuple):
    """How a store stood at the end of a script."""

    workspace_id: str
    store_id: str
    memory_id: int
    stood: Stood
    archived_at: int | None


class StoreAccess:
    """One store of a workspace. Every call raises `not_found` when the workspace has no such store."""

    def __init__(self, shelf: Shelf, workspace_id: str, store_id: str) -> None:
        self.shelf = shelf
        self.workspace_id = workspace_id
        self.store_id = askable(store_id)

    async def read(self, script: Callable[[Opened], Awaitable[T]]) -> T:
        async def read(transaction: Transaction) -> T:
            return await script(await self._open(transaction, ""))

        return await self.shelf.engine.read(read)

    async def write(
        self,
        script: Callable[[Opened], Awaitable[T]],
        *,
        keeps: bool = False,
        announced: Announced = tuple,
        memory_id: str | None = None,
        unlocked: bool = False,
    ) -> T:
        """`keeps` promises that `Opened` says how the store stands after the script: then the next script that shares
        its commit need not ask for it. `announced` and `unlocked` are as in `Engine.write`. `memory_id` is the memory
        that the script begins with, so that it may come with the store."""
        key = await self.shelf.memory_id(self.workspace_id, self.store_id)

        async def write(transaction: Transaction) -> T:
            opened = self._found(transaction) or await self._open(transaction, transaction.for_update, memory_id)
            result = await script(opened)
            if keeps:
                stood = Stood(opened.head, opened.memory.last)
                transaction.left = _Left(
                    self.workspace_id, self.store_id, opened.memory.id, stood, _micros(opened.archived_at)
                )
            return result

        return await self.shelf.engine.write(write, key=key, announced=announced, unlocked=unlocked)

    async def erase(self, script: Callable[[Opened], Awaitable[T]]) -> T:
        async def erase(transaction: Transaction) -> T:
            return await script(await self._open(transaction, transaction.for_update))

        return await self.shelf.engine.erase(erase)

    def _found(self, transaction: Transaction) -> Opened | None:
        match transaction.found:
            case _Left(self.workspace_id, self.store_id, memory_id, stood, archived_at):
                return self._opened(transaction, (memory_id, *stood.head, archived_at), stood.last)
        return None

    async def _open(self, transaction: Transaction, lock: str, memory_id: str | None = None) -> Opened:
        values = [self.store_id, self.workspace_id]
        if memory_id is None or transaction.shared:
            row = await transaction.fetch_one(_store(transaction.heads, lock), *values)
        else:
            query = _store_and_memory(transaction.heads, lock)
            while (row := await transaction.fetch_one(query, *values, memory_id)) is not None and row[3] != row[6]:
                pass  # it waited for another's change, and saw the memory as it was before: now it need not wait
        if row is None:
            raise no_such_store(self.store_id)
        return self._opened(transaction, row[:6], live_of(row[7:]) if len(row) > 6 else None)

    def _opened(self, transaction: Transaction, row: Row, last: Live | None) -> Opened:
        transaction.rests_on(_store(transaction.heads, ""), [self.store_id, self.workspace_id], row)
        id, epoch, seq, link, files, archived_at = row
        memory = Memory(transaction, id, Head(epoch, seq, link, files))
        memory.last = last
        return Opened(self.store_id, memory, from_micros(archived_at) if archived_at is not None else None)


def _micros(moment: datetime | None) -> int | None:
    return micros(moment) if moment is not None else None


def no_such_store(store_id: str) -> MemoryStoreError:
    return NoSuchStoreError(f"There is no memory store {store_id}.")


def no_such_memory(memory_id: str) -> MemoryStoreError:
    return MemoryStoreError("not_found", f"This memory store has no memory {memory_id}.")
