"""One file memory within one transaction of a SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memshelf.errors import MemoryStoreError
from memshelf.files.chain import Facts, Stored
from memshelf.files.decide import Recorded, ancestors
from memshelf.files.model import Changes, FileEntry, FileText, FullResync, Version, VersionPage
from memshelf.origin import Origin
from memshelf.storage.ids import from_micros, micros

__all__ = ["Head", "Live", "Memory", "find_memory"]

_SELECT_VERSION = (
    "SELECT seq, id, file_id, parent_id, operation, path, content, sha256, size, run_id, principal_id, tool_call_id, "
    "created_at, redacted_at, redacted_by FROM file_versions WHERE memory_id = ?"
)


@dataclass(frozen=True, slots=True)
class Head:
    """Where a memory's history stands."""

    epoch: str
    seq: int
    link: bytes

    @property
    def cursor(self) -> str:
        return f"{self.epoch}:{self.seq}"

    def position(self, cursor: str | None) -> int | None:
        """The number of the version that a cursor of this history stands at, else `None`."""
        epoch, _, seq = (cursor or "").rpartition(":")
        if epoch != self.epoch or not seq.isascii() or not seq.isdecimal() or len(seq) > 18 or int(seq) > self.seq:
            return None
        return int(seq)


@dataclass(frozen=True, slots=True)
class Live:
    """A file as it stands now."""

    file: FileText
    file_id: str
    description: str | None


def find_memory(connection: sqlite3.Connection, name: str) -> int | None:
    row = connection.execute("SELECT id FROM memories WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row is not None else None


class Memory:
    """The rows of one memory. Every query names the memory, so that none sees another's."""

    __slots__ = ("connection", "id")

    def __init__(self, connection: sqlite3.Connection, id: int) -> None:
        self.connection = connection
        self.id = id

    def all(self, query: str, *values: object) -> list[Any]:
        """The rows of a query whose first parameter is the memory."""
        return self.connection.execute(query, (self.id, *values)).fetchall()

    def one(self, query: str, *values: object) -> Any:
        """The first row, or `None`."""
        return self.connection.execute(query, (self.id, *values)).fetchone()

    def head(self) -> Head:
        """`memory_deleted` when the memory is gone."""
        row = self.one("SELECT epoch, head_seq, head_link FROM memories WHERE id = ?")
        if row is None:
            raise MemoryStoreError("memory_deleted", "The memory was deleted.")
        return Head(*row)

    def entries(self, known: str | None) -> tuple[str, list[FileEntry]] | None:
        """The cursor and the listing at it; `None` when that is the one at the cursor `known`."""
        cursor = self.head().cursor
        if cursor == known:
            return None
        rows = self.all("SELECT path, version_id, size, description FROM files WHERE memory_id = ? ORDER BY path")
        return cursor, [FileEntry(*row) for row in rows]

    def live(self, path: str | None) -> Live | None:
        if path is None:
            return None
        row = self.one(
            "SELECT v.content, f.version_id, f.file_id, f.description FROM files f "
            "JOIN file_versions v ON v.id = f.version_id WHERE f.memory_id = ? AND f.path = ?",
            path,
        )
        if row is None:
            return None
        content, version_id, file_id, description = row
        return Live(FileText(path, content.decode(), version_id), file_id, description)

    def in_the_way(self, path: str | None) -> FileText | None:
        """A file at the path or above it, or else the first one below it."""
        if path is None:
            return None
        paths = (path, *ancestors(path))
        marks = ", ".join("?" * len(paths))
        row = self.one(f"SELECT path FROM files WHERE memory_id = ? AND path IN ({marks})", *paths)  # noqa: S608  # marks
        # "0" follows "/": between them lies everything below the path.
        row = row or self.one(
            "SELECT path FROM files WHERE memory_id = ? AND path > ? AND path < ? ORDER BY path LIMIT 1",
            f"{path}/",
            f"{path}0",
        )
        live = self.live(row[0]) if row is not None else None
        return live.file if live is not None else None

    def changes(self, since: str | None) -> Changes | FullResync:
        head = self.head()
        if (position := head.position(since)) is None:
            return FullResync(head.cursor)
        rows = self.all(
            "SELECT v.path, v.moved, p.path FROM file_versions v "
            "LEFT JOIN file_versions p ON v.moved AND p.id = v.parent_id WHERE v.memory_id = ? AND v.seq > ?",
            position,
        )
        paths: set[str] = set()
        for path, moved, source in rows:
            if path is None or (moved and source is None):
                return FullResync(head.cursor)
            paths.update((path, source) if moved else (path,))
        return Changes(head.cursor, tuple(sorted(paths, key=str.encode)))

    def texts(self, directory: str, after: str, most_bytes: int) -> list[FileText]:
        """The files below a directory whose paths follow `after`, until they have `most_bytes` together."""
        query = (
            "SELECT f.path, v.content, f.version_id FROM files f JOIN file_versions v ON v.id = f.version_id "
            "WHERE f.memory_id = ? AND f.path > ?"
        )
        values: list[object] = [self.id, max(after, directory, key=str.encode)]
        if directory:
            query += " AND f.path < ?"
            values.append(f"{directory[:-1]}0")
        found: list[FileText] = []
        with closing(self.connection.execute(f"{query} ORDER BY f.path", values)) as rows:
            for path, content, version_id in rows:
                found.append(FileText(path, content.decode(), version_id))
                most_bytes -= len(content)
                if most_bytes <= 0:
                    break
        return found

    def version(self, version_id: str) -> Version:
        # An id with a lone surrogate cannot be asked for, and is no version's.
        asked = version_id.encode(errors="replace").decode()
        row = self.one(f"{_SELECT_VERSION} AND id = ?", asked)
        if row is None:
            raise MemoryStoreError("not_found", f"This memory has no version {version_id}.")
        return _version(row)

    def version_of_call(self, origin: Origin) -> Version | None:
        if origin.run_id is None or origin.tool_call_id is None:
            return None
        row = self.one(f"{_SELECT_VERSION} AND run_id = ? AND tool_call_id = ?", origin.run_id, origin.tool_call_id)
        return _version(row) if row is not None else None

    def recorded(self, origin: Origin) -> Recorded | None:
        """What the tool call of `origin` did, if it was made before."""
        version = self.version_of_call(origin)
        if version is None:
            return None
        before = self.version(version.parent_id) if version.parent_id is not None else None
        return Recorded(
            version.id,
            version.operation,
            version.path,
            version.text,
            version.parent_id,
            before.path if before is not None else None,
        )

    def versions(self, path: str | None, since: datetime | None, limit: int, cursor: str | None) -> VersionPage:
        head = self.head()
        query, values = _SELECT_VERSION, list[object]()
        if cursor is not None:
            if (position := head.position(cursor)) is None:
                raise MemoryStoreError("invalid_cursor", "The cursor is not one of this memory's.")
            query += " AND seq < ?" if path is None else " AND +seq < ?"
            values.append(position)
        if since is not None:
            query += " AND created_at >= ?"
            values.append(micros(since))
        if path is not None:
            query += " AND file_id IN (SELECT file_id FROM file_versions WHERE memory_id = ? AND path = ?)"
            values += (self.id, path)
        # The plus keeps SQLite from walking the whole history for one file: it finds the file's versions, then sorts.
        order = "seq" if path is None else "+seq"
        rows = self.all(f"{query} ORDER BY {order} DESC LIMIT ?", *values, limit + 1)
        following = Head(head.epoch, rows[limit - 1][0], b"").cursor if len(rows) > limit else None
        return VersionPage(tuple(_version(row) for row in rows[:limit]), following)

    def stored(self, after: int, most: int) -> list[Stored]:
        """What the chain is checked against, in its order."""
        rows = self.all(
            "SELECT id, seq, file_id, parent_id, operation, moved, run_id, principal_id, tool_call_id, created_at, "
            "commitment, link, path, content, sha256, size, salt, redacted_at FROM file_versions "
            "WHERE memory_id = ? AND seq > ? ORDER BY seq LIMIT ?",
            after,
            most,
        )
        return [_stored(*row) for row in rows]

    def strays(self) -> Sequence[str]:
        """The ids of versions about which the live files and the history disagree."""
        rows = self.connection.execute(
            "WITH last AS (SELECT v.* FROM file_versions v WHERE v.memory_id = :memory AND v.seq = "
            "(SELECT max(n.seq) FROM file_versions n WHERE n.memory_id = v.memory_id AND n.file_id = v.file_id)) "
            "SELECT f.version_id FROM files f LEFT JOIN last ON last.id = f.version_id WHERE f.memory_id = :memory AND "
            "(last.operation IS NULL OR last.operation = 'deleted' OR last.path IS NOT f.path "
            "OR last.file_id IS NOT f.file_id OR last.size IS NOT f.size) "
            "UNION SELECT last.id FROM last WHERE last.operation <> 'deleted' AND NOT EXISTS "
            "(SELECT 1 FROM files f WHERE f.memory_id = :memory AND f.path = last.path AND f.version_id = last.id)",
            {"memory": self.id},
        ).fetchall()
        return [row[0] for row in rows]


def _version(row: Sequence[Any]) -> Version:
    (_, id, file_id, parent_id, operation, path, content, sha256, size, *origin, created_at, redacted_at, by) = row
    return Version(
        id=id,
        file_id=file_id,
        parent_id=parent_id,
        operation=operation,
        path=path,
        text=content.decode() if content is not None else None,
        sha256=sha256,
        size=size,
        origin=Origin(*origin),
        created_at=from_micros(created_at),
        redacted_at=from_micros(redacted_at) if redacted_at is not None else None,
        redacted_by=by,
    )


def _stored(
    id: str,
    seq: int,
    file_id: str,
    parent_id: str | None,
    operation: Any,  # the table holds it to the three words
    moved: int,
    run_id: str | None,
    principal_id: str | None,
    tool_call_id: str | None,
    created_at: int,
    commitment: bytes,
    link: bytes,
    path: str | None,
    content: bytes | None,
    sha256: str | None,
    size: int | None,
    salt: bytes | None,
    redacted_at: int | None,
) -> Stored:
    facts = Facts(
        id=id,
        seq=seq,
        file_id=file_id,
        parent_id=parent_id,
        operation=operation,
        moved=bool(moved),
        origin=Origin(run_id, principal_id, tool_call_id),
        created_at=created_at,
        commitment=commitment,
    )
    return Stored(
        facts=facts,
        link=link,
        path=path,
        content=content,
        sha256=sha256,
        size=size,
        salt=salt,
        redacted=redacted_at is not None,
    )
