"""A clock that is set back, or that runs behind on another machine."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from workspace_of_tests import ORIGIN, WORKSPACE

from memshelf.mounts.sessions import Sessions
from memshelf.storage.ids import Mint
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.stores.catalogue import Stores
from memshelf.stores.history import History
from memshelf.stores.shelf import Shelf
from memshelf.stores.verification import Verification
from memshelf.stores.versions import VersionFilter, Versions


class Clock:
    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        return self.now

    def back(self):
        self.now -= timedelta(hours=1)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def shelf(tmp_path, clock):
    shelf = Shelf(SqliteEngine(tmp_path / "shelf.db", durable=False), mint=Mint(clock))
    await shelf.engine.write(
        lambda transaction: transaction.execute("INSERT INTO workspaces VALUES ($1, $2, 0)", WORKSPACE, "default")
    )
    yield shelf
    await shelf.engine.aclose()


async def test_the_versions_of_a_memory_stay_in_order(shelf, clock, store, memories):
    memory = await memories.create("/a", "0", origin=ORIGIN)
    written = [memory]
    for number in range(1, 4):
        clock.back()
        path = "/b" if number == 2 else None
        written.append(await memories.update(memory.id, content=str(number), path=path, origin=ORIGIN))
    await memories.delete(memory.id, origin=ORIGIN)
    times = [each.updated_at for each in written]
    assert times == sorted(set(times))
    listed = await Versions(shelf, WORKSPACE, store).page(limit=10, where=VersionFilter(memory_id=memory.id))
    assert [each.operation for each in listed.items] == ["deleted", "modified", "modified", "modified", "created"]
    assert [each.id for each in listed.items[1:]] == [each.version_id for each in reversed(written)]
    for each in written:
        [stood] = (await History(shelf, WORKSPACE, store).at(each.updated_at, limit=10)).items
        assert stood.id == each.version_id
    assert (await Verification(shelf, WORKSPACE, store).verify()).intact


async def test_stores_and_sessions_change_after_they_were_made(shelf, clock, store):
    stores, sessions = Stores(shelf, WORKSPACE), Sessions(shelf, WORKSPACE)
    session = await sessions.create(
        prefix="sesn", agent_id="a", agent_version=1, environment_id="e", attachments=[], title=None
    )
    made = await stores.retrieve(store)
    clock.back()
    renamed = await stores.update(store, name="Other")
    clock.back()
    archived = await stores.archive(store)
    assert made.created_at < renamed.updated_at < archived.updated_at == archived.archived_at
    idle = await sessions.set_status(session.id, "idle")
    clock.back()
    ended = await sessions.archive(session.id)
    assert session.created_at < idle.updated_at < ended.updated_at == ended.archived_at
    assert ended.status == "idle"
