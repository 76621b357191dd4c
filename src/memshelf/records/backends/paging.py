"""What every store says of cursors and records that are not there."""

from __future__ import annotations

from typing import Final

from memshelf.arguments import checked_argument
from memshelf.errors import MemoryStoreError

__all__ = ["FOUND", "LISTED", "cursor_position", "page_cursor", "record_missing"]


FOUND: Final = 10
LISTED: Final = 50
"""How many records a search finds, and how many a page has, where nobody says."""

_ECHOED_CHARS = 100


def record_missing(record_id: str) -> MemoryStoreError:
    return MemoryStoreError(
        "record_not_found", f"There is no record {record_id[:_ECHOED_CHARS]!r} here; nothing changed."
    )


def page_cursor(epoch: str, position: int) -> str:
    return f"{epoch}:{position}"


def cursor_position(cursor: str | None, epoch: str) -> int:
    """The position after which a page begins. `invalid_cursor`."""
    if cursor is None:
        return 0
    of_epoch, _, position = checked_argument("cursor", cursor, str).rpartition(":")
    if of_epoch != epoch or not (position.isascii() and position.isdecimal()) or len(position) > 18:
        raise MemoryStoreError("invalid_cursor", "The cursor is not of this record memory.")
    return int(position)
