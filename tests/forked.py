"""Child processes of a test."""

from __future__ import annotations

import asyncio
import os
import signal
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Child", "finish", "fork", "in_child"]


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
