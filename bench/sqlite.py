"""`SqliteFileStore`: durable writes, shared commits, reads, and changes at 10,000 files."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from statistics import median

from bench import peers
from bench.measure import Ratio, median_async, show
from bench.raw import sqlite_commit
from bench.slow_disk import available, slow_disk
from bench.writing import ORIGIN, one_writer, throughput
from memshelf import SqliteFileStore

__all__ = ["run"]

FILES = 10_000
WRITERS = 16
ROUNDS = 5

_SYNC = 1
"""How many milliseconds a sync takes longer on a slower disk."""


async def run(place: Path) -> None:
    show("SQLite", [*await _writes(place, with_peer=True), *await _reads(place)])
    if available():
        place = place / "slow"
        with slow_disk(_SYNC):  # which a process has to be started for
            command = [sys.executable, "-m", "bench.sqlite", str(place)]
            rows = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        show(f"SQLite where a sync takes {_SYNC} ms longer", [Ratio(**row) for row in rows])


async def _writes(place: Path, *, with_peer: bool) -> list[Ratio]:
    found: dict[str, list[float]] = {}
    for number in range(ROUNDS):  # in turns, since what a sync costs changes from minute to minute
        async with SqliteFileStore(place / f"memory-{number}.db") as store:
            found.setdefault("ours", []).append(await one_writer(store, 100))
            found.setdefault("alone", []).append(await throughput(store, 1, 100))
            found.setdefault("together", []).append(await throughput(store, WRITERS, 100))
        found.setdefault("raw", []).append(sqlite_commit(place / f"raw-{number}.db"))
        if with_peer:
            database = str(place / f"peer-{number}.db")
            peer = peers.ask("pydantic-ai-harness==0.62.0", "3.11", peers.HARNESS_WRITES, database)
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
    return ratios


async def _reads(place: Path) -> list[Ratio]:
    async with SqliteFileStore(place / "large.db", durable=False) as store:
        await asyncio.gather(
            *(store.write(f"d{n % 100}/{n}.md", f"note {n}\n" * 20, expected=None, origin=ORIGIN) for n in range(FILES))
        )
        cursor = (await store.changes(None)).cursor
        await store.write("late.md", "x", expected=None, origin=ORIGIN)
        read = await median_async(lambda n: store.read(f"d{n % 100}/{n}.md"), 1000)
        changes = await median_async(lambda _: store.changes(cursor), 300)
        listing = await median_async(lambda _: store.list(), 21)
    return [
        Ratio(f"read, {FILES:,} files", read, 0.1e-3, "0.1 ms", "at most 1x"),
        Ratio(f"changes(), {FILES:,} files", changes, 1e-3, "1 ms", "at most 1x"),
        Ratio(f"list(), {FILES:,} files", listing, 50e-3, "50 ms", ""),
    ]


if __name__ == "__main__":
    print(json.dumps([asdict(ratio) for ratio in asyncio.run(_writes(Path(sys.argv[1]), with_peer=False))]))
