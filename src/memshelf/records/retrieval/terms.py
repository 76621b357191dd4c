"""The terms of a text: words of alphabetic scripts, single characters and pairs of Chinese, Japanese and Korean."""

from __future__ import annotations

import re
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import pairwise
from string import ascii_lowercase
from typing import NamedTuple

from memshelf.matching import folded
from memshelf.records.retrieval.dates import dates, day_term, days_between
from memshelf.records.retrieval.weekdays import weekday_term, weekdays_in

__all__ = [
    "COUNT_BITS", "INDEXED_CHARS", "MOST_COUNTED", "TERM_BYTES", "Asked", "asks_with", "joins", "long_words",
    "misspelt", "pack", "query_terms", "term_hash", "terms",
]  # fmt: skip

INDEXED_CHARS = 32_000
"""Words beyond this many characters of a record are not indexed."""

COUNT_BITS = 3
MOST_COUNTED = (1 << COUNT_BITS) - 1
TERM_BYTES = 4

_CHARACTER_WEIGHT, _JOINED_WEIGHT, _DATE_PART_WEIGHT, _DAY_WEIGHT = 0.3, 0.9, 0.1, 2.5
_IDENTIFIER_WEIGHT = _DATE_WEIGHT = 4.0

_LONG_WORD = 5

_BEGINNING = 7
"""Long identifiers are also found by so many of their first characters, as commits are named."""

_CJK = "\u2e80-\u2fdf\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
_RUN = re.compile(rf"[0-9]{{1,4}}[年月日号]|[{_CJK}]+|[cf](?:\+\+|#)|[^\W_{_CJK}]+")
_BETWEEN = {code: " " for code in range(128) if not chr(code).isalnum()}
_CHINESE = re.compile(rf"[{_CJK}]")
_IDENTIFIER = re.compile("(?=.*[0-9])(?!(?:19|20)[0-9]{2}$)[0-9a-z]{4,}")
_HUMP = re.compile("[A-Z](?<=[a-z0-9].)")
_JOINED_NAME = re.compile(r"\b(?:[a-z][a-z0-9]*|[A-Z][a-z0-9]+[A-Z][a-z0-9]*)(?:[A-Z][a-z0-9]*)+\b")
_SEPARATED = re.compile("[-0-9](?:(?<=-)[a-z]*[0-9]|(?<=[0-9])-[a-z0-9]|(?<=[0-9])[0-9] [0-9]{2})")
_CODE = re.compile(r"(?<![^\W_])(?:(?=[a-z]*-?[0-9])[a-z0-9]+(?:-[a-z0-9]+)+|[0-9]{2,}(?: [0-9]{2,})+)(?![^\W_])")
_HEX = re.compile(r"0x(?<![^\W_]..)(?=[0-9a-f]{4})")
_PART_OF_NAME = re.compile("[A-Z]?[a-z]{2,}|[A-Z]{3,}(?![a-z])")

# Words that say how something is asked or told, not what.
_STOP_WORDS = (
    "a about after again all also am an and any are as at be because been before being between both but by can "
    "could d did do does doing don during each few for from further had has have having he her here hers herself "
    "him himself his how i if in into is it its itself just ll m may me might more most must my myself no nor not "
    "now of off on once only or other our ours out over own re s same shall she should so some such t than that the "
    "their theirs them then there these they this those through to too under until up upon us ve very was we were "
    "what when where which while who whom whose why will with would you your yours"
)
_STOP = frozenset(_STOP_WORDS.split())
_STOP_CHARACTERS = frozenset(
    "的了是在和与及或他她它我你您们吗呢吧啊呀嘛么这那哪些个有没不就也都还很被把对给为从到向于以而且但若如其之所等着过地得请问什怎谁几多少"
)

# What a question is asked with, and what answers it seldom has: "do you remember", 我之前说过.
_ASKING_WORDS = (
    "anybody anyone anything coming everything happen know known mention mentioned noted plan planned please recall "
    "regarding remember remind said say scheduled something tell thing told"
)
_ASKING_CHARACTERS = frozenset("下前事情什关发生告诉提到过有知道记得说安排计划打算要做")

_OUGHT = "要该"  # 要交 and 该带 are two words

_PARTICLES = frozenset("的吗呢吧啊呀嘛么我你您他她它们这那哪谁什怎")


def terms(text: str) -> Iterator[str]:
    """The terms of a text, its dates last. Case, width, accents and most endings of English words make no
    difference."""
    text = _readable(text)
    runs = _runs(text)
    for run in runs:
        yield from _pieces(run)
    yield from _days(text, runs)


def _runs(text: str) -> list[str]:
    if text.isascii() and not any(each in text for each in ("++", "c#", "f#")):
        return text.translate(_BETWEEN).split()  # what `_RUN` finds there, in an eighth of the time
    return _RUN.findall(text)


def _days(text: str, runs: Iterable[str]) -> Iterator[str]:
    yield from map(weekday_term, sorted(weekdays_in(text, runs)))
    named = list(dates(text))
    for day in named:
        yield day.term
        yield day.of_any_year
    if named:
        yield from days_between(text, named)


def _readable(text: str) -> str:
    """The text as its terms are taken from it. Behind it stand the parts of names such as maxRetries, which others
    write MAX_RETRIES, and codes such as BX-77421 in one piece."""
    parts = [part for name in _joined_names(text) for part in _PART_OF_NAME.findall(name)]
    text = _HEX.sub("", folded(" ".join([text, *parts])))
    return " ".join([text, *_whole_codes(text)])


def _whole_codes(text: str) -> list[str]:
    return ["".join(filter(str.isalnum, code)) for code in _CODE.findall(text)] if _SEPARATED.search(text) else []


def _joined_names(text: str) -> list[str]:
    return _JOINED_NAME.findall(text) if _HUMP.search(text) else []  # which tells most texts off several times faster


def _pieces(run: str) -> Iterator[str]:
    if run[-1] in "年月日号" and run[0].isascii():
        yield run[:-1]
        yield run.replace("号", "日")  # the fifth month is not the fifth day
        return
    if not _CHINESE.match(run):
        if run not in _STOP:
            yield _stem(run) if run.isascii() and run.isalpha() else run
            if len(run) > _BEGINNING and not run.isalpha():
                yield run[:_BEGINNING]
        return
    yield from (character for character in run if character not in _STOP_CHARACTERS)
    yield from map("".join, pairwise(run))


def joins(pair: str) -> bool:
    """Whether a pair of Chinese characters is no word: one of them is a particle, or both join words."""
    return _STOP_CHARACTERS.issuperset(pair) or not _PARTICLES.isdisjoint(pair)


def term_hash(term: str) -> int:
    """29 bits that stand for the term. Two terms in 100,000 share theirs, which does no harm."""
    return zlib.crc32(term.encode()) >> COUNT_BITS


def pack(text: str) -> bytes:
    """The terms of a record, each as its hash and how often it stands there (counted up to 7), in 32 bits.

    Of a record in which no word tells anything, such as "No.", the words themselves, so that it can be found at all.
    """
    text = _readable(text[:INDEXED_CHARS])
    runs = Counter(_runs(text))
    counts = Counter(map(term_hash, _days(text, runs)))
    for run, often in runs.items():
        for term in _pieces(run):
            counts[term_hash(term)] += often
    counts = counts or Counter({term_hash(run): often for run, often in runs.items()})
    packed = array("I", (term << COUNT_BITS | min(count, MOST_COUNTED) for term, count in sorted(counts.items())))
    return packed.tobytes()


class Asked(NamedTuple):
    """A term of a question: how much it says that a record holds it, more than 1 for dates and codes alone, and whether
    it says something that none does."""

    weight: float
    sure: bool


def query_terms(text: str) -> dict[int, Asked]:
    """The terms of a question, by their hashes.

    A Chinese character says less than a pair, or a word, and a pair of which one is a particle, or both join words, a
    little less. A date says more than what it is written in, which stands in other dates, too, and more than the same
    day of other years; as much as a number or a code. Not sure to say anything is what a question is asked with; a
    pair with a character that joins words, as 韩是 in 老韩是谁 and 过敏 have; a long identifier, whose beginning is
    there as well; and a name such as maxRetries, whose parts are.
    """
    joined = {piece for name in _joined_names(text) for piece in _pieces(folded(name))}
    text = _readable(text)
    joined.update(_whole_codes(text))
    runs = _runs(text)
    beginnings = {run[:_BEGINNING] for run in runs if len(run) > _BEGINNING}.difference(runs)
    pieces = [piece for run in runs for piece in _pieces(run)] or runs
    found = {term_hash(piece): _asked(piece) for piece in pieces}
    found |= dict.fromkeys(map(term_hash, joined.intersection(pieces)), Asked(1.0, sure=False))
    found |= dict.fromkeys(map(term_hash, beginnings.intersection(pieces)), Asked(1.0, sure=True))
    days = list(dates(text))
    for day in days:
        parts = (term_hash(part) for run in _runs(text[day.start : day.end]) for part in _pieces(run))
        found |= dict.fromkeys(parts, Asked(_DATE_PART_WEIGHT, sure=True))
    for day in days:
        found[term_hash(day.of_any_year)] = Asked(1.0 if day.year else _DAY_WEIGHT, sure=False)
        if day.year:
            found[term_hash(day.term)] = Asked(_DATE_WEIGHT, sure=False)
            found[term_hash(day_term(None, day.month, day.day))] = Asked(_DAY_WEIGHT, sure=False)
    return found


def long_words(text: str) -> list[str]:
    """The terms of a question that are words of some length in Latin letters."""
    words = (_stem(run) for run in _runs(folded(text)) if run.isascii() and run.isalpha() and run not in _STOP)
    return [word for word in dict.fromkeys(words) if len(word) >= _LONG_WORD]


def misspelt(word: str) -> list[int]:
    """The hashes of all that a word may be if one letter is wrong, missing, too much or in its neighbour's place."""
    near = []
    for at in range(1, len(word) + 1):  # the first letter is seldom the wrong one
        head, tail, rest = word[:at], word[at:], word[at + 1 :]
        near += [head + rest, head + tail[1:2] + tail[:1] + tail[2:]]
        near += [head + letter + tail for letter in ascii_lowercase]
        near += [head + letter + rest for letter in ascii_lowercase]
    return list(map(term_hash, dict.fromkeys(near)))


def asks_with(hashes: Iterable[int]) -> bool:
    """Whether one of the terms is a long word that a question is asked with."""
    return not _LONG_ASKING.isdisjoint(hashes)


def _asked(term: str) -> Asked:
    if len(term) == 1 and not term.isascii():
        return Asked(_CHARACTER_WEIGHT, sure=not _ASKING_CHARACTERS.issuperset(term))
    if len(term) == 2 and not term.isascii():
        sure = _STOP_CHARACTERS.isdisjoint(term) and term[0] not in _OUGHT and not _ASKING_CHARACTERS.issuperset(term)
        return Asked(_JOINED_WEIGHT if joins(term) else 1.0, sure)
    long = len(term) > _BEGINNING and not term.isalpha()
    return Asked(_IDENTIFIER_WEIGHT if _IDENTIFIER.fullmatch(term) else 1.0, sure=not (long or term in _ASKING))


@lru_cache(maxsize=65_536)
def _stem(word: str) -> str:
    """The word without the endings of plural, past and progress. Measured as good as a full Snowball stemmer."""
    if len(word) > 4 and word.endswith("ies"):
        word = f"{word[:-3]}y"
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[: -2 if word.endswith(("sses", "shes", "ches", "xes", "zes")) else -1]
    if len(word) > 5 and word.endswith("ing"):
        word = _undoubled(word[:-3])
    elif len(word) > 4 and word.endswith("ed"):
        word = _undoubled(word[:-2])
    if len(word) > 4 and word.endswith("e"):
        word = word[:-1]
    return f"{word[:-1]}i" if len(word) > 4 and word.endswith("y") else word


def _undoubled(stem: str) -> str:
    return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem


_ASKING = frozenset(map(_stem, _ASKING_WORDS.split()))
_LONG_ASKING = frozenset(term_hash(word) for word in _ASKING if len(word) > _LONG_WORD)
