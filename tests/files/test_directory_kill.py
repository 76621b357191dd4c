"""The directory store under real processes: killed at random moments, and writing against each other.

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
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

from memshelf import DirectoryFileStore, MemoryStoreError, Origin
from memshelf.testing.harness import contents, put

ORIGIN = Origin()
KILLS, EDITORS, EDITS = 200, 8, 200


def test_every_acknowledged_change_survives_kill_9_and_the_next_process_is_not_blocked(tmp_path: Path) -> None:
    outcome = _run("kills", tmp_path)
    assert outcome["kills"] == KILLS
    # Otherwise the kills would prove nothing.
    assert outcome["acknowledged"] > KILLS // 2
    assert outcome["killed inside a change"] > KILLS // 10


def test_the_edits_of_eight_processes_form_one_chain_and_no_reader_sees_a_torn_file(tmp_path: Path) -> None:
    outcome = _run("editors", tmp_path)
    text, pairs = outcome["text"], [tuple(pair) for pair in outcome["pairs"]]
    expected = Counter(f"editor {editor} edit {edit}" for editor in range(EDITORS) for edit in range(EDITS))
    assert Counter(text.splitlines()[1:]) == expected, "every edit is there, once"
    following = dict(pairs)
    assert len(following) == len(pairs) == EDITORS * EDITS, "no version was replaced twice"
    version, length = outcome["first"], 0
    while version in following:
        version, length = following[version], length + 1
    assert (version, length) == (outcome["last"], EDITORS * EDITS)
    assert outcome["reads"] > 10


def test_a_store_that_was_used_before_a_fork_works_in_the_child(tmp_path: Path) -> None:
    assert _run("fork", tmp_path) == {"child": "child", "parent": "parent"}


def _run(what: str, root: Path) -> dict[str, object]:
    done = subprocess.run([sys.executable, __file__, what, str(root)], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _fork(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
    finally:
        os._exit(1)


def _kills(root: Path) -> dict[str, int]:
    randomness = random.Random(os.getpid())
    known: dict[str, str] = {}
    acknowledged = inside = 0
    for number in range(KILLS):
        reader, writer = os.pipe()
        child = _fork(partial(_be_killed, root, number, writer))
        os.close(writer)
        with open(reader, "rb") as pipe:
            lines = [pipe.readline() for _ in range(randomness.randint(1, 8))]
            time.sleep(randomness.uniform(0, 0.003))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            lines += pipe.readlines()
        before = after = known
        for line in lines:
            if not line.endswith(b"\n"):
                break  # killed while it spoke
            state = json.loads(line)
            if state["done"]:
                before = after
                acknowledged += 1
            else:
                after = state["files"]
        inside += before != after
        found = asyncio.run(_look_and_write(root))
        assert found in (before, after), (found, before, after)
        known = found
    return {"kills": KILLS, "acknowledged": acknowledged, "killed inside a change": inside}


def _be_killed(root: Path, number: int, writer: int) -> None:
    asyncio.run(_change_for_ever(root, number, writer))


async def _change_for_ever(root: Path, number: int, writer: int) -> None:
    """Say what the memory will be, change it, and say that it is done."""
    randomness = random.Random(number)
    store = DirectoryFileStore(root / "memory")
    files = await contents(store)
    round_ = 0

    def say(done: bool) -> None:
        os.write(writer, json.dumps({"done": done, "files": files}).encode() + b"\n")

    while True:
        round_ += 1
        path = randomness.choice(["a", "b/c", "b/d/e", "f"])
        text = f"{number} {round_} " * randomness.choice([1, 300])
        if path not in files or randomness.random() < 0.5:
            files = {**files, path: text}
            say(False)
            await put(store, path, text)
        elif randomness.random() < 0.5:
            rest = {each: files[each] for each in files if each != path}
            free = next(each for each in ("g/h", "i") if each not in files) if len(files) < 5 else None
            version = (await store.read(path)).version
            if free is None:
                files = rest
                say(False)
                await store.delete(path, expected=version, origin=ORIGIN)
            else:
                files = {**rest, free: files[path]}
                say(False)
                await store.move(path, free, expected=version, origin=ORIGIN)
        else:
            continue
        say(True)


async def _look_and_write(root: Path) -> dict[str, str]:
    async with asyncio.timeout(20), DirectoryFileStore(root / "memory") as store:
        found = await contents(store)
        version = await store.write("probe", "x", expected=None, origin=ORIGIN)
        await store.delete("probe", expected=version, origin=ORIGIN)
        return found


def _editors(root: Path) -> dict[str, object]:
    first = asyncio.run(DirectoryFileStore(root / "memory").write("log", "start\n", expected=None, origin=ORIGIN))
    ready, start = os.pipe()
    children = [_fork(partial(_edit, root, editor, ready, start)) for editor in range(EDITORS)]
    os.close(start)  # all of them wait for the end of this pipe
    reads = asyncio.run(_read_until_dead(root, children))
    pairs = [pair for editor in range(EDITORS) for pair in json.loads((root / f"pairs-{editor}").read_text())]
    last = asyncio.run(DirectoryFileStore(root / "memory").read("log"))
    return {"first": first, "last": last.version, "text": last.text, "pairs": pairs, "reads": reads}


def _edit(root: Path, editor: int, ready: int, start: int) -> None:
    os.close(start)
    os.read(ready, 1)
    asyncio.run(_edit_all(root, editor))
    os._exit(0)


async def _edit_all(root: Path, editor: int) -> None:
    pairs: list[tuple[str, str]] = []
    async with DirectoryFileStore(root / "memory") as store:
        for edit in range(EDITS):
            while True:
                found = await store.read("log")
                try:
                    version = await store.write(
                        "log", f"{found.text}editor {editor} edit {edit}\n", expected=found.version, origin=ORIGIN
                    )
                except MemoryStoreError as error:
                    assert error.code == "version_mismatch"
                else:
                    pairs.append((found.version, version))
                    break
    (root / f"pairs-{editor}").write_text(json.dumps(pairs))


async def _read_until_dead(root: Path, children: list[int]) -> int:
    store, reads, seen = DirectoryFileStore(root / "memory"), 0, 0
    while children:
        text = (await store.read("log")).text
        lines = text.splitlines()
        assert lines[0] == "start"
        assert text.endswith("\n")
        assert len(lines) >= seen, "an accepted edit was lost"
        seen, reads = len(lines), reads + 1
        assert next(entry.size for entry in await store.list()) >= len(text)
        for child in list(children):
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                assert status == 0
                children.remove(child)
    return reads


def _forked(root: Path) -> dict[str, str]:
    store = DirectoryFileStore(root / "memory")

    async def use(name: str) -> None:
        await store.write(name, name, expected=None, origin=ORIGIN)
        assert name in [entry.path for entry in await store.list()]

    async def parent() -> None:
        await use("parent")
        child = _fork(lambda: (asyncio.Runner().run(asyncio.wait_for(use("child"), 20)), os._exit(0)))
        await asyncio.wait_for(asyncio.to_thread(os.waitpid, child, 0), 30)
        await store.aclose()

    asyncio.run(parent())
    return asyncio.run(contents(store))


if __name__ == "__main__":
    run = {"kills": _kills, "editors": _editors, "fork": _forked}[sys.argv[1]]
    print(json.dumps(run(Path(sys.argv[2]))))
