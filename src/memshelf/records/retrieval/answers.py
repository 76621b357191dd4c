"""From scored slots to the answer of a search."""

from __future__ import annotations

import math

from memshelf.records.retrieval import weights
from memshelf.records.retrieval.index import RecordIndex

__all__ = ["answers"]

_MIDDLE, _STEEPNESS = 0.7, 2.0


def answers(index: RecordIndex, ranked: list[tuple[int, float]], limit: int) -> list[tuple[int, float]]:
    """The keys of at most `limit` records, best first, each with a score between 0 and 1.

    A replaced record lends its score to the one that replaces it, and falls behind it. Of equal scores, the newer
    text comes first.
    """
    scores = dict(ranked)
    for slot, score in ranked:
        current = _current(index, slot)
        if current != slot:
            scores[current] = max(scores.get(current, -math.inf), score)
    for slot, _ in ranked:
        current = _current(index, slot)
        if current != slot:
            scores[slot] = min(scores[slot], scores[current]) - weights.REPLACED
    best = sorted(
        scores, key=lambda slot: (round(scores[slot], 6), index.recency(slot), index.keys[slot]), reverse=True
    )
    return [(index.keys[slot], _between_0_and_1(scores[slot])) for slot in best[:limit]]


def _current(index: RecordIndex, slot: int) -> int:
    seen = {slot}
    while slot in index.replaced:
        following = index.slot(index.replaced[slot])
        if following is None or following in seen:
            break
        slot = following
        seen.add(slot)
    return slot


def _between_0_and_1(score: float) -> float:
    return 1 / (1 + math.exp(-_STEEPNESS * (score - _MIDDLE)))
