"""The lexical part of the mix without NumPy: the same words, times and turns, over the records that match."""

from __future__ import annotations

import heapq
from itertools import compress
from statistics import median

from memshelf.records.retrieval import weights
from memshelf.records.retrieval.index import RecordIndex
from memshelf.records.retrieval.question import Question, Sentence
from memshelf.records.retrieval.terms import COUNT_BITS, MOST_COUNTED
from memshelf.records.retrieval.times import closeness

__all__ = ["PlainScorer"]


class PlainScorer:
    """Scores the slots of an index. Passages and whole threads are left to `scoring`."""

    def __init__(self, index: RecordIndex) -> None:
        self._index = index

    def rank(self, question: Question, limit: int) -> list[tuple[int, float]]:
        """At most `limit` slots that answer the question best, in no order, with their scores."""
        scores: dict[int, float] = {}
        asks = any(sentence.asks for sentence in question.sentences)
        for sentence in question.sentences:
            aside = (asks - sentence.asks) / 2
            for slot, score in self._scores(sentence, aside, alone=len(question.sentences) == 1).items():
                scores[slot] = max(score, scores.get(slot, score))
        return heapq.nlargest(limit, scores.items(), key=lambda item: item[1])

    def _scores(self, sentence: Sentence, aside: float, *, alone: bool) -> dict[int, float]:
        index = self._index
        single, reachable = self._words(sentence)
        named = self._named(sentence)
        if not (single or named):
            return {}
        scale = weights.scale(reachable, len(index))
        scores = dict.fromkeys(named, 0.0) | {slot: scale * score for slot, score in single.items()}
        for slot, score in single.items():
            after = index.after[slot]
            if after >= 0:
                share = weights.AFTER_QUESTION if index.asks[slot] else weights.AFTER_TURN
                scores[after] = scores.get(after, 0.0) + scale * share * score
        usual = 0.0
        if not alone and sentence.times:  # a time that most records are of would hide what the other sentences say
            usual = median(self._timely(slot, sentence) for slot in compress(range(len(index.alive)), index.alive))
        for slot in scores:
            if sentence.times:
                timely = weights.TIME * (self._timely(slot, sentence) - usual) + weights.NAMED * named.get(slot, 0.0)
                scores[slot] += (1 - weights.ASIDE * aside) * timely
            if index.asks[slot]:
                scores[slot] += weights.ASKING
            if sentence.speaker is not None and index.speakers[slot] == sentence.speaker:
                scores[slot] += weights.SPEAKER
        return scores

    def _timely(self, slot: int, sentence: Sentence) -> float:
        return closeness(self._index.day(slot, sentence.offsets), sentence.times)

    def _named(self, sentence: Sentence) -> dict[int, float]:
        """How much the days that records name are those that the sentence asks for."""
        named: dict[int, float] = {}
        for term, says in sentence.named.items():
            for posting in self._index.postings.of(term):
                slot = posting >> COUNT_BITS
                if self._index.alive[slot]:
                    named[slot] = max(says, named.get(slot, 0.0))
        return named

    def _words(self, sentence: Sentence) -> tuple[dict[int, float], float]:
        index = self._index
        records, k1, b = len(index), weights.SATURATION, weights.LENGTH_WEIGHT
        average = max(sum(compress(index.lengths, index.alive)) / max(len(index), 1), 1.0)
        single: dict[int, float] = {}
        reachable = 0.0
        for term, (weight, sure) in sentence.terms.items():
            postings = [each for each in index.postings.of(term) if index.alive[each >> COUNT_BITS]]
            if not (sure or postings):
                continue
            rarity = weight * weights.rarity(records, len(postings))
            reachable += rarity * (k1 + 1)
            for posting in postings:
                slot, count = posting >> COUNT_BITS, posting & MOST_COUNTED
                norm = k1 * (1 - b + b * index.lengths[slot] / average)
                single[slot] = single.get(slot, 0.0) + rarity * count * (k1 + 1) / (count + norm)
        return single, reachable
