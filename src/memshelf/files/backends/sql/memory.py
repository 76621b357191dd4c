"""One file memory within one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from itertools import accumulate, takewhile
from typing import NamedTuple

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.sql.of_file import AT_PATH, newest
from memshelf.files.backends.sql.paths import LIVE_FILE, obstacles
from memshelf.files.backends.sql.rows import (
    LIVE_FIELDS,
    STORED_FIELDS,
    VERSION_FIELDS,
    Live,
    live_of,
    stored_of,
    text_of,
    version_of,
)
from memshelf.files.chain import Stored
from memshelf.files.decide import Recorded, ancestors
from memshelf.files.model import Changes, FileEntry, FileText, FullResync, Version, VersionPage
from memshelf.origin import Origin
from memshelf.storage.ids import askable, micros
from memshelf.storage.transaction import Row, Transaction

__all__ = ["VERSION_OF_CALL", "Head", "Memory", "Stood", "find_memory"]

VERSION_OF_CALL = (
    f"SELECT run_id, tool_call_id, {VERSION_FIELDS} FROM file_versions "  # noqa: S608  # no value
    "WHERE memory_id = $1 AND (run_id, tool_call_id) {key}"
)
"""For `Transaction.fetch_keyed`: what a run's tool call wrote."""

_SELECT_VERSION = f"SELECT {VERSION_FIELDS} FROM file_versions WHERE memory_id = $1"  # noqa: S608  # no value
# The plus keeps an engine from reading all versions of the memory for one.
_SELECT_BY_ID = f"SELECT {VERSION_FIELDS} FROM file_versions WHERE +memory_id = $1 AND id = $2"  # noqa: S608  # no value
_FIELDS_OF_V = ", ".join(f"v.{field}" for field in VERSION_FIELDS.split(", "))
_MOST_TEXTS = 1_000


@cache
def _select_head(heads: str, lock: str) -> str:
    return f"SELECT epoch, head_seq, head_link, files FROM {heads} WHERE id = $1{lock}"  # noqa: S608  # no value


@cache
def _select_head_and_live(heads: str, lock: str) -> str:
    # `last` is the memory as it stands when its lock is had, `seen` as it stood when the statement began to wait.
    seen = f"JOIN {heads} seen ON seen.id = last.id" if lock else ""
    return (
        f"WITH last AS (SELECT id, epoch, head_seq, head_link, files FROM {heads} WHERE id = $1{lock}) SELECT "  # noqa: S608  # no value
        f"last.epoch, last.head_seq, last.head_link, last.files, {'seen' if seen else 'last'}.head_link, "
        f"{LIVE_FIELDS} FROM last {seen} "
        "LEFT JOIN files f ON f.memory_id = last.id AND f.path = $2 LEFT JOIN file_versions v ON v.id = f.version_id"
    )


class Head(NamedTuple):
    """Where a memory's history stands, and how many files there are."""

    # A tuple, as these are made for each write: to make a frozen dataclass takes twice as long.

    epoch: str
    seq: int
    link: bytes
    files: int

    @property
    def cursor(self) -> str:
        return f"{self.epoch}:{self.seq}"

    def position(self, cursor: str | None) -> int | None:
        """The number of the version that a cursor of this history stands at, else `None`."""
        epoch, _, seq = (cursor or "").rpartition(":")
        if epoch != self.epoch or not seq.isascii() or not seq.isdecimal() or len(seq) > 18 or int(seq) > self.seq:
            return None
        return int(seq)


class Stood(NamedTuple):
    """How a script has left a memory, and the file that it wrote last, if it is still there."""

    head: Head
    last: Live | None


async def find_memory(transaction: Transaction, name: str) -> int | None:
    row = await transaction.fetch_one("SELECT id FROM memories WHERE name = $1", name)
    return int(row[0]) if row is not None else None


class Memory:
    """The rows of one memory. Every query names the memory, so that none sees another's."""

    __slots__ = ("id", "last", "stands", "transaction")

    def __init__(self, transaction: Transaction, id: int, stands: Head | None = None) -> None:
        self.transaction = transaction
        self.id = id
        self.stands = stands
        """The head, if it is known and nobody else can move it within this transaction."""
        self.last: Live | None = None
        """A file as it stands at that head, if one was written or looked up already."""

    @property
    def stood(self) -> Stood | None:
        """What to leave to the next script, if the memory was locked."""
        return Stood(self.stands, self.last) if self.stands is not None else None

    def goes_on(self, stood: Stood) -> None:
        """The memory stands as another script has left it: see `Transaction.found`."""
        self._locked(stood.head)
        self.last = stood.last

    async def all(self, query: str, *values: object) -> Sequence[Row]:
        """The rows of a query whose first parameter is the memory."""
        return await self.transaction.fetch(query, self.id, *values)

    async def one(self, query: str, *values: object) -> Row | None:
        return await self.transaction.fetch_one(query, self.id, *values)

    async def head(self) -> Head:
        """`memory_deleted` when the memory is gone."""
        return self.stands or await self._head("")

    async def locked(self) -> Head:
        """`head`, which nobody else moves before the changes that follow: what changes a memory begins here."""
        return self.stands or self._locked(await self._head(self.transaction.for_update))

    def _locked(self, head: Head) -> Head:
        row = head.epoch, head.seq, head.link, head.files
        self.transaction.rests_on(_select_head(self.transaction.heads, ""), (self.id,), row)
        self.stands = head
        return head

    async def _head(self, lock: str) -> Head:
        row = await self.one(_select_head(self.transaction.heads, lock))
        if row is None:
            raise _deleted()
        return Head(*row)

    async def load(self, path: str | None) -> Live | None:
        """`locked`, and the file at the path, if one is there."""
        if path is None or self.stands is not None:
            await self.locked()
            return await self.live(path)
        query = _select_head_and_live(self.transaction.heads, self.transaction.for_update)
        while True:
            row = await self.one(query, path)
            if row is None:
                raise _deleted()
            epoch, seq, link, files, seen, *live = row
            if link == seen:
                break
            # It waited for another's change, and saw the files as they were before: now it need not wait.
        self._locked(Head(epoch, seq, link, files))
        return live_of(live)

    async def entries(self, known: str | None) -> tuple[str, list[FileEntry]] | None:
        """The cursor and the listing at it; `None` when that is the one at the cursor `known`."""
        cursor = (await self.head()).cursor
        if cursor == known:
            return None
        rows = await self.all(
            "SELECT path, version_id, size, description FROM files WHERE memory_id = $1 ORDER BY path"
        )
        return cursor, [FileEntry(path, version, size, text_of(described)) for path, version, size, described in rows]

    async def live(self, path: str | None) -> Live | None:
        if path is None:
            return None
        if self.last is not None and self.last.file.path == path:
            return self.last
        return live_of(await self.transaction.fetch_keyed(LIVE_FILE, self.id, path))

    async def free(self, path: str) -> bool:
        """Whether it is known already that nothing is in the way of a file at the path."""
        for sql, key in obstacles(path):
            if not await self.transaction.finds_nothing(sql, self.id, *key):
                return False
        return True

    async def in_the_way(self, path: str | None) -> FileText | None:
        """A file at the path or above it, or else the first one below it."""
        if path is None or await self.free(path):
            return None
        paths = (path, *ancestors(path))
        marks = ", ".join(f"${number}" for number in range(4, len(paths) + 4))
        # "0" follows "/": between them lies everything below the path.
        row = await self.one(
            f"SELECT path FROM files WHERE memory_id = $1 AND path IN ({marks}) UNION ALL SELECT path FROM "  # noqa: S608  # marks
            "(SELECT path FROM files WHERE memory_id = $1 AND path > $2 AND path < $3 ORDER BY path LIMIT 1) below",
            f"{path}/",
            f"{path}0",
            *paths,
        )
        live = await self.live(row[0]) if row is not None else None
        return live.file if live is not None else None

    async def changes(self, since: str | None) -> Changes | FullResync:
        head = await self.head()
        if (position := head.position(since)) is None:
            return FullResync(head.cursor)
        rows = await self.all(
            # Not a join, for which an engine might read all versions there are.
            "SELECT DISTINCT v.path, v.moved, CASE WHEN v.moved = 1 THEN (SELECT p.path FROM file_versions p "
            "WHERE p.id = v.parent_id) END FROM file_versions v WHERE v.memory_id = $1 AND v.seq > $2",
            position,
        )
        paths: set[str] = set()
        for path, moved, source in rows:
            if path is None or (moved and source is None):
                return FullResync(head.cursor)
            paths.update((path, source) if moved else (path,))
        return Changes(head.cursor, tuple(sorted(paths, key=str.encode)))

    async def texts(self, directory: str, after: str, most_bytes: int) -> list[FileText]:
        """The files below a directory whose paths follow `after`, as many as have `most_bytes` together, but one at
        least if there is one."""
        rows = await self.contents(directory, after, most_bytes)
        return [FileText(path, content.decode(), version_id) for path, content, version_id in rows]

    async def contents(self, directory: str, after: str, most_bytes: int) -> Sequence[Row]:
        """The same as rows of a path, content in UTF-8 and a version."""
        where, values = "f.memory_id = $1 AND f.path > $2", [max(after, directory, key=str.encode)]
        if directory:
            where += " AND f.path < $3"
            values.append(f"{directory[:-1]}0")
        sizes = await self.all(
            f"SELECT f.size FROM files f WHERE {where} ORDER BY f.path LIMIT {_MOST_TEXTS}",  # noqa: S608  # no value
            *values,
        )
        fitting = sum(1 for _ in takewhile(lambda total: total <= most_bytes, accumulate(size for (size,) in sizes)))
        # Not a join, for which an engine might read all versions of all files.
        return await self.all(
            "SELECT f.path, (SELECT v.content FROM file_versions v WHERE v.id = f.version_id), f.version_id "  # noqa: S608  # no value
            f"FROM files f WHERE {where} ORDER BY f.path LIMIT {max(fitting, 1)}",
            *values,
        )

    async def version(self, version_id: str) -> Version:
        row = await self.one(_SELECT_BY_ID, askable(version_id))
        if row is None:
            raise MemoryStoreError("not_found", f"This memory has no version {version_id}.")
        return version_of(row)

    async def version_of_call(self, origin: Origin) -> Version | None:
        if origin.run_id is None or origin.tool_call_id is None:
            return None
        row = await self.transaction.fetch_keyed(VERSION_OF_CALL, self.id, origin.run_id, origin.tool_call_id)
        return version_of(row[2:]) if row is not None else None

    async def recorded(self, origin: Origin, version_id: str | None = None) -> Recorded | None:
        """What the tool call of `origin`, or the request that would write that version, did if it came before."""
        if self.transaction.supposes:  # both are unique
            return None
        version = await self.version_of_call(origin)
        if version is None and version_id is not None:
            row = await self.one(_SELECT_BY_ID, version_id)
            version = version_of(row) if row is not None else None
        if version is None:
            return None
        before = await self.version(version.parent_id) if version.parent_id is not None else None
        return Recorded(
            version.id,
            version.operation,
            version.path,
            version.text,
            version.parent_id,
            before.path if before is not None else None,
        )

    async def versions(self, path: str | None, since: datetime | None, limit: int, cursor: str | None) -> VersionPage:
        head = await self.head()
        values = list[object]([path] if path is not None else [])

        def mark(value: object) -> str:
            values.append(value)
            return f"${len(values) + 1}"

        before = after = ""
        if cursor is not None:
            if (position := head.position(cursor)) is None:
                raise MemoryStoreError("invalid_cursor", "The cursor is not one of this memory's.")
            before = mark(position)
        if since is not None:
            after = mark(micros(since))
        if path is None:
            where = (f" AND seq < {before}" if before else "") + (f" AND created_at >= {after}" if after else "")
            query = f"{_SELECT_VERSION}{where} ORDER BY seq DESC LIMIT {limit + 1}"
        else:
            least = newest("p", before=before, skipped=limit + 1)
            where = f" AND (w.file_id, w.seq) < (p.file_id, {before})" if before else ""
            where += f" AND +w.created_at >= {after}" if after else ""  # the plus: not by an index over times
            query = (
                f"SELECT {_FIELDS_OF_V} FROM {AT_PATH.format(least=least, where=where, most=limit + 1)} found "  # noqa: S608  # no value
                "JOIN file_versions v ON v.memory_id = found.memory_id AND v.seq = found.seq ORDER BY found.seq DESC"
            )
        rows = await self.all(query, *values)
        following = head._replace(seq=rows[limit - 1][0]).cursor if len(rows) > limit else None
        return VersionPage(tuple(version_of(row) for row in rows[:limit]), following)

    async def stored(self, after: int, most: int) -> list[Stored]:
        """What the chain is checked against, in its order."""
        rows = await self.all(
            f"SELECT {STORED_FIELDS} FROM file_versions WHERE memory_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",  # noqa: S608  # no value
            after,
            most,
        )
        return [stored_of(*row) for row in rows]


def _deleted() -> MemoryStoreError:
    return MemoryStoreError("memory_deleted", "The memory was deleted.")
