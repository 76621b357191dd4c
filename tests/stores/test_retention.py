"""Versions that expire, on both engines: which, what is left of them, and what happens when it is interrupted."""

from __future__ import annotations

import asyncio
import random
import secrets
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from memshelf.errors import MemoryStoreError
from memshelf.origin import Origin
from memshelf.service.accounts import Accounts, digest
from memshelf.storage.ids import Mint
from memshelf.storage.postgres import PostgresEngine
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.stores import retention
from memshelf.stores.catalogue import Stores
from memshelf.stores.history import History
from memshelf.stores.memories import Memories
from memshelf.stores.retention import RETENTION, Expired, Retention
from memshelf.stores.shelf import Shelf
from memshelf.stores.verification import Verification
from memshelf.stores.versions import VersionFilter, Versions

ORIGIN = Origin(api_key_id="apikey_1")
MONTH = Retention(30, 1)


async def expire(shelf, policy, **options):
    return {id: expired async for id, expired in retention.expire(shelf, policy, **options)}


class Clock:
    def __init__(self):
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self):
        self.now += timedelta(microseconds=1)
        return self.now

    def days(self, count):
        self.now += timedelta(days=count)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where the data is, as arguments for `engine_at`."""
    if request.param == "sqlite":
        return ("sqlite", str(tmp_path / "memshelf.db"))
    return (request.getfixturevalue("postgres_server").dsn, f"retention_{secrets.token_hex(6)}")


def engine_at(kind, name):
    return SqliteEngine(name, durable=False) if kind == "sqlite" else PostgresEngine(kind, name)


@pytest.fixture
async def shelf(place, clock):
    shelf = Shelf(engine_at(*place), mint=Mint(clock))
    yield shelf
    await shelf.engine.aclose()


@pytest.fixture
async def workspace(shelf):
    accounts = Accounts(shelf.engine)
    return (await accounts.find(digest(await accounts.create_key("team")))).workspace_id


class Notes:
    """A store, and everything that is asked of it."""

    def __init__(self, shelf, workspace, id):
        self.id = id
        self.memories = Memories(shelf, workspace, id)
        self.versions = Versions(shelf, workspace, id)
        self.history = History(shelf, workspace, id)
        self.verification = Verification(shelf, workspace, id)

    async def write(self, path, *contents):
        memory = await self.memories.create(path, contents[0], origin=ORIGIN)
        for content in contents[1:]:
            await self.memories.update(memory.id, content=content, origin=ORIGIN)
        return memory.id

    async def told(self, memory_id=None):
        """What the versions of a memory, or of all, say, the oldest first; `None` for one that is erased."""
        found, page = [], None
        while True:
            part = await self.versions.page(
                limit=100, where=VersionFilter(memory_id=memory_id), page=page, content=True
            )
            found += part.items
            if (page := part.next_page) is None:
                break
        return [None if each.redacted_at else each.text or each.operation for each in reversed(found)]

    async def at(self, moment):
        page = await self.history.at(moment, limit=100, content=True)
        return {each.path: each.text for each in page.items}

    async def intact(self):
        return (await self.verification.verify()).intact


@pytest.fixture
def new(shelf, workspace):
    async def new(name="Notes"):
        return Notes(shelf, workspace, (await Stores(shelf, workspace).create(name)).id)

    return new


async def test_what_no_memory_held_for_so_long_expires(shelf, clock, new):
    notes = await new()
    memory = await notes.write("/a.md", "one")
    clock.days(100)
    await notes.memories.update(memory, content="two", origin=ORIGIN)
    clock.days(29)
    assert await expire(shelf, MONTH) == {}  # it is old, but was current within the month
    clock.days(1)
    assert await expire(shelf, MONTH) == {notes.id: Expired(1, 3)}
    assert await notes.told() == [None, "two"]
    assert await expire(shelf, MONTH) == {}
    assert await notes.intact()


async def test_the_newest_versions_of_a_memory_that_is_there_stay_however_old(shelf, clock, new):
    notes = await new()
    memory = await notes.write("/a.md", *"abcdef")
    gone = await notes.write("/gone.md", *"xyz")
    await notes.memories.delete(gone, origin=ORIGIN)
    clock.days(365)
    await expire(shelf, Retention(30, 4))
    assert await notes.told(memory) == [None, None, "c", "d", "e", "f"]
    assert await notes.told(gone) == [None, None, None, None]
    await expire(shelf, MONTH)
    assert await notes.told(memory) == [None, None, None, None, None, "f"]
    assert (await notes.memories.retrieve(memory)).content == "f"
    assert await notes.intact()


async def test_a_deletion_that_is_recent_can_be_taken_back_whatever_the_age_of_what_was_deleted(shelf, clock, new):
    notes = await new()
    memory = await notes.write("/a.md", "old", "older than a year")
    clock.days(400)
    await notes.memories.delete(memory, origin=ORIGIN)
    clock.days(29)
    await expire(shelf, MONTH)
    assert await notes.told() == [None, "older than a year", "deleted"]


async def test_an_expired_version_is_a_redacted_one(shelf, clock, new):
    notes = await new()
    memory = await notes.write("/private/path.md", "secret", "clean")
    await notes.memories.update(memory, path="/b.md", origin=ORIGIN)
    first = (await notes.versions.page(limit=10)).items[-1]
    clock.days(31)
    await expire(shelf, MONTH)
    version = await notes.versions.retrieve(first.id)
    assert (version.path, version.text, version.sha256, version.size) == (None, None, None, None)
    assert (version.redacted_by, version.redacted_at > clock.now - timedelta(days=1)) == (RETENTION, True)
    assert (version.id, version.origin, version.created_at) == (first.id, ORIGIN, first.created_at)
    assert await notes.versions.redact(first.id, by="ann") == version
    places = await shelf.engine.read(lambda transaction: transaction.fetch("SELECT path FROM file_places"))
    assert [path for (path,) in places] == ["b.md"]


async def test_archived_stores_expire_and_deleted_ones_are_passed_over(shelf, workspace, clock, new):
    archived, deleted, other = await new("archived"), await new("deleted"), await new("other")
    for notes in (archived, deleted, other):
        await notes.write("/a", "1", "2")
    await Stores(shelf, workspace).archive(archived.id)
    clock.days(31)
    expired = asyncio.create_task(expire(shelf, MONTH))
    await Stores(shelf, workspace).delete(deleted.id)
    assert set(await expired) - {deleted.id} == {archived.id, other.id}
    assert await archived.told() == await other.told() == [None, "2"]


async def test_a_dry_run_counts_and_changes_nothing(shelf, clock, new):
    notes, other = await new(), await new()
    await notes.write("/a", "12345", "x")
    await other.write("/a", "茶", "y", "z")
    clock.days(31)
    counted = {notes.id: Expired(1, 5), other.id: Expired(2, 4)}
    assert await expire(shelf, MONTH, dry_run=True) == counted
    assert await notes.told() == ["12345", "x"]
    assert await expire(shelf, MONTH, store_id=other.id) == {other.id: counted[other.id]}
    assert await notes.told() == ["12345", "x"]
    with pytest.raises(MemoryStoreError, match="no memory store memstore_missing") as refused:
        await expire(shelf, MONTH, store_id="memstore_missing")
    assert refused.value.code == "not_found"


async def test_stores_without_old_versions_are_not_opened(shelf, clock, new, monkeypatch):
    monkeypatch.setattr(retention, "_LOOKED_AT", 2)
    old = [await new() for _ in range(3)]
    for notes in old:
        await notes.write("/a.md", "one", "two")
    clock.days(100)
    for _ in range(3):
        await (await new()).write("/a.md", "one", "two")
        await new()
    looked_at, look = [], retention._look

    async def watched(opened, **options):
        looked_at.append(opened.store_id)
        return await look(opened, **options)

    monkeypatch.setattr(retention, "_look", watched)
    expired = await expire(shelf, MONTH)
    assert set(looked_at) == set(expired) == {notes.id for notes in old}


@pytest.mark.parametrize(("days", "recent"), [(29, 1), (0, 1), (-1, 1), (36_501, 1), (30, 0), (30, 10**9)])
def test_a_retention_that_is_too_short_is_refused(days, recent):
    with pytest.raises(ValueError, match=r"kept"):
        Retention(days, recent)


@pytest.mark.parametrize("seed", range(4))
async def test_every_moment_of_the_days_that_are_kept_stays_as_it_was(shelf, clock, new, monkeypatch, seed):
    monkeypatch.setattr(retention, "_LOOKED_AT", 7)  # many parts, and their ends
    monkeypatch.setattr(retention, "_BATCH_VERSIONS", 3)
    source = random.Random(seed)
    policy = Retention(30, source.choice([1, 2, 5]))
    notes = await new()
    live, dead, erased = (
        {},
        {},
        {},
    )  # by memory: what its versions say and when they were written, or whether they are erased
    moments = []
    for number in range(1, 61):
        clock.now += timedelta(hours=source.randrange(120))
        match source.choice(["create", "update", "update", "update", "move", "delete"]):
            case "create":
                live[await notes.write(f"/{source.randrange(3)}/{number}", str(number))] = [(number, clock.now)]
            case "update" if live:
                memory = source.choice(sorted(live))
                await notes.memories.update(memory, content=str(number), origin=ORIGIN)
                live[memory].append((number, clock.now))
            case "move" if live:
                memory = source.choice(sorted(live))
                await notes.memories.update(memory, content=str(number), path=f"/m/{number}", origin=ORIGIN)
                live[memory].append((number, clock.now))
            case "delete" if live:
                memory = source.choice(sorted(live))
                await notes.memories.delete(memory, origin=ORIGIN)
                dead[memory] = [*live.pop(memory), ("deleted", clock.now)]
        if number % 20 == 0:
            await expire(shelf, policy)
            before = clock.now - timedelta(days=30)
            for memory, versions in (live | dead).items():
                ends = [when for _, when in versions[1:]]
                ends.append(versions[-1][1] if memory in dead else None)
                keeps = policy.recent if memory in live else 0
                erased[memory] = [
                    (erased.get(memory) or [])[place : place + 1] == [True]
                    or (end is not None and end < before and place < len(versions) - keeps)
                    for place, end in enumerate(ends)
                ]
                expected = [
                    None if gone else str(content) for gone, (content, _) in zip(erased[memory], versions, strict=True)
                ]
                assert await notes.told(memory) == expected
            assert await notes.intact()
        moments.append((clock.now, await notes.at(clock.now)))
    await expire(shelf, policy)
    kept = [(moment, then) for moment, then in moments if moment >= clock.now - timedelta(days=30)]
    assert kept
    assert len(kept) < len(moments)
    for moment, then in kept:
        assert await notes.at(moment) == then


async def test_batches_are_bounded_by_versions_and_by_bytes():
    def sizes(*each):
        return [[past.size for past in batch] for batch in retention._batches(retention.Past("", "", s) for s in each)]

    assert sizes() == []
    assert [len(batch) for batch in sizes(*[0] * 250)] == [100, 100, 50]
    assert sizes(1, 4_194_304, 1) == [[1], [4_194_304], [1]]
    assert sizes(4_194_305) == [[4_194_305]]


async def test_others_write_between_the_batches(shelf, clock, new, monkeypatch):
    monkeypatch.setattr(retention, "_BATCH_VERSIONS", 1)
    notes, other = await new(), await new()
    memory = await notes.write("/a", *map(str, range(30)))
    clock.days(31)
    order = []

    async def expiring():
        await expire(shelf, MONTH)
        order.append("expired")

    task = asyncio.create_task(expiring())
    for number in range(5):
        await other.write(f"/{number}", "x")
        await notes.memories.update(memory, content=f"new {number}", origin=ORIGIN)
        order.append("wrote")
    await task
    assert order == ["wrote"] * 5 + ["expired"]
    assert await notes.told() == [None] * 29 + ["29"] + [f"new {number}" for number in range(5)]
    assert await notes.intact()
    assert await other.intact()


async def test_the_database_is_rewritten_once_for_all(shelf, clock, new, monkeypatch):
    monkeypatch.setattr(retention, "_BATCH_VERSIONS", 2)
    for _ in range(3):
        await (await new()).write("/a", *"abcdef")
    clock.days(31)

    def counts(transaction):
        return transaction.fetch_one("SELECT wanted, done FROM erasures")

    assert tuple(await shelf.engine.read(counts)) == (0, 0)
    before = type(shelf.engine).erase
    erasures = []
    monkeypatch.setattr(
        type(shelf.engine), "erase", lambda engine, script: erasures.append(1) or before(engine, script)
    )
    await expire(shelf, MONTH)
    assert tuple(await shelf.engine.read(counts)) == (9, 9)
    assert erasures == [1]


_CHILD = """
import asyncio, os, signal, sys
sys.path.insert(0, sys.argv[1])
from test_retention import *

async def main(place, now, deaths, gate):
    clock = Clock()
    clock.now = datetime.fromisoformat(now)
    calls = 0

    def ticking():
        nonlocal calls
        calls += 1
        if calls == deaths:
            os.kill(os.getpid(), signal.SIGKILL)
        return clock()

    retention._BATCH_VERSIONS = 2
    shelf = Shelf(engine_at(*place), mint=Mint(ticking))
    await shelf.engine.read(lambda transaction: transaction.fetch_one("SELECT 1"))
    if gate:
        print("ready", flush=True)
        sys.stdin.readline()
    expired = await expire(shelf, MONTH)
    await shelf.engine.aclose()
    print(sum(each.versions for each in expired.values()), flush=True)

asyncio.run(main(sys.argv[2:4], sys.argv[4], int(sys.argv[5]), int(sys.argv[6])))
"""


def child(place, clock, deaths=0, gate=0):
    return subprocess.Popen(
        [
            sys.executable,
            "-c",
            _CHILD,
            str(Path(__file__).parent),
            *place,
            clock.now.isoformat(),
            str(deaths),
            str(gate),
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


async def test_a_run_that_is_killed_in_the_midst_is_finished_by_the_next(place, shelf, clock, new):
    secret = "correct horse battery staple"
    notes = await new()
    await notes.write("/a", *(f"{secret} {number}" for number in range(20)), "clean")
    clock.days(31)
    process = child(place, clock, deaths=5)  # one call says what is past, one more belongs to each batch
    await asyncio.to_thread(process.communicate)
    assert process.returncode == -signal.SIGKILL
    told = await notes.told()
    assert told[:6] == [None] * 6
    assert told[8:] == [f"{secret} {number}" for number in range(8, 20)] + ["clean"]
    assert await notes.intact()
    finished = await expire(shelf, MONTH)
    assert finished[notes.id].versions in (12, 14)
    assert await notes.told() == [None] * 20 + ["clean"]
    assert await notes.intact()
    if place[0] == "sqlite":
        assert not any(secret.encode() in path.read_bytes() for path in Path(place[1]).parent.glob("memshelf.db*"))
    else:
        rows = await shelf.engine.read(lambda transaction: transaction.fetch("SELECT wanted, done FROM erasures"))
        assert rows[0][0] == rows[0][1] > 0


async def test_what_was_erased_before_the_rewrite_is_rewritten_by_a_run_that_finds_nothing(place, shelf, clock, new):
    notes = await new()
    await notes.write("/a", "one", "two")
    clock.days(31)
    process = child(place, clock, deaths=3)
    output, _ = await asyncio.to_thread(process.communicate)
    assert output == "1\n"  # two calls are all that one batch makes
    await shelf.engine.write(lambda transaction: transaction.execute("UPDATE erasures SET wanted = wanted + 1"))
    assert await expire(shelf, MONTH) == {}
    row = await shelf.engine.read(lambda transaction: transaction.fetch_one("SELECT wanted, done FROM erasures"))
    assert row is not None
    assert row[0] == row[1]


async def test_two_processes_at_once_expire_each_version_once(place, shelf, clock, new):
    notes = await new()
    for number in range(8):
        await notes.write(f"/{number}", *"abcdef")
    clock.days(31)
    processes = [child(place, clock, gate=1) for _ in range(2)]
    for process in processes:
        assert (await asyncio.to_thread(process.stdout.readline)) == "ready\n"
    answers = await asyncio.gather(*(asyncio.to_thread(process.communicate, "go\n") for process in processes))
    assert sum(int(output) for output, _ in answers) == 40
    assert await notes.told() == ([None] * 5 + ["f"]) * 8
    assert await notes.intact()


async def test_what_was_told_is_erased_although_the_rewrite_fails(shelf, clock, new, monkeypatch):
    first, second = await new(), await new()
    for notes in (first, second):
        await notes.write("/a", "one", "two")
    clock.days(31)

    async def refuse(engine, script):
        raise MemoryStoreError("unavailable", "others are reading")

    told = []

    async def run():
        async for id, expired in retention.expire(shelf, MONTH):
            told.append((id, expired.versions))

    with monkeypatch.context() as patched:
        patched.setattr(type(shelf.engine), "erase", refuse)
        with pytest.raises(MemoryStoreError, match="others are reading"):
            await run()
    assert told == [(first.id, 1), (second.id, 1)]
    assert await first.told() == await second.told() == [None, "two"]
    assert await expire(shelf, MONTH) == {}
