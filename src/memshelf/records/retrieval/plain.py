"""The lexical part of the mix without NumPy: the same words, times and turns, over the records that match."""

from __future__ import annotations

import heapq

from memshelf.records.retrieval import weights
from memshelf.records.retrieval.index import RecordIndex
from memshelf.records.retrieval.question import Question
from memshelf.records.retrieval.terms import COUNT_BITS, MOST_COUNTED
from memshelf.records.retrieval.times import closeness

__all__ = ["PlainScorer"]


class PlainScorer:
    """Scores the slots of an index. Passages and whole threads are left to `scoring`."""

    def __init__(self, index: RecordIndex) -> None:
        self._index = index

    def rank(self, question: Question, limit: int) -> list[tuple[int, float]]:
        index = self._index
        single, reachable = self._words(question)
        if not single:
            return []
        scale = weights.scale(reachable, len(index))
        scores = {slot: scale * score for slot, score in single.items()}
        for slot, score in single.items():
            after = index.after[slot]
            if after >= 0:
                share = weights.AFTER_QUESTION if index.asks[slot] else weights.AFTER_TURN
                scores[after] = scores.get(after, 0.0) + scale * share * score
        for slot in scores:
            if question.times:
                scores[slot] += weights.TIME * closeness(index.day(slot), question.times)
            if index.asks[slot]:
                scores[slot] += weights.ASKING
            if question.speaker is not None and index.speakers[slot] == question.speaker:
                scores[slot] += weights.SPEAKER
        return heapq.nlargest(limit, scores.items(), key=lambda item: item[1])

    def _words(self, question: Question) -> tuple[dict[int, float], float]:
        index = self._index
        records, k1, b = len(index), weights.SATURATION, weights.LENGTH_WEIGHT
        average = max(sum(index.lengths) / max(len(index.lengths), 1), 1.0)
        single: dict[int, float] = {}
        reachable = 0.0
        for term, weight in question.terms.items():
            postings = [each for each in index.postings.of(term) if index.alive[each >> COUNT_BITS]]
            rarity = weight * weights.rarity(records, len(postings))
            reachable += rarity * (k1 + 1)
            for posting in postings:
                slot, count = posting >> COUNT_BITS, posting & MOST_COUNTED
                norm = k1 * (1 - b + b * index.lengths[slot] / average)
                single[slot] = single.get(slot, 0.0) + rarity * count * (k1 + 1) / (count + norm)
        return single, reachable
