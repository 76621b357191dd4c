"""Services to measure: processes of `memshelf serve`, and what they are held against."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import uvicorn
from fastapi import FastAPI
from tests.postgres_server import PostgresServer

from memshelf.limits import StoreLimits
from memshelf.origin import Origin
from memshelf.service.accounts import Accounts, digest
from memshelf.service.data import DATABASE_NAME, engine_for
from memshelf.service.server import bound
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.stores.catalogue import Stores
from memshelf.stores.memories import Memories
from memshelf.stores.shelf import Shelf

__all__ = ["Filled", "content", "empty_endpoint", "fill", "new_database", "service"]

_SECONDS = 60
_AT_ONCE = 256


@contextmanager
def service(where: Sequence[str], *options: str) -> Iterator[int]:
    """The port of a service whose data is there."""
    command = [sys.executable, "-m", "memshelf", "serve", *where, "--port", "0", *options]
    with _process(command) as port:
        yield port


@contextmanager
def empty_endpoint() -> Iterator[int]:
    """The port of a FastAPI application that does nothing, served as the service is."""
    with _process([sys.executable, "-m", "bench.hosted"]) as port:
        yield port


@contextmanager
def _process(command: Sequence[str]) -> Iterator[int]:
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        if not line:
            raise RuntimeError(f"It did not start: {' '.join(command)}")
        yield int(line.rpartition(":")[2])
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(_SECONDS)
        process.stdout.close()


@dataclass(frozen=True, slots=True)
class Filled:
    """A database with one store, and who may use it. `where` says to `memshelf serve` where it is."""

    where: tuple[str, ...]
    key: str
    store: str
    memories: tuple[str, ...]
    """The ids, in the order of the paths that were asked for."""


async def fill(where: tuple[str, str], paths: Sequence[str]) -> Filled:
    """A new store with a memory at each path. Whether that is durable does not matter here."""
    kind, place = where
    engine = (
        engine_for(None, place) if kind == "--database" else SqliteEngine(Path(place) / DATABASE_NAME, durable=False)
    )
    shelf = Shelf(engine, StoreLimits(memories=max(len(paths), 10_000)))
    try:
        accounts = Accounts(engine)
        key = await accounts.create_key("bench")
        caller = await accounts.find(digest(key))
        assert caller is not None
        store = (await Stores(shelf, caller.workspace_id).create("bench")).id
        memories = Memories(shelf, caller.workspace_id, store)
        ids: list[str] = []
        for at in range(0, len(paths), _AT_ONCE):
            some = enumerate(paths[at : at + _AT_ONCE], at)
            made = (memories.create(path, content(number), origin=Origin()) for number, path in some)
            ids += [memory.id for memory in await asyncio.gather(*made)]
    finally:
        await engine.aclose()
    return Filled(where, key, store, tuple(ids))


def content(number: int) -> str:
    """About 500 bytes, different for each number; every fiftieth has the same word."""
    return f"Note {number}: word{number % 50}.\n" + "The coast road is closed in winter; take the train.\n" * 9


async def new_database(server: PostgresServer, name: str) -> str:
    """The URL of a new database."""
    connection = await asyncpg.connect(server.dsn)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()
    return f"{server.dsn.rpartition('/')[0]}/{name}"


def _serve_nothing() -> None:
    app = FastAPI()

    @app.get("/empty")
    async def empty() -> dict[str, str]:
        return {}

    listener = bound("127.0.0.1", 0)
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    settings = uvicorn.Config(
        app, http="httptools", loop="uvloop", log_config=None, access_log=False, server_header=False
    )
    uvicorn.Server(settings).run(sockets=[listener])


if __name__ == "__main__":
    _serve_nothing()
