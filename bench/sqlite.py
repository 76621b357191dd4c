"""`SqliteFileStore`: durable writes, shared commits, reads, and changes at 10,000 files."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench import peers
from bench.measure import Ratio, median_async, show
from bench.raw import sqlite_commit
from bench.writing import ORIGIN, one_writer, throughput
from memshelf import SqliteFileStore

__all__ = ["run"]

FILES = 10_000
WRITERS = 16


async def run(place: Path) -> None:
    async with SqliteFileStore(place / "memory.db") as store:
        ours = await one_writer(store, 200)
        alone = await throughput(store, 1, 100)
        together = await throughput(store, WRITERS, 100)
    raw = sqlite_commit(place / "raw.db")
    peer = peers.ask("pydantic-ai-harness==0.62.0", "3.11", peers.HARNESS_WRITES, str(place / "peer.db"))
    ratios = [Ratio("durable write", ours, raw, "one raw durable commit of a version's row", "at most 1.5x")]
    if peer is not None:
        ratios.append(Ratio("durable write", ours, peer, "pydantic-ai-harness 0.62 SqliteMemoryStore", "at most 0.33x"))
    ratios.append(
        Ratio(f"{WRITERS} writers in one process", together, alone, "one writer", "at least 5x", per_second=True)
    )

    async with SqliteFileStore(place / "large.db", durable=False) as store:
        await asyncio.gather(
            *(store.write(f"d{n % 100}/{n}.md", f"note {n}\n" * 20, expected=None, origin=ORIGIN) for n in range(FILES))
        )
        cursor = (await store.changes(None)).cursor
        await store.write("late.md", "x", expected=None, origin=ORIGIN)
        read = await median_async(lambda n: store.read(f"d{n % 100}/{n}.md"), 1000)
        changes = await median_async(lambda _: store.changes(cursor), 300)
        listing = await median_async(lambda _: store.list(), 21)
        ratios.append(Ratio(f"read, {FILES:,} files", read, 0.1e-3, "0.1 ms", "at most 1x"))
        ratios.append(Ratio(f"changes(), {FILES:,} files", changes, 1e-3, "1 ms", "at most 1x"))
        ratios.append(Ratio(f"list(), {FILES:,} files", listing, 50e-3, "50 ms", ""))
    show("SQLite", ratios)
