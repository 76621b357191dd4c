"""Scripts on a PostgreSQL database."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import weakref
from typing import TypeAlias, TypeVar

from memshelf.arguments import checked_argument, checked_dsn
from memshelf.storage.postgres_connection import PATIENCE, Place
from memshelf.storage.postgres_erasing import Eraser
from memshelf.storage.postgres_readers import Readers
from memshelf.storage.postgres_writer import Writer
from memshelf.storage.transaction import Announced, Script

__all__ = ["PostgresEngine"]

T = TypeVar("T")


class PostgresEngine:
    """The schema of that name in the database at a DSN, which is created when it is first used.

    Engines of one place share their connections, which belong to the event loop that they were opened in: each loop
    has up to eight for reading, and one for writing, so that everybody who writes at the same time shares a commit.
    They are closed with the last engine of the place, and when their loop ends.
    """

    def __init__(self, dsn: str, schema: str = "memshelf") -> None:
        if not checked_argument("schema", schema, str) or not schema.isprintable() or len(schema.encode()) > 63:
            raise ValueError(f"A schema's name is 1 to 63 bytes of printable characters, not {schema!r}.")
        self._place = Place(checked_dsn(dsn), schema)
        self._database: _Database | None = None

    async def read(self, script: Script[T], *, single: bool = False) -> T:
        return await self._part().readers.run(script, single=single)

    async def write(
        self,
        script: Script[T],
        *,
        key: int | None = None,
        announced: Announced = tuple,
        unlocked: bool = False,
    ) -> T:
        return await self._part().writer.run(script, key, announced, unlocked=unlocked)

    async def erase(self, script: Script[T]) -> T:
        part = self._part()
        result = await part.writer.run(script, None, tuple, unlocked=False)
        await part.eraser.finish()
        return result

    def generation(self) -> int:
        return 0

    async def aclose(self) -> None:
        database, self._database = self._database, None
        if database is not None:
            await database.release(self)

    def _part(self) -> _Part:
        database = self._database
        if database is None:
            database = self._database = _Database.shared(self._place, self)
        return database.part()


class _Part:
    """What one event loop uses of a database. It ends with the loop at the latest."""

    def __init__(self, place: Place, parts: dict[asyncio.AbstractEventLoop, _Part]) -> None:
        self.readers = Readers(place)
        self.writer = Writer(place, self.readers.make_room)
        self.eraser = Eraser(place)
        self.loop = asyncio.get_running_loop()
        self._parts = parts
        self.task = self.loop.create_task(self._serve(), name="memshelf-postgres")

    async def _serve(self) -> None:
        try:
            await self.writer.serve()
            await self.readers.aclose()
        finally:  # a loop that ends cancels its tasks
            await self.readers.end()
            if self._parts.get(self.loop) is self:
                del self._parts[self.loop]

    async def aclose(self) -> None:
        """Close the connections, after what was called before."""
        self.writer.end()
        await asyncio.wait([self.task])


class _Database:
    """What all engines of one place share in this process."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._users: weakref.WeakSet[object] = weakref.WeakSet()
        self.begin()

    def begin(self) -> None:
        self._parts: dict[asyncio.AbstractEventLoop, _Part] = {}
        # Without this, the connections of a database that nobody uses any more would stay for as long as their loop.
        self._abandon = weakref.finalize(self, _cancel, self._parts)
        self._abandon.atexit = False

    @classmethod
    def shared(cls, place: Place, user: object) -> _Database:
        with _registry_lock:
            database = _registry.get(place)
            if database is None:
                database = _registry[place] = cls(place)
            database._users.add(user)
        return database

    def part(self) -> _Part:
        loop = asyncio.get_running_loop()
        part = self._parts.get(loop)
        if part is None:
            for other in [each for each in list(self._parts) if each.is_closed()]:
                self._parts.pop(other, None)
            part = self._parts[loop] = _Part(self._place, self._parts)
        return part

    async def release(self, user: object) -> None:
        """Close the connections unless somebody else uses them. What was called before is done first."""
        with _registry_lock:
            self._users.discard(user)
            if self._users:
                return
            parts = [self._parts.pop(loop) for loop in list(self._parts)]
        for part in parts:
            if part.loop is asyncio.get_running_loop():
                await part.aclose()
            elif part.loop.is_running():
                elsewhere = asyncio.run_coroutine_threadsafe(part.aclose(), part.loop)
                await asyncio.wait([asyncio.wrap_future(elsewhere)], timeout=PATIENCE)
            else:
                _cancel({part.loop: part})

    def forget_parent(self) -> _Inherited:
        """In a forked child: what the parent uses, which the child must neither use nor close."""
        inherited = self._abandon.detach(), self._parts
        self.begin()
        return inherited


def _cancel(parts: dict[asyncio.AbstractEventLoop, _Part]) -> None:
    for loop, part in list(parts.items()):
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(part.task.cancel)


_Inherited: TypeAlias = tuple[object, object]

_registry_lock = threading.Lock()
_registry: weakref.WeakValueDictionary[Place, _Database] = weakref.WeakValueDictionary()
_inherited: list[_Inherited] = []


def _after_fork_in_child() -> None:
    # Connections and event loops hold descriptors that are the parent's too, and would undo things there as they are
    # tidied up here: so they are kept as they are, for good.
    global _registry_lock
    _registry_lock = threading.Lock()
    _inherited.extend(database.forget_parent() for database in list(_registry.values()))


os.register_at_fork(after_in_child=_after_fork_in_child)
