"""Files that an older memshelf wrote to SQLite, and what an edit writes now."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from functools import partial

import pytest

from forked import finish, fork, in_child
from memshelf import Origin, SqliteFileStore
from memshelf.storage import migrations
from memshelf.testing import refused

BEFORE_FEWER_PAGES = 7
ORIGIN = Origin("run", "ann", None)
CALL = Origin("run", "ann", "call", session_id="session")


async def write_history(path):
    """Every kind of version in two memories, one of them with its newest change an edit."""
    async with SqliteFileStore(path) as store, SqliteFileStore(path, "other") as other:
        first = await store.write("a.md", "whispered", expected=None, origin=ORIGIN)
        second = await store.write("a.md", "tea", expected=first, origin=CALL)
        third = await store.write("b/c.md", "coffee " * 2_000, expected=None, origin=ORIGIN)
        await store.move("b/c.md", "d.md", expected=third, origin=ORIGIN)
        gone = await store.write("gone.md", "gone", expected=None, origin=ORIGIN)
        await store.delete("gone.md", expected=gone, origin=ORIGIN)
        await store.redact(first, by="ann")
        await store.write("a.md", "green tea", expected=second, origin=ORIGIN)
        await other.write("a.md", "milk", expected=None, origin=ORIGIN)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("INSERT INTO file_vectors SELECT memory_id, version_id, 'maker', x'00' FROM files")


def older(newer, path):
    """The database as a memshelf before fewer pages had it."""
    with closing(sqlite3.connect(path)) as database, database:
        for step in migrations.steps("sqlite")[:BEFORE_FEWER_PAGES]:
            database.executescript(step)
        database.execute(f"PRAGMA application_id = {migrations.APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {BEFORE_FEWER_PAGES}")
        database.execute("ATTACH ? AS newer", (str(newer),))
        database.execute("DELETE FROM erasures")
        for table in ("memories", "file_versions", "files", "file_places", "file_vectors", "erasures"):
            columns = ", ".join(name for _, name, *_ in database.execute(f"PRAGMA main.table_info({table})"))
            database.execute(f"INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table}")
        database.execute(
            "UPDATE main.memories SET (head_seq, head_link) = "
            "(SELECT seq, link FROM main.file_versions v WHERE v.memory_id = memories.id ORDER BY seq DESC LIMIT 1)"
        )


async def told(path):
    """All that a database says of its memories."""
    said = []
    for name in ("default", "other"):
        store = SqliteFileStore(path, name)
        cursors = [f"{(await store.changes(None)).cursor.partition(':')[0]}:{seq}" for seq in range(9)]
        said += [
            await store.list(),
            [await store.read(entry.path) for entry in await store.list()],
            await store.versions(),
            await store.versions("d.md"),
            await store.versions("gone.md"),
            [await store.changes(cursor) for cursor in cursors],
            await store.search("tea", regex=False, case_sensitive=False, path="", limit=9),
            await store.replayed(CALL),
            await store.verify(),
        ]
        await store.aclose()
    return said


@pytest.fixture
async def databases(tmp_path):
    await write_history(tmp_path / "newer.db")
    older(tmp_path / "newer.db", tmp_path / "older.db")
    return tmp_path / "newer.db", tmp_path / "older.db"


async def test_an_older_database_says_the_same_as_before(databases):
    newer, path = databases
    assert await told(path) == await told(newer)
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA user_version").fetchone() == (len(migrations.steps("sqlite")),)
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        schema = database.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall()
    with closing(sqlite3.connect(newer)) as database:
        assert database.execute("SELECT name, sql FROM sqlite_master ORDER BY name").fetchall() == schema


async def test_an_older_database_with_vectors_of_a_version_that_is_gone_opens_and_says_what_is_wrong(databases):
    _, path = databases
    with closing(sqlite3.connect(path)) as intruder, intruder:
        intruder.execute("DELETE FROM file_versions WHERE id = (SELECT version_id FROM file_vectors LIMIT 1)")
    async with SqliteFileStore(path) as store, SqliteFileStore(path, "other") as other:
        assert not all([(await each.verify()).intact for each in (store, other)])
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT count(*) FROM file_vectors").fetchone() == (2,)
        assert database.execute("PRAGMA foreign_key_check").fetchall() == []


async def test_an_older_database_goes_on_where_it_stood(databases):
    _, path = databases
    async with SqliteFileStore(path) as store:
        version = (await store.read("a.md")).version
        written = await store.write("a.md", "black tea", expected=version, origin=replace(CALL, tool_call_id="other"))
        replayed = await store.replayed(CALL)
        assert await store.write("a.md", "tea", expected=replayed.parent_id, origin=CALL) == replayed.id
        report = await store.verify()
        assert (report.versions, report.problems) == (8, ())
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("SELECT count(*) FROM file_vectors").fetchone() == (3,)
        await store.redact(version, by="ann")
        with closing(sqlite3.connect(path)) as database:
            assert database.execute("SELECT version_id FROM file_vectors").fetchall() != []
            assert database.execute("SELECT 1 FROM file_vectors WHERE version_id = ?", (version,)).fetchall() == []
        assert (await store.read("a.md")).version == written
        await refused("version_mismatch", store.write("a.md", "x", expected=version, origin=ORIGIN))
        files = [file.read_bytes() for file in path.parent.glob("older.db*")]
        assert len(files) == 3
        assert not any(erased in file for erased in (b"whispered", b"green tea") for file in files)


async def test_processes_that_migrate_at_once_lose_nothing(databases):
    newer, path = databases
    before = await told(newer)

    async def body(store, report):
        report((await store.write("new.md", "x", expected=None, origin=ORIGIN))[:6])

    children = [fork(in_child(partial(SqliteFileStore, path, name), body)) for name in ("default", "other")]
    assert finish(children) == ["memver"] * 2
    after = await told(path)
    assert [each.versions + 1 for each in before if hasattr(each, "head")] == [
        each.versions for each in after if hasattr(each, "head")
    ]
    assert all(each.intact for each in after if hasattr(each, "head"))


def edit_as_before(database):
    with database:
        database.execute(
            "INSERT INTO file_versions (memory_id, seq, id, file_id, operation, moved, commitment, link, created_at) "
            "SELECT id, head_seq + 1, 'v', 'f', 'modified', 0, x'', x'', 1 FROM memories WHERE id = 1"
        )
        database.execute("UPDATE memories SET head_seq = head_seq + 1, head_link = x'' WHERE id = 1")


@pytest.mark.parametrize("edits", [1, 2])
async def test_an_older_memshelf_that_is_still_running_uses_no_number_twice(databases, edits):
    _, path = databases
    async with SqliteFileStore(path) as store:
        for each in range(edits):
            version = (await store.read("a.md")).version
            await store.write("a.md", f"{each}", expected=version, origin=ORIGIN)
    with closing(sqlite3.connect(path)) as database:
        with pytest.raises(sqlite3.IntegrityError, match="is taken"):
            edit_as_before(database)
        assert database.execute("SELECT 1 FROM file_versions WHERE id = 'v'").fetchall() == []


async def test_an_edit_writes_few_pages(tmp_path):
    async with SqliteFileStore(tmp_path / "some.db") as store:
        version = await store.write("a.md", "start", expected=None, origin=ORIGIN)
        for each in range(60):
            version = await store.write("a.md", f"{each} " * 200, expected=version, origin=ORIGIN)
        log = (tmp_path / "some.db-wal").read_bytes()
    frames = [log[at : at + 8] for at in range(32, len(log), 4096 + 24)]
    written = [frame for frame in frames if any(frame[:4])]
    commits = [at for at, frame in enumerate(written) if any(frame[4:])]
    assert (commits[-1] - commits[-41]) / 40 < 6


@pytest.mark.parametrize(
    ("tampering", "says"),
    [
        ("DELETE FROM file_versions WHERE seq = 7", "live files do not agree"),
        ("DELETE FROM file_versions WHERE memory_id = 1 AND seq > 4", "versions 5 to 6 are missing"),
        ("UPDATE file_versions SET link = zeroblob(32) WHERE memory_id = 1 AND seq = 7", "does not follow"),
    ],
)
async def test_a_history_that_ends_with_an_edit_is_not_cut_short_unseen(tmp_path, tampering, says):
    await write_history(tmp_path / "some.db")
    with closing(sqlite3.connect(tmp_path / "some.db")) as intruder:
        intruder.executescript(tampering)
    async with SqliteFileStore(tmp_path / "some.db") as store:
        report = await store.verify()
    assert any(re.search(says, problem) for problem in report.problems), report.problems
