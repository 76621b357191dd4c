"""The vectors of an index. Needs NumPy."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memshelf.records.retrieval import weights

__all__ = ["Floats", "Table", "normalised"]

Floats = NDArray[np.float32]

_SAMPLE = 128
_CLOSEST = 4
_SAME = 0.999
_AT_ONCE = 256
_BLOCK, _LINE = 1 << 25, 64
"""The bytes of a block of rows, and of a line of the processor's cache."""


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
        found = self.wholes.products(vectors)
        if self._owners:
            starts, owners = np.frombuffer(self._starts, np.int32), np.frombuffer(self._owners, np.int32)
            best = np.maximum.reduceat(self.sentences.products(vectors), starts, axis=1)
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
            known[unknown] = _density(self.wholes.take(unknown), sample)
        return known[slots].copy()

    def _sample_rows(self, of: NDArray[np.intp]) -> Floats:
        if self._sample is None or self._sampled is not of:
            at = of[np.linspace(0, len(of) - 1, min(len(of), _SAMPLE)).astype(np.intp)]
            self._sample, self._sampled = self.wholes.take(at), of
            self._density = array("f", [np.nan]) * self.wholes.count
        return self._sample


def _density(rows: Floats, sample: Floats) -> Floats:
    close = rows @ sample.T
    close[close > _SAME] = 0.0  # the record itself
    closest = min(_CLOSEST, close.shape[1])
    top: Floats = np.partition(close, close.shape[1] - closest, axis=1)[:, -closest:].mean(axis=1)
    return top


class _Rows:
    """Rows in blocks, so that more of them need no second copy of those that there are.

    Memory that grows in place is read half as fast: it is not in large pages, which NumPy asks for where it makes a
    large array, and its rows do not begin with a line of the cache.
    """

    def __init__(self, dimension: int) -> None:
        self.count = 0
        self._dimension = dimension
        self._most = max(_BLOCK // (4 * dimension), 1)
        self._blocks: list[Floats] = []

    def extend(self, stored: Sequence[bytes]) -> None:
        """Each is one or more rows of float16."""
        for at in range(0, len(stored), _AT_ONCE):
            halves = np.frombuffer(b"".join(stored[at : at + _AT_ONCE]), "<i2").reshape(-1, self._dimension)
            while len(halves):
                rows = self._room(len(halves))
                _widen(halves[: len(rows)], rows)
                self.count += len(rows)
                halves = halves[len(rows) :]

    def _room(self, wanted: int) -> Floats:
        """At most so many rows behind the last one."""
        at, used = divmod(self.count, self._most)
        if at == len(self._blocks):
            self._blocks.append(_lines(self._most if at else 0, self._dimension))
        block = self._blocks[at]
        if used == len(block):  # the first block, so that few rows take little
            larger = _lines(min(max(4 * used, wanted), self._most), self._dimension)
            larger[:used] = block
            self._blocks[at] = block = larger
        return block[used : used + wanted]

    def take(self, slots: NDArray[np.intp]) -> Floats:
        places = (divmod(slot, self._most) for slot in slots.tolist())
        return np.array([self._blocks[at][row] for at, row in places], np.float32)

    def products(self, vectors: Floats) -> Floats:
        """For each vector, its product with each row, on this thread.

        `@` would wake other threads, which then spin. A row is read once for all vectors, which is what takes the time,
        and its products are the same wherever it stands.
        """
        found = np.empty((self.count, len(vectors)), np.float32)
        for at, block in zip(range(0, self.count, self._most), self._blocks, strict=True):
            part = found[at : at + self._most]
            np.vecdot(block[: len(part), np.newaxis], vectors, out=part)
        return np.ascontiguousarray(found.T)


def _lines(rows: int, dimension: int) -> Floats:
    """An array that begins with a line of the cache. What of it is never written is never taken."""
    size = 4 * rows * dimension
    room = np.empty(size + _LINE, np.uint8)
    first = -room.ctypes.data % _LINE
    return room[first : first + size].view(np.float32).reshape(rows, dimension)


def _widen(halves: NDArray[np.int16], rows: Floats) -> None:
    # As `rows[:] = halves.view("<f2")` does for finite numbers, in a fifth of the time: sign, exponent and fraction are
    # moved to where a float32 has them, and the exponent is then counted from where a float32 counts.
    bits = rows.view(np.int32)
    bits[:] = halves
    bits <<= 13
    bits &= np.int32(-0x7000_0001)
    rows *= np.float32(2.0**112)
