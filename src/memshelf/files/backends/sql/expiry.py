"""Which versions of a memory are past, a part of its history at a time."""

from __future__ import annotations

from dataclasses import dataclass

from memshelf.files.backends.sql.memory import Memory

__all__ = ["Past", "past"]


@dataclass(frozen=True, slots=True)
class Past:
    """A version that may be erased: its id, its file's, and how many bytes of content it has."""

    id: str
    file_id: str
    size: int


async def past(memory: Memory, after: int, until: int, before: int, recent: int) -> list[Past]:
    """The versions with numbers over `after`, up to `until`, that no file has held since the time `before`; without the
    `recent` newest of each file that is still there, and without those that are erased already.

    What is past stays past, so that it may be erased in another transaction: no file that was deleted comes back under
    its id, and what is written later is newer.
    """
    # The plus keeps an engine from choosing the index over times: the numbers bound what is looked at.
    rows = await memory.all(
        "SELECT v.id, v.file_id, v.size FROM file_versions v WHERE v.memory_id = $1 AND v.seq > $2 AND v.seq <= $3 "
        "AND v.redacted_at IS NULL AND +v.created_at < $4 AND (v.operation = 'deleted' OR EXISTS "
        "(SELECT 1 FROM file_versions n WHERE n.memory_id = $1 AND n.file_id = v.file_id AND n.seq > v.seq "
        "AND +n.created_at < $4)) AND (NOT EXISTS "
        "(SELECT 1 FROM files f WHERE f.memory_id = $1 AND f.file_id = v.file_id) OR EXISTS "
        "(SELECT 1 FROM file_versions n WHERE n.memory_id = $1 AND n.file_id = v.file_id AND n.seq > v.seq "
        "LIMIT 1 OFFSET $5)) ORDER BY v.seq",
        after,
        until,
        before,
        recent - 1,
    )
    return [Past(id, file_id, size or 0) for id, file_id, size in rows]
