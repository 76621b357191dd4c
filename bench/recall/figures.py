"""The figures of a ranker on a data set."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from bench.recall.datasets import Dataset, Record
from bench.recall.rankers import Search

__all__ = ["COLUMNS", "Figures", "cells", "evaluate"]

COLUMNS = ("", "questions", "any@1", "any@5", "any@10", "all@10", "MRR")

_DEEPEST = 20


@dataclass(slots=True)
class Figures:
    """For each question: the places of its evidence in the answer, how much evidence there is, how long the answer."""

    places: list[tuple[list[int], int]] = field(default_factory=list)
    answered: int = 0

    def any_at(self, k: int) -> float:
        return self._mean([float(any(place <= k for place in found)) for found, _ in self.places])

    def all_at(self, k: int) -> float:
        return self._mean([float(sum(place <= k for place in found) == every) for found, every in self.places])

    def reciprocal_rank(self) -> float:
        return self._mean([1 / min(found) if found else 0.0 for found, _ in self.places])

    @staticmethod
    def _mean(values: list[float]) -> float:
        return sum(values) / len(values) if values else float("nan")


async def evaluate(dataset: Dataset, ranker: Callable[[list[Record]], Awaitable[Search]]) -> dict[str, Figures]:
    """The figures of each kind of question. `unrelated` ones have no evidence: there it counts who is answered."""
    kinds: dict[str, Figures] = {}
    for records, queries in dataset.scopes.values():
        search = await ranker(records)
        for query in queries:
            answer = list(dict.fromkeys(await search(query, _DEEPEST)))
            figures = kinds.setdefault(query.kind, Figures())
            figures.answered += bool(answer)
            places = [place for place, each in enumerate(answer, 1) if each in query.evidence]
            figures.places.append((places, len(query.evidence)))
    return kinds


def cells(name: str, figures: Figures) -> tuple[str, ...]:
    """A row of a table with `COLUMNS`."""
    values = (figures.any_at(1), figures.any_at(5), figures.any_at(10), figures.all_at(10), figures.reciprocal_rank())
    return (name, str(len(figures.places)), *(f"{value:.3f}" for value in values))
