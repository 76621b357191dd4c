"""The mix of scores, over all records at once. Needs NumPy; `plain` is the lexical part of it without."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memshelf.records.retrieval import weights
from memshelf.records.retrieval.columns import Columns, Slots
from memshelf.records.retrieval.days import Stretch
from memshelf.records.retrieval.index import RecordIndex
from memshelf.records.retrieval.question import Meaning, Question
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
        words = Words(index, columns, question.terms)
        scores = words.scores()
        matched = scores > 0
        whole = np.maximum(words.covered - np.float32(weights.WHOLE_FROM), 0) / np.float32(1 - weights.WHOLE_FROM)
        scores += np.float32(weights.WHOLE) * np.where(columns.in_thread, 0, whole)
        part = np.where(columns.in_thread, np.float32(weights.IN_THREAD), np.float32(1))
        scores += weights.ASKING * part * columns.asks
        timely = _in_time(columns.days, question.times) if question.times else np.zeros(len(scores), np.float32)
        scores += weights.TIME * part * timely
        if question.speaker is not None:
            scores += weights.SPEAKER * part * (columns.speakers == question.speaker)
        if question.meaning is None or index.table is None:
            return _best(np.flatnonzero(columns.alive & matched), scores, limit)
        # What there is for the question besides closeness in meaning.
        evidence = question.evidence + weights.COVERED * words.coverage
        evidence += weights.SPEAKS_OF_SOMEBODY * question.speaks_of_somebody
        evidence += weights.IN_TIME * float((timely * columns.alive).max())
        if words.coverage >= weights.COVERED_ENOUGH or words.count >= weights.WORDS_ENOUGH:
            evidence = math.inf
        return self._with_meaning(question.meaning, index.table, columns, scores, evidence, limit)

    @staticmethod
    def _with_meaning(
        meaning: Meaning, table: Table, columns: Columns, scores: Floats, evidence: float, limit: int
    ) -> list[tuple[int, float]]:
        close = table.closeness(meaning.vector)
        passages = columns.over_neighbours(close)
        known = columns.alive & ~table.missing()
        mean, deviation = _shrunk(passages[known])
        share = np.where(columns.in_thread, weights.DENSE_IN_THREAD * weights.IN_THREAD, weights.DENSE) * known
        scores = scores + share.astype(np.float32) * ((passages - mean) / deviation)
        scores += np.float32(weights.CLOSE) * np.maximum(close - np.float32(weights.CLOSE_FROM), 0)
        scores[~columns.alive] = -np.inf
        candidates = _top(scores, max(weights.CANDIDATES, 4 * limit))
        candidates = candidates[columns.alive[candidates]]
        crowd = table.density(candidates)
        scores[candidates] -= share[candidates] * weights.DENSITY * crowd / deviation
        if known[candidates].all():
            distinct = float((close[candidates] - weights.DENSITY_AT_FLOOR * crowd).max())
            if distinct + weights.ASKED_OF_MEMORY * meaning.asked_of_memory + evidence < weights.FLOOR:
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
