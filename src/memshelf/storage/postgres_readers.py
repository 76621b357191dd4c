"""The reading connections of a PostgreSQL database, for one event loop."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

from memshelf.storage.postgres_connection import Place, close, connect, is_lost, refusal, unavailable
from memshelf.storage.postgres_transaction import PostgresTransaction
from memshelf.storage.transaction import Script

__all__ = ["Readers"]

T = TypeVar("T")

_MOST = 8


class Readers:
    """Runs each script on a snapshot of its own. Connections are opened as they are needed, and kept."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._slots = asyncio.Semaphore(_MOST)
        self._idle: list[Any] = []  # asyncpg has no types
        self._leaving: set[asyncio.Task[None]] = set()
        self._ended = False

    async def run(self, script: Script[T], *, single: bool) -> T:
        async with self._slots:
            while True:
                kept = bool(self._idle)
                connection = self._idle.pop() if kept else await connect(self._place, query_only=True)
                try:
                    result = await _on_snapshot(connection, script, single=single)
                except Exception as error:
                    if not is_lost(connection, error):
                        self._idle.append(connection)
                        raise refusal(error) from error
                    connection.terminate()
                    if not kept:
                        raise unavailable(error) from error
                except BaseException:
                    self._leave(connection)
                    raise
                else:
                    self._idle.append(connection)
                    return result

    def _leave(self, connection: Any) -> None:
        # The caller was cancelled in the midst of a statement. The server goes on with it until it is told to stop,
        # and to close a connection does so first.
        if self._ended:
            connection.terminate()
            return
        task = asyncio.create_task(close(connection))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def aclose(self) -> None:
        """Close the connections, when what was called before is done."""
        for _ in range(_MOST):
            await self._slots.acquire()
        while self._idle:
            await close(self._idle.pop())
        await self.end()

    async def end(self) -> None:
        """Drop the connections at once."""
        self._ended = True
        while self._idle:
            self._idle.pop().terminate()
        if self._leaving:
            await asyncio.wait(self._leaving)


async def _on_snapshot(connection: Any, script: Script[T], *, single: bool) -> T:
    if single:
        return await script(PostgresTransaction(connection, single=True))
    await connection.execute("BEGIN")
    try:
        return await script(PostgresTransaction(connection))
    finally:
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK")  # nothing was changed
