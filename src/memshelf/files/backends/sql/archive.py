"""Reading a memory's whole history out of a database, and writing one into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from memshelf.errors import MemoryStoreError
from memshelf.files.archive import Archived, Checked, Header
from memshelf.files.backends.sql.memory import Head, Memory
from memshelf.files.backends.sql.rows import STORED_FIELDS, stored_of
from memshelf.files.chain import genesis
from memshelf.storage.transaction import Row, Transaction

__all__ = ["Imported", "history", "import_versions"]

_COLUMNS = f"{STORED_FIELDS}, redacted_by"
_MARKS = ", ".join(f"${number}" for number in range(2, 23))


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import did: how many versions it added, to how many that were there."""

    added: int
    present: int


async def history(memory: Memory, after: int, most: int) -> tuple[Head, int, list[Archived]]:
    """Where the history stands, when the memory was made, and the versions that follow `after`."""
    head = await memory.head()
    row = await memory.one("SELECT created_at FROM memories WHERE id = $1")
    rows = await memory.all(
        f"SELECT {STORED_FIELDS}, redacted_at, redacted_by FROM file_versions "  # noqa: S608  # no value
        "WHERE memory_id = $1 AND seq > $2 ORDER BY seq LIMIT $3",
        after,
        most,
    )
    return head, int(row[0]) if row is not None else 0, [_archived(row) for row in rows]


async def import_versions(
    transaction: Transaction,
    memory_id: int | None,
    name: str,
    archive: Checked,
    versions: Callable[[], Iterable[Archived]],
    described: Callable[[str], str | None],
) -> tuple[int, Imported]:
    """Make the memory's history the archive's: all of it, or what follows the part that is there already.

    A history that is there and goes further stays as it is. `conflict` when the two are different histories, or
    when a version of that id is in another memory.
    """
    if memory_id is None:
        memory_id = await _new_memory(transaction, name, archive.header)
    memory = Memory(transaction, memory_id)
    head = await memory.locked()
    if head.seq == 0 and head.epoch != archive.header.epoch:  # nothing is known of it that could differ
        await _begin(memory, archive.header)
        head = await memory.locked()
    if head.epoch != archive.header.epoch:
        raise _another()
    added = 0
    if head.seq < archive.head_seq:
        for version in versions():
            if version.stored.facts.seq > head.seq:
                await _insert(transaction, memory_id, version)
                added += 1
            elif version.stored.facts.seq == head.seq and version.stored.link != head.link:
                raise _another()
        await _follow(memory, archive, described)
    elif archive.head_seq:
        # A link stands for all that comes before it: one link that both have is enough.
        row = await memory.one("SELECT link FROM file_versions WHERE memory_id = $1 AND seq = $2", archive.head_seq)
        if row is None or row[0] != archive.head_link:
            raise _another()
    return memory_id, Imported(added, head.seq)


async def _new_memory(transaction: Transaction, name: str, header: Header) -> int:
    await transaction.execute(
        "INSERT INTO memories (name, epoch, head_seq, head_link, created_at) VALUES ($1, $2, 0, $3, $4)",
        name,
        header.epoch,
        genesis(header.epoch),
        header.created_at,
    )
    row = await transaction.fetch_one("SELECT id FROM memories WHERE name = $1", name)
    assert row is not None  # noqa: S101  # it was inserted
    return int(row[0])


async def _begin(memory: Memory, header: Header) -> None:
    await memory.transaction.execute(
        "UPDATE memories SET epoch = $1, head_link = $2, created_at = $3 WHERE id = $4",
        header.epoch,
        genesis(header.epoch),
        header.created_at,
        memory.id,
    )
    memory.stands = memory.last = None


async def _insert(transaction: Transaction, memory_id: int, version: Archived) -> None:
    stored, facts = version.stored, version.stored.facts
    origin = facts.origin
    inserted = await transaction.execute(
        f"INSERT INTO file_versions (memory_id, {_COLUMNS}) VALUES ($1, {_MARKS}) ON CONFLICT DO NOTHING",  # noqa: S608  # marks
        memory_id,
        facts.id,
        facts.seq,
        facts.file_id,
        facts.parent_id,
        facts.operation,
        int(facts.moved),
        facts.created_at,
        facts.commitment,
        stored.link,
        stored.path,
        stored.content,
        stored.sha256,
        stored.size,
        stored.salt,
        version.redacted_at,
        origin.run_id,
        origin.principal_id,
        origin.tool_call_id,
        origin.session_id,
        origin.api_key_id,
        version.redacted_by,
    )
    if not inserted:
        raise MemoryStoreError(
            "conflict", f"Version {facts.id} of the archive is in another memory of this database; nothing changed."
        )


async def _follow(memory: Memory, archive: Checked, described: Callable[[str], str | None]) -> None:
    """Make the live files and the head what the history says."""
    execute = memory.transaction.execute
    await execute("DELETE FROM files WHERE memory_id = $1", memory.id)
    rows = await memory.all(
        "SELECT v.file_id, v.id, v.path, v.size, ends.first FROM file_versions v JOIN "
        "(SELECT file_id, max(seq) AS last, min(created_at) AS first FROM file_versions WHERE memory_id = $1 "
        "GROUP BY file_id) ends ON ends.last = v.seq WHERE v.memory_id = $1 AND v.operation <> 'deleted'"
    )
    await execute(
        "INSERT INTO file_places (memory_id, path, file_id) SELECT DISTINCT memory_id, path, file_id "
        "FROM file_versions WHERE memory_id = $1 AND path IS NOT NULL ON CONFLICT DO NOTHING",
        memory.id,
    )
    for file_id, version_id, path, size, first in rows:
        content = await memory.one("SELECT content FROM file_versions WHERE memory_id = $1 AND id = $2", version_id)
        line = described(content[0].decode()) if content is not None else None
        await execute(
            "INSERT INTO files (memory_id, path, file_id, version_id, size, description, created_at) "
            "VALUES ($1, $2, $3, $4, $5, $6, $7)",
            memory.id,
            path,
            file_id,
            version_id,
            size,
            line.encode() if line is not None else None,
            first,
        )
    await execute(
        "UPDATE memories SET head_seq = $1, head_link = $2, files = $3 WHERE id = $4",
        archive.head_seq,
        archive.head_link,
        len(rows),
        memory.id,
    )


def _archived(row: Row) -> Archived:
    *stored, redacted_at, redacted_by = row
    return Archived(stored_of(*stored), redacted_at, redacted_by)


def _another() -> MemoryStoreError:
    return MemoryStoreError("conflict", "There is another history of this memory than the archive's; nothing changed.")
