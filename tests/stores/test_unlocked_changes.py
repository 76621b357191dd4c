"""Changes of a store on PostgreSQL that are alone, and so are made without a lock: what somebody else does after they
have read, and before they write, counts as if it had come before."""

from __future__ import annotations

import hashlib
import secrets

import pytest

from memshelf.errors import MemoryStoreError
from memshelf.limits import StoreLimits
from memshelf.origin import Origin
from memshelf.service.accounts import Accounts, digest
from memshelf.storage.postgres import PostgresEngine
from memshelf.storage.postgres_unlocked import NeedsLockError, UnlockedTransaction
from memshelf.stores.catalogue import Stores
from memshelf.stores.files import StoreFiles
from memshelf.stores.memories import Memories
from memshelf.stores.shelf import Shelf
from memshelf.stores.verification import Verification
from memshelf.stores.versions import Versions

LIMITS = StoreLimits(memories=4)


def sha256(text):
    return hashlib.sha256(text.encode()).hexdigest()


class Place:
    """One store, as a process sees it."""

    def __init__(self, dsn, schema):
        self.shelf = Shelf(PostgresEngine(dsn, schema), LIMITS)

    async def open(self, name):
        accounts = Accounts(self.shelf.engine)
        self.workspace = (await accounts.find(digest(await accounts.create_key("team")))).workspace_id
        self.stores = Stores(self.shelf, self.workspace)
        found = [each for each in (await self.stores.page(limit=10)).items if each.name == name]
        self.id = (found[0] if found else await self.stores.create(name)).id
        self.memories, self.files, self.versions = (
            kind(self.shelf, self.workspace, self.id) for kind in (Memories, StoreFiles, Versions)
        )
        return self


@pytest.fixture
async def ours(postgres_server):
    ours = await Place(postgres_server.dsn, f"test_{secrets.token_hex(6)}").open("Notes")
    yield ours
    await ours.shelf.engine.aclose()


@pytest.fixture
async def theirs(ours, postgres_server):
    """The same store in another process, as it were: with connections of its own."""
    theirs = await Place(f"{postgres_server.dsn}?", ours.shelf.engine._place.schema).open("Notes")
    yield theirs
    await theirs.shelf.engine.aclose()


@pytest.fixture
async def memory(ours):
    memory = await ours.memories.create("/a.md", "one", origin=Origin())
    return await ours.memories.update(memory.id, content="two", origin=Origin())


@pytest.fixture
def meanwhile(monkeypatch):
    """Has something done before the next change without a lock is committed; tells what became of that commit."""
    commit = UnlockedTransaction.commit

    def meanwhile(do):
        committed = []

        async def late(transaction):
            monkeypatch.undo()
            await do()
            try:
                await commit(transaction)
            except NeedsLockError:
                committed.append(False)
                raise
            committed.append(True)

        monkeypatch.setattr(UnlockedTransaction, "commit", late)
        return committed

    return meanwhile


async def outcome(call):
    try:
        await call
    except MemoryStoreError as error:
        return error.code
    return "done"


CHANGES = {
    "create": lambda place, _: place.memories.create("/b/c.md", "x", origin=Origin()),
    "update": lambda place, memory: place.memories.update(
        memory.id, content="x", expected_sha256=sha256("two"), origin=Origin()
    ),
    "move": lambda place, memory: place.memories.update(memory.id, path="/b/c.md", origin=Origin()),
    "delete": lambda place, memory: place.memories.delete(memory.id, expected_sha256=sha256("two"), origin=Origin()),
    "put": lambda place, memory: place.files.put("a.md", "x", expected=memory.version_id, origin=Origin()),
}


async def fill(place):
    for number in range(LIMITS.memories - 1):
        await place.memories.create(f"/{number}.md", "x", origin=Origin())


OTHERS = {
    "nothing": lambda place, _: place.memories.page(limit=1),
    "archive": lambda place, _: place.stores.archive(place.id),
    "delete the store": lambda place, _: place.stores.delete(place.id),
    "update it": lambda place, memory: place.memories.update(memory.id, content="their", origin=Origin()),
    "delete it": lambda place, memory: place.memories.delete(memory.id, origin=Origin()),
    "create another": lambda place, _: place.memories.create("/z.md", "x", origin=Origin()),
    "take the path": lambda place, _: place.memories.create("/b", "x", origin=Origin()),
    "fill it": lambda place, _: fill(place),
}

REFUSED = {
    "archive": dict.fromkeys(["create", "update", "move", "put"], "store_archived"),
    "delete the store": dict.fromkeys(CHANGES, "not_found"),
    "update it": dict.fromkeys(["update", "delete", "put"], "version_mismatch"),
    "delete it": {**dict.fromkeys(["update", "move", "delete"], "not_found"), "put": "version_mismatch"},
    "take the path": dict.fromkeys(["create", "move"], "already_exists"),
    "fill it": {"create": "memory_full"},
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_is_made_as_if_what_came_in_between_had_come_first(
    ours, theirs, memory, meanwhile, change, other
):
    committed = meanwhile(lambda: OTHERS[other](theirs, memory))
    assert await outcome(CHANGES[change](ours, memory)) == REFUSED.get(other, {}).get(change, "done")
    assert committed == [other == "nothing"]
    if other != "delete the store":
        report = await Verification(ours.shelf, ours.workspace, ours.id).verify()
        assert report.intact


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_is_made_of_the_store_as_it_stands_whatever_the_last_one_has_left(
    ours, theirs, memory, change, other
):
    assert ours.shelf.engine._part().writer._left
    await OTHERS[other](theirs, memory)
    assert await outcome(CHANGES[change](ours, memory)) == REFUSED.get(other, {}).get(change, "done")
    if other != "delete the store":
        report = await Verification(ours.shelf, ours.workspace, ours.id).verify()
        assert report.intact


async def test_changes_of_one_memory_in_turn_take_one_round_trip_each(ours, memory):
    queries = []
    ours.shelf.engine._part().writer._connection.add_query_logger(queries.append)
    for number in range(3):
        memory = await ours.memories.update(
            memory.id, content=f"{number}", expected_sha256=memory.sha256, origin=Origin()
        )
    assert len(queries) == 3
    await ours.memories.delete(memory.id, expected_sha256=memory.sha256, origin=Origin())
    assert len(queries) == 4


async def test_a_change_that_is_sent_twice_at_once_by_its_id_is_made_once(ours, theirs, memory, meanwhile):
    def put(place):
        origin, change_id = Origin(), "0193a3f0c7d27a8c8f1e2d3c4b5a6978"
        return place.files.put("a.md", "x", expected=memory.version_id, origin=origin, change_id=change_id)

    first = []

    async def put_theirs():
        first.append(await put(theirs))

    meanwhile(put_theirs)
    assert await put(ours) == first[0]
    report = await Verification(ours.shelf, ours.workspace, ours.id).verify()
    assert (report.intact, report.versions) == (True, 3)


async def test_an_older_version_may_be_redacted_in_between_and_where_a_memory_stood_is_known(
    ours, theirs, memory, meanwhile
):
    """The path `/b.md` is forgotten with the version that stood there, while the memory is on its way back to it."""
    moved = await ours.memories.update(memory.id, path="/b.md", content="at b", origin=Origin())
    await ours.memories.update(memory.id, path="/c.md", content="at c", origin=Origin())
    committed = meanwhile(lambda: theirs.versions.redact(moved.version_id, by="ann"))
    back = await ours.memories.update(memory.id, path="/b.md", origin=Origin())
    assert committed == [True]
    found = await ours.files.versions("b.md", None, 10, None)
    assert back.version_id in [each.id for each in found.versions]
    assert [each.id for each in found.versions if each.redacted_at is not None] == [moved.version_id]
    report = await Verification(ours.shelf, ours.workspace, ours.id).verify()
    assert report.intact
