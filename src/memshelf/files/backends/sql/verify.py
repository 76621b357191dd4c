"""Checking the whole history of a memory, a part at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Protocol, TypeVar

from memshelf.files.backends.sql.memory import Head, Memory
from memshelf.files.backends.sql.of_file import newest
from memshelf.files.chain import ChainCheck, ChainReport, Stored
from memshelf.storage.transaction import Row

__all__ = ["verify"]

_T = TypeVar("_T")

_CHECK_VERSIONS = 500


class _Read(Protocol):
    async def __call__(self, query: Callable[[Memory], Coroutine[Any, Any, _T]], /) -> _T: ...


async def verify(read: _Read, noted: str | None = None) -> ChainReport:
    """Check every version against the one before it, and the live files against the history; `noted` as in
    `ChainCheck`. `read` runs a query of the memory in a transaction of its own; others may go on writing meanwhile."""
    head = await read(Memory.head)
    check, strays = ChainCheck(head.epoch, noted), list[str]()
    seq, path = 0, ""
    while True:
        current, stored, gone = await read(partial(_history, after=seq))
        if current.epoch != head.epoch:  # purged meanwhile: there is another history to check
            return await verify(read, noted)
        stored = [version for version in stored if version.facts.seq <= head.seq]
        if not stored:
            break
        await asyncio.to_thread(_add_all, check, stored)
        strays += gone
        seq = stored[-1].facts.seq
    while files := await read(partial(_files, after=path)):
        strays += (version_id for _, version_id, seq, last in files if seq is None or seq != last)
        path = files[-1][0]
    return check.report(head.seq, head.link, dict.fromkeys(strays))


async def _history(memory: Memory, after: int) -> tuple[Head, list[Stored], list[str]]:
    """The versions that follow, and the ids of those that a file should hold and does not."""
    stored = await memory.stored(after, _CHECK_VERSIONS)
    rows = await memory.all(
        "SELECT v.id, (SELECT f.version_id FROM files f WHERE f.memory_id = v.memory_id AND f.path = v.path) "  # noqa: S608  # no value
        "FROM file_versions v WHERE v.memory_id = $1 AND v.seq > $2 AND v.seq <= $3 AND v.operation <> 'deleted' "
        f"AND v.seq = {newest('v')} ORDER BY v.seq",
        after,
        stored[-1].facts.seq if stored else after,
    )
    return await memory.head(), stored, [id for id, held in rows if id != held]


async def _files(memory: Memory, after: str) -> Sequence[Row]:
    """Live files that follow: path, version, the number of that version if it says what the file says, and the number
    of the file's newest."""
    return await memory.all(
        "SELECT f.path, f.version_id, (SELECT v.seq FROM file_versions v WHERE v.id = f.version_id "  # noqa: S608  # no value
        "AND v.memory_id = f.memory_id AND v.path = f.path AND v.file_id = f.file_id AND v.size = f.size "
        f"AND v.operation <> 'deleted'), {newest('f')} FROM files f WHERE f.memory_id = $1 AND f.path > $2 "
        f"ORDER BY f.path LIMIT {_CHECK_VERSIONS}",
        after,
    )


def _add_all(check: ChainCheck, stored: list[Stored]) -> None:
    for version in stored:
        check.add(version)
