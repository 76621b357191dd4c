"""The columns of an index as NumPy arrays, and what follows from them alone. Needs NumPy."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from memshelf.records.retrieval import weights
from memshelf.records.retrieval.days import EPOCH_DAY, MICROS_A_DAY
from memshelf.records.retrieval.index import RecordIndex
from memshelf.records.retrieval.offsets import Offsets
from memshelf.records.retrieval.vectors import Floats

__all__ = ["Columns", "Slots", "saturated"]

Slots = NDArray[np.intp]


class Columns:
    """A picture of the index at one version. Slots that are beside none have -1 there."""

    def __init__(self, index: RecordIndex) -> None:
        # Copies: a view would keep the index's arrays from growing.
        self.version = index.version
        self.alive = np.array(index.alive, np.bool_)
        self.threads = np.array(index.threads, np.intp)
        self.before = np.array(index.before, np.intp)
        self.after = np.array(index.after, np.intp)
        self.speakers = np.array(index.speakers, np.int32)
        self.asks = np.array(index.asks, np.float32)
        self._at = np.array(index.at, np.int64)
        there = np.flatnonzero(self.alive)
        self.in_order = there[np.argsort(np.array(index.keys, np.int64)[there], kind="stable")]
        """The slots of the records that there are, in the order they were added."""
        self.in_thread = self.threads >= 0
        self.threaded = bool(self.in_thread.any())
        lengths = np.array(index.lengths, np.float32)
        self.norms = _norms(lengths, lengths[self.alive])
        if self.threaded:
            living = self.in_thread & self.alive
            passages = lengths.copy()
            for beside in self._reached():
                passages += np.where(beside >= 0, lengths[beside], 0.0)
            self.passage_norms = _norms(passages, passages[living])
            whole = np.bincount(self.threads[living], lengths[living], index.thread_count).astype(np.float32)
            self.thread_norms = _norms(whole, whole[whole > 0])

    def days(self, offsets: Offsets) -> NDArray[np.int64]:
        """The proleptic ordinal of each record's day in a time zone."""
        values = np.array(offsets.values, np.int64)
        there = np.searchsorted(np.array(offsets.changes, np.int64), self._at, side="right")
        return (self._at + values[there]) // MICROS_A_DAY + EPOCH_DAY

    def _reached(self) -> list[Slots]:
        """For each slot, the ones up to `PASSAGE_REACH` turns before and after it."""
        reached = []
        for step in (self.before, self.after):
            beside = step
            for _ in range(weights.PASSAGE_REACH):
                reached.append(beside)
                beside = np.where(beside >= 0, step[beside], -1)
        return reached

    def passages_of(self, slots: Slots) -> tuple[Slots, Slots]:
        """The slots within reach of each of some turns, itself included, and which of the turns each belongs to."""
        reached, of = [slots], [np.arange(len(slots))]
        for step in (self.before, self.after):
            beside, turns = slots, np.arange(len(slots))
            for _ in range(weights.PASSAGE_REACH):
                beside = step[beside]
                turns, beside = turns[beside >= 0], beside[beside >= 0]
                reached.append(beside)
                of.append(turns)
        return np.concatenate(reached), np.concatenate(of)

    def over_neighbours(self, close: Floats) -> Floats:
        """The mean of each turn's closeness and, with less weight, that of the turns beside it."""
        if not self.threaded:
            return close
        total, weight = close.copy(), np.ones(len(close), np.float32)
        for beside in (self.before, self.after):
            there = beside >= 0
            total += np.where(there, np.float32(weights.NEIGHBOUR_MEANING) * close[beside], np.float32(0))
            weight += np.float32(weights.NEIGHBOUR_MEANING) * there
        mean: Floats = total / weight
        return mean


def _norms(lengths: Floats, of: Floats) -> Floats:
    """What a count is set against: more in a text longer than the others."""
    average = max(float(of.mean()), 1.0) if len(of) else 1.0
    norms: Floats = np.float32(weights.SATURATION) * (
        1 - weights.LENGTH_WEIGHT + weights.LENGTH_WEIGHT * (lengths / np.float32(average))
    )
    return norms


def saturated(counts: Floats, norms: Floats) -> Floats:
    """A word found twice does not say twice as much."""
    found: Floats = counts * np.float32(weights.SATURATION + 1) / (counts + norms)
    return found
