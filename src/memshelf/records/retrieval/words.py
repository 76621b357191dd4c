"""What the words of a question say of each record. Needs NumPy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from memshelf.records.retrieval import weights
from memshelf.records.retrieval.columns import Columns, Slots, saturated
from memshelf.records.retrieval.index import RecordIndex
from memshelf.records.retrieval.terms import COUNT_BITS, MOST_COUNTED, Asked
from memshelf.records.retrieval.vectors import Floats

__all__ = ["Words"]


class Words:
    """BM25 over records and, for turns of a conversation, over the passage around them and their whole thread."""

    def __init__(self, index: RecordIndex, columns: Columns, terms: Mapping[int, Asked]) -> None:
        self._columns = columns
        self._single = np.zeros(len(index.keys), np.float32)
        self._passage = np.zeros(len(index.keys) if columns.threaded else 0, np.float32)
        self._thread = np.zeros(index.thread_count, np.float32)
        held, count = np.zeros(len(index.keys), np.float32), np.zeros(len(index.keys), np.int32)
        reachable = 0.0
        for term, (weight, sure) in terms.items():
            postings = np.frombuffer(index.postings.of(term), np.uint32)
            slots = (postings >> COUNT_BITS).astype(np.intp)
            there = columns.alive[slots]
            slots, counts = slots[there], (postings[there] & MOST_COUNTED).astype(np.float32)
            if not (sure or len(slots)):
                continue
            rarity = weight * weights.rarity(len(index), len(slots))
            reachable += rarity * (weights.SATURATION + 1)
            if len(slots):
                self._add(slots, counts, rarity)
                if weight > 0.5:  # a single character may be a part of any word
                    held[slots] += rarity
                    count[slots] += int(weight)  # nor is what joins words one of two that make an answer
        best, every = float(self._single.max()), reachable / (weights.SATURATION + 1)
        self.covered = held / np.float32(every) if every else held
        """The share of the question's words, by rarity, that each record has."""
        self.coverage = float(self.covered.max())
        self.count = int(count.max())
        """The largest number of them; a date or a code counts for several."""
        self._scale = weights.scale(reachable, len(index))
        self._trust = weights.trust(best, reachable, len(index))

    def _add(self, slots: Slots, counts: Floats, rarity: float) -> None:
        columns = self._columns
        self._single[slots] += rarity * saturated(counts, columns.norms[slots])
        if not columns.threaded:
            return
        turns = columns.in_thread[slots]
        slots, counts = slots[turns], counts[turns]
        if not len(slots):
            return
        reached, of = columns.passages_of(slots)
        touched, at = np.unique(reached, return_inverse=True)
        tally = np.bincount(at, counts[of]).astype(np.float32)
        self._passage[touched] += rarity * saturated(tally, columns.passage_norms[touched])
        tally = np.bincount(columns.threads[slots], counts, len(self._thread)).astype(np.float32)
        self._thread += rarity * saturated(tally, columns.thread_norms)

    def scores(self) -> Floats:
        columns, single = self._columns, self._single
        if not columns.threaded:
            return single * np.float32(self._scale * self._trust)
        follows = columns.before >= 0
        share = weights.AFTER_TURN + (weights.AFTER_QUESTION - weights.AFTER_TURN) * columns.asks[columns.before]
        handed_on = np.where(follows, share * single[columns.before], 0.0)
        turns = single + handed_on + weights.PASSAGE * self._passage + weights.THREAD * self._thread[columns.threads]
        mixed = np.where(columns.in_thread, weights.IN_THREAD * turns, self._trust * single)
        return np.asarray(self._scale * mixed, np.float32)
