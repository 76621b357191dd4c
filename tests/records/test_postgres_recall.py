"""What `PostgresRecordStore` promises beyond the contract: processes, vectors and their models, erasure."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import asyncpg
import pytest

from memshelf import MemoryStoreError, Origin, PostgresFileStore
from memshelf.records.backends.postgres import PostgresRecordStore
from memshelf.records.model import NewRecord


async def _rows(server, sql: str, *values: object) -> list[tuple]:
    connection = await asyncpg.connect(server.dsn)
    try:
        return [tuple(row) for row in await connection.fetch(sql, *values)]
    finally:
        await connection.close()


_CHILD = """
import asyncio, sys
from memshelf.records.backends.postgres import PostgresRecordStore

async def main():
    async with PostgresRecordStore(sys.argv[1], sys.argv[2], embedder=None) as store:
        records = [await store.add(f"marmalade {sys.argv[3]} {each}") for each in range(30)]
        await store.update(records[1].id, f"marmalade {sys.argv[3]} one, once more")
        await store.delete(records[0].id)
        print(len(await store.search("marmalade", limit=100)) >= 30)

asyncio.run(main())
"""


async def test_what_other_processes_do_is_seen_by_an_open_store(postgres_server, tmp_path):
    name = str(tmp_path)
    async with PostgresRecordStore(postgres_server.dsn, name, embedder=None) as store:
        await store.add("the first marmalade")
        assert len(await store.search("marmalade", limit=100)) == 1
        command = [sys.executable, "-c", _CHILD, postgres_server.dsn, name]
        children = [subprocess.Popen([*command, each], stdout=subprocess.PIPE, text=True) for each in ("one", "two")]
        answers = [await asyncio.to_thread(child.communicate) for child in children]
        assert [(child.returncode, out) for child, (out, _) in zip(children, answers, strict=True)] == [
            (0, "True\n")
        ] * 2
        found = {record.text for record in await store.search("marmalade", limit=100)}
        assert len(found) == 59
        assert {"marmalade one one, once more", "marmalade two one, once more"} <= found


async def test_many_searches_and_changes_at_once_agree_with_the_store(postgres_server, tmp_path, hashing):
    def opened() -> PostgresRecordStore:
        return PostgresRecordStore(postgres_server.dsn, str(tmp_path), embedder=hashing())

    async with opened() as store, opened() as fresh:
        await store.add_many(NewRecord(text=f"marmalade {each}") for each in range(50))

        async def change(each: int) -> None:
            record = await store.add(f"marmalade and tea {each}")
            await store.update(record.id, f"marmalade and coffee {each}")
            if each % 2:
                await store.delete(record.id)

        await asyncio.gather(
            *(change(each) for each in range(40)), *(fresh.search("marmalade", limit=100) for _ in range(40))
        )
        expected = {f"marmalade {n}" for n in range(50)} | {f"marmalade and coffee {n}" for n in range(0, 40, 2)}
        for each in (store, fresh):
            assert {record.text for record in await each.search("marmalade", limit=200)} == expected


@pytest.mark.parametrize("change", [{"model": "another"}, {"dimension": 48}], ids=["model", "dimension"])
async def test_another_model_is_noticed_and_indexed_where_it_stopped(postgres_server, tmp_path, hashing, down, change):
    place = postgres_server.dsn, str(tmp_path)
    async with PostgresRecordStore(*place, embedder=hashing()) as store:
        await store.add_many(NewRecord(text=f"record number {each}") for each in range(150))
    other = hashing(**change)

    def stop(done: int, _: int) -> None:
        other.failure = down if done else None

    async with PostgresRecordStore(*place, embedder=other) as store:
        with pytest.raises(MemoryStoreError, match="what is done is kept"):
            await store.reindex(progress=stop)
        other.failure = None
        seen = []
        await store.reindex(progress=lambda done, every: seen.append((done, every)))
        assert 0 < seen[0][0] < 150
        assert seen[-1] == (150, 150)
    assert sorted(other.embedded) == sorted(f"record number {each}" for each in range(150))
    models = await _rows(
        postgres_server,
        "SELECT DISTINCT m.name, m.version, m.dimension FROM memshelf.record_vectors v "
        "JOIN memshelf.embedding_models m ON m.id = v.model_id "
        "JOIN memshelf.record_namespaces n ON n.id = v.namespace_id WHERE n.name = $1",
        str(tmp_path),
    )
    assert models == [(other.model, other.version, other.dimension)]


async def test_a_purge_leaves_nothing_in_any_table(postgres_server, tmp_path, hashing):
    async with (
        PostgresRecordStore(postgres_server.dsn, "mine", embedder=hashing(), schema=tmp_path.name) as mine,
        PostgresRecordStore(postgres_server.dsn, "theirs", embedder=hashing(), schema=tmp_path.name) as theirs,
        PostgresFileStore(postgres_server.dsn, schema=tmp_path.name) as files,
    ):
        await files.write("a.md", "cribbage", expected=None, origin=Origin())
        kept = await theirs.add("the walrus plays cribbage")
        added = await mine.add_many(
            NewRecord(text=f"secret marmalade {each}", thread="secret-thread", origin=Origin("secret-run"))
            for each in range(100)
        )
        await mine.delete(added[0].id)
        await mine.search("marmalade", limit=5)
        before = await _dump(postgres_server, tmp_path.name)
        await mine.purge()
        after = await _dump(postgres_server, tmp_path.name)
        assert await mine.search("marmalade", limit=5) == []
        assert [found.id for found in await theirs.search("walrus", limit=5)] == [kept.id]
        assert (await files.read("a.md")).text == "cribbage"
    for trace in (b"marmalade".hex(), "secret-thread", "secret-run"):
        assert trace in before
        assert trace not in after
    assert b"cribbage".hex() in after
    assert await _rows(postgres_server, f'SELECT wanted - done FROM "{tmp_path.name}".erasures') == [(0,)]


async def test_records_that_are_erased_leave_nothing_in_any_table(postgres_server, tmp_path, hashing):
    async with PostgresRecordStore(postgres_server.dsn, embedder=hashing(), schema=tmp_path.name) as store:
        secret, kept = await store.add("secret marmalade"), await store.add("the walrus plays cribbage")
        with pytest.raises(MemoryStoreError, match="no record 'rec_none'"):
            await store.erase([secret.id, "rec_none"])
        assert len((await store.list(limit=5)).records) == 2
        await store.erase([secret.id])
        after = await _dump(postgres_server, tmp_path.name)
        assert [record.id for record in (await store.list(limit=5)).records] == [kept.id]
    assert b"marmalade".hex() not in after
    assert secret.id not in after
    assert await _rows(postgres_server, f'SELECT wanted - done FROM "{tmp_path.name}".erasures') == [(0,)]


async def _dump(server, schema: str) -> str:
    tables = await _rows(server, "SELECT tablename FROM pg_tables WHERE schemaname = $1", schema)
    rows = [await _rows(server, f'SELECT t::text FROM "{schema}"."{table}" t') for (table,) in tables]
    return repr(rows)


async def test_a_text_of_a_thread_may_hold_nul_before_a_colon(postgres_server, tmp_path):
    async with PostgresRecordStore(postgres_server.dsn, str(tmp_path), embedder=None) as store:
        await store.add("a\x00b: likes tea", thread="chat")
        assert [record.text for record in await store.search("tea", limit=1)] == ["a\x00b: likes tea"]


def test_a_place_that_is_no_database_is_refused():
    with pytest.raises(ValueError, match="postgresql://"):
        PostgresRecordStore("memory.db")


async def test_records_that_are_analysed_again_keep_their_vectors(postgres_server, tmp_path, hashing):
    place = postgres_server.dsn, str(tmp_path)
    async with PostgresRecordStore(*place, embedder=hashing()) as store:
        await store.add_many(NewRecord(text=f"the quokka likes marmalade {each}") for each in range(100))
    ours = "namespace_id = (SELECT id FROM memshelf.record_namespaces WHERE name = $1)"
    await _rows(postgres_server, f"UPDATE memshelf.records SET analysis = 0, terms = '' WHERE {ours}", str(tmp_path))
    await _rows(postgres_server, f"DELETE FROM memshelf.record_vectors WHERE position = 70 AND {ours}", str(tmp_path))
    embedder = hashing()
    async with PostgresRecordStore(*place, embedder=embedder) as store:
        await store.reindex()
        assert await store.unindexed() == 0
        assert (await store.search("marmalade 7", limit=1))[0].text == "the quokka likes marmalade 7"
    assert embedder.embedded == ["the quokka likes marmalade 69"]
