"""Which entries a question is about: words, and pairs of Chinese characters, over title, description and content."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from dataclasses import dataclass

from memshelf.records.retrieval.terms import INDEXED_CHARS, terms
from memshelf.workspace.entries import MemoryEntry

__all__ = ["QUERY_CHARS", "Relevance"]

QUERY_CHARS = 2_000
"""Of a question, no more than this counts."""

_MOST_TERMS = 256
_TITLE, _DESCRIPTION = 3.0, 3.0
_SATURATION, _LENGTH = 1.2, 0.4
_SINGLE = 0.3
_FLOOR, _PRIOR = 0.25, 50


@dataclass(frozen=True, slots=True)
class _Entry:
    weights: dict[str, float]
    length: float


class Relevance:
    """Scores entries by their words. One thread at a time."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._holding: dict[str, dict[str, float]] = {}
        self._total = 0.0

    def put(self, entry: MemoryEntry) -> None:
        """Add an entry, or put it in the place of the one in the same file."""
        self.remove(entry.file)
        weights: Counter[str] = Counter()
        for text, weight in ((entry.title, _TITLE), (entry.description, _DESCRIPTION), (entry.content, 1.0)):
            for term in terms(text[:INDEXED_CHARS]):
                weights[term] += weight  # type: ignore[assignment]  # a counter counts in floats as well
        length = sum(weights.values())
        self._entries[entry.file] = _Entry(dict(weights), length)
        self._total += length
        for term, weight in weights.items():
            self._holding.setdefault(term, {})[entry.file] = weight

    def remove(self, file: str) -> None:
        if (entry := self._entries.pop(file, None)) is None:
            return
        self._total -= entry.length
        for term in entry.weights:
            holding = self._holding[term]
            del holding[file]
            if not holding:
                del self._holding[term]

    def rank(self, query: str, limit: int, without: frozenset[str], order: dict[str, int]) -> list[tuple[str, float]]:
        """At most `limit` files that the question is about, best first; of equals, the one that `order` has last."""
        asked = list(dict.fromkeys(terms(query[:QUERY_CHARS])))[:_MOST_TERMS]
        count = len(self._entries)
        if not asked or not count:
            return []
        average = self._total / count or 1.0
        scores: dict[str, float] = {}
        matched: dict[str, float] = {}
        reachable = 0.0
        for term in asked:
            holding = self._holding.get(term, {})
            share = _SINGLE if len(term) == 1 and not term.isascii() else 1.0
            rarity = share * math.log(1 + (count + _PRIOR - len(holding) + 0.5) / (len(holding) + 0.5))
            reachable += rarity
            for file, weight in holding.items():
                norm = _SATURATION * (1 - _LENGTH + _LENGTH * self._entries[file].length / average)
                scores[file] = scores.get(file, 0.0) + rarity * weight * (_SATURATION + 1) / (weight + norm)
                matched[file] = matched.get(file, 0.0) + rarity
        found = [
            (file, score)
            for file, score in scores.items()
            if file not in without and matched[file] >= _FLOOR * reachable
        ]
        return heapq.nlargest(limit, found, key=lambda each: (round(each[1], 9), order.get(each[0], 0)))
