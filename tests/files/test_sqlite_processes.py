"""Many processes on one database, and processes that die at any moment."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
import signal
import sqlite3
import tempfile
import threading
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from memshelf import FileFormat, Origin, SqliteFileStore
from memshelf.files import edits
from memshelf.testing import refused

ORIGIN = Origin("run", "ann", None)


@dataclass
class Child:
    """A forked process that reports over a pipe."""

    pid: int
    reports: int

    def lines(self):
        """What it reported, as it comes."""
        with os.fdopen(self.reports, "rb") as pipe:
            yield from (line.decode().rstrip("\n") for line in pipe)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def result(self):
        _, status = os.waitpid(self.pid, 0)
        return os.waitstatus_to_exitcode(status)


def fork(work: Callable[[Callable[[str], None]], None]) -> Child:
    """Run `work(report)` in a child process. Its exit code is 0 when the work returns."""
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest's workers have threads, which the child leaves be
        pid = os.fork()
    if pid:
        os.close(write)
        return Child(pid, read)
    code = 1
    try:
        os.close(read)
        work(lambda line: os.write(write, f"{line}\n".encode()))
        code = 0
    except BaseException:  # nothing of the parent's may run on in the child
        os.write(write, traceback.format_exc().encode())
    finally:
        os._exit(code)


def finish(children):
    """Wait for children that end by themselves, and show what went wrong in one that failed."""
    reports = ["\n".join(child.lines()) for child in children]
    codes = [child.result() for child in children]
    assert codes == [0] * len(children), "\n".join(reports)
    return reports


def in_child(make, body):
    async def run(report):
        async with make() as store:
            await body(store, report)

    return lambda report: asyncio.run(run(report))


async def all_versions(store):
    found, cursor = [], None
    while True:
        page = await store.versions(limit=500, cursor=cursor)
        found += page.versions
        if (cursor := page.next_cursor) is None:
            return found[::-1]


def test_edits_of_eight_processes_form_one_chain_and_none_is_lost(tmp_path):
    def make():
        return SqliteFileStore(tmp_path / "memory.db")

    def appending(name):
        async def body(store, _):
            for each in range(200):
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
    assert sorted(lines) == sorted(["start", *(f"{name}:{each}" for name in "abcdefgh" for each in range(200))])
    assert len(versions) == 1601
    for before, after in itertools.pairwise(versions):
        assert after.parent_id == before.id
        assert after.text.startswith(before.text + "\n")
        assert after.origin.run_id == f"run {after.text.rsplit(chr(10), 1)[1][0]}"
    assert report.intact


def test_what_was_acknowledged_survives_kill_9_two_hundred_times(tmp_path):
    source = random.Random(7)

    def make():
        return SqliteFileStore(tmp_path / "memory.db")

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
    for name in range(200):
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
            for path in acknowledged:
                if f"{path}-moved" not in acknowledged:
                    file = await _either(store, path)
                    assert file.text == f"{path.removesuffix('-moved')}\n" * 50
            for entry in await store.list():
                assert (await store.read(entry.path)).text == f"{entry.path.removesuffix('-moved')}\n" * 50
            return await store.verify()

    async def _either(store, path):
        entries = {entry.path for entry in await store.list()}
        return await store.read(path if path in entries else f"{path}-moved")  # the last move may have happened unseen

    report = asyncio.run(check())
    assert report.intact
    assert len(acknowledged) >= 200
    with sqlite3.connect(tmp_path / "memory.db") as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


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


@pytest.mark.parametrize("attempt", range(5))
def test_processes_that_start_at_once_on_a_new_file_all_work(tmp_path, attempt):
    read, write = os.pipe()

    def starting(name):
        def work(report):
            os.close(write)
            os.read(read, 1)  # returns for all of them when the parent closes its end

            async def body(store, report):
                await store.write(f"{name}", "tea", expected=None, origin=ORIGIN)

            in_child(lambda: SqliteFileStore(tmp_path / "new" / "memory.db"), body)(report)

        return work

    children = [fork(starting(name)) for name in range(4)]
    os.close(write)
    os.close(read)
    finish(children)

    async def check():
        async with SqliteFileStore(tmp_path / "new" / "memory.db") as store:
            assert (await store.verify()).versions == 4
            return [entry.path for entry in await store.list()]

    assert asyncio.run(check()) == ["0", "1", "2", "3"]


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


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody who may not write")
def test_a_file_that_may_not_be_written_is_unavailable_and_unchanged():
    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "memory.db"

        async def begin():
            async with SqliteFileStore(path) as store:
                await store.write("a", "tea", expected=None, origin=ORIGIN)

        asyncio.run(begin())
        before = path.read_bytes()
        path.chmod(0o444)
        os.chmod(place, 0o755)

        async def try_to_write(report):
            for each in (path, path.with_name("new.db")):
                error = await refused(
                    "unavailable", SqliteFileStore(each).write("b", "tea", expected=None, origin=ORIGIN)
                )
                report(error.message)

        def work(report):
            os.setuid(65534)
            asyncio.run(try_to_write(report))

        (report,) = finish([fork(work)])
        assert report.count("nothing changed") == 2
        assert "Permission denied" in report
        assert path.read_bytes() == before
        assert os.listdir(place) == ["memory.db"]
