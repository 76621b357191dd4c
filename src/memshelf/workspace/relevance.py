"""Which entries a question is about, by their words: words of alphabetic scripts, single characters and pairs of
Chinese, over title, description and content."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left, insort
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from operator import itemgetter

from memshelf.records.retrieval.terms import INDEXED_CHARS, joins, terms
from memshelf.workspace.entries import MemoryEntry

__all__ = ["QUERY_CHARS", "Match", "Relevance", "weights_of"]

QUERY_CHARS = 2_000
"""Of a question, no more than this counts."""

_MOST_TERMS = 128
_TITLE, _DESCRIPTION, _CONTENT = 3, 2, 1
_SATURATION, _LENGTH = 1.2, 0.4
_PRIOR = 50
"""As if there were this many more entries, so that a word means something among few of them too."""

_SINGLE, _ALONE, _COMMON = 0.2, 0.5, 0.25
"""A Chinese character that is part of a pair, or stands alone between particles; a word with which anything is asked.
"""
_UNKNOWN_WORD, _UNKNOWN_PAIR = 0.5, 0.25
"""What those words of a question count that no entry has. Most unknown pairs of characters are no words."""

_MOST_KEPT = 20_000
_ENOUGH, _CANDIDATES = 1_500, 100
"""After so many postings, common words are looked up for the best candidates only."""

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
class _Term:
    """A term of a question: who holds it, how sure that is, what it weighs, and whether having it says anything."""

    holdings: list[tuple[dict[str, float], float]]
    rarity: float
    counts: bool


@dataclass(frozen=True, slots=True)
class _Entry:
    weights: dict[str, float]
    length: float


class Relevance:
    """Scores entries by their words. One thread at a time.

    Who holds a term is gathered when it is first asked for, and kept up from then on: most terms never are.
    """

    def __init__(self) -> None:
        self._entries: dict[str, _Entry] = {}
        self._holding: dict[str, dict[str, float]] = {}
        self._words: list[str] | None = None
        self._total = 0.0

    def put(self, file: str, weights: dict[str, float]) -> None:
        """Add an entry of these `weights_of` terms, or put it in the place of the one in the same file."""
        self.remove(file)
        length = sum(weights.values())
        self._entries[file] = _Entry(weights, length)
        self._total += length
        for term in self._holding.keys() & weights.keys():
            self._holding[term][file] = weights[term]
        if self._words is not None:
            for term in weights:
                if _has_beginning(term) and not self._is_word(term):
                    insort(self._words, term)

    def remove(self, file: str) -> None:
        if (entry := self._entries.pop(file, None)) is None:
            return
        self._total -= entry.length
        for term in self._holding.keys() & entry.weights.keys():
            del self._holding[term][file]

    def weights(self, file: str) -> dict[str, float]:
        """The terms of an entry as they were put."""
        return self._entries[file].weights

    def _held(self, term: str) -> dict[str, float]:
        if (holding := self._holding.get(term)) is None:
            if len(self._holding) >= _MOST_KEPT:
                self._holding.clear()
            holding = {
                file: weight for file, entry in self._entries.items() if (weight := entry.weights.get(term)) is not None
            }
            self._holding[term] = holding
        return holding

    def _vocabulary(self) -> list[str]:
        if self._words is None:
            every: set[str] = set().union(*(entry.weights for entry in self._entries.values()))
            self._words = sorted(filter(_has_beginning, every))
        return self._words

    def _is_word(self, term: str) -> bool:
        words = self._vocabulary()
        at = bisect_left(words, term)
        return at < len(words) and words[at] == term

    def rank(self, query: str, limit: int, order: Mapping[str, int]) -> list[Match]:
        """At most `limit` entries that have words of the question, best first; of equals, the one `order` has last."""
        asked = list(dict.fromkeys(terms(query[:QUERY_CHARS])))[:_MOST_TERMS]
        count = len(self._entries)
        if not asked or not count:
            return []
        found, reachable = self._terms(asked, count)
        scores: dict[str, float] = {}
        matched: dict[str, float] = {}
        looked_at = 0
        for held, term in sorted(found, key=lambda each: each[0]):
            looked_at += held
            if scores and looked_at > _ENOUGH:
                # Words that so many have bring in nobody new; they only tell those apart that have rarer ones.
                if len(scores) > _CANDIDATES:
                    scores = dict(heapq.nlargest(_CANDIDATES, scores.items(), key=itemgetter(1)))
                self._add(term, scores, scores, matched)
            else:
                self._add(term, None, scores, matched)
        candidates = (
            Match(file, score, min(1.0, matched.get(file, 0.0) / reachable)) for file, score in scores.items()
        )
        return heapq.nlargest(limit, candidates, key=lambda each: (round(each.score, 9), order.get(each.file, 0)))

    def _terms(self, asked: list[str], count: int) -> tuple[list[tuple[int, _Term]], float]:
        """The terms that somebody has, with how many have them, and what having all terms would weigh."""
        pairs = "".join(term for term in asked if len(term) == 2 and not term.isascii())
        found: list[tuple[int, _Term]] = []
        reachable = 0.0
        for term in asked:
            share, holdings = _share(term, pairs), self._found(term)
            held = sum(len(holding) for holding, _ in holdings)
            rarity = share * _rarity(count, held)
            if held:
                found.append((held, _Term(holdings, rarity, counts=share >= _ALONE)))
            else:
                rarity *= _UNKNOWN_WORD if term.isascii() else _UNKNOWN_PAIR
            reachable += rarity
        return found, reachable

    def _add(
        self, term: _Term, among: Collection[str] | None, scores: dict[str, float], matched: dict[str, float]
    ) -> None:
        average = self._total / len(self._entries) or 1.0
        for holding, certain in term.holdings:
            for file in list(holding) if among is None else [each for each in among if each in holding]:
                weight = holding[file]
                norm = _SATURATION * (1 - _LENGTH + _LENGTH * self._entries[file].length / average)
                gained = certain * term.rarity * weight * (_SATURATION + 1) / (weight + norm)
                scores[file] = scores.get(file, 0.0) + gained
                if term.counts:
                    matched[file] = matched.get(file, 0.0) + certain * term.rarity

    def _found(self, term: str) -> list[tuple[dict[str, float], float]]:
        """Who holds a term, or else words that begin alike, and how sure it is that they mean the same."""
        if holding := self._held(term):
            return [(holding, 1.0)]
        if not _has_beginning(term):
            return []
        words = self._vocabulary()
        at = bisect_left(words, term)
        alike = [word for word in words[at : at + _MOST_BEGINNINGS] if word.startswith(term)]
        beginnings = (term[:end] for end in range(len(term) - 1, max(_SHORTEST_BEGINNING, len(term) // 2 + 1) - 1, -1))
        shorter = next(filter(self._is_word, beginnings), None)
        return [(self._held(word), _BEGINNING) for word in (*alike, *([shorter] if shorter else ()))]


def weights_of(entry: MemoryEntry) -> dict[str, float]:
    """The terms of an entry, each with how much it says: what stands in the title says most."""
    weights: dict[str, float] = {}
    for text, weight in ((entry.title, _TITLE), (entry.description, _DESCRIPTION), (entry.content, _CONTENT)):
        for term in terms(text[:INDEXED_CHARS]):
            weights[term] = weights.get(term, 0) + weight
    return weights


def _has_beginning(term: str) -> bool:
    return len(term) >= _SHORTEST_BEGINNING and term.isascii() and term.isalpha()


def _share(term: str, pairs: str) -> float:
    if term in _COMMON_WORDS or (len(term) == 2 and not term.isascii() and joins(term)):
        return _COMMON
    if len(term) > 1 or term.isascii():
        return 1.0
    return _SINGLE if term in pairs else _ALONE


def _rarity(count: int, holding: int) -> float:
    return math.log(1 + (count + _PRIOR - holding + 0.5) / (holding + 0.5))
