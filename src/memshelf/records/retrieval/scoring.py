"""The mix of scores, over all records at once. Needs NumPy; `plain` is the lexical part of it without."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memshelf.records.retrieval import weights
from memshelf.records.retrieval.columns import Columns, Slots
from memshelf.records.retrieval.days import Stretch
from memshelf.records.retrieval.index import RecordIndex
from memshelf.records.retrieval.question import Meaning, Question, Sentence
from memshelf.records.retrieval.terms import COUNT_BITS
from memshelf.records.retrieval.times import fading, specificity
from memshelf.records.retrieval.vectors import Floats, Table
from memshelf.records.retrieval.words import Words

__all__ = ["Scorer"]

_PRIOR_RECORDS, _PRIOR_MEAN, _PRIOR_DEVIATION = 20, 0.05, 0.09
"""What closeness is like where there are too few records to tell."""


class Scorer:
    """Scores the slots of an index. What follows from the index alone is kept until it changes."""

    def __init__(self, index: RecordIndex) -> None:
        self._index = index
        self._columns: Columns | None = None

    def rank(self, question: Question, limit: int) -> list[tuple[int, float]]:
        """At most `limit` slots that answer the question best, in no order, with their scores."""
        index = self._index
        if not len(index):
            return []
        if self._columns is None or self._columns.version != index.version:
            self._columns = Columns(index)
        columns = self._columns
        asked = [  # by its question mark, which does not tell "How are you?" from a question, and by what it means
            each.asks / 2 + (each.meaning.asked_of_memory if each.meaning is not None else 0.0)
            for each in question.sentences
        ]
        found = [
            self._without_meaning(each, columns, max(asked) - own, alone=len(asked) == 1)
            for each, own in zip(question.sentences, asked, strict=True)
        ]
        scores, matched, evidence = zip(*found, strict=True)
        best = np.maximum.reduce(scores)
        meanings = [each.meaning for each in question.sentences if each.meaning is not None]
        if not meanings or index.table is None:
            return _best(np.flatnonzero(columns.alive & np.logical_or.reduce(matched)), best, limit)
        said = [question.evidence + each for each in evidence]
        return self._with_meaning(meanings, question.whole, index.table, columns, best, said, limit)

    def _without_meaning(
        self, sentence: Sentence, columns: Columns, aside: float, *, alone: bool
    ) -> tuple[Floats, NDArray[np.bool_], float]:
        """The scores of all slots by words and times, which of them share a word with the sentence, and what there is
        for its being a question to the memory besides closeness in meaning.

        `aside` is how much less the sentence asks than another one of the message.
        """
        words = Words(self._index, columns, sentence.terms)
        scores = words.scores()
        matched = scores > 0
        if alone:  # beside others, a short sentence is no name of what is looked for
            whole = np.maximum(words.covered - np.float32(weights.WHOLE_FROM), 0) / np.float32(1 - weights.WHOLE_FROM)
            scores += np.float32(weights.WHOLE) * np.where(columns.in_thread, 0, whole)
        part = np.where(columns.in_thread, np.float32(weights.IN_THREAD), np.float32(1))
        scores += weights.ASKING * part * columns.asks
        timely = np.zeros(len(scores), np.float32)
        if sentence.times:
            timely = _in_time(columns.days(sentence.offsets), sentence.times)
        timeliest, told = float((timely * columns.alive).max()), False
        if not alone and sentence.times:  # a time that most records are of would hide what the other sentences say
            timely -= np.median(timely[columns.alive])
        meant = max(0.0, 1 - weights.ASIDE * aside) * part
        scores += meant * weights.TIME * timely
        if sentence.named:
            named = self._named(sentence.named)
            scores += meant * weights.NAMED * named
            matched |= named > 0
            nearest = float((named * columns.alive).max())
            timeliest, told = max(timeliest, nearest), nearest > 0 and not sentence.about
        if sentence.speaker is not None:
            scores += weights.SPEAKER * part * (columns.speakers == sentence.speaker)
        covered = words.coverage >= weights.COVERED_ENOUGH or words.count >= weights.WORDS_ENOUGH
        if covered or told or (sentence.dated and timeliest == 1.0):
            return scores, matched, math.inf
        evidence = weights.COVERED * words.coverage + weights.SPEAKS_OF_SOMEBODY * sentence.speaks_of_somebody
        if not sentence.about or self._index.postings.held(sentence.about):
            evidence += weights.IN_TIME * timeliest  # not if it asks for something of that time that no record tells
        return scores, matched, evidence

    def _named(self, terms: Mapping[int, float]) -> Floats:
        """How much the days that each record names are those that a question asks for."""
        named = np.zeros(len(self._index.keys), np.float32)
        for term, says in terms.items():
            slots = np.frombuffer(self._index.postings.of(term), np.uint32) >> COUNT_BITS
            named[slots] = np.maximum(named[slots], np.float32(says))
        return named

    @staticmethod
    def _with_meaning(
        meanings: Sequence[Meaning],
        whole: Floats | None,
        table: Table,
        columns: Columns,
        scores: Floats,
        evidence: Sequence[float],
        limit: int,
    ) -> list[tuple[int, float]]:
        vectors = [each.vector for each in meanings]
        closeness = table.closeness(vectors if whole is None else [*vectors, whole])
        most = max(each.asked_of_memory for each in meanings)
        close = np.maximum.reduce([
            each - np.float32(weights.BESIDE_THE_POINT * (most - meaning.asked_of_memory))
            for each, meaning in zip(closeness[: len(meanings)], meanings, strict=True)
        ])  # fmt: skip
        if whole is not None:
            close = np.maximum(close, closeness[-1])
        passages = columns.over_neighbours(close)
        known = columns.alive & ~table.missing()
        mean, deviation = _shrunk(passages[known])
        share = np.where(columns.in_thread, weights.DENSE_IN_THREAD * weights.IN_THREAD, weights.DENSE) * known
        scores = scores + share.astype(np.float32) * ((passages - mean) / deviation)
        scores += np.float32(weights.CLOSE) * np.maximum(close - np.float32(weights.CLOSE_FROM), 0)
        scores[~columns.alive] = -np.inf
        candidates = _top(scores, max(weights.CANDIDATES, 4 * limit))
        candidates = candidates[columns.alive[candidates]]
        crowd = table.density(candidates, columns.in_order)
        scores[candidates] -= share[candidates] * weights.DENSITY * crowd / deviation
        if known[candidates].all():
            least = weights.FLOOR + weights.DENSITY_AT_FLOOR * crowd
            if not any(
                (each[candidates] - least).max() + weights.ASKED_OF_MEMORY * meaning.asked_of_memory + said >= 0
                for each, meaning, said in zip(closeness[: len(meanings)], meanings, evidence, strict=True)
            ):
                return []
        return _best(candidates, scores, limit)


def _in_time(days: NDArray[np.int64], stretches: Sequence[Stretch]) -> Floats:
    """`times.closeness` of every slot."""
    best = np.zeros(len(days), np.float32)
    for each in stretches:
        distance = np.maximum(np.maximum(each.first - days, days - each.last), 0)
        near = np.where(distance == 0, 1.0, 0.8 * np.exp(-distance / fading(each))) * specificity(each)
        np.maximum(best, near.astype(np.float32), out=best)
    return best


def _shrunk(close: Floats) -> tuple[float, float]:
    """The mean and deviation of closeness, drawn towards usual ones where there are few records."""
    count = len(close)
    own = count / (count + _PRIOR_RECORDS)
    mean, deviation = (float(close.mean()), float(close.std())) if count else (0.0, 0.0)
    return own * mean + (1 - own) * _PRIOR_MEAN, max(own * deviation + (1 - own) * _PRIOR_DEVIATION, 1e-6)


def _top(scores: Floats, count: int) -> Slots:
    if count >= len(scores):
        return np.arange(len(scores))
    return np.argpartition(scores, len(scores) - count)[len(scores) - count :]


def _best(slots: Slots, scores: Floats, limit: int) -> list[tuple[int, float]]:
    chosen = slots[_top(scores[slots], limit)]
    return list(zip(chosen.tolist(), scores[chosen].tolist(), strict=True))
