"""One writer, and many at once, on a store of any kind."""

from __future__ import annotations

import asyncio
import time

from bench.measure import median_async
from memshelf import FileStore, Origin

__all__ = ["ORIGIN", "one_writer", "throughput"]

ORIGIN = Origin()


async def one_writer(store: FileStore, rounds: int) -> float:
    """The median seconds of an edit."""
    version = await store.write("a.md", "start", expected=None, origin=ORIGIN)

    async def write(each: int) -> None:
        nonlocal version
        version = await store.write("a.md", f"{each} " * 200, expected=version, origin=ORIGIN)

    return await median_async(write, rounds)


async def throughput(store: FileStore, writers: int, rounds: int) -> float:
    """Edits per second, each writer with a file of its own."""

    async def writer(name: int) -> None:
        path = f"w{writers}-{name}.md"
        version = await store.write(path, "start", expected=None, origin=ORIGIN)
        for each in range(rounds):
            version = await store.write(path, f"{each} " * 200, expected=version, origin=ORIGIN)

    started = time.perf_counter()
    await asyncio.gather(*(writer(name) for name in range(writers)))
    return writers * (rounds + 1) / (time.perf_counter() - started)
