"""Vectors that are kept from one search to the next, so that only what changed is embedded."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import re
import stat
import struct
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Protocol, TypeAlias

from memshelf.storage.transaction import Engine, Transaction

__all__ = ["DatabaseVectors", "FileVectors", "KeptVectors", "Rows", "packed", "unpacked"]

Rows: TypeAlias = list[bytes]
"""The vectors of each passage of a file, as rows of float16."""

_FORMAT = "memshelf vectors 1"
_NOT_FINITE = re.compile(rb"[\x7c-\x7f\xfc-\xff]")
"""The upper byte of a float16 that is infinite or no number."""


class KeptVectors(Protocol):
    """Where vectors are kept: by the version of the file that they are of, and by what made them, `maker`.

    Nothing is kept of a version that is not live when `keep` is called. What cannot be read or kept is embedded again.
    """

    async def load(self, maker: str) -> dict[str, bytes]:
        """What is kept, by version."""
        ...

    async def keep(self, maker: str, every: Mapping[str, bytes], new: Collection[str]) -> None:
        """Keep these and no others; those of the versions `new` are not kept yet, or otherwise."""
        ...


def packed(rows: Rows) -> bytes:
    return struct.pack(f"<I{len(rows)}I", len(rows), *map(len, rows)) + b"".join(rows)


def unpacked(data: bytes, passages: int, dimension: int) -> Rows | None:
    """The rows of so many passages, or `None` if that is not what the data holds."""
    try:
        (count,) = struct.unpack_from("<I", data)
        if count != passages:
            return None
        lengths = struct.unpack_from(f"<{count}I", data, 4)
    except struct.error:
        return None
    at, rows = 4 + 4 * count, []
    for length in lengths:
        rows.append(data[at : at + length])
        at += length
    sound = at == len(data) and all(length and length % (2 * dimension) == 0 for length in lengths)
    return rows if sound and _NOT_FINITE.search(data[5 + 4 * count :: 2]) is None else None


class FileVectors:
    """One file in a folder of its own, written anew with each change: what is no longer kept stands nowhere in it.

    As whoever may write to a memory may put anything there, no link is followed, and what is read may be anything.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    async def load(self, maker: str) -> dict[str, bytes]:
        return await asyncio.to_thread(self._load, maker)

    async def keep(self, maker: str, every: Mapping[str, bytes], new: Collection[str]) -> None:
        del new
        versions = [[version, len(each)] for version, each in every.items()]
        head = json.dumps({"format": _FORMAT, "maker": maker, "versions": versions}).encode()
        await asyncio.to_thread(self._write, b"\n".join([head, b"".join(every.values())]))

    def _load(self, maker: str) -> dict[str, bytes]:
        try:
            with self._folder() as folder:
                with suppress(OSError):  # there is no such file, or a search is writing it
                    self._remove_half_written(folder)
                with open(self._path.name, "rb", opener=partial(_opened, folder)) as file:
                    return _parsed(file.read(), maker)
        except (
            OSError,
            ValueError,
            TypeError,
            KeyError,
            RecursionError,
        ):  # there is none yet, or it is not one of ours
            return {}

    def _write(self, whole: bytes) -> None:
        self._path.parent.mkdir(mode=0o700, exist_ok=True)
        with self._folder() as folder, open(self._new, "ab", opener=partial(_opened, folder)) as file:
            self._take(folder, file)
            try:
                file.truncate(0)
                file.write(whole)
                file.flush()
                os.replace(self._new, self._path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(self._new, dir_fd=folder)
                raise

    def _remove_half_written(self, folder: int) -> None:
        with open(self._new, "rb", opener=partial(_opened, folder)) as file:
            self._take(folder, file)
            os.unlink(self._new, dir_fd=folder)

    @property
    def _new(self) -> str:
        return f"{self._path.name}.new"

    def _take(self, folder: int, file: IO[bytes]) -> None:
        """Hold the file that is being written; `OSError` when another search does, or has just put it in place."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(file.fileno()), os.stat(self._new, dir_fd=folder, follow_symlinks=False)):
            raise OSError(errno.EAGAIN, "Another search has written it", self._new)

    @contextmanager
    def _folder(self) -> Iterator[int]:
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            yield folder
        finally:
            os.close(folder)


def _opened(folder: int, name: str, flags: int) -> int:
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "It is no file", name)
    return descriptor


def _parsed(whole: bytes, maker: str) -> dict[str, bytes]:
    line, _, data = whole.partition(b"\n")
    head = json.loads(line)
    found, at = dict[str, bytes](), 0
    if head["format"] == _FORMAT and head["maker"] == maker:
        for version, size in head["versions"]:
            found[str(version)] = data[at : at + int(size)]
            at += int(size)
    return found


class DatabaseVectors:
    """Rows beside the versions of a memory in a database, which go with them: redacting a version, or purging the
    memory, erases its vectors too."""

    def __init__(self, engine: Engine, memory: str) -> None:
        self._engine = engine
        self._memory = memory

    async def aclose(self) -> None:
        """Close the engine."""
        await self._engine.aclose()

    async def load(self, maker: str) -> dict[str, bytes]:
        async def script(transaction: Transaction) -> dict[str, bytes]:
            rows = await transaction.fetch(
                "SELECT k.version_id, k.vectors FROM file_vectors k JOIN memories m ON m.id = k.memory_id "
                "WHERE m.name = $1 AND k.maker = $2",
                self._memory,
                maker,
            )
            return {version: bytes(vectors) for version, vectors in rows}

        return await self._engine.read(script, single=True)

    async def keep(self, maker: str, every: Mapping[str, bytes], new: Collection[str]) -> None:
        async def script(transaction: Transaction) -> None:
            row = await transaction.fetch_one(
                f"SELECT id FROM memories WHERE name = $1{transaction.for_update}",  # noqa: S608  # ours
                self._memory,
            )
            if row is None:
                return
            await transaction.execute(
                "DELETE FROM file_vectors WHERE memory_id = $1 AND (maker <> $2 OR version_id NOT IN "
                "(SELECT version_id FROM files WHERE memory_id = $1))",
                row[0],
                maker,
            )
            for version in new:
                # It may be live no more.
                await transaction.execute(
                    "INSERT INTO file_vectors (memory_id, version_id, maker, vectors) "
                    "SELECT memory_id, version_id, $3, $4 FROM files WHERE memory_id = $1 AND version_id = $2 "
                    "ON CONFLICT (memory_id, version_id) DO UPDATE SET vectors = excluded.vectors",
                    row[0],
                    version,
                    maker,
                    every[version],
                )

        await self._engine.write(script)
