"""Vectors that are kept from one search to the next, so that only what changed is embedded."""

from __future__ import annotations

import asyncio
import json
import re
import struct
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol, TypeAlias

from memshelf.storage.transaction import Engine, Transaction
from memshelf.storage.whole_file import WholeFile

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
    """One file in a folder of its own, which holds what is kept and nothing else."""

    def __init__(self, path: Path) -> None:
        self._folder = path.parent
        self._file = WholeFile(path)

    async def load(self, maker: str) -> dict[str, bytes]:
        return await asyncio.to_thread(self._load, maker)

    async def keep(self, maker: str, every: Mapping[str, bytes], new: Collection[str]) -> None:
        del new
        versions = [[version, len(each)] for version, each in every.items()]
        head = json.dumps({"format": _FORMAT, "maker": maker, "versions": versions}).encode()
        await asyncio.to_thread(self._write, b"\n".join([head, b"".join(every.values())]))

    def _load(self, maker: str) -> dict[str, bytes]:
        try:
            return _parsed(self._file.read(), maker)
        except (
            OSError,
            ValueError,
            TypeError,
            KeyError,
            RecursionError,
        ):  # there is none yet, or it is not one of ours
            return {}

    def _write(self, whole: bytes) -> None:
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._file.write(whole)


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
