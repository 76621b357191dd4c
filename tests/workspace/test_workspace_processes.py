"""Several processes, processes that die, and disks that fill up."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1]))  # as a script, too
from forked import finish, fork
from memshelf import DirectoryFileStore, Workspace
from memshelf.testing import refused
from memshelf.testing.disk import CrashingDisk, FaultyDisk, PowerCut

PROCESSES, WRITES, KILLS = 4, 20, 160


def test_four_processes_of_twenty_writes_keep_every_entry_and_every_row(tmp_path):
    def write(number: int) -> Callable[[Callable[[str], None]], None]:
        async def all_of_them() -> None:
            workspace = Workspace(tmp_path, embedder=None)
            for each in range(WRITES):
                await workspace.write_memory_entry(f"Fact {number} {each}", "text", "project")

        return lambda report: asyncio.run(all_of_them())

    finish([fork(write(number)) for number in range(PROCESSES)])
    expected = {f"Fact {number} {each}" for number in range(PROCESSES) for each in range(WRITES)}

    async def look() -> tuple[list[str], str]:
        workspace = Workspace(tmp_path, embedder=None)
        return [each.title for each in await workspace.list_entries()], await workspace.memory_index()

    titles, index = asyncio.run(look())
    assert sorted(titles) == sorted(expected)
    rows = [f"- [{title}](memory/project_{title.lower().replace(' ', '_')}.md) — text" for title in expected]
    assert sorted(index.splitlines()) == sorted(rows)


def test_a_process_killed_while_it_writes_leaves_every_entry_and_the_index_whole(tmp_path):
    done = subprocess.run([sys.executable, __file__, str(tmp_path)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr[-3_000:]
    outcome = json.loads(done.stdout)
    assert outcome["kills"] == KILLS
    assert outcome["acknowledged"] > KILLS, "otherwise the kills would prove nothing"


def _content(title: str, round_: int) -> str:
    return f"{title} as of {round_}. " * 200


def _kills(root: Path) -> dict[str, int]:
    """Children acknowledge writes of twelve titles until they are killed; what they leave is read after each."""
    randomness = random.Random(7)
    acknowledged: dict[str, int] = {}
    count = 0
    for number in range(KILLS):
        read, write = os.pipe()
        child = os.fork()
        if not child:
            os.close(read)
            try:
                asyncio.run(_write_for_ever(root, number * 1_000_000, write))
            finally:
                os._exit(1)
        os.close(write)
        with open(read, "rb") as pipe:
            lines = [pipe.readline() for _ in range(randomness.randint(1, 4))]
            for _ in range(randomness.randint(0, 3_000)):
                pass
            os.kill(child, 9)
            os.waitpid(child, 0)
            lines += pipe.readlines()
        for line in lines:
            if line.endswith(b"\n"):
                title, round_ = json.loads(line)
                acknowledged[title] = round_
                count += 1
        asyncio.run(_check(root, acknowledged))
    return {"kills": KILLS, "acknowledged": count}


async def _write_for_ever(root: Path, start: int, pipe: int) -> None:
    workspace = Workspace(root, durable=False, embedder=None)
    round_ = start
    while True:
        round_ += 1
        title = f"Fact {round_ % 12}"
        await workspace.write_memory_entry(title, _content(title, round_), "project", f"round {round_}")
        os.write(pipe, json.dumps([title, round_]).encode() + b"\n")


async def _check(root: Path, acknowledged: dict[str, int]) -> None:
    workspace = Workspace(root, durable=False, embedder=None)
    entries = await workspace.list_entries()
    assert {each.title for each in entries} >= acknowledged.keys()
    for each in entries:
        entry = await workspace.read_entry(each.file)
        round_ = int(entry.description.split()[1])
        assert entry.content == _content(entry.title, round_), "old or new, never torn"
        assert round_ >= acknowledged.get(entry.title, 0)
    rows = (await workspace.memory_index()).splitlines()
    assert len(rows) >= len(acknowledged)
    assert all(row.startswith("- [Fact ") and " — round " in row for row in rows)


def _on(root: Path, disk: object) -> Workspace:
    return Workspace.on(lambda user_id: DirectoryFileStore(root / user_id, disk=disk), embedder=None)


@pytest.mark.parametrize("fails_at", ["create", "write", "sync", "link", "rename"])
async def test_a_full_disk_leaves_every_entry_and_row_that_was_there(tmp_path, fails_at):
    full = False

    def before(operation: str) -> None:
        if full and operation == fails_at:
            raise OSError(errno.ENOSPC, "No space left on device")

    workspace = _on(tmp_path, FaultyDisk(before))
    for each in range(5):
        await workspace.write_memory_entry(f"Fact {each}", f"text {each}", "project")
    index = await workspace.memory_index()
    full = True
    calls = [
        workspace.write_memory_entry("New", "text", "project"),
        workspace.write_memory_entry("Fact 1", "changed", "project"),
    ]
    if fails_at == "link":
        await refused("unavailable", calls[0])
        await calls[1]
    elif fails_at == "rename":
        await calls[0]
        await refused("unavailable", calls[1])
    else:
        for call in calls:
            await refused("unavailable", call)
    full = False
    fresh = _on(tmp_path, FaultyDisk(before))
    titles = {each.title for each in await fresh.list_entries()}
    assert titles == {f"Fact {each}" for each in range(5)} | ({"New"} if fails_at == "rename" else set())
    assert set(await _contents(fresh)) >= {f"text {each}" for each in (0, 2, 3, 4)}
    if fails_at not in ("link", "rename"):
        assert await fresh.memory_index() == index
    await workspace.write_memory_entry("After", "text", "project")
    assert "[After]" in await fresh.memory_index()


async def _contents(workspace: Workspace) -> list[str]:
    return [(await workspace.read_entry(each.file)).content for each in await workspace.list_entries()]


async def test_a_row_that_found_no_space_is_written_with_the_next_one(tmp_path, caplog):
    writes = 0

    def before(operation: str) -> None:
        nonlocal writes
        writes += operation == "write"
        if operation == "write" and 2 <= writes < 10:  # the entry, then its row, which is tried again
            raise OSError(errno.ENOSPC, "No space left on device")

    workspace = _on(tmp_path, FaultyDisk(before))
    for name in ("One", "Two", "Three"):
        writes = 0 if name == "Two" else 10
        await workspace.write_memory_entry(name, "text", "user")
    assert sorted(row[3:].partition("]")[0] for row in (await workspace.memory_index()).splitlines()) == [
        "One", "Three", "Two",
    ]  # fmt: skip
    assert "unavailable" in caplog.text
    assert "One" not in caplog.text


def test_a_crash_at_any_operation_leaves_the_entry_as_before_or_after(tmp_path):
    async def write(root: Path, disk: CrashingDisk) -> None:
        workspace = _on(root, disk)
        await workspace.write_memory_entry("Fact", "new content", "project")

    async def prepare(root: Path) -> None:
        workspace = _on(root, FaultyDisk(lambda _: None))
        await workspace.write_memory_entry("Fact", "old content", "project")
        await workspace.write_memory_entry("Other", "stays", "project")

    async def look(root: Path) -> tuple[list[str], int]:
        workspace = _on(root, FaultyDisk(lambda _: None))
        return sorted(await _contents(workspace)), len((await workspace.memory_index()).splitlines())

    seen = set()
    for limit in range(60):
        root = tmp_path / str(limit)
        root.mkdir()
        asyncio.run(prepare(root))
        disk = CrashingDisk(root, limit)
        try:
            asyncio.run(write(root, disk))
        except PowerCut:
            crashed = True
        else:
            crashed = False
        contents, rows = asyncio.run(look(root))
        assert contents in (["new content", "stays"], ["old content", "stays"])
        assert rows == 2
        seen.add(contents[0])
        if not crashed:
            break
    else:
        raise AssertionError("it never came through")
    assert seen == {"new content", "old content"}


if __name__ == "__main__":
    print(json.dumps(_kills(Path(sys.argv[1]))))
