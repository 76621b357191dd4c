"""The vectors of an index. Needs NumPy."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memshelf.records.retrieval import weights

__all__ = ["Floats", "Table", "normalised", "products"]

Floats = NDArray[np.float32]

_SAMPLE = 128
_CLOSEST = 4
_SAME = 0.999
_AT_ONCE = 256


def normalised(vectors: object) -> Floats:
    """Rows of length 1, as float32. A row of zeros stays one."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is no number stays none
        rows = np.array(vectors, np.float32, ndmin=2)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows


class Table:
    """One row a record for its whole text, in the order of slots, and further ones for its sentences."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self.wholes = _Rows(dimension)
        self.sentences = _Rows(dimension)
        self._owners = array("i")
        """The slot of each first sentence, and in `_starts` the row of it."""
        self._starts = array("i")
        self._missing = array("B")
        self._density = array("f")
        self._sample: Floats | None = None
        self._sampled: NDArray[np.intp] | None = None

    def extend(self, stored: Sequence[bytes | None]) -> None:
        """The vectors of the next slots, each as rows of float16."""
        size = 2 * self.dimension
        first = len(self._missing)
        nothing = bytes(size)
        self._missing.extend([each is None for each in stored])
        self._density.extend([np.nan] * len(stored))
        self.wholes.extend([each[:size] if each is not None else nothing for each in stored])
        several = [(slot, each) for slot, each in enumerate(stored, first) if each is not None and len(each) > size]
        at = self.sentences.count
        for slot, each in several:
            self._owners.append(slot)
            self._starts.append(at)
            at += len(each) // size - 1
        self.sentences.extend([each[size:] for _, each in several])

    def closeness(self, questions: Sequence[Floats]) -> Floats:
        """For each question, the cosine of every slot: of its whole text and, where it has several sentences, of the
        best of them."""
        vectors = np.array(questions)
        found = products(self.wholes.rows(), vectors)
        if self._owners:
            starts, owners = np.frombuffer(self._starts, np.int32), np.frombuffer(self._owners, np.int32)
            best = np.maximum.reduceat(products(self.sentences.rows(), vectors), starts, axis=1)
            found[:, owners] += weights.SENTENCE * (best - found[:, owners])
        return found

    def missing(self) -> NDArray[np.bool_]:
        """The slots that have no vector."""
        return np.frombuffer(self._missing, np.bool_)

    def density(self, slots: NDArray[np.intp], of: NDArray[np.intp]) -> Floats:
        """How close records are to the closest of a sample of those that there are, whose slots are `of`.

        The same records give the same sample, whatever was removed before and whenever the index was read.
        """
        sample = self._sample_rows(of)
        known = np.frombuffer(self._density, np.float32)
        unknown = slots[np.isnan(known[slots])]
        if len(unknown):
            known[unknown] = _density(self.wholes.rows()[unknown], sample)
        return known[slots].copy()

    def _sample_rows(self, of: NDArray[np.intp]) -> Floats:
        if self._sample is None or self._sampled is not of:
            at = of[np.linspace(0, len(of) - 1, min(len(of), _SAMPLE)).astype(np.intp)]
            self._sample, self._sampled = self.wholes.rows()[at].copy(), of
            self._density = array("f", [np.nan]) * self.wholes.count
        return self._sample


def products(rows: Floats, vectors: Floats) -> Floats:
    """For each vector, its product with each row, on this thread.

    `@` would wake other threads, which then spin. A row is read once for all vectors, which is what takes the time, and
    its products are the same wherever it stands.
    """
    return np.ascontiguousarray(np.vecdot(rows[:, np.newaxis], vectors).T)


def _density(rows: Floats, sample: Floats) -> Floats:
    close = rows @ sample.T
    close[close > _SAME] = 0.0  # the record itself
    closest = min(_CLOSEST, close.shape[1])
    top: Floats = np.partition(close, close.shape[1] - closest, axis=1)[:, -closest:].mean(axis=1)
    return top


class _Rows:
    """A matrix that grows in place, so that no second copy of it is needed."""

    def __init__(self, dimension: int) -> None:
        self.count = 0
        self._matrix = np.empty((0, dimension), np.float32)

    def reserve(self, count: int) -> None:
        if self.count == 0:
            # Memory that is never written is never taken. There is room for more, as to grow keeps all threads waiting.
            self._matrix = np.empty((_roomy(count), self._matrix.shape[1]), np.float32)

    def extend(self, stored: Sequence[bytes]) -> None:
        """Each is one or more rows of float16."""
        for at in range(0, len(stored), _AT_ONCE):
            self._extend(b"".join(stored[at : at + _AT_ONCE]))

    def _extend(self, stored: bytes) -> None:
        halves = np.frombuffer(stored, "<i2").reshape(-1, self._matrix.shape[1])
        needed = self.count + len(halves)
        if needed > len(self._matrix):
            # Nobody else holds on to the matrix: `rows` are used within one search.
            self._matrix.resize((_roomy(needed), self._matrix.shape[1]), refcheck=False)
        rows = self._matrix[self.count : needed]
        # As `rows[:] = halves.view("<f2")` does for finite numbers, in a fifth of the time: sign, exponent and fraction
        # are moved to where a float32 has them, and the exponent is then counted from where a float32 counts.
        bits = rows.view(np.int32)
        bits[:] = halves
        bits <<= 13
        bits &= np.int32(-0x7000_0001)
        rows *= np.float32(2.0**112)
        self.count = needed

    def rows(self) -> Floats:
        return self._matrix[: self.count]


def _roomy(count: int) -> int:
    return count + count // 8 + 16
