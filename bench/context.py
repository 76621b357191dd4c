"""The context of one run on 10,000 files, over each store."""

from __future__ import annotations

import time
from pathlib import Path

from bench.measure import Ratio, median_async, show
from memshelf import (
    DirectoryFileStore,
    FileMemoryLimits,
    FileMount,
    FileStore,
    InProcessFileStore,
    MemoryCursors,
    Origin,
    SqliteFileStore,
)
from memshelf.files.context import deliver

__all__ = ["run"]

FILES = 10_000
ORIGIN = Origin()
LIMITS = FileMemoryLimits()


async def run(place: Path) -> None:
    ratios: list[Ratio] = []
    for name, size in (("small", 2), ("large", 200)):
        async with (
            DirectoryFileStore(place / f"context-{name}", durable=False) as directory,
            SqliteFileStore(place / f"context-{name}.db", durable=False) as sqlite,
        ):
            stores: dict[str, FileStore] = {
                "directory": directory,
                "SQLite": sqlite,
                "in process": InProcessFileStore(),
            }
            for label, store in stores.items():
                for n in range(FILES):
                    await store.write(
                        f"a{n % 20}/b{n % 100}/{n}.md", f"note {n}\n" * size, expected=None, origin=ORIGIN
                    )
                time.sleep(3 if label == "directory" else 0)
                ratios += await _measure(label, f"{name} files", store)
    show(f"Context of one run, {FILES:,} files", ratios)


async def _measure(label: str, size: str, store: FileStore) -> list[Ratio]:
    mount, cursors = FileMount("user", store, "write"), MemoryCursors()
    await deliver([mount], cursors, LIMITS)
    full = await median_async(lambda _: deliver([mount], None, LIMITS), 11)
    unchanged = await median_async(lambda _: deliver([mount], cursors, LIMITS), 21)
    return [
        Ratio(f"{label}, {size}: full", full, 50e-3, "50 ms", "at most 1x"),
        Ratio(f"{label}, {size}: unchanged", unchanged, 50e-3, "50 ms", "no growth with bytes"),
    ]
