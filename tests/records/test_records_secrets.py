"""Credentials in records: kept with a warning, masked, refused, or not looked for."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack

import pytest

from memshelf import MemoryStoreError
from memshelf.records.backends.in_process import InProcessRecordStore
from memshelf.records.backends.mem0 import MEM0_OSS
from memshelf.records.backends.sqlite import SqliteRecordStore
from memshelf.records.model import NewRecord
from memshelf.testing.mem0 import FakeMem0

TOKEN = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
TEXT, MASKED = f"部署密钥是{TOKEN}，别忘了", "部署密钥是[secret: github_token]，别忘了"
LONG = "green tea " * 500 + TEXT


@pytest.fixture(params=["in process", "sqlite", "mem0"])
async def opened(request, tmp_path):
    async with AsyncExitStack() as stack:

        async def open_store(**options):
            if request.param == "in process":
                return await stack.enter_async_context(InProcessRecordStore(embedder=None, **options))
            if request.param == "sqlite":
                store = SqliteRecordStore(tmp_path / "r.db", embedder=None, durable=False, **options)
                return await stack.enter_async_context(store)
            http = await stack.enter_async_context(FakeMem0("mem0_oss").client())
            configuration = {"base_url": "http://mem0.test", **options}
            return await stack.enter_async_context(MEM0_OSS.open(configuration, namespace="n", http=http))

        yield open_store


async def _texts(store):
    return [record.text for record in (await store.list(limit=10)).records]


async def test_by_default_a_record_is_kept_as_it_is_and_the_log_says_what_it_seems_to_hold(opened, caplog):
    store = await opened()
    await store.add(TEXT)
    assert await _texts(store) == [TEXT]
    assert "A record seems to hold a credential (github_token); it is kept as it is" in caplog.messages
    assert TOKEN not in caplog.text


async def test_without_a_policy_nothing_is_looked_for(opened, caplog):
    caplog.set_level(logging.DEBUG, "memshelf.credentials")
    store = await opened(secrets="off")
    await store.add(TEXT)
    assert await _texts(store) == [TEXT]
    assert not any("credential" in message for message in caplog.messages)


async def test_masked_records_are_answered_stored_and_found_without_the_credential(opened):
    store = await opened(secrets="mask")
    record = await store.add(TEXT)
    assert record.text == MASKED
    updated = await store.update(record.id, LONG)
    assert updated.text == LONG.replace(TOKEN, "[secret: github_token]")
    assert await _texts(store) == [updated.text]
    assert all(TOKEN not in found.text for found in await store.search(TOKEN, limit=5))


async def test_a_refused_record_changes_nothing_and_the_refusal_does_not_repeat_it(opened):
    store = await opened(secrets="refuse")
    record = await store.add("likes green tea")
    for call in (store.add(TEXT), store.add(LONG), store.update(record.id, TEXT)):
        with pytest.raises(MemoryStoreError) as refusal:
            await call
        assert refusal.value.code == "invalid_text"
        assert "github_token" in refusal.value.message
        assert TOKEN not in refusal.value.message
    assert await _texts(store) == ["likes green tea"]


async def test_of_many_records_none_is_added_when_one_is_refused(tmp_path):
    async with SqliteRecordStore(tmp_path / "r.db", embedder=None, durable=False, secrets="refuse") as store:
        with pytest.raises(MemoryStoreError):
            await store.add_many([NewRecord(text="likes green tea"), NewRecord(text=TEXT)])
        assert await _texts(store) == []


async def test_what_was_stored_before_a_stricter_policy_stays_readable(tmp_path):
    async with SqliteRecordStore(tmp_path / "r.db", embedder=None, durable=False) as store:
        await store.add(TEXT)
    async with SqliteRecordStore(tmp_path / "r.db", durable=False, secrets="refuse") as store:
        await store.reindex()
        assert await _texts(store) == [TEXT]


async def test_a_policy_that_does_not_exist_is_refused(opened):
    with pytest.raises(ValueError, match="policy"):
        await opened(secrets="hide")
