"""The reading connections of a PostgreSQL database, for one event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from memshelf.errors import MemoryStoreError
from memshelf.storage.postgres_connection import (
    CONNECTING,
    PATIENCE,
    Place,
    close,
    connect,
    is_lost,
    is_refused_for_now,
    refusal,
    unavailable,
)
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
        self._used = 0
        self._given_back = asyncio.Event()
        self._leaving: set[asyncio.Task[None]] = set()
        self._ended = False

    async def run(self, script: Script[T], *, single: bool) -> T:
        """What the script returns. A connection that was lost while nobody used it is made up for; a server that does
        not answer is `unavailable`, also for those who wait for one of the connections that it keeps busy."""
        await self._take_slot()
        try:
            while True:
                connection, kept = await self._connection()
                self._used += 1
                try:
                    result = await _on_snapshot(connection, script, single=single)
                except Exception as error:
                    if not is_lost(connection, error):
                        self._idle.append(connection)
                        if (refused := refusal(error)) is not error:
                            raise refused from error
                        raise
                    connection.terminate()
                    if isinstance(error, TimeoutError):  # the others, too, would only be waited for
                        self._drop_idle()
                        raise unavailable(error) from error
                    if not kept:
                        raise unavailable(error) from error
                except BaseException:
                    self._leave(connection)
                    raise
                else:
                    self._idle.append(connection)
                    return result
                finally:
                    self._used -= 1
                    self._given_back.set()
        finally:
            self._slots.release()

    async def _connection(self) -> tuple[Any, bool]:
        """A connection, and whether it was kept from before. When the server gives no more, ours are waited for."""
        refused = False
        while not self._idle:
            if not refused or not self._used:
                try:
                    return await self._open(), False
                except MemoryStoreError as error:
                    if not is_refused_for_now(error) or not (self._used or self._idle):
                        raise
                    refused = True
            else:
                self._given_back.clear()
                await _within_patience(self._given_back.wait())
        return self._idle.pop(), True

    async def make_room(self) -> bool:
        """Close a connection, as soon as one is not used; whether there was one."""
        while not self._idle:
            if not self._used:
                return False
            self._given_back.clear()
            await _within_patience(self._given_back.wait())
        await close(self._idle.pop())
        return True

    async def _open(self) -> Any:
        self._used += 1  # by whoever waits for it, until they use it
        try:
            return await connect(self._place, query_only=True)
        finally:
            self._used -= 1
            self._given_back.set()

    async def _take_slot(self) -> None:
        if not self._slots.locked():
            await self._slots.acquire()  # at once
            return
        await _within_patience(self._slots.acquire())

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
        idle, self._idle = self._idle, []
        await asyncio.gather(*(close(connection) for connection in idle))
        await self.end()

    async def end(self) -> None:
        """Drop the connections at once."""
        self._ended = True
        self._drop_idle()
        if self._leaving:
            await asyncio.wait(self._leaving)

    def _drop_idle(self) -> None:
        while self._idle:
            self._idle.pop().terminate()


async def _within_patience(given_back: Coroutine[Any, Any, Any]) -> None:
    try:
        await asyncio.wait_for(given_back, PATIENCE)
    except TimeoutError:
        message = f"The database kept all connections busy for {PATIENCE:g} seconds."
        raise MemoryStoreError("unavailable", message) from None


async def _on_snapshot(connection: Any, script: Script[T], *, single: bool) -> T:
    if single:
        return await script(PostgresTransaction(connection, single=True))
    await connection.execute("BEGIN", timeout=CONNECTING)
    try:
        return await script(PostgresTransaction(connection))
    finally:
        if connection.is_in_transaction():
            await connection.execute("ROLLBACK")  # nothing was changed
