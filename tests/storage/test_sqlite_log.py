"""Room in the write-ahead log."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import sqlite3
from contextlib import closing

import pytest

from forked import fork, in_child
from memshelf import Origin, SqliteFileStore
from memshelf.storage.sqlite_connection import CHECKPOINT_PAGES, connect
from memshelf.storage.sqlite_log import LogRoom

ORIGIN = Origin()
PAGE = 4096 + 24


@pytest.fixture
def path(tmp_path):
    return tmp_path / "some.db"


def log_pages(path):
    return (os.stat(f"{path}-wal").st_size - 32) // PAGE


async def write(store, name, rounds):
    """Edits of one file; how long the log was after each."""
    version = await store.write(name, "start", expected=None, origin=ORIGIN)
    sizes = []
    for each in range(rounds):
        version = await store.write(name, f"{each} " * 200, expected=version, origin=ORIGIN)
        sizes.append(log_pages(store._engine.database.path))
    return sizes


async def test_few_commits_make_a_log_grow(path):
    async with SqliteFileStore(path) as store:
        sizes = await write(store, "a.md", 200)
    assert len(set(sizes[20:])) < 10
    assert sizes[-1] > 200


async def test_a_log_gets_no_longer_than_it_is_used(path):
    async with SqliteFileStore(path) as store:
        sizes = await write(store, "a.md", 400)
        assert (await store.verify()).intact
    assert CHECKPOINT_PAGES <= max(sizes) < CHECKPOINT_PAGES + 400


async def test_whoever_changes_little_has_no_room_made(path):
    async with SqliteFileStore(path) as store:
        await write(store, "a.md", 3)
    async with SqliteFileStore(path) as store:
        sizes = await write(store, "b.md", 3)
    assert sizes[-1] < 100


async def test_without_durability_no_room_is_made(path):
    async with SqliteFileStore(path, durable=False) as store:
        sizes = await write(store, "a.md", 30)
    assert len(set(sizes)) == 30


async def test_processes_that_make_room_at_once_keep_what_each_other_wrote(path):
    async def body(store, report):
        report("ready")
        await write(store, f"{os.getpid()}.md", 150)
        os.kill(os.getpid(), signal.SIGKILL)  # so that the log is still there, and not yet folded in

    async with SqliteFileStore(path) as store:
        await write(store, "a.md", 1)
    children = [fork(in_child(lambda: SqliteFileStore(path), body)) for _ in range(2)]
    for child in children:
        assert list(child.lines()) == ["ready"]
        assert child.result() == -signal.SIGKILL
    async with SqliteFileStore(path) as store:
        report = await store.verify()
        assert (report.versions, report.problems) == (2 + 2 * 151, ())
        ours = [entry.path for entry in await store.list() if entry.path != "a.md"]
        assert [(await store.read(each)).text for each in ours] == ["149 " * 200] * 2


NO_SPACE = OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(("refused", "error"), [("pwrite", NO_SPACE), ("fsync", NO_SPACE), ("pwrite", MemoryError())])
async def test_a_full_disk_gets_its_room_back(path, monkeypatch, refused, error):
    asked = []

    def full(*_):
        asked.append(log_pages(path))
        raise error

    async with SqliteFileStore(path) as store:
        before = (await write(store, "a.md", 1))[-1]
        monkeypatch.setattr(os, refused, full)
        sizes = await write(store, "b.md", 50)
        assert len(asked) == 1
        assert before < max(sizes) < 600
        assert len(set(sizes)) > 40
        assert (await store.verify()).intact


async def test_a_disk_with_room_for_a_part_gets_it_back(path, monkeypatch):
    really, asked = os.pwrite, []

    def in_part(file, room, end):
        asked.append(len(room))
        return really(file, room[: len(room) // 2], end)

    async with SqliteFileStore(path) as store:
        monkeypatch.setattr(os, "pwrite", in_part)
        sizes = await write(store, "a.md", 50)
        assert len(asked) == 1
        assert len(set(sizes)) == 50
        assert (await store.verify()).intact


async def test_a_log_that_was_emptied_meanwhile_stays_empty(path, monkeypatch):
    really, looks = os.pread, []

    def empty_after_the_first_look(*where):
        looks.append(really(*where))
        if len(looks) == 1:
            with closing(sqlite3.connect(path)) as other:
                assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0
        return looks[0]

    with closing(connect(os.fspath(path), durable=True, query_only=False)) as connection:
        connection.execute("CREATE TABLE numbers (number)")
        connection.executemany("INSERT INTO numbers VALUES (zeroblob(4000))", [()] * 150)
        room = LogRoom(os.fspath(path), connection)
        monkeypatch.setattr(os, "pread", empty_after_the_first_look)
        room.make()
        room.close()
        assert any(looks[0])
        assert os.stat(f"{path}-wal").st_size == 0


async def test_an_erasure_leaves_an_empty_log(path):
    async with SqliteFileStore(path) as store:
        await write(store, "a.md", 40)
        assert log_pages(path) > 300
        old = (await store.versions("a.md")).versions[-1]
        await store.redact(old.id, by="ann")
        await asyncio.sleep(0)
        assert os.stat(f"{path}-wal").st_size < 100 * PAGE


async def test_a_log_that_cannot_be_closed_keeps_nobody_waiting(path, monkeypatch):
    real = os.close

    def close(fd):
        real(fd)
        raise OSError(errno.EIO, "Input/output error")

    async with SqliteFileStore(path) as store:
        await write(store, "a.md", 3)
        monkeypatch.setattr(os, "close", close)
        await asyncio.wait_for(store.aclose(), 60)
        monkeypatch.undo()
        assert (await store.verify()).intact
