"""Full-text search of a store, by reading its memories: words as their beginnings, Chinese, Japanese and Korean text by
pairs of characters, ranked by BM25.

There is no index. So nothing but the memories themselves holds what they say, and a search sees every change; it takes
time in proportion to the size of the store.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import regex as rx

from memshelf.errors import MemoryStoreError
from memshelf.storage.transaction import Row
from memshelf.stores.memories import memories_at
from memshelf.stores.model import Memory
from memshelf.stores.rules import checked_prefix
from memshelf.stores.shelf import Opened, StoreAccess

__all__ = ["Hit", "Search", "Terms"]

_PAGE_BYTES = 4_194_304
_EXCERPT_CHARS = 240
_MOST_TERMS = 32
_WHOLE_WORD_CHARS = 3
_K1, _B = 1.2, 0.75

_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}"
_RUNS = rx.compile(rf"[{_CJK}]+|[\p{{L}}\p{{M}}\p{{N}}_--[{_CJK}]]+", rx.VERSION1)
_LETTER = rf"[\p{{L}}\p{{M}}\p{{N}}_--[{_CJK}]]"


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory that a search found. `line`, counted from 1, is the one that answers best, `excerpt` a part of it; both
    are `None` when only the path matches. A greater score is a better match, within one search."""

    memory: Memory
    score: float
    line: int | None
    excerpt: str | None


@dataclass(frozen=True, slots=True)
class _Found:
    version_id: str
    counts: tuple[int, ...]
    length: int


class Terms:
    """What a query looks for, and how often a text has it. `invalid_value` for a query without a letter or digit."""

    def __init__(self, query: str) -> None:
        self.terms = tuple(dict.fromkeys(_terms(query)))[:_MOST_TERMS]
        if not self.terms:
            raise MemoryStoreError("invalid_value", "query: it has at least one letter or digit.")
        self._patterns = tuple(None if _is_cjk(term) else _word(term) for term in self.terms)
        # What stands in a text as it is, but for the case of ASCII letters, is looked for in its bytes: that is many
        # times faster than to fold the case of every text. A term in other letters that have a case rules nothing out.
        plain = all(term.isascii() or _is_cjk(term) for term in self.terms)
        self._bytes = tuple(term.encode() for term in self.terms) if plain else None

    def may_be_in(self, content: bytes) -> bool:
        """Whether any of the terms can be in a text in UTF-8. `False` is certain."""
        if self._bytes is None:
            return True
        lowered = content.lower()
        return any(term in lowered for term in self._bytes)

    def counts(self, folded: str) -> tuple[int, ...]:
        """How often each term stands in a text whose case is folded."""
        return tuple(
            0 if term not in folded else folded.count(term) if pattern is None else len(pattern.findall(folded))
            for term, pattern in zip(self.terms, self._patterns, strict=True)
        )

    def best_line(self, content: str) -> tuple[int, str] | None:
        """The first line with the most different terms, and the part of it around the first of them."""
        best, most = None, 0
        for number, line in enumerate(content.split("\n"), start=1):
            counts = self.counts(line.casefold())
            kinds = sum(1 for count in counts if count)
            if kinds > most:
                first = min(at for term in self.terms if (at := line.casefold().find(term)) >= 0)
                best, most = (number, _excerpt(line.removesuffix("\r"), first)), kinds
        return best


class Search(StoreAccess):
    """Looks through one store."""

    async def search(self, query: str, *, limit: int, prefix: str = "/") -> list[Hit]:
        """At most `limit` memories below a prefix that have a term of the query, the best match first."""
        terms, directory = Terms(query), checked_prefix(prefix, self.shelf.limits)
        found: list[_Found] = []
        memories = total = 0
        after = ""
        while rows := await self.read(partial(_contents, directory=directory, after=after)):
            after = rows[-1][0]
            memories += len(rows)
            total += sum(len(content) for _, content, _ in rows)
            found += await asyncio.to_thread(_matching, terms, rows)
        ranked = _ranked(found, memories, total / max(memories, 1))[:limit]
        live = await self.read(partial(memories_at, version_ids=[each.version_id for _, each in ranked]))
        # What was changed or deleted meanwhile is left out.
        found_live = [(score, live[each.version_id]) for score, each in ranked if each.version_id in live]
        return await asyncio.to_thread(lambda: [_hit(terms, memory, score) for score, memory in found_live])


async def _contents(opened: Opened, directory: str, after: str) -> Sequence[Row]:
    return await opened.memory.contents(directory, after, _PAGE_BYTES)


def _matching(terms: Terms, rows: Sequence[Row]) -> list[_Found]:
    found = []
    for path, content, version_id in rows:
        if terms.may_be_in(content) or terms.may_be_in(path.encode()):
            counts = terms.counts(f"{path}\n{content.decode()}".casefold())
            if any(counts):
                found.append(_Found(version_id, counts, len(content)))
    return found


def _ranked(found: Sequence[_Found], memories: int, usual: float) -> list[tuple[float, _Found]]:
    """The best first; equally good ones in the order in which they were found, which is that of their paths."""
    if not found:
        return []
    having = [sum(1 for each in found if each.counts[at]) for at in range(len(found[0].counts))]
    rarity = [math.log(1 + (memories - count + 0.5) / (count + 0.5)) for count in having]
    scored = []
    for each in found:
        norm = _K1 * (1 - _B + _B * each.length / max(usual, 1))
        score = sum(
            weight * count * (_K1 + 1) / (count + norm)
            for weight, count in zip(rarity, each.counts, strict=True)
            if count
        )
        scored.append((score, each))
    return sorted(scored, key=lambda pair: -pair[0])


def _hit(terms: Terms, memory: Memory, score: float) -> Hit:
    line, excerpt = terms.best_line(memory.content or "") or (None, None)
    return Hit(memory, round(score, 4), line, excerpt)


def _terms(query: str) -> list[str]:
    terms: list[str] = []
    for run in _RUNS.findall(query.casefold()):
        if _is_cjk(run) and len(run) > 1:
            terms += (run[at : at + 2] for at in range(len(run) - 1))
        else:
            terms.append(run)
    return terms


def _is_cjk(run: str) -> bool:
    return rx.match(rf"[{_CJK}]", run) is not None


def _word(term: str) -> rx.Pattern[str]:
    """A word that begins with the term; for a short term the word itself. Chinese next to it is no part of it."""
    end = rf"(?!{_LETTER})" if len(term) <= _WHOLE_WORD_CHARS else ""
    return rx.compile(rf"(?<!{_LETTER}){rx.escape(term)}{end}", rx.VERSION1)


def _excerpt(line: str, at: int) -> str:
    if len(line) <= _EXCERPT_CHARS:
        return line
    start = max(0, min(at - _EXCERPT_CHARS // 4, len(line) - _EXCERPT_CHARS))
    end = start + _EXCERPT_CHARS
    return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"
