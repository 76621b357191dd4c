"""Checking the history of stores."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from memshelf.files.backends.sql.memory import Memory
from memshelf.files.backends.sql.verify import verify
from memshelf.files.chain import ChainReport
from memshelf.storage.transaction import Engine, Transaction
from memshelf.stores.shelf import StoreAccess, no_such_store

__all__ = ["Verification", "every_store", "verified"]

T = TypeVar("T")


class Verification(StoreAccess):
    """The history of one store, as evidence."""

    async def verify(self, noted: str | None = None) -> ChainReport:
        """Check every version against the one before it, and the memories against the history; `noted` as in
        `ChainCheck`."""

        async def read(query: Callable[[Memory], Coroutine[Any, Any, T]]) -> T:
            return await self.read(lambda opened: query(opened.memory))

        return await verify(read, noted)


async def every_store(engine: Engine) -> list[str]:
    """The ids of the stores of all workspaces."""
    rows = await engine.read(lambda transaction: transaction.fetch("SELECT id FROM stores ORDER BY created_at, id"))
    return [id for (id,) in rows]


async def verified(engine: Engine, store_id: str, noted: str | None = None) -> ChainReport:
    """The same as `Verification.verify`, for whoever has the database itself, whatever the workspace. `not_found`."""

    async def read(query: Callable[[Memory], Coroutine[Any, Any, T]]) -> T:
        async def find(transaction: Transaction) -> T:
            row = await transaction.fetch_one("SELECT memory_id FROM stores WHERE id = $1", store_id)
            if row is None:
                raise no_such_store(store_id)
            return await query(Memory(transaction, row[0]))

        return await engine.read(find)

    return await verify(read, noted)
