"""Erasing in a PostgreSQL database: vacuuming what was deleted."""

from __future__ import annotations

import asyncio
import time

import asyncpg

from memshelf.errors import MemoryStoreError
from memshelf.storage import postgres_connection
from memshelf.storage.postgres_connection import Place, close, connect, reason

__all__ = ["Eraser"]

_LOOK_EVERY = 0.02


class Eraser:
    """Brings committed erasures to their end, for one event loop."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._turn = asyncio.Lock()

    async def finish(self) -> None:
        """Vacuum every table, when no transaction that began before the deletion is left to see what was deleted.

        Then no row and no index entry of it is left. Bytes may still stand in parts of pages that are free to be
        overwritten, and in the write-ahead log until the server has recycled it; copies that were made of either, by
        replication, archiving or backup, are out of reach. `unavailable` when it could not be done: the next erasure
        finishes it.
        """
        async with self._turn:
            try:
                connection = await connect(self._place, query_only=False)
                try:
                    done = await self._vacuum(connection)
                finally:
                    await close(connection)
            except (MemoryStoreError, OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                raise _unfinished(reason(error)) from error
        if not done:
            raise _unfinished("another transaction still sees them")

    async def _vacuum(self, connection: asyncpg.Connection) -> bool:
        wanted, done = await connection.fetchrow("SELECT wanted, done FROM erasures")
        if done >= wanted:
            return True
        deadline = time.monotonic() + postgres_connection.PATIENCE
        horizon = await connection.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
        while await connection.fetchval(_IN_THE_WAY, horizon):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_LOOK_EVERY)
        tables = await connection.fetch(
            "SELECT quote_ident(tablename) FROM pg_tables WHERE schemaname = $1", self._place.schema
        )
        await connection.execute(f"VACUUM (INDEX_CLEANUP ON) {', '.join(name for (name,) in tables)}")
        await connection.execute("UPDATE erasures SET done = greatest(done, $1)", wanted)
        return True


# Snapshots that are older than every transaction of which the horizon is the end.
_IN_THE_WAY = (
    "SELECT EXISTS (SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
    "AND backend_type <> 'autovacuum worker' AND age(backend_xmin) > age($1::text::xid))"
)


def _unfinished(reason: str) -> MemoryStoreError:
    return MemoryStoreError(
        "unavailable",
        f"What was to be erased is deleted, but rows of it may remain in the database's files ({reason}). Call this "
        "again to finish.",
    )
