"""What undoing goes back to, as a rule over one memory's history, and in stores of both engines."""

from __future__ import annotations

import asyncio
import secrets
from datetime import UTC, datetime, timedelta

import pytest
from workspace_of_tests import ORIGIN, WORKSPACE

from memshelf import MemoryStoreError, Origin
from memshelf.storage.postgres import PostgresEngine
from memshelf.storage.postgres_transaction import PostgresTransaction, Together
from memshelf.stores.catalogue import Stores
from memshelf.stores.history import Author, History, Written, earlier
from memshelf.stores.memories import Memories
from memshelf.stores.shelf import Shelf
from memshelf.stores.verification import Verification
from memshelf.stores.versions import Versions

START = datetime(2026, 5, 1, tzinfo=UTC)
ALWAYS = START - timedelta(days=9999)
THEM = Author("session", "sesn_1")
THEIRS = Origin(session_id="sesn_1")


def history(*steps: str) -> tuple[list[Written], str | None]:
    """What they changed of a memory, newest first, and where it stands: `t` is what they wrote, `o` what others did;
    `d` deletes."""
    versions = [Written(str(n), str(n - 1) if n else None, "d" in step) for n, step in enumerate(steps)]
    theirs = [version for version, step in zip(versions, steps, strict=True) if "t" in step]
    return theirs[::-1], None if versions[-1].deletes else versions[-1].id


@pytest.mark.parametrize(
    ("steps", "target"),
    [
        (["o", "t"], "0"),
        (["o", "t", "t"], "0"),
        (["o", "o", "t"], "1"),
        (["t"], None),
        (["t", "t", "td"], None),
        (["o", "td"], "0"),
        (["o", "t", "o", "t"], "2"),
    ],
)
def test_before_the_newest_run_of_their_changes(steps, target):
    assert earlier(*history(*steps)) == target


@pytest.mark.parametrize("steps", [["t", "o"], ["o", "t", "od"]])
def test_what_others_changed_afterwards_is_kept(steps):
    with pytest.raises(MemoryStoreError) as refused:
        earlier(*history(*steps))
    assert refused.value.code == "conflict"


@pytest.mark.parametrize(
    ("author", "origin", "wrote"),
    [
        (Author("session", "s"), Origin(session_id="s"), True),
        (Author("session", "s"), Origin(session_id="t"), False),
        (Author("api_key", "k"), Origin(api_key_id="k"), True),
        (Author("api_key", "k"), Origin(api_key_id="k", session_id="s"), False),
        (Author("user", "u"), Origin(principal_id="u"), True),
        (Author("user", "u"), Origin(principal_id="u", api_key_id="k"), False),
        (Author("user", "k"), Origin(api_key_id="k"), False),
    ],
)
async def test_who_wrote_a_version(shelf, store, memories, author, origin, wrote):
    made = await memories.create("/a", "x", origin=origin)
    undone = await History(shelf, WORKSPACE, store).undo(author, ALWAYS, origin=ORIGIN)
    assert [(each.memory_id, each.outcome) for each in undone] == ([(made.id, "deleted")] if wrote else [])


async def test_what_they_wrote_before_the_time_stands(shelf, store, memories):
    one = await memories.create("/a", "x", origin=THEIRS)
    two = await memories.update(one.id, content="y", origin=THEIRS)
    three = await memories.update(one.id, content="z", origin=THEIRS)
    await History(shelf, WORKSPACE, store).undo(THEM, three.updated_at, origin=ORIGIN)
    assert (await memories.retrieve(one.id)).content == "y"
    assert two.content == "y"


async def test_what_they_changed_several_times_goes_back_to_before_all_of_it(shelf, store, memories):
    one = await memories.create("/a", "x", origin=ORIGIN)
    await memories.update(one.id, content="y", origin=THEIRS)
    await memories.update(one.id, content="z", path="/b", origin=THEIRS)
    await History(shelf, WORKSPACE, store).undo(THEM, ALWAYS, origin=ORIGIN)
    stands = await memories.retrieve(one.id)
    assert (stands.path, stands.content) == ("/a", "x")


async def test_a_version_that_is_redacted_is_not_gone_back_to(shelf, store, memories):
    one = await memories.create("/a", "secret", origin=ORIGIN)
    await memories.update(one.id, content="x", origin=THEIRS)
    await Versions(shelf, WORKSPACE, store).redact(one.version_id, by="apikey_1")
    (undone,) = await History(shelf, WORKSPACE, store).undo(THEM, ALWAYS, origin=ORIGIN)
    assert (undone.outcome, undone.reason) == ("kept", "The version to go back to is redacted.")
    assert (await memories.retrieve(one.id)).content == "x"


@pytest.fixture(params=["sqlite", "postgresql"])
async def large(request, shelf):
    """A shelf in a database of either engine."""
    if request.param == "sqlite":
        yield shelf
        return
    engine = PostgresEngine(request.getfixturevalue("postgres_server").dsn, f"undone_{secrets.token_hex(6)}")
    await engine.write(
        lambda transaction: transaction.execute("INSERT INTO workspaces VALUES ($1, $2, 0)", WORKSPACE, "default")
    )
    yield Shelf(engine)
    await engine.aclose()


async def change_many(memories: Memories, groups: int) -> dict[str, str]:
    """They edit, move, delete and create memories: the contents by path as they were before."""
    names = ["edited", "moved", "deleted", "blocked", "changed"]
    made = {}
    for name in names:
        calls = (memories.create(f"/{name}/{n:03}.md", f"{name} {n}", origin=ORIGIN) for n in range(groups))
        made[name] = await asyncio.gather(*calls)
    calls = []
    for n in range(groups):
        calls += [
            memories.update(made["edited"][n].id, content="theirs", origin=THEIRS),
            memories.update(made["moved"][n].id, path=f"/elsewhere/{n:03}.md", origin=THEIRS),
            memories.delete(made["deleted"][n].id, origin=THEIRS),
            memories.create(f"/moved/{n:03}.md", "in its place", origin=THEIRS),
            memories.delete(made["blocked"][n].id, origin=THEIRS),
            memories.create(f"/blocked/{n:03}.md", "what another put there", origin=ORIGIN),
            memories.update(made["changed"][n].id, content="theirs", origin=THEIRS),
            memories.update(made["changed"][n].id, content="what another wrote afterwards", origin=ORIGIN),
        ]
    await asyncio.gather(*calls)
    stood = {memory.path: memory.content or "" for name in names[:3] for memory in made[name]}
    stood |= {f"/blocked/{n:03}.md": "what another put there" for n in range(groups)}
    return stood | {f"/changed/{n:03}.md": "what another wrote afterwards" for n in range(groups)}


async def test_many_memories_go_back_together(large):
    store = (await Stores(large, WORKSPACE).create("Notes")).id
    memories = Memories(large, WORKSPACE, store)
    stood = await change_many(memories, 130)
    undone = await History(large, WORKSPACE, store).undo(THEM, ALWAYS, origin=ORIGIN)
    outcomes = [each.outcome for each in undone]
    assert {each: outcomes.count(each) for each in outcomes} == {"restored": 390, "deleted": 130, "kept": 260}
    page = await memories.page(limit=1_000, content=True)
    assert {memory.path: memory.content for memory in page.items} == stood
    ids = {memory.path: memory.id for memory in page.items}
    assert all(ids[each.memory.path] == each.memory.id for each in undone if each.memory is not None)
    report = await Verification(large, WORKSPACE, store).verify()
    assert (report.intact, report.problems) == (True, ())


async def test_undoing_asks_a_server_once_for_many_memories(large, monkeypatch):
    if not isinstance(large.engine, PostgresEngine):
        pytest.skip("There is no server.")
    store = (await Stores(large, WORKSPACE).create("Notes")).id
    memories = Memories(large, WORKSPACE, store)
    calls = (memories.create(f"/{n:03}.md", "x", origin=ORIGIN) for n in range(300))
    made = await asyncio.gather(*calls)
    await asyncio.gather(*(memories.delete(each.id, origin=THEIRS) for each in made))
    asked = []
    for owner, name in ((PostgresTransaction, "fetch"), (PostgresTransaction, "fetch_one"), (Together, "_look_ahead")):
        real = getattr(owner, name)

        async def counted(*args, real=real, name=name):
            asked.append(name)
            return await real(*args)

        monkeypatch.setattr(owner, name, counted)
    undone = await History(large, WORKSPACE, store).undo(THEM, ALWAYS, origin=ORIGIN)
    assert {each.outcome for each in undone} == {"restored"}
    assert len(asked) < 30


async def test_a_store_that_is_full_keeps_what_would_come_back(shelf, store, memories):
    small = type(shelf)(shelf.engine, type(shelf.limits)(memories=2), shelf.mint)
    one = await memories.create("/a", "x", origin=ORIGIN)
    await memories.delete(one.id, origin=THEIRS)
    await memories.create("/b", "x", origin=ORIGIN)
    await memories.create("/c", "x", origin=ORIGIN)
    (undone,) = await History(small, WORKSPACE, store).undo(THEM, ALWAYS, origin=ORIGIN)
    assert (undone.outcome, undone.memory) == ("kept", None)
    assert "full" in (undone.reason or "")


async def test_two_memories_that_changed_places_go_back_as_far_as_they_can(shelf, store, memories):
    one = await memories.create("/1", "one", origin=ORIGIN)
    two = await memories.create("/2", "two", origin=ORIGIN)
    await memories.update(one.id, path="/x", origin=THEIRS)
    await memories.update(two.id, path="/1", origin=THEIRS)
    await memories.update(one.id, path="/2", origin=THEIRS)
    undone = await History(shelf, WORKSPACE, store).undo(THEM, ALWAYS, origin=ORIGIN)
    assert {each.outcome for each in undone} == {"kept"}
    assert (await memories.retrieve(one.id)).path == "/2"
