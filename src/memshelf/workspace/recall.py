"""Which entries are recalled: words and meaning in one score, and a floor below which nothing is."""

from __future__ import annotations

import asyncio
import heapq
import re
from collections.abc import Mapping
from threading import Lock
from typing import TypeAlias

from memshelf.arguments import checked_argument
from memshelf.records.recall import EmbedderChoice, in_time
from memshelf.workspace.entries import EntryInfo, MemoryEntry
from memshelf.workspace.meaning import Meaning
from memshelf.workspace.relevance import QUERY_CHARS, Match, Relevance, weights_of
from memshelf.workspace.remembered import Learned

__all__ = ["EntryRecall"]

Found: TypeAlias = dict[str, float]
"""Files, each with a score."""

# Measured on the sets of `bench/workspace`, which has other questions than anybody else's.
_FLOOR, _FLOOR_BESIDE_MEANING = 0.2, 0.3
_TO_THE_MEMORY, _COVERED, _COUNTS = 0.03, 0.3, 0.15
"""What speaks for a question: that it was put to a memory, and the share of its words that an entry has, if it is more
than an accident."""

_WORDS, _SAME_LANGUAGE = 0.2, 0.1
_FAR_BEHIND = 0.3
"""An entry whose score is less than the best one's by more than this is not recalled."""

_TO_SPARE, _MOST = 32, 1_000

_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")


class EntryRecall:
    """The entries of one user, to be asked for."""

    def __init__(self, embedder: EmbedderChoice) -> None:
        self._words = Relevance()
        self._meaning = Meaning(embedder)
        self._chinese: dict[str, bool] = {}
        self._changing = Lock()
        self._searching: set[asyncio.Task[Found | None]] = set()

    @property
    def model(self) -> tuple[object, ...]:
        """What names the vectors of entries; empty without an embedder."""
        return self._meaning.model

    @property
    def waiting(self) -> int:
        """How many entries are not embedded yet."""
        return self._meaning.waiting

    def put(self, entry: MemoryEntry) -> None:
        """Take in an entry, or its new content."""
        weights = weights_of(entry)
        with self._changing:
            self._words.put(entry.file, weights)
            self._chinese[entry.file] = _CHINESE.search(entry.title + entry.content) is not None
            if self._meaning.available:
                self._meaning.put(entry)

    def restore(self, learned: Learned) -> bool:
        """Take in an entry as `learned` answered it, if it has all that is needed."""
        file = learned.info.file
        if self._meaning.available and not learned.vectors:
            return False
        with self._changing:
            self._words.put(file, learned.weights)
            self._chinese[file] = learned.chinese
            if self._meaning.available:
                self._meaning.restore(file, learned.terms, learned.vectors)
        return True

    def learned(self, version: str, info: EntryInfo) -> Learned | None:
        """What is known of an entry; `None` while something is missing."""
        with self._changing:
            kept = self._meaning.kept(info.file) if self._meaning.available else (b"", b"")
            if kept is None or info.file not in self._chinese:
                return None
            return Learned(version, info, self._chinese[info.file], self._words.weights(info.file), *kept)

    def remove(self, file: str) -> None:
        with self._changing:
            self._words.remove(file)
            self._chinese.pop(file, None)
            self._meaning.remove(file)

    async def rank(self, query: str, limit: int, without: frozenset[str], order: Mapping[str, int]) -> list[str]:
        """The files of at most `limit` entries that the query is about, best first; of equals, the newest."""
        query = checked_argument("query", query, str)[:QUERY_CHARS]
        if checked_argument("limit", limit, int) <= 0 or not query.strip():
            return []
        asked = limit + _TO_SPARE + len(without)
        matches = await asyncio.to_thread(self._matches, query, asked, order)
        by_words = [each.file for each in matches if each.covered >= _FLOOR and each.file not in without][:limit]
        if not self._meaning.available:
            if self._chinese:  # there are entries
                self._meaning.say_what_is_missing()
            return by_words
        covered = {each.file: each.covered for each in matches}
        best = max(covered.values(), default=0.0)
        evidence = _TO_THE_MEMORY + (_COVERED * best if best >= _COUNTS else 0.0)
        found = await in_time(self._meaning.search(query, min(asked, _MOST), evidence), self._searching, "Entries")
        if found is None:
            return by_words
        scores = {file: 0.0 for file, share in covered.items() if share >= _FLOOR_BESIDE_MEANING} | found
        chinese = _CHINESE.search(query) is not None

        def place(file: str) -> tuple[float, int]:
            same = _SAME_LANGUAGE * (self._chinese.get(file) == chinese)
            return round(scores[file] + _WORDS * covered.get(file, 0.0) + same, 6), order.get(file, 0)

        # What is left out still counts as the best: or else something about nothing would take its place.
        ranked = heapq.nlargest(limit + len(without), scores, key=place)
        near = (file for file in ranked if place(file)[0] >= place(ranked[0])[0] - _FAR_BEHIND)
        return [file for file in near if file not in without][:limit]

    def _matches(self, query: str, limit: int, order: Mapping[str, int]) -> list[Match]:
        with self._changing:
            return self._words.rank(query, limit, order)

    def close(self) -> None:
        self._meaning.close()
