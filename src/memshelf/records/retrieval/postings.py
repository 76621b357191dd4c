"""Which records hold a term, and how often."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING

from memshelf.records.retrieval.terms import COUNT_BITS, MOST_COUNTED, TERM_BYTES

try:
    import numpy as np
except ImportError:  # the extra `embed` is not installed
    np = None  # type: ignore[assignment]  # checked before every use

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Postings"]

_WORTH_SORTING = 64
_NOTHING: array[int] = array("I")


class Postings:
    """For each term, one 32-bit number a record: its slot, and below that the term's count, in `COUNT_BITS`."""

    def __init__(self) -> None:
        self._lists: dict[int, array[int]] = {}
        self._sorted: list[NDArray[np.uint64]] = []
        """Of records that came many at once: the numbers, each with its term above it. Each array is at least twice as
        long as the next one, so that there are few to look into, and a number is seldom moved."""

    def of(self, term: int) -> array[int]:
        """In no order."""
        listed = self._lists.get(term, _NOTHING)
        if not self._sorted:
            return listed
        found = listed[:]
        bounds = np.array([term << 32, term + 1 << 32], np.uint64)
        for each in self._sorted:
            first, end = each.searchsorted(bounds)
            found.frombytes(each[first:end].astype(np.uint32).tobytes())
        return found

    def held(self, terms: Sequence[int]) -> list[int]:
        """Those of the terms that any record has, or had."""
        held = [term for term in terms if term in self._lists]
        if self._sorted:
            wanted = np.array(terms, np.uint64)
        for each in self._sorted:
            at = each.searchsorted(wanted << np.uint64(32))
            found = each[np.minimum(at, len(each) - 1)] >> np.uint64(32) == wanted
            held += [term for term, there in zip(terms, found.tolist(), strict=True) if there]
        return list(dict.fromkeys(held))

    def add(self, first: int, records: Sequence[bytes]) -> None:
        """Add the records of the slots from `first` on, each with its packed terms."""
        if np is not None and len(records) >= _WORTH_SORTING:
            self._add_sorted(first, records)
            return
        for slot, packed in enumerate(records, first):
            for each in memoryview(packed).cast("I"):
                posting = slot << COUNT_BITS | each & MOST_COUNTED
                known = self._lists.get(each >> COUNT_BITS)
                if known is None:
                    self._lists[each >> COUNT_BITS] = array("I", (posting,))
                else:
                    known.append(posting)

    def _add_sorted(self, first: int, records: Sequence[bytes]) -> None:
        packed = np.frombuffer(b"".join(records), np.uint32).astype(np.uint64)
        if not len(packed):  # records of signs only
            return
        lengths = [len(each) // TERM_BYTES for each in records]
        slots = np.repeat(np.arange(first, first + len(records), dtype=np.uint64), lengths)
        # One sort by term, then slot; a stable sort by term alone is several times slower.
        added = np.asarray((packed >> COUNT_BITS) << 32 | slots << COUNT_BITS | packed & MOST_COUNTED, np.uint64)
        added.sort()
        while self._sorted and len(self._sorted[-1]) < 2 * len(added):
            added = np.concatenate([self._sorted.pop(), added])
            added.sort(kind="stable")  # which merges two sorted parts
        self._sorted.append(added)
