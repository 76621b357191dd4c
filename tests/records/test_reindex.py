"""Another embedder: indexing anew goes on while others search and write, and where it was killed."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys

import pytest

from memshelf.errors import MemoryStoreError
from memshelf.records.backends.sqlite import SqliteRecordStore
from memshelf.records.model import NewRecord

_RECORDS = 300

_CHILD = """
import asyncio, sys
from memshelf.records.backends.sqlite import SqliteRecordStore

class Slow:
    model, version, dimension = "slow", "1", 8
    batches = 0

    async def embed(self, texts, *, query=False):
        self.batches += 1
        if self.batches > 2:
            print("in the middle", flush=True)
            await asyncio.Event().wait()
        return [[1.0] * 8 for _ in texts]

async def main():
    async with SqliteRecordStore(sys.argv[1], embedder=Slow()) as store:
        await store.reindex()

asyncio.run(main())
"""


class Quick:
    """As the child's model, and it counts what it embeds."""

    model, version, dimension = "slow", "1", 8

    def __init__(self) -> None:
        self.embedded: list[str] = []

    async def embed(self, texts, *, query=False):
        if not query:
            self.embedded += texts
        return [[1.0] * 8 for _ in texts]


async def test_indexing_that_was_killed_goes_on_and_words_are_found_meanwhile(tmp_path, hashing):
    database = tmp_path / "memory.db"
    async with SqliteRecordStore(database, embedder=hashing()) as store:
        await store.add_many(NewRecord(text=f"the quokka likes marmalade {each}") for each in range(_RECORDS))
    child = subprocess.Popen([sys.executable, "-c", _CHILD, database], stdout=subprocess.PIPE, text=True)
    try:
        assert await asyncio.to_thread(child.stdout.readline) == "in the middle\n"
        async with SqliteRecordStore(database, embedder=None) as store:
            assert (await store.search("marmalade 7", limit=1))[0].text == "the quokka likes marmalade 7"
            added = await store.add("the walrus plays cribbage")
            assert [found.id for found in await store.search("walrus", limit=1)] == [added.id]
    finally:
        child.kill()
        child.communicate()
    quick, seen = Quick(), []
    async with SqliteRecordStore(database, embedder=quick) as store:
        assert await store.unindexed() == _RECORDS - 128 + 1
        await store.reindex(progress=lambda done, every: seen.append((done, every)))
        assert await store.unindexed() == 0
    assert seen[0] == (128, _RECORDS + 1)
    assert seen[-1] == (_RECORDS + 1, _RECORDS + 1)
    assert len(quick.embedded) == len(set(quick.embedded)) == _RECORDS - 128 + 1
    with sqlite3.connect(database) as connection:
        models = connection.execute(
            "SELECT m.name, count(*) FROM record_vectors v JOIN embedding_models m ON m.id = v.model_id GROUP BY 1"
        ).fetchall()
    connection.close()
    assert models == [("slow", _RECORDS + 1)]


async def test_what_others_add_while_it_runs_is_indexed_too(tmp_path, hashing):
    database = tmp_path / "memory.db"
    async with SqliteRecordStore(database, embedder=None) as words:
        await words.add_many(NewRecord(text=f"record number {each}") for each in range(100))
        loop, adding = asyncio.get_running_loop(), []

        def add(done: int, _: int) -> None:
            if done and not adding:
                adding.append(loop.create_task(words.add("the walrus plays cribbage")))

        async with SqliteRecordStore(database, embedder=hashing()) as store:
            await store.reindex(progress=add)
            await adding[0]
            await store.reindex()
            assert await store.unindexed() == 0


class _Limited(Quick):
    """Fails when it is asked for more texts than it takes now."""

    takes = 1_000

    async def embed(self, texts, *, query=False):
        if len(texts) > self.takes:
            raise ConnectionError("too many requests")
        return await super().embed(texts, query=query)


async def test_indexing_that_failed_in_the_background_begins_again_when_the_embedder_works(tmp_path):
    embedder = _Limited()
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=embedder) as store:
        await store.add("tea")
        assert len(await store.search("tea", limit=5)) == 1
        embedder.takes = 0
        await store.add_many(NewRecord(text=f"marmalade {each}") for each in range(3))
        for _ in range(2):
            await store.search("tea", limit=5)
            await asyncio.wait_for(store._filling, 5)
        before = store._filling
        await store.search("tea", limit=5)
        assert store._filling is before, "while it fails, it is asked for what is searched only"
        embedder.takes = 1_000
        await store.search("tea", limit=5)
        await asyncio.wait_for(store._filling, 5)
        assert await store.unindexed() == 0
        before = store._filling
        await store.search("tea", limit=5)
        assert store._filling is before, "nothing is left to do"


class _Picky(Quick):
    """Takes no text that says poison, nor any that comes with it."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0

    async def embed(self, texts, *, query=False):
        self.requests += not query
        if any("poison" in each for each in texts):
            raise ValueError("input is not allowed")
        return await super().embed(texts, query=query)


async def _with_poison(database):
    async with SqliteRecordStore(database, embedder=None) as words:
        await words.add_many(NewRecord(text=f"marmalade {each}") for each in range(150))
        poison = await words.add("a dose of poison")
        await words.add_many(NewRecord(text=f"tea {each}") for each in range(20))
    return poison


async def test_a_record_that_the_embedder_refuses_keeps_no_other_from_being_indexed(tmp_path):
    database = tmp_path / "memory.db"
    poison = await _with_poison(database)
    embedder = _Picky()
    async with SqliteRecordStore(database, embedder=embedder) as store:
        await store.search("tea", limit=1)
        await asyncio.wait_for(store._filling, 20)
        assert await store.unindexed() == 1
        assert embedder.requests < 30
        before = store._filling
        assert poison.id in {found.id for found in await store.search("dose of poison", limit=200)}
        assert store._filling is before, "it is not asked again and again for what it refuses"
        await store.add("coffee")
        await store.update(poison.id, text="a dose of honey")
        assert await store.unindexed() == 0


async def test_reindexing_leaves_a_record_that_the_embedder_refuses(tmp_path):
    database, seen = tmp_path / "memory.db", []
    await _with_poison(database)
    async with SqliteRecordStore(database, embedder=_Picky()) as store:
        await store.reindex(progress=lambda done, every: seen.append((done, every)))
        assert await store.unindexed() == 1
        await store.reindex()
    assert seen[-1] == (171, 171)


async def test_an_embedder_that_does_not_work_is_not_asked_for_each_record(tmp_path):
    class Down(Quick):
        requests = 0

        async def embed(self, texts, *, query=False):
            self.requests += 1
            raise ConnectionError

    database, embedder = tmp_path / "memory.db", Down()
    await _with_poison(database)
    async with SqliteRecordStore(database, embedder=embedder) as store:
        with pytest.raises(MemoryStoreError, match="what is done is kept"):
            await store.reindex()
    assert embedder.requests == 2


def test_indexing_that_ended_with_its_event_loop_goes_on_in_the_next(tmp_path, hashing):
    database = tmp_path / "memory.db"

    async def add():
        async with SqliteRecordStore(database, embedder=hashing()) as store:
            await store.add_many(NewRecord(text=f"the quokka likes marmalade {each}") for each in range(_RECORDS))

    async def search():
        await store.search("quokka", limit=1)  # and the loop ends, with what it has begun

    async def search_and_wait():
        await store.search("quokka", limit=1)
        await asyncio.wait_for(store._filling, 20)
        return await store.unindexed()

    asyncio.run(add())
    store = SqliteRecordStore(database, embedder=Quick())
    asyncio.run(search())
    assert asyncio.run(search_and_wait()) == 0
    asyncio.run(store.aclose())


async def test_who_is_cancelled_while_indexing_in_the_background_comes_to_its_end_indexes_no_more(tmp_path):
    begun, told, end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class Stubborn(Quick):
        async def embed(self, texts, *, query=False):
            if not query and not end.is_set():
                begun.set()
                try:
                    await end.wait()
                except asyncio.CancelledError:
                    told.set()
                    await end.wait()
                    raise
            return await super().embed(texts, query=query)

    database = tmp_path / "memory.db"
    async with SqliteRecordStore(database, embedder=None) as words:
        await words.add("the quokka likes marmalade")
    embedder = Stubborn()
    async with SqliteRecordStore(database, embedder=embedder) as store:
        await store.search("marmalade", limit=1)
        await begun.wait()
        indexing = asyncio.create_task(store.reindex())
        await told.wait()
        indexing.cancel()
        end.set()
        with pytest.raises(asyncio.CancelledError):
            await indexing
        assert embedder.embedded == []
