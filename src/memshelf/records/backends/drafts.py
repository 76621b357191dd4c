"""What every store of our own does with a record before it keeps it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from memshelf.credentials import SecretsPolicy
from memshelf.errors import MemoryStoreError
from memshelf.records.model import MemoryRecord, NewRecord
from memshelf.records.retrieval.analysis import Analysis, analyse
from memshelf.records.retrieval.index import Entry
from memshelf.records.text import admitted_text
from memshelf.storage.ids import from_micros, micros

__all__ = ["Draft", "draft_all"]

_QUICK_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Draft:
    """A record that may be kept, and what recall takes of it. Times are microseconds since 1970; one without
    `updated_at` was written when it is added."""

    new: NewRecord
    at: int
    updated_at: int | None
    analysis: Analysis

    @classmethod
    def of(cls, new: NewRecord, max_chars: int, now: int, secrets: SecretsPolicy) -> Draft:
        """`invalid_text`. The record is of `now` unless it says when it happened."""
        text = admitted_text(new.text, max_chars=max_chars, secrets=secrets)
        if text != new.text:
            new = replace(new, text=text)
        if new.thread is not None and not new.thread.isprintable():
            raise MemoryStoreError("invalid_text", "A thread's name is printable; nothing changed.")
        at, updated_at = _micros(new.at), _micros(new.updated_at)
        return cls(new, now if at is None else at, updated_at, analyse(new.text, turn=new.thread is not None))

    def record(self, record_id: str, now: int) -> MemoryRecord:
        return MemoryRecord(
            record_id,
            self.new.text,
            updated_at=from_micros(self.written_at(now)),
            at=from_micros(self.at),
            thread=self.new.thread,
            origin=self.new.origin,
            revised=self.new.revised,
        )

    def written_at(self, now: int) -> int:
        return now if self.updated_at is None else self.updated_at

    def entry(self, key: int, replaced_by: int | None, vectors: bytes | None, revised_at: int | None) -> Entry:
        analysis = self.analysis
        return Entry(
            key,
            self.at,
            analysis.terms,
            self.new.thread,
            analysis.speaker,
            analysis.asks,
            replaced_by,
            vectors,
            revised_at,
        )


def _micros(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    try:
        return micros(moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC))
    except OverflowError:
        raise MemoryStoreError("invalid_text", "A record's time has a year from 1 to 9999; nothing changed.") from None


async def draft_all(records: Iterable[NewRecord], max_chars: int, now: int, *, secrets: SecretsPolicy) -> list[Draft]:
    """A draft of each; a long text, or many, are taken apart off the event loop. `invalid_text`."""
    new = list(records)
    if stray := next((each for each in new if not isinstance(each, NewRecord)), None):
        raise TypeError(f"Each record to add is a NewRecord, not {type(stray).__name__}.")
    if sum(len(each.text) for each in new) <= _QUICK_CHARS:
        return [Draft.of(each, max_chars, now, secrets) for each in new]
    return await asyncio.to_thread(lambda: [Draft.of(each, max_chars, now, secrets) for each in new])
