"""What the SQLite store keeps beside its files: its history, other memories, and the caller's clock."""

from __future__ import annotations

import asyncio
import re
import sqlite3
from datetime import UTC, datetime, timedelta

import pytest

from memshelf import HistoryFileStore, Origin, SearchableFileStore, SqliteFileStore
from memshelf.files.model import Changes, FullResync
from memshelf.storage.ids import Mint
from memshelf.testing import refused

ORIGIN = Origin("run", "ann", None)


@pytest.fixture
async def store(tmp_path):
    async with SqliteFileStore(tmp_path / "memory.db", durable=False) as store:
        yield store


async def write(store, path, text, origin=ORIGIN):
    current = {entry.path: entry.version for entry in await store.list()}
    return await store.write(path, text, expected=current.get(path), origin=origin)


def test_it_is_every_kind_of_file_store(tmp_path):
    store = SqliteFileStore(tmp_path / "memory.db")
    assert isinstance(store, SearchableFileStore)
    assert isinstance(store, HistoryFileStore)
    assert list(tmp_path.iterdir()) == []  # nothing is opened before it is used


# Tampering


async def some_history(store):
    await write(store, "a", "one")
    await write(store, "a", "two")
    await write(store, "b", "three")
    await store.move("b", "c", expected=(await store.read("b")).version, origin=ORIGIN)
    await write(store, "d", "four")
    await store.delete("d", expected=(await store.read("d")).version, origin=ORIGIN)


async def test_an_untouched_history_verifies(store):
    await some_history(store)
    report = await store.verify()
    assert (report.versions, report.problems, report.intact) == (6, (), True)
    assert len(report.head) == 64
    before = report.head
    await write(store, "a", "three")
    assert (await store.verify()).head != before


@pytest.mark.parametrize(
    ("tampering", "says"),
    [
        ("UPDATE file_versions SET content = CAST('won' AS BLOB) WHERE seq = 1", "version 1 .*other content"),
        ("UPDATE file_versions SET path = 'z' WHERE seq = 2", "version 2 .*committed to"),
        ("UPDATE file_versions SET created_at = created_at - 1 WHERE seq = 2", "version 2 .*does not follow"),
        ("UPDATE file_versions SET principal_id = 'eve' WHERE seq = 3", "version 3 .*does not follow"),
        ("UPDATE file_versions SET redacted_at = 1 WHERE seq = 1", "version 1 .*redacted and still has"),
        ("DELETE FROM file_versions WHERE seq = 1", "version 1 is missing"),
        ("DELETE FROM file_versions WHERE seq IN (2, 3)", "versions 2 to 3 are missing"),
        ("DELETE FROM file_versions WHERE seq > 4", "versions 5 to 6 are missing"),
        (
            "UPDATE file_versions SET seq = 100 WHERE seq = 1; UPDATE file_versions SET seq = 1 WHERE seq = 2; "
            "UPDATE file_versions SET seq = 2 WHERE seq = 100",
            "version 1 .*does not follow",
        ),
        ("UPDATE memories SET head_link = zeroblob(32)", "not the one that the memory remembers"),
        ("UPDATE memories SET epoch = 'other'", "version 1 .*does not follow"),
        # A history cut short together with its head is whole again, but the live files know more.
        (
            "DELETE FROM file_versions WHERE seq > 3; UPDATE memories SET head_seq = 3, "
            "head_link = (SELECT link FROM file_versions WHERE seq = 3)",
            "live files do not agree",
        ),
        ("UPDATE files SET path = 'z' WHERE path = 'a'", "live files do not agree"),
        ("DELETE FROM files WHERE path = 'c'", "live files do not agree"),
        (
            "INSERT INTO files SELECT memory_id, 'd', file_id, id, 4, NULL, 0 FROM file_versions WHERE seq = 5",
            "live files do not agree",
        ),
        ("UPDATE files SET version_id = (SELECT id FROM file_versions WHERE seq = 1) WHERE path = 'a'", "do not agree"),
    ],
)
async def test_tampering_with_the_database_shows(store, tmp_path, tampering, says):
    await some_history(store)
    with sqlite3.connect(tmp_path / "memory.db") as intruder:
        intruder.executescript(tampering)
    intruder.close()
    report = await store.verify()
    assert not report.intact
    assert any(re.search(says, problem) for problem in report.problems), report.problems


async def test_a_history_of_more_than_one_page_verifies_while_others_write(store):
    async def keep_writing():
        for each in range(700):
            await store.write(f"{each}", "tea", expected=None, origin=ORIGIN)

    await keep_writing()
    writing = asyncio.ensure_future(store.write("more", "tea", expected=None, origin=ORIGIN))
    report = await store.verify()
    await writing
    assert report.problems == ()
    assert report.versions in (700, 701)


# Cursors and redaction


async def test_changes_ask_for_a_full_read_only_when_a_path_is_lost(store):
    a = await write(store, "a", "one")
    cursor = (await store.changes(None)).cursor
    await write(store, "a", "two")
    await store.redact(a, by="ann")
    assert await store.changes(cursor) == Changes((await store.changes(None)).cursor, ("a",))
    b = await write(store, "b", "one")
    cursor = (await store.changes(None)).cursor
    await store.move("b", "c", expected=b, origin=ORIGIN)
    assert (await store.changes(cursor)).paths == ("b", "c")
    await store.redact(b, by="ann")  # and with it the name that the move left
    assert isinstance(await store.changes(cursor), FullResync)


@pytest.mark.parametrize("seq", ["", "-1", "1.0", "²", "٣", " 1", "1 ", "0x1", "9" * 5000, "1:1"])
async def test_a_garbled_cursor_is_foreign(store, seq):
    await write(store, "a", "one")
    epoch = (await store.changes(None)).cursor.partition(":")[0]
    assert isinstance(await store.changes(f"{epoch}:{seq}"), FullResync)
    await refused("invalid_cursor", store.versions(cursor=f"{epoch}:{seq}"))


# Replay


async def test_every_operation_is_applied_once_for_one_tool_call(store):
    def call(name):
        return Origin("run", "ann", name)

    first = await store.write("a", "one", expected=None, origin=ORIGIN)
    second = await store.write("a", "two", expected=first, origin=call("write"))
    third = await store.restore(first, expected=second, origin=call("restore"))
    fourth = await store.move("a", "b", expected=third, origin=call("move"))
    await store.delete("b", expected=fourth, origin=call("delete"))
    head = (await store.changes(None)).cursor
    assert await store.write("a", "two", expected=first, origin=call("write")) == second
    assert await store.restore(first, expected=second, origin=call("restore")) == third
    assert await store.move("a", "b", expected=third, origin=call("move")) == fourth
    await store.delete("b", expected=fourth, origin=call("delete"))
    for other in (
        store.write("a", "three", expected=first, origin=call("write")),
        store.restore(second, expected=second, origin=call("restore")),
        store.restore(first, expected=third, origin=call("restore")),
        store.move("a", "c", expected=third, origin=call("move")),
        store.move("a", "b", expected=second, origin=call("move")),
        store.delete("a", expected=fourth, origin=call("delete")),
        store.delete("b", expected=third, origin=call("delete")),
        store.write("b", "one", expected=None, origin=call("delete")),
        store.delete("b", expected=fourth, origin=call("move")),
    ):
        await refused("forbidden", other)
    assert (await store.changes(None)).cursor == head


async def test_the_same_call_at_the_same_time_is_applied_once(store):
    call = Origin("run", "ann", "call")
    answers = await asyncio.gather(*(store.write("a", "one", expected=None, origin=call) for _ in range(10)))
    assert len(set(answers)) == 1
    assert len((await store.versions()).versions) == 1


# Memories


async def test_memories_of_one_database_never_see_each_other(tmp_path):
    names = ["user1", "user10", "user%", "user_", "用户", "user1/", "USER1"]
    stores = [SqliteFileStore(tmp_path / "memory.db", name, durable=False) for name in names]
    call = Origin("run", "ann", "call")
    versions = [await store.write("a", f"{each}", expected=None, origin=call) for each, store in enumerate(stores)]
    cursors = [(await store.changes(None)).cursor for store in stores]
    for each, store in enumerate(stores):
        assert (await store.read("a")).text == f"{each}"
        assert [version.id for version in (await store.versions()).versions] == [versions[each]]
        assert (await store.search(".", regex=True, case_sensitive=True, path="", limit=9))[0][0].text == f"{each}"
        other = (each + 1) % len(stores)
        assert isinstance(await store.changes(cursors[other]), FullResync)
        await refused("invalid_cursor", store.versions(cursor=cursors[other]))
        await refused("not_found", store.read_version(versions[other]))
        await refused("not_found", store.redact(versions[other], by="ann"))
        await refused("not_found", store.restore(versions[other], expected=None, origin=ORIGIN))
    for store in stores:
        await store.aclose()


@pytest.mark.parametrize("name", ["", "a\nb", "\x00", "\ud800"])
def test_a_memory_without_a_proper_name_is_refused_at_construction(tmp_path, name):
    with pytest.raises(ValueError, match="memory's name"):
        SqliteFileStore(tmp_path / "memory.db", name)


@pytest.mark.parametrize("database", ["", ":memory:"])
def test_a_database_that_is_no_file_is_refused_at_construction(database):
    with pytest.raises(ValueError, match="kept in a file"):
        SqliteFileStore(database)


async def test_a_deleted_memory_says_so(store, tmp_path):
    await write(store, "a", "one")
    with sqlite3.connect(tmp_path / "memory.db") as other:
        other.executescript("DELETE FROM files; DELETE FROM file_versions; DELETE FROM memories")
    other.close()
    for operation in (
        store.list(),
        store.changes(None),
        store.versions(),
        store.verify(),
        store.purge(),
        store.write("a", "one", expected=None, origin=ORIGIN),
    ):
        await refused("memory_deleted", operation)


# Handles


async def test_a_closed_store_opens_again_when_it_is_used(tmp_path):
    store = SqliteFileStore(tmp_path / "memory.db", durable=False)
    await store.aclose()
    await write(store, "a", "one")
    await store.aclose()
    await store.aclose()
    assert (await store.read("a")).text == "one"
    await store.aclose()


async def test_a_listing_is_the_callers_own(store):
    await write(store, "a", "one")
    (await store.list()).clear()
    assert [entry.path for entry in await store.list()] == ["a"]


async def test_a_listing_follows_what_other_handles_do(store, tmp_path):
    async with SqliteFileStore(tmp_path / "memory.db", durable=False) as other:
        assert await store.list() == []
        version = await write(other, "a", "one")
        assert [entry.version for entry in await store.list()] == [version]
        await other.purge()
        assert await store.list() == []
        await write(other, "b", "one")
        assert [entry.path for entry in await store.list()] == ["b"]


async def test_a_database_that_is_removed_under_the_store_is_begun_anew(store, tmp_path):
    await write(store, "a", "one")
    for file in tmp_path.iterdir():
        file.unlink()
    assert await store.list() == []
    await write(store, "b", "two")
    await store.aclose()
    async with SqliteFileStore(tmp_path / "memory.db") as other:
        assert [entry.path for entry in await other.list()] == ["b"]


# Clock and randomness


async def test_times_come_from_the_clock_and_ids_sort_by_them(tmp_path):
    start = datetime(2026, 9, 17, 8, 0, 0, 123456, tzinfo=UTC)
    ticks = iter(range(100))
    mint = Mint(clock=lambda: start + timedelta(microseconds=next(ticks)))
    async with SqliteFileStore(tmp_path / "memory.db", durable=False, mint=mint) as store:
        ids = [await store.write(f"{each}", "tea", expected=None, origin=ORIGIN) for each in range(20)]
        versions = (await store.versions()).versions
    assert ids == sorted(ids)
    assert all(version.created_at.tzinfo is UTC for version in versions)
    assert versions[0].created_at - versions[-1].created_at == timedelta(microseconds=19)
    assert start <= versions[-1].created_at < start + timedelta(microseconds=100)


async def test_a_time_without_a_zone_and_a_page_of_nothing_are_mistakes(store):
    with pytest.raises(ValueError, match="time zone"):
        await store.versions(since=datetime(2026, 1, 1))  # noqa: DTZ001  # that is the mistake
    for limit in (0, 1.5, True):
        with pytest.raises(ValueError, match="at least 1"):
            await store.versions(limit=limit)


async def test_a_files_id_stays_the_same_through_moves_and_a_new_file_has_another(store):
    first = await write(store, "a", "one")
    moved = await store.move("a", "b", expected=first, origin=ORIGIN)
    await store.delete("b", expected=moved, origin=ORIGIN)
    again = await write(store, "a", "one")
    ids = [(await store.read_version(version)).file_id for version in (first, moved, again)]
    assert ids[0] == ids[1] != ids[2]
    assert [version.file_id for version in (await store.versions("b")).versions] == [ids[0]] * 3
    assert len((await store.versions("a")).versions) == 4


async def test_the_pages_of_a_files_history_join(store):
    for each in range(25):
        await write(store, "a", f"{each}")
        await write(store, "b", f"{each}")
    found, cursor = [], None
    while True:
        page = await store.versions("a", limit=10, cursor=cursor)
        found += [version.text for version in page.versions]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == [f"{each}" for each in reversed(range(25))]


# Search


async def test_a_search_reads_on_through_files_of_many_megabytes(store, monkeypatch):
    monkeypatch.setattr("memshelf.files.backends.sql.store._SEARCH_BYTES", 3_000)
    for each in range(40):
        await write(store, f"d/{each:02}", f"tea {each}\n" + "x" * 1_000)
    await write(store, "d0", "tea outside")
    found, more = await store.search("tea", regex=False, case_sensitive=True, path="d/", limit=100)
    assert [match.text for match in found] == [f"tea {each}" for each in range(40)]
    assert not more
