"""The contract of a record memory. These docstrings are what `memshelf.testing` checks."""

from __future__ import annotations

import builtins
from collections.abc import Iterable
from datetime import datetime
from typing import Protocol, runtime_checkable

from memshelf.origin import Origin
from memshelf.records.model import MemoryRecord, NewRecord, RecordPage

__all__ = ["RecallRecordStore", "RecordStore"]


@runtime_checkable
class RecordStore(Protocol):
    """The records of one namespace.

    A record of another namespace does not exist here, whatever its id. There are no versions: the last write wins. A
    mutation that returns is visible to every later call of every process; one whose outcome is unknown is
    `write_unconfirmed` and is never tried again. A refusal raises `MemoryStoreError` and changes nothing.

    Besides the codes named below, every call may raise `unavailable` (the store could not do it now). A `limit` that is
    no whole number from 1 on is a `ValueError`.
    """

    async def search(self, query: str, *, limit: int) -> builtins.list[MemoryRecord]:
        """At most `limit` records closest in meaning, closest first, each with its `score`.

        Fewer, or none, when nothing is close. A blank query finds nothing.
        """
        ...

    async def list(self, *, limit: int, cursor: str | None = None) -> RecordPage:
        """At most `limit` records in the order they were added, and the cursor of the next page.

        Pages that follow one cursor after another show each record that is there throughout exactly once, whatever is
        added or removed in between. `invalid_cursor` for a cursor that is not of this namespace.
        """
        ...

    async def add(self, text: str) -> MemoryRecord:
        """Store one record with exactly `text`. The same text twice is two records. `invalid_text`."""
        ...

    async def update(self, record_id: str, text: str) -> MemoryRecord:
        """Replace the whole text. `record_not_found`, `invalid_text`."""
        ...

    async def delete(self, record_id: str) -> None:
        """Remove the record. `record_not_found`."""
        ...

    async def purge(self) -> None:
        """Remove every record of the namespace, leaving nothing of them behind, and no others."""
        ...


@runtime_checkable
class RecallRecordStore(RecordStore, Protocol):
    """A record memory that uses when, where and from whom a record is."""

    async def search(self, query: str, *, limit: int, now: datetime | None = None) -> builtins.list[MemoryRecord]:
        """As `RecordStore.search`. Times in the query ("last week", "上周三", "in May") count from `now`, in days of
        its time zone, and favour records of those times; no record is left out for its time.

        A record that another one replaces comes after it, and brings it along. Of equally close records, the newer
        one comes first; an update makes a record as new as it is itself.
        """
        ...

    async def add(
        self,
        text: str,
        *,
        at: datetime | None = None,
        thread: str | None = None,
        origin: Origin | None = None,
        replaces: str | None = None,
    ) -> MemoryRecord:
        """As `RecordStore.add`, with the fields of `NewRecord`. `record_not_found` when there is none to replace."""
        ...

    async def update(self, record_id: str, text: str, *, origin: Origin | None = None) -> MemoryRecord:
        """As `RecordStore.update`. `origin` is whom the new text is from; without it, the record keeps its own."""
        ...

    async def add_many(self, records: Iterable[NewRecord]) -> builtins.list[MemoryRecord]:
        """Add all of them or, when one is refused, none. With `updated_at`, a record from elsewhere stays as old as it
        was there; an update starts anew."""
        ...
