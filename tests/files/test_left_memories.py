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


class Followed:
    """A memory, and the versions that its files have had, by number."""

    def __init__(self, *stores):
        self.stores = stores
        self.had = {path: [None] for path in PATHS}

    async def change(self, what, path, other, text, age, call, at):
        store = self.stores[at % len(self.stores)]
        versions = self.had[path]
        expected = versions[max(len(versions) - 1 - age, 0)]
        origin = Origin("run", None, call)
        try:
            match what:
                case "write":
                    version = await store.write(path, text, expected=expected, origin=origin)
                case "move" if expected is not None:
                    version = await store.move(path, other, expected=expected, origin=origin)
                    self.had[path].append(None)
                    path = other
                case "delete" if expected is not None:
                    await store.delete(path, expected=expected, origin=origin)
                    version = None
                case _:
                    return "nothing"
        except MemoryStoreError as error:
            return error.code
        if version not in self.had[path] or version is None:
            self.had[path].append(version)
        return "done"

    async def texts(self):
        return {entry.path: (await self.stores[0].read(entry.path)).text for entry in await self.stores[0].list()}


@pytest.mark.parametrize("seed", range(4))
async def test_processes_that_take_turns_find_what_one_would(postgres_server, tmp_path, seed):
    schema = f"test_{secrets.token_hex(6)}"
    ours, theirs = (PostgresFileStore(f"{postgres_server.dsn}{end}", schema=schema) for end in ("", "?"))
    source = random.Random(seed)
    sqlite = SqliteFileStore(tmp_path / "memory.db", durable=False)
    both, alone = Followed(ours, theirs), Followed(sqlite)
    outcomes = []
    for number in range(150):
        turn = (
            source.choices(["write", "move", "delete"], [6, 1, 1])[0],
            source.choice(PATHS[:2]),
            source.choice(PATHS),
            source.choice(TEXTS),
            source.choice([0, 0, 0, 0, 1]),
            f"{number if source.random() < 0.9 else number - 1}",
            source.random() < 0.3,
        )
        outcomes.append((await both.change(*turn), await alone.change(*turn)))
        assert outcomes[-1][0] == outcomes[-1][1], turn
    assert await both.texts() == await alone.texts()
    assert len({outcome for outcome, _ in outcomes}) >= 4
    assert (await ours.verify()).intact
    for each in (ours, theirs, sqlite):
        await each.aclose()
