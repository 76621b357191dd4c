"""What finds records: memshelf, and simple ways to stand beside it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Awaitable, Callable

import numpy as np

from bench.recall.datasets import Query, Record
from bench.recall.spread import SpreadEmbedder
from memshelf.records.backends.in_process import InProcessRecordStore
from memshelf.records.model import NewRecord

__all__ = ["RANKERS", "Search"]

Search = Callable[[Query, int], Awaitable[list[str]]]

_TERMS = re.compile(r"[\u4e00-\u9fff]|[^\W_\u4e00-\u9fff]+")


async def memshelf(records: list[Record]) -> Search:
    store = InProcessRecordStore(embedder=SpreadEmbedder())
    added = await store.add_many(NewRecord(text=each.text, at=each.at, thread=each.thread) for each in records)
    ids = {record.id: each.id for record, each in zip(added, records, strict=True)}

    async def search(query: Query, limit: int) -> list[str]:
        return [ids[record.id] for record in await store.search(query.text, limit=limit, now=query.now)]

    return search


async def grep(records: list[Record]) -> Search:
    """How many of the question's words and characters stand in a record."""
    lower = [each.text.lower() for each in records]

    async def search(query: Query, limit: int) -> list[str]:
        words = set(_TERMS.findall(query.text.lower()))
        counts = np.array([sum(word in text for word in words) for text in lower], float)
        return _best(records, counts, limit)

    return search


async def bm25(records: list[Record]) -> Search:
    """BM25 as in the textbook (k1 1.5, b 0.75) over words and pairs of Chinese characters."""
    counts = [Counter(_plain_terms(each.text)) for each in records]
    lengths = np.array([sum(count.values()) for count in counts], float)
    postings: dict[str, tuple[list[int], list[int]]] = {}
    for at, count in enumerate(counts):
        for term, times in count.items():
            where, often = postings.setdefault(term, ([], []))
            where.append(at)
            often.append(times)
    norms = 1.5 * (0.25 + 0.75 * lengths / max(lengths.mean(), 1))

    async def search(query: Query, limit: int) -> list[str]:
        scores = np.zeros(len(records))
        for term in _plain_terms(query.text):
            where, often = postings.get(term, ([], []))
            rarity = math.log(1 + (len(records) - len(where) + 0.5) / (len(where) + 0.5))
            found = np.array(often, float)
            scores[where] += rarity * found * 2.5 / (found + norms[where])
        return _best(records, scores, limit)

    return search


async def dense(records: list[Record]) -> Search:
    """The bundled model alone, over whole texts."""
    embedder = SpreadEmbedder()
    rows = np.asarray(await embedder.embed([each.text for each in records]))

    async def search(query: Query, limit: int) -> list[str]:
        return _best(records, rows @ np.asarray(await embedder.embed([query.text]))[0], limit)

    return search


def _plain_terms(text: str) -> list[str]:
    found: list[str] = []
    for run in re.findall(r"[\u4e00-\u9fff]+|[^\W_\u4e00-\u9fff]+", text.lower()):
        pairs = [run[at : at + 2] for at in range(len(run) - 1)]
        found += (pairs or [run]) if "\u4e00" <= run[0] <= "\u9fff" else [run]
    return found


def _best(records: list[Record], scores: np.ndarray, limit: int) -> list[str]:
    return [records[at].id for at in np.argsort(-scores, kind="stable")[:limit] if scores[at] > 0]


RANKERS: dict[str, Callable[[list[Record]], Awaitable[Search]]] = {
    "grep-like count": grep,
    "BM25": bm25,
    "model alone": dense,
    "memshelf": memshelf,
}
