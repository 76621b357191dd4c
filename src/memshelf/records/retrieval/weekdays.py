"""The days of the week that a text names, as terms: the same however they are written, in English as in Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

__all__ = ["WEEKDAYS", "weekday_term", "weekdays_in"]

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")

_SHORT = {name[:3]: number for number, name in enumerate(WEEKDAYS)}
_CHINESE_DAYS = {day: number for number, day in enumerate("一二三四五六日")} | {"天": 6}
# These are words of their own, too.
_AMBIGUOUS = frozenset(("mon", "wed", "sat", "sun"))
_ENGLISH: dict[str, tuple[int, ...]]
_ENGLISH = {f"{name}{end}": (number,) for number, name in enumerate(WEEKDAYS) for end in ("", "s")}
_ENGLISH |= {word: (_SHORT[word[:3]],) for word in ("tue", "tues", "thu", "thur", "thurs", "fri")}  # "thus" is none
_ENGLISH |= {word: (_SHORT[word],) for word in _AMBIGUOUS} | {"weekend": (5, 6), "weekends": (5, 6)}
_BEFORE = re.compile(r"(?:\b(?:every|each)|/|\b(?:mon|tues?|wed|thur?s?|fri|sat|sun)\b\.?\s?(?:[,&–-]|and|or|to))\s?$")
_AFTER = re.compile(r"\.?\s?(?:[/,&–-]|and|or|to)\s?(?:mon|tue|wed|thu|fri|sat|sun)")
_LONGEST_BEFORE = len("every thurs. and ")

_CHINESE = re.compile(
    "(?:[周週]|星期|[礼禮]拜)(?:(?P<weekend>末)|(?P<days>[一二三四五六日天](?:[、,和及与/]?(?:[周週]|星期|[礼禮]拜)[一二三四五六日天]"
    "|[、,和及与/][一二三四五六日](?![月日号点]))*)(?P<more>[一二三四五六日]*)(?![起次个点月]))"
)
_CHINESE_BEGINS = "周週星礼禮"

_EACH, _COUNTED = re.compile("[每各]个?$"), re.compile("[个一二两三四五六七八九十几0-9]$")


def weekday_term(number: int) -> str:
    """0 is Monday."""
    return f"@{number}"


def weekdays_in(text: str, words: Iterable[str]) -> set[int]:
    """Those that a text in lower case, which has these words, names: "Tue/Thu", "every weekend", 每周一三五."""
    return {*_english(text, words), *(_chinese(text) if any(sign in text for sign in _CHINESE_BEGINS) else ())}


def _english(text: str, words: Iterable[str]) -> Iterator[int]:
    for word in _ENGLISH.keys() & words:
        # From its first letter on: what stands before is looked at only where the word is.
        for found in re.finditer(rf"{word}(?<!\w{word})(?!\w)", text):
            if (
                word not in _AMBIGUOUS
                or _BEFORE.search(text, max(0, found.start() - _LONGEST_BEFORE), found.start())
                or _AFTER.match(text, found.end())
            ):
                yield from _ENGLISH[word]
                break


def _chinese(text: str) -> Iterator[int]:
    for found in _CHINESE.finditer(text):
        each = _EACH.search(text, max(0, found.start() - 2), found.start())
        if each is None and _COUNTED.search(text, max(0, found.start() - 1), found.start()):
            continue
        if found["weekend"]:
            yield from (5, 6)
            continue
        days = found["days"] + (found["more"] if each else "")
        yield from (_CHINESE_DAYS[each] for each in days if each in _CHINESE_DAYS)
