"""The in-process store against the contract, by words only and with the bundled model."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from memshelf.records.backends.in_process import InProcessRecordStore
from memshelf.testing import RecallRecordStoreContract


@asynccontextmanager
async def _open(embedder) -> AsyncIterator[InProcessRecordStore]:
    async with InProcessRecordStore(embedder=embedder) as store:
        yield store


class TestByWords(RecallRecordStoreContract):
    reopens = False

    def open(self, place: Path, namespace="default"):
        return _open(None)


class TestByMeaning(RecallRecordStoreContract):
    reopens = False

    def open(self, place: Path, namespace="default"):
        return _open("default")


async def test_a_record_that_is_there_is_found_though_who_added_it_was_cancelled(hashing):
    async with InProcessRecordStore(embedder=hashing()) as store:
        old = await store.add("The user drinks green tea.")
        free = threading.Event()
        busy = asyncio.ensure_future(store._recall.run(free.wait))  # so that the index takes a while
        adding = asyncio.ensure_future(store.add("The user drinks jasmine tea.", replaces=old.id))
        while len((await store.list(limit=2)).records) < 2:
            await asyncio.sleep(0)
        adding.cancel()
        with pytest.raises(asyncio.CancelledError):
            await adding
        free.set()
        await busy
        kept = (await store.list(limit=2)).records
        found = await store.search("jasmine tea", limit=2)
        assert {each.id for each in found} == {each.id for each in kept}
