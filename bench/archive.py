"""The conversation archive, and the look for credentials before anything is kept."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from bench.measure import Ratio, median_async, median_sync, show
from memshelf import InProcessFileStore, find_secrets
from memshelf.workspace.archive import ConversationArchive

__all__ = ["run"]

SIZE = 10_000_000
TURN = [
    {"role": "user", "content": "我喜欢喝绿茶，周五不部署。 " * 8},
    {"role": "assistant", "content": "Noted: green tea, and no deployments on Fridays. " * 8},
]
PROSE = "The user likes green tea and deploys on Mondays. 用户喜欢绿茶，周一部署。"


async def run(place: Path) -> None:
    show(f"Conversation archive, {SIZE // 1_000_000} MB", await _archive(place))
    show("Credentials", _credentials())


async def _archive(place: Path) -> list[Ratio]:
    quick, durable = (
        ConversationArchive(InProcessFileStore(), root=place / name, durable=name == "durable")
        for name in ("quick", "durable")
    )
    empty = await median_async(lambda _: quick.append(TURN, "s1"), 200)
    [day] = (place / "quick" / "conversations").iterdir()
    data = day.read_bytes()
    with day.open("ab") as file:
        file.write(data * (SIZE // len(data)))
    full = await median_async(lambda _: quick.append(TURN, "s1"), 200)
    thread = await median_async(lambda _: asyncio.to_thread(int), 200)
    synced = await median_async(lambda _: durable.append(TURN, "s1"), 30)
    with (place / "bare").open("ab", buffering=0) as bare:
        bare_synced = median_sync(lambda _: (bare.write(data[:1_000]), os.fsync(bare.fileno())), 30)
    search = await median_async(lambda _: quick.search("绿茶 deployments"), 3)
    return [
        Ratio("archive a turn", full, empty, "the same in a new file", "1x"),
        Ratio("archive a turn", full, thread, "a call in another thread", ""),
        Ratio("archive a turn, durable", synced, bare_synced, "one bare write and sync", ""),
        Ratio("search", search, 1, "1 s", "under 1x"),
    ]


def _credentials() -> list[Ratio]:
    short, long = (PROSE * 50)[:2_000], (PROSE * 2_500)[:100_000]
    return [
        Ratio("look at 2,000 characters", median_sync(lambda _: find_secrets(short), 101), 0.001, "1 ms", "under 1x"),
        Ratio("look at 100,000 characters", median_sync(lambda _: find_secrets(long), 11), 0.05, "50 ms", "under 1x"),
        Ratio(
            "look at 100,000 hostile ones",
            median_sync(lambda _: find_secrets("eyJ" * 33_000), 11),
            0.5,
            "0.5 s",
            "under 1x",
        ),
    ]
