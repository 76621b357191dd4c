"""Checking the whole history of a memory, a part at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Protocol, TypeVar

from memshelf.files.backends.sql.memory import Head, Memory
from memshelf.files.chain import ChainCheck, ChainReport, Stored

__all__ = ["verify"]

_T = TypeVar("_T")

_CHECK_VERSIONS = 500


class _Read(Protocol):
    async def __call__(self, query: Callable[[Memory], Coroutine[Any, Any, _T]], /) -> _T: ...


async def verify(read: _Read, noted: str | None = None) -> ChainReport:
    """Check every version against the one before it, and the live files against the history; `noted` as in
    `ChainCheck`. `read` runs a query of the memory in a transaction of its own; others may go on writing meanwhile."""
    head = await read(Memory.head)
    check = ChainCheck(head.epoch, noted)
    seq = 0
    while True:
        current, stored = await read(partial(_history, after=seq))
        if current.epoch != head.epoch:  # purged meanwhile: there is another history to check
            return await verify(read, noted)
        stored = [version for version in stored if version.facts.seq <= head.seq]
        if not stored:
            break
        await asyncio.to_thread(_add_all, check, stored)
        seq = stored[-1].facts.seq
    strays = await read(Memory.strays)
    return check.report(head.seq, head.link, strays)


async def _history(memory: Memory, after: int) -> tuple[Head, list[Stored]]:
    return await memory.head(), await memory.stored(after, _CHECK_VERSIONS)


def _add_all(check: ChainCheck, stored: list[Stored]) -> None:
    for version in stored:
        check.add(version)
