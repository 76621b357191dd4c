"""Work for a database thread, and its way back to whoever waits for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from memshelf.storage.sqlite_connection import Connection

__all__ = ["Job", "Work", "settle"]

Work: TypeAlias = Callable[[Connection], Any]  # each job has its own result type
"""Runs inside a transaction that others share: it neither begins nor commits, and raises to undo what it did.

It may be run again from its beginning when an attempt at it was undone. What it changes is rows: a change of the
schema would not be undone.
"""


class Job:
    """One piece of work, and the future of the caller.

    A job that `erases` is answered only when the bytes of what it deleted are gone from the database's files. One that
    is `single` runs no more than one statement, which needs no transaction around it.
    """

    __slots__ = ("erases", "error", "future", "loop", "result", "single", "work")

    def __init__(
        self, work: Work, loop: asyncio.AbstractEventLoop, *, erases: bool = False, single: bool = False
    ) -> None:
        self.work = work
        self.loop = loop
        self.future: asyncio.Future[Any] = loop.create_future()
        self.erases = erases
        self.single = single
        self.result: object = None
        self.error: Exception | None = None


def settle(jobs: Iterable[Job]) -> None:
    """Hand results and errors to the callers, waking each event loop once."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.loop, []).append(job)
    for loop, settled in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits there any more
            loop.call_soon_threadsafe(_resolve, settled)


def _resolve(jobs: list[Job]) -> None:
    for job in jobs:
        if job.future.done():  # the caller was cancelled
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)
