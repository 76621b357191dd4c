"""What changes a file memory in a SQLite database, each within one transaction."""

from __future__ import annotations

import hashlib
import sqlite3

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.sqlite_memory import Live, Memory, find_memory
from memshelf.files.chain import SALT_BYTES, Facts, commitment, genesis, link
from memshelf.files.decide import Commit, Request, Write, decide, replay
from memshelf.files.model import Version
from memshelf.limits import FileFormat
from memshelf.origin import Origin
from memshelf.storage.ids import Mint

__all__ = ["apply", "create_memory", "purge", "redact", "restore"]


def create_memory(connection: sqlite3.Connection, name: str, mint: Mint) -> int:
    """The id of the memory of that name, which is there from now on."""
    epoch = mint.random(16).hex()
    connection.execute(
        "INSERT INTO memories (name, epoch, head_seq, head_link, created_at) VALUES (?, ?, 0, ?, ?) "
        "ON CONFLICT (name) DO NOTHING",
        (name, epoch, genesis(epoch), mint.now()),
    )
    found = find_memory(connection, name)
    assert found is not None  # noqa: S101  # it was inserted, or was there
    return found


def apply(memory: Memory, request: Request, origin: Origin, mint: Mint) -> str:
    """Decide on a request and do it: the version that now stands, or that this tool call wrote when it came first."""
    if (recorded := memory.recorded(origin)) is not None:
        return replay(request, recorded)
    before = memory.live(request.loads)
    commit = decide(request, before.file if before is not None else None, memory.in_the_way(request.must_be_free))
    if commit is None:
        assert before is not None  # noqa: S101  # only an existing file can already be as asked
        return before.file.version
    if isinstance(request, Write):
        description = request.description
    else:
        description = before.description if before is not None else None
    return _record(memory, commit, before, description, origin, mint)


def restore(
    memory: Memory, version_id: str, expected: str | None, origin: Origin, format: FileFormat, mint: Mint
) -> str:
    version = memory.version(version_id)
    if version.path is None or version.text is None:
        raise MemoryStoreError("not_found", f"Version {version_id} has no content to restore; nothing changed.")
    return apply(memory, Write.checked(version.path, version.text, expected, format), origin, mint)


def _record(
    memory: Memory, commit: Commit, before: Live | None, description: str | None, origin: Origin, mint: Mint
) -> str:
    """Append a version to the history and make the live files follow it."""
    head, now, salt = memory.head(), mint.now(), mint.random(SALT_BYTES)
    content = commit.data if commit.operation != "deleted" else None
    sha256 = hashlib.sha256(content).hexdigest() if content is not None else None
    size = len(content) if content is not None else None
    facts = Facts(
        id=mint.id("ver", now),
        seq=head.seq + 1,
        file_id=before.file_id if before is not None else mint.id("fil", now),
        parent_id=before.file.version if before is not None else None,
        operation=commit.operation,
        moved=commit.source is not None,
        origin=origin,
        created_at=now,
        commitment=commitment(salt, commit.path, sha256, size),
    )
    sealed = link(head.link, facts)
    execute = memory.connection.execute
    execute(
        "INSERT INTO file_versions (memory_id, seq, id, file_id, parent_id, operation, moved, path, sha256, size, "
        "salt, commitment, link, run_id, principal_id, tool_call_id, created_at, content) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            memory.id,
            facts.seq,
            facts.id,
            facts.file_id,
            facts.parent_id,
            facts.operation,
            facts.moved,
            commit.path,
            sha256,
            size,
            salt,
            facts.commitment,
            sealed,
            origin.run_id,
            origin.principal_id,
            origin.tool_call_id,
            now,
            content,
        ),
    )
    execute("UPDATE memories SET head_seq = ?, head_link = ? WHERE id = ?", (facts.seq, sealed, memory.id))
    if before is not None and (commit.operation == "deleted" or facts.moved):
        execute("DELETE FROM files WHERE memory_id = ? AND path = ?", (memory.id, before.file.path))
    if commit.operation != "deleted":
        execute(
            "INSERT INTO files (memory_id, path, file_id, version_id, size, description) VALUES (?, ?, ?, ?, ?, ?) "
            "ON CONFLICT (memory_id, path) DO UPDATE SET version_id = excluded.version_id, size = excluded.size, "
            "description = excluded.description",
            (memory.id, commit.path, facts.file_id, facts.id, size, description),
        )
    return facts.id


def redact(memory: Memory, version_id: str, by: str, mint: Mint) -> Version:
    version = memory.version(version_id)
    if version.redacted_at is not None:
        return version
    live = memory.live(version.path)
    if live is not None and live.file.version == version_id:
        raise MemoryStoreError(
            "forbidden",
            f"Version {version_id} is what its file holds now; nothing changed. Change or delete the file first.",
        )
    memory.connection.execute(
        "UPDATE file_versions SET path = NULL, sha256 = NULL, size = NULL, salt = NULL, content = NULL, "
        "redacted_at = ?, redacted_by = ? WHERE memory_id = ? AND id = ?",
        (mint.now(), by, memory.id, version_id),
    )
    _want_erasure(memory)
    return memory.version(version_id)


def purge(memory: Memory, mint: Mint) -> None:
    """Remove the files and the history, and begin a new one, in which no cursor of the old one is known."""
    memory.head()
    epoch = mint.random(16).hex()
    execute = memory.connection.execute
    execute("DELETE FROM files WHERE memory_id = ?", (memory.id,))
    execute("DELETE FROM file_versions WHERE memory_id = ?", (memory.id,))
    execute(
        "UPDATE memories SET epoch = ?, head_seq = 0, head_link = ? WHERE id = ?", (epoch, genesis(epoch), memory.id)
    )
    _want_erasure(memory)


def _want_erasure(memory: Memory) -> None:
    memory.connection.execute("UPDATE erasures SET wanted = wanted + 1")
