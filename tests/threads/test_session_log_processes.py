"""SessionLog under real processes: killed at random moments, and appending together.

The processes are forked from this file run as a script, which has imported everything and runs no thread.
"""

from __future__ import annotations

import fcntl
import json
import logging
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest

from memshelf import SessionLog

WRITERS, ROWS = 6, 150


@pytest.mark.parametrize(("durable", "kills"), [(False, 160), (True, 40)])
def test_every_acknowledged_row_survives_kill_9_whole_and_the_next_process_goes_on(
    tmp_path: Path, durable: bool, kills: int
) -> None:
    outcome = _run("kills", tmp_path, str(int(durable)), str(kills))
    assert outcome["kills"] == kills
    # Otherwise the kills would prove nothing.
    assert outcome["acknowledged"] > kills
    assert outcome["killed while it wrote"] > kills // 10


def test_rows_of_several_processes_are_all_there_whole_and_each_ones_in_order(tmp_path: Path) -> None:
    rows = _run("writers", tmp_path)["rows"]
    assert len(rows) == WRITERS * ROWS * 2
    for writer in range(WRITERS):
        assert [row["number"] for row in rows if row["writer"] == writer] == list(range(ROWS * 2))
    # Two rows that were given together have nobody's between them.
    pairs = list(zip(rows[::2], rows[1::2], strict=True))
    assert all(a["writer"] == b["writer"] for a, b in pairs)
    # Otherwise the processes took no turns, and nothing was shown.
    assert sum(a[0]["writer"] != b[0]["writer"] for a, b in pairwise(pairs)) > WRITERS * 2
    assert [row["parent_id"] for row in rows] == [None, *(row["id"] for row in rows[:-1])]


def test_an_append_that_waits_while_the_session_is_deleted_begins_it_anew(tmp_path: Path) -> None:
    assert _run("deleted", tmp_path) == {"contents": ["after"], "acknowledged": True}


def _run(what: str, root: Path, *arguments: str) -> dict[str, object]:
    command = [sys.executable, __file__, what, str(root), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
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


def _kills(root: Path, durable: str, kills: str) -> dict[str, int]:
    logging.disable()  # of torn lines there are many
    randomness = random.Random(os.getpid())
    log = SessionLog("s1", root, durable=bool(int(durable)))
    everything: list[str] = []
    acknowledged = inside = 0
    for number in range(int(kills)):
        reader, writer = os.pipe()
        child = _fork(partial(_be_killed, log, number, writer))
        os.close(writer)
        with open(reader, "rb") as pipe:
            lines = [pipe.readline() for _ in range(randomness.randint(1, 8))]
            time.sleep(randomness.uniform(0, 0.002))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            lines += pipe.readlines()
        said = [json.loads(line) for line in lines if line.endswith(b"\n")]
        done = [each["done"] for each in said if "done" in each]
        begun = [each["begun"] for each in said if "begun" in each]
        acknowledged += len(done)
        inside += len(begun) > len(done)
        start = [f"kill {number - 1}"] if number else []
        found = [row["content"][:40] for row in log.load()]
        assert found in (start + done, start + begun), (found, begun)
        log.boundary(f"kill {number}")
        everything += [*found[len(start) :], f"kill {number}"]
        assert [row["content"] for row in log.load()] == [f"kill {number}"]
    assert [row["content"][:40] for row in log.rows()] == everything
    return {"kills": int(kills), "acknowledged": acknowledged, "killed while it wrote": inside}


def _be_killed(log: SessionLog, number: int, writer: int) -> None:
    """Say which row comes, append it, and say that it is done."""
    randomness = random.Random(number)
    round_ = 0
    while True:
        round_ += 1
        text = f"{number} {round_} ".ljust(40, "·") + "茶\u2028" * randomness.choice([1, 30, 30_000])
        os.write(writer, json.dumps({"begun": text[:40]}).encode() + b"\n")
        log.append("user", text)
        os.write(writer, json.dumps({"done": text[:40]}).encode() + b"\n")


def _writers(root: Path) -> dict[str, object]:
    log, together = SessionLog("s1", root, durable=False), multiprocessing.get_context("fork").Barrier(WRITERS)
    children = [_fork(partial(_write, log, writer, together)) for writer in range(WRITERS)]
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    return {"rows": log.load()}


def _write(log: SessionLog, writer: int, together: Barrier) -> None:
    for number in range(0, ROWS * 2, 2):
        if number % 30 == 0:  # on a busy machine, they would write one after the other
            together.wait(60)
        filler = "x" * random.choice([1, 5_000])
        log.extend(
            [{"type": "user", "content": filler, "writer": writer, "number": each} for each in (number, number + 1)]
        )
    os._exit(0)


def _deleted(root: Path) -> dict[str, object]:
    log = SessionLog("s1", root)
    log.append("user", "before")
    held = os.open(log.path, os.O_RDWR)
    fcntl.flock(held, fcntl.LOCK_EX)
    reader, writer = os.pipe()

    def append() -> None:
        os.write(writer, b"waits")
        log.append("user", "after")
        os._exit(0)

    child = _fork(append)
    os.read(reader, 5)
    time.sleep(0.05)  # so that it most likely waits; if it does not yet, the outcome is the same
    log.delete()
    fcntl.flock(held, fcntl.LOCK_UN)  # closing is not enough: the child has a copy of the descriptor
    status = os.waitpid(child, 0)[1]
    return {"contents": [row["content"] for row in log.load()], "acknowledged": status == 0}


if __name__ == "__main__":
    run = {"kills": _kills, "writers": _writers, "deleted": _deleted}[sys.argv[1]]
    print(json.dumps(run(Path(sys.argv[2]), *sys.argv[3:])))
