"""Which records hold a term, and how often."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence

from memshelf.records.retrieval.terms import COUNT_BITS, MOST_COUNTED, TERM_BYTES

try:
    import numpy as np
except ImportError:  # the extra `embed` is not installed
    np = None  # type: ignore[assignment]  # checked before every use

__all__ = ["Postings"]

_WORTH_SORTING = 64
_NOTHING: array[int] = array("I")


class Postings:
    """For each term, one 32-bit number a record: its slot, and below that the term's count, in `COUNT_BITS`."""

    def __init__(self) -> None:
        self._lists: dict[int, array[int]] = {}

    def of(self, term: int) -> array[int]:
        return self._lists.get(term, _NOTHING)

    def add(self, first: int, records: Sequence[bytes]) -> None:
        """Add the records of the slots from `first` on, each with its packed terms."""
        if np is not None and len(records) >= _WORTH_SORTING:
            self._add_sorted(first, records)
            return
        for slot, packed in enumerate(records, first):
            for each in memoryview(packed).cast("I"):
                self._extend(each >> COUNT_BITS, (slot << COUNT_BITS | each & MOST_COUNTED,))

    def _add_sorted(self, first: int, records: Sequence[bytes]) -> None:
        packed = np.frombuffer(b"".join(records), np.uint32).astype(np.uint64)
        lengths = [len(each) // TERM_BYTES for each in records]
        slots = np.repeat(np.arange(first, first + len(records), dtype=np.uint64), lengths)
        # One sort by term, then slot; a stable sort by term alone is several times slower.
        order = (packed >> COUNT_BITS) << 32 | slots << COUNT_BITS | packed & MOST_COUNTED
        order.sort()
        terms = (order >> 32).astype(np.uint32)
        postings = order.astype(np.uint32)
        starts = np.flatnonzero(np.diff(terms, prepend=np.uint32(0xFFFF_FFFF)))
        ends = np.append(starts[1:], len(terms))
        data = memoryview(postings.tobytes()).cast("I")
        for term, start, end in zip(terms[starts].tolist(), starts.tolist(), ends.tolist(), strict=True):
            self._extend(term, data[start:end])

    def _extend(self, term: int, postings: Iterable[int]) -> None:
        known = self._lists.get(term)
        if known is None:
            self._lists[term] = array("I", postings)
        else:
            known.extend(postings)
