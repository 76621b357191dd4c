"""A pooler between us and PostgreSQL that drops what a connection sets."""

from __future__ import annotations

import asyncpg
import pytest

from memshelf import MemoryStoreError, Origin, PostgresFileStore


@pytest.mark.parametrize(
    "dropped", ["search_path", "default_transaction_isolation", "default_transaction_read_only", "all of them"]
)
async def test_a_pooler_that_drops_settings_is_named_and_no_table_is_made(postgres_server, monkeypatch, dropped):
    schema = f"dropped_{dropped.replace(' ', '_')}"
    connect = asyncpg.connect

    async def through_a_pooler(dsn, *, server_settings, **options):
        kept = {name: value for name, value in server_settings.items() if dropped not in (name, "all of them")}
        return await connect(dsn, server_settings=kept, **options)

    monkeypatch.setattr(asyncpg, "connect", through_a_pooler)
    store = PostgresFileStore(postgres_server.dsn, schema=schema)
    for ask in (store.list, lambda: store.write("tea", "green", expected=None, origin=Origin())):
        with pytest.raises(MemoryStoreError, match="pooler") as refused:
            await ask()
        assert refused.value.code == "unavailable"
    await store.aclose()
    watcher = await connect(postgres_server.dsn)
    try:
        assert await watcher.fetchval("SELECT to_regclass('public.migrations')") is None
    finally:
        await watcher.close()
