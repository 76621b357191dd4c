"""Processes that fork with an open SQLite database, die in the midst of a write, or may not write at all."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import threading
from pathlib import Path

import pytest

from forked import finish, fork, in_child
from memshelf import Origin, SqliteFileStore
from memshelf.testing import refused

ORIGIN = Origin("run", "ann", None)


def test_a_crash_between_the_work_and_the_commit_leaves_nothing_of_the_batch(tmp_path):
    async def body(store, report):
        first = await store.write("a", "before", expected=None, origin=ORIGIN)
        reached, go = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def hold(_):
            loop.call_soon_threadsafe(reached.set)
            assert go.wait(30)

        holding = asyncio.ensure_future(store._engine.database.write(hold))
        await reached.wait()
        both = [
            asyncio.ensure_future(store.write("a", "after", expected=first, origin=ORIGIN)),
            asyncio.ensure_future(store.write("b", "new", expected=None, origin=ORIGIN)),
            asyncio.ensure_future(store._engine.database.write(lambda _: os.kill(os.getpid(), signal.SIGKILL))),
        ]
        for _ in range(2):  # asked for in the first turn of the loop, handed over at its end
            await asyncio.sleep(0)
        report("waiting")
        go.set()
        await asyncio.gather(holding, *both)

    child = fork(in_child(lambda: SqliteFileStore(tmp_path / "memory.db"), body))
    assert list(child.lines()) == ["waiting"]
    assert child.result() == -signal.SIGKILL

    async def check():
        async with SqliteFileStore(tmp_path / "memory.db") as store:
            return {entry.path: (await store.read(entry.path)).text for entry in await store.list()}

    assert asyncio.run(check()) == {"a": "before"}


def test_a_process_that_dies_while_it_writes_blocks_nobody(tmp_path):
    async def stop_midway(store, report):
        def hold(connection):
            connection.execute("DELETE FROM memories")
            report("holding")
            signal.pause()

        await store._engine.database.write(hold)

    async def begin(store, report):
        version = await store.write("a", "b", expected=None, origin=ORIGIN)
        report(version)

    def make():
        return SqliteFileStore(tmp_path / "memory.db")

    child = fork(in_child(make, stop_midway))
    assert next(child.lines()) == "holding"
    child.kill()
    assert child.result() == -signal.SIGKILL
    finish([fork(in_child(make, begin))])


@pytest.mark.skipif(not os.path.exists("/proc/locks"), reason="looks at the system's table of locks")
async def test_a_forked_child_and_its_parent_both_go_on_with_an_open_store(tmp_path):
    async with SqliteFileStore(tmp_path / "memory.db") as store:
        await store.write("before", "tea", expected=None, origin=ORIGIN)
        go, went = os.pipe()

        def work(report):
            os.close(went)
            asyncio._set_running_loop(None)  # the loop under which it was forked is the parent's

            async def body():
                await store.write("child 1", "tea", expected=None, origin=ORIGIN)
                with open("/proc/locks") as locks:
                    report(str(any(f" {os.getpid()} " in line for line in locks)))
                os.read(go, 1)  # the parent has closed its database by now
                await store.write("child 2", "tea", expected=None, origin=ORIGIN)
                assert len(await store.list()) == 4
                await store.aclose()

            asyncio.run(asyncio.wait_for(body(), 30))

        child = fork(work)
        os.close(go)
        lines = child.lines()
        assert next(lines) == "True"  # a connection of its own, with locks of its own
        await store.write("parent", "tea", expected=None, origin=ORIGIN)
        await store.aclose()
        os.close(went)
        rest = list(lines)
        assert child.result() == 0, "\n".join(rest)
        assert [entry.path for entry in await store.list()] == ["before", "child 1", "child 2", "parent"]
        assert (await store.verify()).intact


async def test_a_fork_in_the_middle_of_writes_and_reads_harms_neither_side(tmp_path):
    async with SqliteFileStore(tmp_path / "memory.db", durable=False) as store:

        async def busy(name):
            for each in range(60):
                await store.write(f"{name}/{each}", "tea", expected=None, origin=ORIGIN)
                await store.list()

        def work(report):
            asyncio._set_running_loop(None)
            asyncio.run(asyncio.wait_for(store.write(f"child/{os.getpid()}", "tea", expected=None, origin=ORIGIN), 30))

        tasks = [asyncio.ensure_future(busy(name)) for name in range(4)]
        children = []
        for _ in range(5):
            await asyncio.sleep(0.005)
            children.append(fork(work))
        await asyncio.gather(*tasks)
        await asyncio.to_thread(finish, children)
        assert len(await store.list()) == 245
        assert (await store.verify()).intact


@pytest.fixture
def held_by_root():
    """A database that holds a file, for tests that become somebody else."""
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody who may not write")

    async def begin():
        async with SqliteFileStore(path) as store:
            await store.write("a", "tea", expected=None, origin=ORIGIN)

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "memory.db"
        asyncio.run(begin())
        os.chmod(place, 0o755)
        yield path


def as_nobody(attempt):
    """What an attempt reports, made by a child who may write nothing of root's."""

    def work(report):
        os.setuid(65534)
        asyncio.run(attempt(report))

    (report,) = finish([fork(work)])
    return report


def test_a_file_that_may_not_be_written_is_unavailable_and_unchanged(held_by_root):
    before = held_by_root.read_bytes()
    held_by_root.chmod(0o444)

    async def try_to_write(report):
        for each in (held_by_root, held_by_root.with_name("new.db")):
            error = await refused("unavailable", SqliteFileStore(each).write("b", "tea", expected=None, origin=ORIGIN))
            report(error.message)

    report = as_nobody(try_to_write)
    assert report.count("nothing changed") == 2
    assert "Permission denied" in report
    assert held_by_root.read_bytes() == before
    assert os.listdir(held_by_root.parent) == ["memory.db"]


def test_a_file_that_may_be_written_again_is_written(held_by_root):
    os.chown(held_by_root.parent, 65534, -1)
    os.chown(held_by_root, 65534, -1)
    held_by_root.chmod(0o444)

    async def write_before_and_after(report):
        async with SqliteFileStore(held_by_root) as store:
            assert (await store.read("a")).text == "tea"
            error = await refused("unavailable", store.write("b", "coffee", expected=None, origin=ORIGIN))
            assert "readonly" in error.message
        assert len(os.listdir(held_by_root.parent)) == 3, "SQLite leaves files that are read-only as well"
        held_by_root.chmod(0o600)
        async with SqliteFileStore(held_by_root) as store:
            await store.write("b", "coffee", expected=None, origin=ORIGIN)
            report((await store.read("b")).text)
            assert (await store.verify()).intact

    assert as_nobody(write_before_and_after) == "coffee"


def test_a_file_in_a_folder_that_may_not_be_written_says_what_is_missing(held_by_root):
    held_by_root.chmod(0o666)

    async def try_to_read(report):
        report((await refused("unavailable", SqliteFileStore(held_by_root).read("a"))).message)

    assert "a folder that it cannot write" in as_nobody(try_to_read)
