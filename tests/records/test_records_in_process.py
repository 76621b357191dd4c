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


@pytest.mark.parametrize(
    "fields", [{"text": None}, {"text": b"x"}, {"at": "2026-01-01"}, {"origin": "user"}, {"thread": 5}, {"replaces": 5}]
)
async def test_a_field_of_a_wrong_type_is_a_type_error_that_says_what_it_is_to_be(fields):
    async with InProcessRecordStore(embedder=None) as store:
        (name,) = fields
        with pytest.raises(TypeError, match=f"The `{name}` of a record is of type "):
            await store.add(**{"text": "x", **fields})
        assert (await store.list(limit=1)).records == ()


async def test_what_is_no_record_no_query_and_no_embedder_is_a_type_error():
    async with InProcessRecordStore(embedder=None) as store:
        with pytest.raises(TypeError, match="is a NewRecord, not str"):
            await store.add_many(["x"])
        kept = await store.add("x")
        with pytest.raises(TypeError, match="The `text` of a record is of type str"):
            await store.update(kept.id, None)
        with pytest.raises(TypeError, match="A query is a str, not int"):
            await store.search(3, limit=1)
    with pytest.raises(TypeError, match="`embedder` is an Embedder"):
        InProcessRecordStore(embedder="x")
