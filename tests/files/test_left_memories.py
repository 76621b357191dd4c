"""What a change leaves to the next one is what that would find in the database."""

from __future__ import annotations

import random
import secrets

import pytest

from memshelf import MemoryStoreError, Origin, PostgresFileStore, SqliteFileStore
from memshelf.files.backends.sql import store as sql_store
from memshelf.files.backends.sql.memory import Memory

PATHS = ["a.md", "b.md", "d/c.md", "d/ü.md"]
TEXTS = ["one", "", "---\ndescription: zwölf 字\n---\ntext", "日本\n" * 50]


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request, tmp_path):
    if request.param == "sqlite":
        store = SqliteFileStore(tmp_path / "memory.db")
    else:
        dsn = request.getfixturevalue("postgres_server").dsn
        store = PostgresFileStore(dsn, schema=f"test_{secrets.token_hex(6)}")
    async with store:
        yield store


async def change(store, source):
    files = {entry.path: entry.version for entry in await store.list()}
    path = source.choice(PATHS)
    if path not in files:
        return await store.write(path, source.choice(TEXTS), expected=None, origin=Origin())
    match source.randrange(5):
        case 0:
            return await store.move(path, source.choice(PATHS), expected=files[path], origin=Origin())
        case 1:
            return await store.delete(path, expected=files[path], origin=Origin())
        case 2:
            versions = (await store.versions(path=path)).versions
            return await store.restore(source.choice(versions).id, expected=files[path], origin=Origin())
        case _:
            return await store.write(path, source.choice(TEXTS), expected=files[path], origin=Origin())


async def test_a_memory_stands_as_the_last_change_has_left_it(store, monkeypatch):
    source, left = random.Random(7), []
    stood = Memory.stood.fget
    monkeypatch.setattr(sql_store.Memory, "stood", property(lambda memory: left.append(stood(memory)) or left[-1]))
    written = 0
    for _ in range(120):
        left.clear()
        try:
            await change(store, source)
        except MemoryStoreError as error:
            assert error.code in {"already_exists", "conflict", "version_mismatch", "not_found"}
            continue
        head, last = left[-1]
        assert head == await store._read(Memory.head)
        if last is not None:
            written += 1
            assert last == await store._read(lambda memory, path=last.file.path: memory.live(path))
    assert written > 50
    assert (await store.verify()).intact


async def test_a_tool_call_in_postgres_takes_one_round_trip_and_is_replayed_when_it_comes_again(postgres_server):
    async with PostgresFileStore(postgres_server.dsn, schema=f"test_{secrets.token_hex(6)}") as store:
        first = await store.write("a.md", "1", expected=None, origin=Origin("run", None, "call 1"))
        queries = []
        store._engine._part().writer._connection.add_query_logger(queries.append)
        second = await store.write("a.md", "2", expected=first, origin=Origin("run", None, "call 2"))
        assert len(queries) == 1
        assert await store.write("a.md", "2", expected=first, origin=Origin("run", None, "call 2")) == second
        third = await store.write("a.md", "3", expected=second, origin=Origin("run", None, "call 3"))
        # The second call once more, as if its answer had been lost: it is the text that was current then.
        assert await store.write("a.md", "2", expected=first, origin=Origin("run", None, "call 2")) == second
        assert await store.write("a.md", "3", expected=second, origin=Origin("run", None, "call 3")) == third
        with pytest.raises(MemoryStoreError) as refusal:
            await store.write("a.md", "4", expected=third, origin=Origin("run", None, "call 3"))
        assert refusal.value.code == "forbidden"
        assert (await store.read("a.md")).version == third
        assert (await store.verify()).intact
