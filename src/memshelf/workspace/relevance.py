"""Which entries a question is about, by their words: words of alphabetic scripts, single characters and pairs of
Chinese, over title, description and content."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Mapping
from dataclasses import dataclass

from memshelf.records.retrieval.terms import INDEXED_CHARS, terms
from memshelf.workspace.entries import MemoryEntry

__all__ = ["QUERY_CHARS", "Match", "Relevance"]

QUERY_CHARS = 2_000
"""Of a question, no more than this counts."""

_MOST_TERMS = 128
_TITLE, _DESCRIPTION = 3.0, 2.0
_SATURATION, _LENGTH = 1.2, 0.4
_PRIOR = 50
"""As if there were this many more entries, so that a word means something among few of them too."""

_SINGLE, _ALONE, _COMMON = 0.2, 0.5, 0.25
"""A Chinese character that is part of a pair, or stands alone between particles; a word with which anything is asked.
"""
_UNKNOWN_WORD, _UNKNOWN_PAIR = 0.5, 0.25
"""What those words of a question count that no entry has. Most unknown pairs of characters are no words."""

_SHORTEST_BEGINNING, _BEGINNING, _MOST_BEGINNINGS = 4, 0.7, 8
"""A word that no entry has is looked for as the beginning of others, and they as its beginning."""

# Words with which anything is asked for.
_COMMON_WORDS = frozenset(
    terms(
        "add answer anything ask best call change check come continue day does explain find get give go good great "
        "hello help hi joke keep know let like long look mean name need new ok old one people please recommend remind "
        "remember right say see show start sure take talk tell thank thing think three time today tomorrow try two use "
        "want way week well work write year yes "
        "好 帮 写 说 讲 看 想 要 用 做 能 会 里 上 下 中 来 去 时 再 多 少 大 小 前 后 让 点 次 度 年 月 日 事 人 "
        "什么 怎么 为什么 多少 时候 今天 明天 解释 推荐 介绍 告诉 谢谢 你好 继续 一下 一个 建议 安排 问题 东西 知道 "
        "哪里"
    )
)


@dataclass(frozen=True, slots=True)
class Match:
    """An entry that has words of a question. `covered` is the share of the question that they are, from 0 to 1."""

    file: str
    score: float
    covered: float


@dataclass(frozen=True, slots=True)
class _Entry:
    weights: dict[str, float]
    length: float


class Relevance:
    """Scores entries by their words. One thread at a time."""

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._holding: dict[str, dict[str, float]] = {}
        self._words: list[str] = []
        self._total = 0.0

    def put(self, entry: MemoryEntry) -> None:
        """Add an entry, or put it in the place of the one in the same file."""
        self.remove(entry.file)
        weights: dict[str, float] = {}
        for text, weight in ((entry.title, _TITLE), (entry.description, _DESCRIPTION), (entry.content, 1.0)):
            for term in terms(text[:INDEXED_CHARS]):
                weights[term] = weights.get(term, 0.0) + weight
        length = sum(weights.values())
        self._entries[entry.file] = _Entry(weights, length)
        self._total += length
        for term, weight in weights.items():
            if (holding := self._holding.get(term)) is None:
                holding = self._holding[term] = {}
                if _has_beginning(term):
                    insort(self._words, term)
            holding[entry.file] = weight

    def remove(self, file: str) -> None:
        if (entry := self._entries.pop(file, None)) is None:
            return
        self._total -= entry.length
        for term in entry.weights:
            holding = self._holding[term]
            del holding[file]
            if not holding:
                del self._holding[term]
                if _has_beginning(term):
                    del self._words[bisect_left(self._words, term)]

    def rank(self, query: str, limit: int, order: Mapping[str, int]) -> list[Match]:
        """At most `limit` entries that have words of the question, best first; of equals, the one `order` has last."""
        asked = list(dict.fromkeys(terms(query[:QUERY_CHARS])))[:_MOST_TERMS]
        count = len(self._entries)
        if not asked or not count:
            return []
        average = self._total / count or 1.0
        scores: dict[str, float] = {}
        matched: dict[str, float] = {}
        reachable = 0.0
        pairs = "".join(term for term in asked if len(term) == 2 and not term.isascii())
        for term in asked:
            share = _share(term, pairs)
            found = self._found(term)
            if not found:
                reachable += share * (_UNKNOWN_WORD if term.isascii() else _UNKNOWN_PAIR) * _rarity(count, 0)
                continue
            rarity = share * _rarity(count, sum(len(holding) for holding, _ in found))
            reachable += rarity
            for holding, certain in found:
                for file, weight in holding.items():
                    norm = _SATURATION * (1 - _LENGTH + _LENGTH * self._entries[file].length / average)
                    gained = certain * rarity * weight * (_SATURATION + 1) / (weight + norm)
                    scores[file] = scores.get(file, 0.0) + gained
                    if share >= _ALONE:
                        matched[file] = matched.get(file, 0.0) + certain * rarity
        candidates = (
            Match(file, score, min(1.0, matched.get(file, 0.0) / reachable)) for file, score in scores.items()
        )
        return heapq.nlargest(limit, candidates, key=lambda each: (round(each.score, 9), order.get(each.file, 0)))

    def _found(self, term: str) -> list[tuple[dict[str, float], float]]:
        """Who holds a term, or else words that begin alike, and how sure it is that they mean the same."""
        if (holding := self._holding.get(term)) is not None:
            return [(holding, 1.0)]
        if not _has_beginning(term):
            return []
        at = bisect_left(self._words, term)
        alike = [word for word in self._words[at : at + _MOST_BEGINNINGS] if word.startswith(term)]
        beginnings = (term[:end] for end in range(len(term) - 1, _SHORTEST_BEGINNING - 1, -1))
        shorter = next((each for each in beginnings if each in self._holding and 2 * len(each) > len(term)), None)
        return [(self._holding[word], _BEGINNING) for word in (*alike, *([shorter] if shorter else ()))]


def _has_beginning(term: str) -> bool:
    return len(term) >= _SHORTEST_BEGINNING and term.isascii() and term.isalpha()


def _share(term: str, pairs: str) -> float:
    if term in _COMMON_WORDS:
        return _COMMON
    if len(term) > 1 or term.isascii():
        return 1.0
    return _SINGLE if term in pairs else _ALONE


def _rarity(count: int, holding: int) -> float:
    return math.log(1 + (count + _PRIOR - holding + 0.5) / (holding + 0.5))
