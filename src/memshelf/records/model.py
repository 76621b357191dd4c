"""The values of record memory. All are frozen; ids and cursors are opaque to everyone but the store."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from memshelf.origin import Origin

__all__ = ["MemoryRecord", "NewRecord", "RecordPage"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRecord:
    """A record to add, and what recall may know of it.

    `at` is when it happened, if not now; a time without a zone is UTC. `thread` names the conversation that it is a
    turn of. `replaces` is the id of a record that it corrects. Of a record that comes from elsewhere, `updated_at` is
    when it was last written there, and `revised` whether that gave it another text, as an update does. A field of
    another type is a `TypeError`.
    """

    text: str
    at: datetime | None = None
    thread: str | None = None
    origin: Origin | None = None
    replaces: str | None = None
    updated_at: datetime | None = None
    revised: bool = False

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            value = getattr(self, name)
            if not isinstance(value, kind) and (value is not None or name in ("text", "revised")):
                raise TypeError(f"The `{name}` of a record is of type {kind.__name__}, not {type(value).__name__}.")


_KINDS = {
    "text": str,
    "at": datetime,
    "thread": str,
    "origin": Origin,
    "replaces": str,
    "updated_at": datetime,
    "revised": bool,
}


@dataclass(frozen=True, slots=True)
class MemoryRecord:
    """A record as it was when it was read.

    `score`, between 0 and 1, is set in the answers of a search: the closer, the higher. Scores of one search compare
    with each other; across searches and stores they do not. `replaced_by` is the record that corrects this one.
    `revised` says that an update gave it another text, at `updated_at`.
    """

    id: str
    text: str
    score: float | None = None
    updated_at: datetime | None = None
    at: datetime | None = None
    thread: str | None = None
    origin: Origin | None = None
    replaced_by: str | None = None
    revised: bool = False


@dataclass(frozen=True, slots=True)
class RecordPage:
    """Records, and the cursor of the page after them; `None` on the last one."""

    records: tuple[MemoryRecord, ...]
    next_cursor: str | None = None
