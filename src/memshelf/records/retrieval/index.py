"""What a search needs of the records of one namespace, in memory. One thread at a time."""

from __future__ import annotations

from array import array
from bisect import insort
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from memshelf.records.retrieval.days import EPOCH_DAY, MICROS_A_DAY
from memshelf.records.retrieval.offsets import Offsets
from memshelf.records.retrieval.postings import Postings
from memshelf.records.retrieval.terms import TERM_BYTES

if TYPE_CHECKING:
    from memshelf.records.retrieval.vectors import Table

__all__ = ["Entry", "RecordIndex"]

_NONE = -1


class Entry(NamedTuple):
    """One record, as the index takes it. `key` numbers records in the order they were added.

    `at` is in microseconds since 1970, `terms` are packed, `vectors` are rows of float16: the whole text, then its
    sentences; `None` when there are none yet. `revised_at` is when an update last gave the record another text.
    """

    key: int
    at: int
    terms: bytes
    thread: str | None = None
    speaker: str | None = None
    asks: bool = False
    replaced_by: int | None = None
    vectors: bytes | None = None
    revised_at: int | None = None


class RecordIndex:
    """Records take slots in the order they come; a changed record takes a new one, and its old slot stays dead.

    Columns are arrays of the standard library, which grow cheaply; with NumPy they are viewed without a copy.
    """

    def __init__(self, table: Table | None = None) -> None:
        """`table` keeps the vectors; without it the search is lexical."""
        self.table = table
        self.postings = Postings()
        self.keys = array("q")
        self.at = array("q")
        self.lengths = array("I")
        self.threads = array("i")
        self.before = array("i")
        self.after = array("i")
        self.speakers = array("i")
        self.asks = array("B")
        self.alive = array("B")
        self.speaker_names: dict[str, int] = {}
        self.replaced: dict[int, int] = {}
        """The slot of a replaced record, and the key of the one that replaces it."""
        self._revised: dict[int, int] = {}
        self.version = 0
        """Grows with every change."""
        self._slots: dict[int, int] = {}
        self._thread_ids: dict[str, int] = {}
        self._members: list[list[tuple[int, int, int]]] = []
        self._first, self._last = 1 << 62, -(1 << 62)

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def thread_count(self) -> int:
        return len(self._members)

    @property
    def wasteful(self) -> bool:
        """More than half of the slots are dead: it is time to build the index anew."""
        return len(self.keys) > 1_000 and len(self.keys) > 2 * len(self)

    def slot(self, key: int) -> int | None:
        return self._slots.get(key)

    def day(self, slot: int, offsets: Offsets) -> int:
        """The proleptic ordinal of a record's day in a time zone."""
        return (self.at[slot] + offsets.at(self.at[slot])) // MICROS_A_DAY + EPOCH_DAY

    def recency(self, slot: int) -> int:
        """How new what a record says is: when it happened, or when it was last put in other words."""
        return self._revised.get(slot, self.at[slot])

    def days(self) -> tuple[int, int]:
        """The first and last day of any record that was ever here."""
        return self._first // MICROS_A_DAY + EPOCH_DAY, self._last // MICROS_A_DAY + EPOCH_DAY

    def put(self, entries: Sequence[Sequence[Any]]) -> None:
        """Add records, or put them in the place of those with the same keys. No key stands twice.

        Each is an `Entry`, or a row of a database that begins with the same columns: 100,000 are not made anew.
        """
        if not entries:
            return
        self.version += 1
        columns = ([each[at] for each in entries] for at in range(len(Entry._fields)))
        keys, times, terms, threads, speakers, asks, replaced, vectors, revised = columns
        for key in keys:
            if key in self._slots:
                self._forget(key)
        first, count = len(self.keys), len(entries)
        self._first, self._last = min(self._first, *times), max(self._last, *times)
        self._slots.update(zip(keys, range(first, first + count), strict=True))
        self.keys.extend(keys)
        self.at.extend(times)
        self.lengths.extend([len(each) // TERM_BYTES for each in terms])
        self.asks.extend(asks)
        self.alive.extend([1] * count)
        for column in (self.threads, self.speakers, self.before, self.after):
            column.extend([_NONE] * count)
        for slot, thread in enumerate(threads, first):
            if thread is not None:
                self._join(thread, slot)
        for slot, speaker in enumerate(speakers, first):
            if speaker is not None:
                self.speakers[slot] = self.speaker_names.setdefault(speaker, len(self.speaker_names))
        self.replaced.update((slot, by) for slot, by in enumerate(replaced, first) if by is not None)
        self._revised.update((slot, at) for slot, at in enumerate(revised, first) if at is not None)
        if self.table is not None:
            self.table.extend(vectors)
        self.postings.add(first, terms)

    def remove(self, keys: Iterable[int]) -> None:
        self.version += 1
        for key in keys:
            self._forget(key)

    def _forget(self, key: int) -> None:
        slot = self._slots.pop(key, None)
        if slot is None:
            return
        self.alive[slot] = 0
        self.replaced.pop(slot, None)
        self._revised.pop(slot, None)
        if (thread := self.threads[slot]) != _NONE:
            self._members[thread].remove((self.at[slot], key, slot))
            self._link(self.before[slot], self.after[slot])

    def _join(self, name: str, slot: int) -> None:
        """Take the place in the thread that the time gives; of one time, in the order of adding."""
        thread = self._thread_ids.setdefault(name, len(self._members))
        if thread == len(self._members):
            self._members.append([])
        self.threads[slot] = thread
        members = self._members[thread]
        place = (self.at[slot], self.keys[slot], slot)
        insort(members, place)
        at = len(members) - 1
        if members[at] != place:
            at = members.index(place)
        self._link(members[at - 1][2] if at else _NONE, slot)
        self._link(slot, members[at + 1][2] if at + 1 < len(members) else _NONE)

    def _link(self, before: int, after: int) -> None:
        if before != _NONE:
            self.after[before] = after
        if after != _NONE:
            self.before[after] = before
