"""How much a search and a page of a listing have where nobody says."""

from __future__ import annotations

import pytest

from memshelf import InProcessRecordStore, NewRecord, SqliteRecordStore


@pytest.mark.parametrize("kind", ["in process", "sqlite"])
async def test_without_a_limit_ten_are_found_and_fifty_listed(tmp_path, kind):
    store = InProcessRecordStore(embedder=None) if kind == "in process" else None
    async with store or SqliteRecordStore(tmp_path / "r.db", embedder=None) as store:
        await store.add_many([NewRecord(text=f"green tea number {number}") for number in range(60)])
        assert len(await store.search("green tea")) == 10
        page = await store.list()
        assert len(page.records) == 50
        assert len((await store.list(cursor=page.next_cursor)).records) == 10
