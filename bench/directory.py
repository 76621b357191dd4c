"""`DirectoryFileStore`: listing 5,000 files, and writes with and without durability."""

from __future__ import annotations

import hashlib
import time
from itertools import count
from pathlib import Path

from bench import peers
from bench.measure import Ratio, median_async, median_sync, show
from bench.raw import synced_file
from memshelf import DirectoryFileStore, Origin

__all__ = ["run"]

FILES = 5_000
ORIGIN = Origin()


async def run(place: Path) -> None:
    root = place / "files"
    _fill(root)
    async with DirectoryFileStore(root) as store:
        await store.list()
        # A file is read again until its time stamps are old enough to tell a later change apart.
        time.sleep(3)
        await store.list()

        async def look(_: int) -> None:
            await store.changes(None)
            await store.list()

        listing = await median_async(look, 21)
    peer = peers.ask("a13n-harness==0.21.0", "3.13", peers.A13N_LISTING, str(root))
    against = "a13n-harness 0.21" if peer is not None else "reading and hashing every file"
    reference = peer if peer is not None else 2 * median_sync(lambda _: _naive(root), 3)
    ratios = [Ratio(f"list() + changes(), {FILES:,} unchanged files", listing, reference, against, "at most 1/30")]

    raw = synced_file(place / "raw")
    async with DirectoryFileStore(root) as durable, DirectoryFileStore(root, durable=False) as fast:
        ratios.append(
            Ratio("durable write", await _writes(durable, 200), raw, "write, fsync, rename, fsync", "at most 1.3x")
        )
        ratios.append(Ratio("write without durability", await _writes(fast, 500), 0.3e-3, "0.3 ms", "at most 1x"))
        reads = await median_async(lambda _: fast.read("d0/0.md"), 500)
        ratios.append(Ratio("read", reads, 0.1e-3, "0.1 ms", ""))
    show(f"Directory, {FILES:,} files", ratios)


def _fill(root: Path) -> None:
    for each in range(FILES):
        file = root / f"d{each % 50}" / f"{each}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"---\ndescription: note {each}\n---\n" + f"line {each}\n" * 50)


_fresh = count()


async def _writes(store: DirectoryFileStore, rounds: int) -> float:
    path = f"d1/written-{next(_fresh)}.md"
    version = await store.write(path, "start", expected=None, origin=ORIGIN)

    async def write(each: int) -> None:
        nonlocal version
        version = await store.write(path, f"{each} " * 200, expected=version, origin=ORIGIN)

    return await median_async(write, rounds)


def _naive(root: Path) -> list[tuple[str, str]]:
    return sorted(
        (str(file.relative_to(root)), hashlib.sha256(file.read_bytes()).hexdigest())
        for file in root.rglob("*")
        if file.is_file()
    )
