"""Which of some texts say what a question names, in any language, without an index; which letters are the same."""

from __future__ import annotations

import heapq
import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["best_matches", "folded"]

Item = TypeVar("Item")

_CJK = "\u2e80-\u2fdf\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_ACCENTS = re.compile("[\u0300-\u036f]+")
_RUN = re.compile(rf"(?P<cjk>[{_CJK}]+)|[^\W_{_CJK}]+[+#]*")  # C++ and C# are words
_PHRASE = 2.0
_LENGTH = 400
"""The length of a text, in characters, that neither gains nor loses by it."""


@dataclass(frozen=True, slots=True)
class _Found(Generic[Item]):
    item: Item
    counts: dict[str, int]
    length: int
    phrase: bool


def best_matches(query: str, texts: Iterable[tuple[Item, str]], limit: int) -> list[Item]:
    """At most `limit` items whose text says a word, or two Chinese characters, of `query`; the best first, then the
    last.

    A rare word says more than a frequent one, and the whole query as it stands more than its words. Case, width and
    accents make no difference. A query without any word is looked for as it stands.
    """
    phrase = folded(query).strip()
    words = _words(phrase)
    if not phrase or limit < 1:
        return []
    found: list[_Found[Item]] = []
    total = 0
    for item, said in texts:
        total += 1
        text = folded(said)
        counts = {word: count for word, pattern in words.items() if (count := _count(word, pattern, text))}
        if counts or (not words and phrase in text):
            found.append(_Found(item, counts, len(text), phrase in text))
    spread = {word: sum(word in each.counts for each in found) for word in words}
    weights = {word: math.log(1 + (total - n + 0.5) / (n + 0.5)) for word, n in spread.items()}
    ranked = [(_score(each, weights), at) for at, each in enumerate(found)]
    return [found[at].item for _, at in heapq.nlargest(limit, ranked)]


def _score(found: _Found[Item], weights: dict[str, float]) -> float:
    long = 0.25 + 0.75 * found.length / _LENGTH
    score = sum(weights[word] * count * 2.2 / (count + 1.2 * long) for word, count in found.counts.items())
    return score * (_PHRASE if found.phrase else 1) + found.phrase / 1_000


def folded(text: str) -> str:
    """The text with one form for letters that differ in case, width or accents: somebody who searches for a café may
    type cafe."""
    if text.isascii():
        return text.casefold()
    return unicodedata.normalize("NFKC", _ACCENTS.sub("", unicodedata.normalize("NFKD", text))).casefold()


def _words(phrase: str) -> dict[str, re.Pattern[str] | None]:
    """The words of a query, each with the pattern that finds it; pairs of Chinese characters are found as they are."""
    words: dict[str, re.Pattern[str] | None] = {}
    for run in _RUN.finditer(phrase):
        word = run.group()
        if run.lastgroup == "cjk":
            pairs = [word[at : at + 2] for at in range(len(word) - 1)] or [word]
            words.update(dict.fromkeys(pairs))
        else:
            words[word] = re.compile(rf"(?<![^\W_{_CJK}]){re.escape(word)}(?:e?s)?(?![^\W_{_CJK}])")
    return words


def _count(word: str, pattern: re.Pattern[str] | None, text: str) -> int:
    if word not in text:
        return 0
    return text.count(word) if pattern is None else len(pattern.findall(text))
