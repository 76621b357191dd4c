"""Changes of a memory that share a commit on PostgreSQL: as if they had been made one by one."""

from __future__ import annotations

import asyncio
import secrets

import asyncpg
import pytest
from hypothesis import given, settings, strategies as st

from memshelf import MemoryStoreError, Origin, PostgresFileStore, SqliteFileStore

ANYONE = Origin()
PATHS = ("a", "b", "a/b", "c.md")


@pytest.fixture
async def store(postgres_server):
    async with PostgresFileStore(postgres_server.dsn, secrets.token_hex(8)) as store:
        yield store


async def created(store, *paths):
    """The versions of new files, by path."""
    made = await asyncio.gather(*(store.write(path, path, expected=None, origin=ANYONE) for path in paths))
    return dict(zip(paths, made, strict=True))


async def outcomes(*calls):
    results = await asyncio.gather(*calls, return_exceptions=True)
    return [result.code if isinstance(result, MemoryStoreError) else "done" for result in results]


async def test_edits_that_wait_together_share_one_transaction_and_form_one_chain(store, postgres_server):
    versions = await created(store, *(f"{n}.md" for n in range(20)))
    calls = [
        store.write(path, "b", expected=version, origin=Origin(run_id="run", tool_call_id=path))
        for path, version in versions.items()
    ]
    written = await asyncio.gather(*calls)
    watcher = await asyncpg.connect(postgres_server.dsn)
    transactions = await watcher.fetchval(
        "SELECT count(DISTINCT xmin::text) FROM memshelf.file_versions WHERE id = ANY($1)", written
    )
    await watcher.close()
    assert transactions == 1
    report = await store.verify()
    assert (report.intact, report.versions) == (True, 40)


async def test_of_edits_of_one_file_in_one_commit_the_first_succeeds(store):
    version = (await created(store, "a.md", "b.md"))["a.md"]
    calls = [store.write("a.md", f"edit {n}", expected=version, origin=ANYONE) for n in range(4)]
    assert await outcomes(*calls) == ["done", *["version_mismatch"] * 3]
    assert (await store.read("a.md")).text == "edit 0"


async def test_a_path_that_was_found_free_is_looked_at_again_after_it_was_taken_in_the_same_commit(store):
    version = (await created(store, "a.md", "c.md"))["a.md"]
    calls = [
        store.write("new.md", "too early", expected=version, origin=ANYONE),  # there is none: so much was found ahead
        store.write("new.md", "new", expected=None, origin=ANYONE),
        store.delete("new.md", expected=version, origin=ANYONE),
        store.move("a.md", "moved.md", expected=version, origin=ANYONE),
        store.write("moved.md", "edited", expected=version, origin=ANYONE),
        store.write("a.md", "again", expected=version, origin=ANYONE),
        store.write("a.md", "in its place", expected=None, origin=ANYONE),
        store.write("new.md/below", "no directory", expected=None, origin=ANYONE),
    ]
    codes = ["version_mismatch", "done", "version_mismatch", "done", "version_mismatch", "version_mismatch"]
    assert await outcomes(*calls) == [*codes, "done", "already_exists"]
    assert [entry.path for entry in await store.list()] == ["a.md", "c.md", "moved.md", "new.md"]
    assert (await store.verify()).intact


async def test_what_comes_into_the_way_or_goes_out_of_it_in_the_same_commit_is_seen(store):
    versions = await created(store, "gone", "old/a.md")
    calls = [
        *(store.write(path, "x", expected=None, origin=ANYONE) for path in ("x", "x/y", "d/e/f", "d/e/g", "d/e", "d")),
        store.delete("gone", expected=versions["gone"], origin=ANYONE),
        *(store.write(path, "x", expected=None, origin=ANYONE) for path in ("gone/now", "gone")),
        store.move("old/a.md", "new/a.md", expected=versions["old/a.md"], origin=ANYONE),
        *(store.write(path, "x", expected=None, origin=ANYONE) for path in ("new", "new/a.md/b", "old", "old/b")),
    ]
    taken = "already_exists"
    codes = ["done", taken, "done", "done", taken, taken, "done", "done", taken, "done", taken, taken, "done", taken]
    assert await outcomes(*calls) == codes
    assert [entry.path for entry in await store.list()] == ["d/e/f", "d/e/g", "gone/now", "new/a.md", "old", "x"]
    assert (await store.verify()).intact


async def test_a_tool_call_that_comes_twice_in_one_commit_is_made_once(store):
    versions = await created(store, "a.md", "b.md")
    call = Origin(run_id="run", tool_call_id="call")
    calls = [store.write("a.md", "edited", expected=versions["a.md"], origin=call) for _ in range(3)]
    reused = store.write("b.md", "another call of that id", expected=versions["b.md"], origin=call)
    other = store.write("b.md", "another", expected=versions["b.md"], origin=Origin(run_id="run", tool_call_id="other"))
    first, *others, refusal, _ = await asyncio.gather(*calls, reused, other, return_exceptions=True)
    assert others == [first, first]
    assert refusal.code == "forbidden"
    assert (await store.verify()).versions == 4


async def test_a_change_that_the_database_refuses_is_its_callers_alone(store):
    versions = await created(store, "a.md", "b.md", "c.md")
    too_long = Origin(run_id=secrets.token_hex(4_000), tool_call_id="call")  # for an index
    origins = [ANYONE, too_long, ANYONE]
    calls = [
        store.write(path, "edited", expected=version, origin=origin)
        for (path, version), origin in zip(versions.items(), origins, strict=True)
    ]
    assert await outcomes(*calls) == ["done", "unavailable", "done"]
    assert (await store.verify()).versions == 5


async def test_two_stores_of_one_memory_that_write_to_it_at_once_lose_nothing(store, postgres_server):
    """Another process has connections of its own, and moves the head between two commits of this one."""
    other = PostgresFileStore(f"{postgres_server.dsn}?", store._name)
    versions = await created(store, *(f"{n}.md" for n in range(16)))

    async def edit(path, version):
        for n in range(10):
            version = await (store, other)[n % 2].write(path, f"{n}", expected=version, origin=ANYONE)

    await asyncio.gather(*(edit(path, version) for path, version in versions.items()))
    report = await store.verify()
    await other.aclose()
    assert (report.intact, report.versions) == (True, 16 * 11)


@st.composite
def changes(draw):
    """A change of the file at a path, with what stood somewhere when the commit began, perhaps as a tool call that
    comes more than once."""
    kind = draw(st.sampled_from(["create", "write", "write", "delete", "move", "restore"]))
    path, of, to = (draw(st.sampled_from(PATHS)) for _ in range(3))
    call = draw(st.sampled_from([None, None, "1", "2"]))
    text = draw(st.sampled_from(["x", "y"]))
    return kind, path, draw(st.sampled_from([path, path, of])), to, text, call


def change(store, versions, kind, path, of, to, text, origin):
    expected = versions.get(of, "memver_none")
    match kind:
        case "create":
            return store.write(path, text, expected=None, origin=origin)
        case "write":
            return store.write(path, text, expected=expected, origin=origin)
        case "delete":
            return store.delete(path, expected=expected, origin=origin)
        case "move":
            return store.move(path, to, expected=expected, origin=origin)
        case _:
            return store.restore(expected, expected=versions.get(path), origin=origin)


async def stands(store):
    """The texts and versions by path, the history without ids, and whether it verifies."""
    files = [await store.read(entry.path) for entry in await store.list()]
    page = await store.versions(limit=1_000)
    told = [(each.operation, each.path, each.text, each.origin) for each in page.versions]
    return {each.path: each.version for each in files}, {each.path: each.text for each in files}, told


@given(st.lists(st.lists(changes(), min_size=1, max_size=10), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_what_shares_a_commit_comes_out_as_if_it_were_made_one_by_one(postgres_server, tmp_path_factory, batches):
    async def compare():
        name = secrets.token_hex(8)
        place = tmp_path_factory.mktemp("one_by_one") / "memory.db"
        async with PostgresFileStore(postgres_server.dsn, name) as shared, SqliteFileStore(place, durable=False) as one:
            known = {}, {}
            for number, batch in enumerate(batches):
                origins = [Origin(run_id=f"{number}", tool_call_id=each[-1]) for each in batch]
                together = await outcomes(
                    *(change(shared, known[0], *each[:-1], by) for each, by in zip(batch, origins, strict=True))
                )
                alone = []
                for each, by in zip(batch, origins, strict=True):
                    alone += await outcomes(change(one, known[1], *each[:-1], by))
                assert together == alone
                after = [await stands(each) for each in (shared, one)]
                assert after[0][1:] == after[1][1:]
                known = after[0][0], after[1][0]
            assert (await shared.verify()).intact

    asyncio.run(compare())
