"""Pages of a mem0 listing while others add and delete, in any order."""

from __future__ import annotations

import asyncio
import dataclasses

import pytest
from hypothesis import given, settings, strategies as st

from memshelf import MemoryStoreError
from memshelf.records.backends.mem0 import MEM0_OSS, MEM0_PLATFORM
from memshelf.records.backends.mem0.dialect import PLATFORM
from memshelf.records.backends.mem0.store import Mem0RecordStore
from memshelf.testing.mem0 import FakeMem0

MEANWHILE = st.lists(
    st.tuples(st.integers(1, 7), st.integers(0, 9), st.lists(st.integers(0, 60), max_size=8)), min_size=1, max_size=8
)
"""Before each page: how long it is to be, how many records come, and which of those that are there go."""


@pytest.mark.parametrize(
    ("flavour", "newest_first"), [("mem0_oss", False), ("mem0_platform", False), ("mem0_platform", True)]
)
def test_a_record_that_is_there_throughout_is_shown_exactly_once(flavour, newest_first):
    small = dataclasses.replace(PLATFORM, page_size=5)

    @settings(max_examples=60, deadline=None)
    @given(st.integers(0, 23), MEANWHILE)
    def check(first, meanwhile):
        asyncio.run(_read_on(flavour, newest_first, small, first, meanwhile))

    check()


async def _read_on(flavour, newest_first, small, first, meanwhile):
    fake = FakeMem0(flavour, newest_first=newest_first)
    before = [fake.put("alice", f"{each}") for each in range(first)]
    definition = MEM0_OSS if flavour == "mem0_oss" else MEM0_PLATFORM
    async with (
        fake.client() as http,
        definition.open({"base_url": "http://mem0.test"}, {"api_key": "k"}, namespace="alice", http=http) as store,
    ):
        if flavour == "mem0_platform":
            store = Mem0RecordStore(store._connection, small, "alice", "off")
        seen, cursor, there, went = [], None, list(before), set()
        while True:
            limit, come, go = meanwhile.pop(0) if meanwhile else (4, 0, [])
            if cursor is not None:
                there += [fake.put("alice", "new") for _ in range(come)]
                for at in go:
                    if there:
                        went.add(there[at % len(there)])
                        fake.remove(there.pop(at % len(there)))
            try:
                page = await store.list(limit=limit, cursor=cursor)
            except MemoryStoreError as error:
                assert error.code == "invalid_cursor"
                assert not there, "only an empty memory has no place to go on"
                return
            seen += [record.id for record in page.records]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert len(seen) == len(set(seen))
        assert set(before) - went <= set(seen)
