"""Changes that share a commit, on both engines: each stands on what the one before left."""

from __future__ import annotations

import asyncio
import secrets

import asyncpg
import pytest

from garbage import garbage
from memshelf.errors import MemoryStoreError
from memshelf.limits import StoreLimits
from memshelf.origin import Origin
from memshelf.service.accounts import Accounts, digest
from memshelf.storage.postgres import PostgresEngine
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.stores.catalogue import Stores
from memshelf.stores.memories import Memories
from memshelf.stores.shelf import Shelf
from memshelf.stores.verification import Verification
from memshelf.testing import refused

AT_ONCE = 30


@pytest.fixture(params=["sqlite", "postgresql"])
async def shelf(request, tmp_path):
    if request.param == "sqlite":
        engine = SqliteEngine(tmp_path / "memshelf.db", durable=False)
    else:
        engine = PostgresEngine(request.getfixturevalue("postgres_server").dsn, f"shared_{secrets.token_hex(6)}")
    yield Shelf(engine, StoreLimits(memories=AT_ONCE))
    await engine.aclose()


@pytest.fixture
async def workspace(shelf):
    accounts = Accounts(shelf.engine)
    return (await accounts.find(digest(await accounts.create_key("team")))).workspace_id


@pytest.fixture
async def store(shelf, workspace):
    return (await Stores(shelf, workspace).create("Notes")).id


async def test_changes_of_one_commit_form_one_chain(shelf, workspace, store):
    memories = Memories(shelf, workspace, store)
    made = await asyncio.gather(*(memories.create(f"/{n}.md", "a", origin=Origin()) for n in range(AT_ONCE)))
    await asyncio.gather(*(memories.update(each.id, content="b", origin=Origin()) for each in made))
    await asyncio.gather(*(memories.delete(each.id, origin=Origin()) for each in made))
    report = await Verification(shelf, workspace, store).verify()
    assert (report.intact, report.versions) == (True, 3 * AT_ONCE)


async def test_a_store_takes_no_more_memories_than_its_limit_from_one_commit(shelf, workspace, store):
    memories = Memories(shelf, workspace, store)
    calls = (memories.create(f"/{n}.md", "a", origin=Origin()) for n in range(2 * AT_ONCE))
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    refused = [each.code for each in outcomes if isinstance(each, MemoryStoreError)]
    assert refused == ["memory_full"] * AT_ONCE


async def test_a_store_that_is_archived_takes_no_change_from_the_same_commit(shelf, workspace, store):
    memories = Memories(shelf, workspace, store)
    await memories.create("/first.md", "a", origin=Origin())
    before = [memories.create(f"/before-{n}.md", "a", origin=Origin()) for n in range(5)]
    after = [memories.create(f"/after-{n}.md", "a", origin=Origin()) for n in range(5)]
    outcomes = await asyncio.gather(*before, Stores(shelf, workspace).archive(store), *after, return_exceptions=True)
    assert not any(isinstance(each, Exception) for each in outcomes[:6])
    assert [each.code for each in outcomes[6:]] == ["store_archived"] * 5


async def test_changes_of_two_stores_in_one_commit_stay_apart(shelf, workspace, store):
    other = (await Stores(shelf, workspace).create("Others")).id
    for_each = [Memories(shelf, workspace, each) for each in (store, other)]
    calls = (memories.create(f"/{n}.md", "a", origin=Origin()) for n in range(10) for memories in for_each)
    await asyncio.gather(*calls)
    for each in (store, other):
        report = await Verification(shelf, workspace, each).verify()
        assert (report.intact, report.versions) == (True, 10)


async def test_a_refused_change_leaves_the_others_of_its_commit_as_they_are(shelf, workspace, store):
    memories = Memories(shelf, workspace, store)
    calls = (memories.create(f"/{n // 2}.md", "a", origin=Origin()) for n in range(AT_ONCE))
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(each, MemoryStoreError) for each in outcomes) == AT_ONCE // 2
    report = await Verification(shelf, workspace, store).verify()
    assert (report.intact, report.versions) == (True, AT_ONCE // 2)


async def test_the_last_of_several_changes_of_a_memory_in_one_commit_stands(shelf, workspace, store):
    memories = Memories(shelf, workspace, store)
    made = await asyncio.gather(*(memories.create(f"/{n}.md", "a", origin=Origin()) for n in range(AT_ONCE)))
    calls = []
    for each in made[1:]:
        calls += [memories.update(each.id, content=content, origin=Origin()) for content in "bcd"]
    calls += [memories.update(made[0].id, content="b", origin=Origin()), memories.delete(made[0].id, origin=Origin())]
    await asyncio.gather(*calls)
    page = await memories.page(limit=AT_ONCE, content=True)
    assert [each.content for each in page.items] == ["d"] * (AT_ONCE - 1)
    report = await Verification(shelf, workspace, store).verify()
    assert (report.intact, report.problems) == (True, ())


async def test_changes_of_the_same_memories_in_one_commit_stand_on_each_other(shelf, workspace, store):
    memories = Memories(shelf, workspace, store)
    made = await asyncio.gather(*(memories.create(f"/{n}.md", "a", origin=Origin()) for n in range(4)))
    known = made[0].sha256
    calls = []
    for each in made:
        calls += [
            memories.update(each.id, content="b", expected_sha256=known, origin=Origin()),
            memories.update(each.id, content="c", expected_sha256=known, origin=Origin()),  # it is no longer "a"
            memories.update(each.id, path=f"/moved{each.path}", origin=Origin()),
            memories.create(each.path, "in its place", origin=Origin()),
            memories.update(f"{each.id}0", content="nothing", origin=Origin()),  # there is none
            memories.delete(each.id, origin=Origin()),
            memories.update(each.id, content="too late", origin=Origin()),
        ]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    codes = [getattr(each, "code", "done") for each in outcomes]
    assert codes == ["done", "version_mismatch", "done", "done", "not_found", "done", "not_found"] * 4
    page = await memories.page(limit=100, content=True)
    assert [(each.path, each.content) for each in page.items] == [(f"/{n}.md", "in its place") for n in range(4)]
    report = await Verification(shelf, workspace, store).verify()
    assert (report.intact, report.versions) == (True, 4 * 5)


async def test_memories_that_come_and_go_in_one_commit_are_in_each_others_way_and_never_in_their_own(
    shelf, workspace, store
):
    memories = Memories(shelf, workspace, store)
    a, b, c = [await memories.create(path, "x", origin=Origin()) for path in ("/a", "/b/b", "/c")]
    calls = [
        memories.update(a.id, path="/a/b", origin=Origin()),
        memories.update(b.id, path="/b", origin=Origin()),
        memories.create("/a", "x", origin=Origin()),
        memories.create("/b/b", "x", origin=Origin()),
        memories.delete(c.id, origin=Origin()),
        memories.create("/c/c", "x", origin=Origin()),
        memories.create("/c", "x", origin=Origin()),
        memories.create("/a/c", "x", origin=Origin()),
        memories.update(b.id, path="/a/c/d", origin=Origin()),
        memories.update(b.id, path="/d/d", origin=Origin()),
        memories.create("/d", "x", origin=Origin()),
        memories.create("/b/b", "x", origin=Origin()),
    ]
    outcomes = await asyncio.gather(*calls, return_exceptions=True)
    codes = [getattr(each, "code", "done") for each in outcomes]
    taken = "already_exists"
    assert codes == ["done", "done", taken, taken, "done", "done", taken, "done", taken, "done", taken, "done"]
    page = await memories.page(limit=100)
    assert [each.path for each in page.items] == ["/a/b", "/a/c", "/b/b", "/c/c", "/d/d"]
    assert (await Verification(shelf, workspace, store).verify()).intact


async def test_a_change_that_the_database_refuses_is_its_callers_alone_whoever_shares_its_commit(
    shelf, workspace, store
):
    memories = Memories(shelf, workspace, store)
    made = await asyncio.gather(*(memories.create(f"/{n}.md", "a", origin=Origin()) for n in range(3)))
    too_long = Origin(run_id=secrets.token_hex(4_000), tool_call_id="call")  # for an index of PostgreSQL
    origins = [Origin(), too_long, Origin()]
    outcomes = await asyncio.gather(
        *(memories.update(each.id, content="b", origin=by) for each, by in zip(made, origins, strict=True)),
        return_exceptions=True,
    )
    assert not any(isinstance(each, Exception) for each in (outcomes[0], outcomes[2]))
    if isinstance(shelf.engine, PostgresEngine):
        assert outcomes[1].code == "unavailable"
    assert (await Verification(shelf, workspace, store).verify()).intact


async def test_what_a_change_made_is_freed_at_once(shelf, workspace, store):
    """Objects that hold each other wait for a search for garbage, which a service pays for with every request."""
    memories = Memories(shelf, workspace, store)
    made = await asyncio.gather(*(memories.create(f"/{n}.md", "a", origin=Origin()) for n in range(4)))
    with garbage() as kept:
        await asyncio.gather(*(memories.update(each.id, content="b", origin=Origin()) for each in made))
        for each in made:
            await refused("version_mismatch", memories.delete(each.id, expected_sha256="0" * 64, origin=Origin()))
    assert kept == []


async def test_a_change_that_waited_for_another_process_sees_what_that_did(postgres_server):
    schema = f"waited_{secrets.token_hex(6)}"
    shelf = Shelf(PostgresEngine(postgres_server.dsn, schema))
    accounts = Accounts(shelf.engine)
    workspace = (await accounts.find(digest(await accounts.create_key("team")))).workspace_id
    store = (await Stores(shelf, workspace).create("Notes")).id
    memories = Memories(shelf, workspace, store)
    memory = await memories.create("/a.md", "a", origin=Origin())
    other = await asyncpg.connect(postgres_server.dsn, server_settings={"search_path": schema})
    async with other.transaction():
        await other.execute("SELECT id FROM memories FOR UPDATE")
        change = asyncio.ensure_future(memories.update(memory.id, content="b", origin=Origin()))
        while not await other.fetchval("SELECT count(*) FROM pg_locks WHERE NOT granted"):
            await asyncio.sleep(0.01)
        await other.execute("DELETE FROM files")
        await other.execute("UPDATE memories SET head_link = 'another'")
    await other.close()
    await refused("not_found", change)
    await shelf.engine.aclose()
