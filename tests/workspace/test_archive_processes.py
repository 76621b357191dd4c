"""The conversation archive under real processes: appending together, and killed at random moments.

The processes are forked from this file run as a script, which has imported everything and runs no thread.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memshelf import DirectoryFileStore, SqliteFileStore
from memshelf.workspace.archive import ConversationArchive
from memshelf.workspace.conversation import turns

WRITERS, TURNS, KILLS = 4, 20, 160
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


@pytest.mark.parametrize("kind", ["folder", "sqlite"])
def test_what_four_processes_archive_is_all_there_and_in_each_ones_order(tmp_path: Path, kind: str) -> None:
    subprocess.run([sys.executable, __file__, "writers", kind, str(tmp_path)], check=True, timeout=100)
    said = [turn.text.split() for turn in asyncio.run(_read(kind, tmp_path))]
    assert len(said) == WRITERS * TURNS
    for writer in range(WRITERS):
        assert [int(number) for name, number in said if int(name) == writer] == list(range(TURNS))


def test_every_acknowledged_turn_survives_kill_9_whole(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, __file__, "kills", "folder", str(tmp_path)], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    acknowledged = json.loads(done.stdout)
    found = [turn for turn in asyncio.run(_read("folder", tmp_path)) if turn.text.endswith("end")]
    assert [turn.text.split()[0] for turn in found if turn.text.split()[0] in acknowledged] == acknowledged
    assert len(acknowledged) > KILLS  # otherwise the kills would prove nothing


async def _read(kind, path):
    async with _store(kind, path) as store:
        files = await _archive(kind, path, store)._days.read()
        return [turn for file, text in files for turn in turns(file, "2026-11-30", text)]


def _store(kind, path):
    return (
        DirectoryFileStore(path, durable=False)
        if kind == "folder"
        else SqliteFileStore(path / "memory.db", durable=False)
    )


def _archive(kind, path, store):
    return ConversationArchive(store, root=path if kind == "folder" else None, durable=False, clock=lambda: NOON)


async def _write(kind, path, name, count, acknowledge):
    async with _store(kind, path) as store:
        archive = _archive(kind, path, store)
        for number in range(count):
            await archive.append([{"role": "user", "content": f"{name} {number}"}])
            acknowledge(number)


def _writers(kind, path):
    children = [_fork(lambda n=n: asyncio.run(_write(kind, path, n, TURNS, lambda _: None))) for n in range(WRITERS)]
    assert all(os.waitpid(child, 0)[1] == 0 for child in children)


def _kills(kind, path):
    acknowledged: list[str] = []
    chance = random.Random(5)
    for kill in range(KILLS):
        reading, writing = os.pipe()

        def run(kill=kill, writing=writing):
            async def main():
                archive = _archive(kind, path, _store(kind, path))
                for number in range(10_000):
                    name = f"{kill}.{number}"
                    await archive.append([{"role": "user", "content": f"{name} {'tea ' * 2_000}end"}])
                    os.write(writing, f"{name}\n".encode())

            asyncio.run(main())

        child = _fork(run)
        os.close(writing)
        os.read(reading, 1)  # it is under way
        time.sleep(chance.uniform(0, 0.004))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        with os.fdopen(reading, "rb") as said:
            rest = said.read().decode()
        names = (f"{str(kill)[0]}{rest}").split("\n")[:-1]
        acknowledged += names
    print(json.dumps(acknowledged))


def _fork(run):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            run()
            code = 0
        finally:
            os._exit(code)
    return child


if __name__ == "__main__":
    {"writers": _writers, "kills": _kills}[sys.argv[1]](sys.argv[2], Path(sys.argv[3]))
