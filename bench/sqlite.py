"""`SqliteFileStore`: durable writes, shared commits, reads, and changes at 10,000 files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from statistics import median

from bench import peers
from bench.measure import Ratio, median_async, show
from bench.raw import sqlite_commit
from bench.writing import ORIGIN, one_writer, throughput
from memshelf import SqliteFileStore

__all__ = ["run"]

FILES = 10_000
WRITERS = 16
ROUNDS = 5


async def run(place: Path) -> None:
    found: dict[str, list[float]] = {}
    for number in range(ROUNDS):  # in turns, since what a sync costs changes from minute to minute
        async with SqliteFileStore(place / f"memory-{number}.db") as store:
            found.setdefault("ours", []).append(await one_writer(store, 100))
            found.setdefault("alone", []).append(await throughput(store, 1, 100))
            found.setdefault("together", []).append(await throughput(store, WRITERS, 100))
        found.setdefault("raw", []).append(sqlite_commit(place / f"raw-{number}.db"))
        peer = peers.ask("pydantic-ai-harness==0.62.0", "3.11", peers.HARNESS_WRITES, str(place / f"peer-{number}.db"))
        if peer is not None:
            found.setdefault("peer", []).append(peer)
    times = {name: median(each) for name, each in found.items()}
    ours, alone, together = times["ours"], times["alone"], times["together"]
    ratios = [Ratio("durable write", ours, times["raw"], "one raw durable commit of a version's row", "at most 1.5x")]
    if "peer" in times:
        against = "pydantic-ai-harness 0.62 SqliteMemoryStore"
        ratios.append(Ratio("durable write", ours, times["peer"], against, "at most 0.33x"))
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
