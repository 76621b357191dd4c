"""`PostgresFileStore`: durable writes, shared commits, reads, and changes at 10,000 files."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.postgres_server import PostgresServer, programs

from bench.measure import Ratio, median_async, show
from bench.raw import postgres_commit
from bench.slow_disk import available, slow_disk
from bench.writing import ORIGIN, one_writer, throughput
from memshelf import PostgresFileStore

__all__ = ["run"]

FILES = 10_000
WRITERS = 16

_SYNC = 1
"""How many milliseconds a sync takes longer on a slower disk."""


async def run(_: Path) -> None:
    if programs() is None:
        print("\nPostgreSQL\n  (there is no server here)")
        return
    with _server() as dsn:
        show("PostgreSQL", [*await _writes(dsn), *await _reads(dsn)])
    if available():
        with slow_disk(_SYNC), _server() as dsn:
            show(f"PostgreSQL where a sync takes {_SYNC} ms longer", await _writes(dsn))


@contextmanager
def _server() -> Iterator[str]:
    server = PostgresServer(durable=True)
    try:
        yield server.dsn
    finally:
        server.stop()


async def _writes(dsn: str) -> list[Ratio]:
    async with PostgresFileStore(dsn) as store:
        ours = await one_writer(store, 200)
        alone = await throughput(store, 1, 100)
        together = await throughput(store, WRITERS, 100)
    raw = await postgres_commit(dsn)
    return [
        Ratio("durable write", ours, raw, "one raw durable commit of a version's row", "at most 2x"),
        Ratio(f"{WRITERS} writers in one process", together, alone, "one writer", "at least 5x", per_second=True),
    ]


async def _reads(dsn: str) -> list[Ratio]:
    async with PostgresFileStore(dsn, "large") as store:
        await asyncio.gather(
            *(store.write(f"d{n % 100}/{n}.md", f"note {n}\n" * 20, expected=None, origin=ORIGIN) for n in range(FILES))
        )
        cursor = (await store.changes(None)).cursor
        await store.write("late.md", "x", expected=None, origin=ORIGIN)
        read = await median_async(lambda n: store.read(f"d{n % 100}/{n}.md"), 1000)
        changes = await median_async(lambda _: store.changes(cursor), 300)
        listing = await median_async(lambda _: store.list(), 21)
    return [
        Ratio(f"read, {FILES:,} files", read, 1e-3, "1 ms", "at most 1x"),
        Ratio(f"changes(), {FILES:,} files", changes, 1e-3, "1 ms", "at most 1x"),
        Ratio(f"list(), {FILES:,} files", listing, 50e-3, "50 ms", ""),
    ]
