"""Reading a memory's whole history out of a database, and writing one into it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from memshelf.errors import MemoryStoreError
from memshelf.files.archive import Archived, Checked, Header
from memshelf.files.backends.sql.changes import INSERT_FILE
from memshelf.files.backends.sql.memory import Head, Memory
from memshelf.files.backends.sql.rows import STORED_FIELDS, stored_of
from memshelf.files.chain import genesis
from memshelf.storage.transaction import Change, Row, Transaction

__all__ = ["Imported", "history", "import_versions"]

_AT_ONCE = 100

_MARKS = ", ".join(f"${number}" for number in range(1, 23))
_INSERT = (
    f"INSERT INTO file_versions (memory_id, {STORED_FIELDS}, redacted_by) VALUES ({_MARKS}) "  # noqa: S608  # marks
    "ON CONFLICT DO NOTHING"
)
_CONTENT = "SELECT id, content FROM file_versions WHERE +memory_id = $1 AND id {key}"


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
    added, live = 0, dict[str, _Standing]()
    if head.seq < archive.head_seq:
        read = iter(versions())
        while several := list(islice(read, _AT_ONCE)):
            if any(each.stored.facts.seq == head.seq and each.stored.link != head.link for each in several):
                raise _another()
            new = [each for each in several if each.stored.facts.seq > head.seq]
            await _insert(memory, new)
            added += len(new)
            for each in several:
                _follow(live, each)
        await _stand(memory, archive, live, described)
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


async def _insert(memory: Memory, versions: Sequence[Archived]) -> None:
    """At once, and so few that their contents may wait together."""
    if not versions:
        return
    await memory.transaction.change(*((_INSERT, _values(memory.id, version)) for version in versions))
    facts = [version.stored.facts for version in versions]
    rows = await memory.all(
        "SELECT seq FROM file_versions WHERE memory_id = $1 AND seq >= $2 AND seq <= $3", facts[0].seq, facts[-1].seq
    )
    inserted = {seq for (seq,) in rows}
    for each in facts:
        if each.seq not in inserted:
            raise MemoryStoreError(
                "conflict", f"Version {each.id} of the archive is in another memory of this database; nothing changed."
            )


def _values(memory_id: int, version: Archived) -> tuple[object, ...]:
    stored, facts = version.stored, version.stored.facts
    origin = facts.origin
    return (
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


class _Standing(NamedTuple):
    """A file after some version of it, and when its first was written."""

    version_id: str
    path: str | None
    size: int | None
    created_at: int


def _follow(live: dict[str, _Standing], version: Archived) -> None:
    stored, facts = version.stored, version.stored.facts
    before = live.pop(facts.file_id, None)
    if facts.operation != "deleted":
        created_at = before.created_at if before is not None else facts.created_at
        live[facts.file_id] = _Standing(facts.id, stored.path, stored.size, created_at)


async def _stand(
    memory: Memory, archive: Checked, live: dict[str, _Standing], described: Callable[[str], str | None]
) -> None:
    """Make the live files and the head what the history says."""
    transaction, files = memory.transaction, list(live.items())
    await transaction.execute("DELETE FROM files WHERE memory_id = $1", memory.id)
    await transaction.execute(
        "INSERT INTO file_places (memory_id, path, file_id) SELECT DISTINCT memory_id, path, file_id "
        "FROM file_versions WHERE memory_id = $1 AND path IS NOT NULL ON CONFLICT DO NOTHING",
        memory.id,
    )
    for start in range(0, len(files), _AT_ONCE):
        several = files[start : start + _AT_ONCE]
        transaction.announce((_CONTENT, (each.version_id,)) for _, each in several)
        changes = list[Change]()
        for file_id, (version_id, path, size, created_at) in several:
            content = await transaction.fetch_keyed(_CONTENT, memory.id, version_id)
            line = described(content[1].decode()) if content is not None else None
            described_as = line.encode() if line is not None else None
            changes.append((INSERT_FILE, (memory.id, path, file_id, version_id, size, described_as, created_at)))
            transaction.forget(version_id)  # so that not all contents are kept
        await transaction.change(*changes)
    await transaction.execute(
        "UPDATE memories SET head_seq = $1, head_link = $2, files = $3 WHERE id = $4",
        archive.head_seq,
        archive.head_link,
        len(files),
        memory.id,
    )


def _archived(row: Row) -> Archived:
    *stored, redacted_at, redacted_by = row
    return Archived(stored_of(*stored), redacted_at, redacted_by)


def _another() -> MemoryStoreError:
    return MemoryStoreError("conflict", "There is another history of this memory than the archive's; nothing changed.")
