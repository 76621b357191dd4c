"""Many processes on one database, and processes that die at any moment, on every engine."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import secrets
import signal
import sqlite3
from functools import partial

import pytest

from forked import finish, fork, in_child
from memshelf import FileFormat, Origin, PostgresFileStore, SqliteFileStore
from memshelf.files import edits

ORIGIN = Origin("run", "ann", None)


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request):
    return request.param


@pytest.fixture
def make(engine, tmp_path, request):
    """Makes stores of one memory, in a database that is not there yet."""
    if engine == "sqlite":
        return partial(SqliteFileStore, tmp_path / "new" / "memory.db")
    server = request.getfixturevalue("postgres_server")
    return partial(PostgresFileStore, server.dsn, schema=f"test_{secrets.token_hex(6)}")


async def all_versions(store):
    found, cursor = [], None
    while True:
        page = await store.versions(limit=500, cursor=cursor)
        found += page.versions
        if (cursor := page.next_cursor) is None:
            return found[::-1]


@pytest.mark.slow
@pytest.mark.timeout(300)  # on a machine that is busy with other things as well
def test_edits_of_eight_processes_form_one_chain_and_none_is_lost(engine, make):
    edits_each = {"sqlite": 200, "postgres": 80}[engine]

    def appending(name):
        async def body(store, _):
            for each in range(edits_each):
                origin = Origin(f"run {name}", None, f"call {each}")
                await edits.append(store, "log", f"{name}:{each}", origin=origin, format=FileFormat(), retries=10_000)

        return body

    async def check():
        async with make() as store:
            text = (await store.read("log")).text
            versions = await all_versions(store)
            return text, versions, await store.verify()

    async def begin():
        async with make() as store:
            await store.write("log", "start", expected=None, origin=ORIGIN)

    asyncio.run(begin())
    finish([fork(in_child(make, appending(name))) for name in "abcdefgh"])
    text, versions, report = asyncio.run(check())
    lines = text.split("\n")
    assert sorted(lines) == sorted(["start", *(f"{name}:{each}" for name in "abcdefgh" for each in range(edits_each))])
    assert len(versions) == 8 * edits_each + 1
    for before, after in itertools.pairwise(versions):
        assert after.parent_id == before.id
        assert after.text.startswith(before.text + "\n")
        assert after.origin.run_id == f"run {after.text.rsplit(chr(10), 1)[1][0]}"
    assert report.intact


def test_what_was_acknowledged_survives_kill_9(engine, make, tmp_path):
    source, times = random.Random(7), {"sqlite": 200, "postgres": 100}[engine]

    def writing(name):
        async def body(store, report):
            for each in range(10_000):
                path = f"{name}/{each}"
                version = await store.write(path, f"{path}\n" * 50, expected=None, origin=ORIGIN)
                report(path)
                if each % 3 == 2:
                    await store.move(path, f"{path}-moved", expected=version, origin=ORIGIN)
                    report(f"{path}-moved")

        return body

    acknowledged = set()
    for name in range(times):
        child = fork(in_child(make, writing(name)))
        patience = source.randrange(0, 5)
        for count, line in enumerate(child.lines()):
            assert not line.startswith("Traceback"), line
            acknowledged.add(line)
            if count == patience:
                child.kill()  # and go on reading what it said before it died
        assert child.result() == -signal.SIGKILL

    async def check():
        async with make() as store:
            stored = {entry.path: (await store.read(entry.path)).text for entry in await store.list()}
            return stored, await store.verify()

    stored, report = asyncio.run(check())
    assert report.intact
    assert len(acknowledged) >= times
    for path in acknowledged:
        assert path in stored or f"{path}-moved" in stored  # the last move may have happened unseen
    for path, text in stored.items():
        assert text == f"{path.removesuffix('-moved')}\n" * 50
    if engine == "sqlite":
        with sqlite3.connect(tmp_path / "new" / "memory.db") as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        connection.close()


@pytest.mark.parametrize("attempt", range(4))
def test_processes_that_start_at_once_on_a_new_database_all_work(make, attempt):
    read, write = os.pipe()

    def starting(name):
        def work(report):
            os.close(write)
            os.read(read, 1)  # returns for all of them when the parent closes its end

            async def body(store, report):
                await store.write(f"{name}", "tea", expected=None, origin=ORIGIN)

            in_child(make, body)(report)

        return work

    children = [fork(starting(name)) for name in range(4)]
    os.close(write)
    os.close(read)
    finish(children)

    async def check():
        async with make() as store:
            assert (await store.verify()).versions == 4
            return [entry.path for entry in await store.list()]

    assert asyncio.run(check()) == ["0", "1", "2", "3"]
