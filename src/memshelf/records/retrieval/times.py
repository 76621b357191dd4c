"""When a question is about: its time expressions as stretches of days."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import date
from functools import partial
from itertools import pairwise, starmap
from typing import NamedTuple

from memshelf.records.retrieval.chinese_times import TRADITIONAL, chinese_times
from memshelf.records.retrieval.dates import dates, day_term
from memshelf.records.retrieval.days import Context, Found, Stretch, Tense, day
from memshelf.records.retrieval.english_times import english_times
from memshelf.records.retrieval.weekdays import weekday_term

__all__ = ["closeness", "fading", "named_days", "read_times", "specificity"]

_MOST_STRETCHES = 64
_FROM_TO, _AND = re.compile(r"\s*(?:to|until|till|through|[-–—~～]|到|至)\s*"), re.compile(r"\s+and\s+")
_PAST = re.compile(r"\b(?:did|was|were|went|had|happened)\b|(?<!为)了(?!解)|过(?=[什吗谁哪？?])", re.IGNORECASE)
_AHEAD = re.compile(
    r"\bwhat['’]?s\b|\b(?:do|does|will|am|is|are|can|shall|should)\b|[要会]|有[什哪事空]", re.IGNORECASE
)
_PLANNED = re.compile(r"\b(?:will|plan|plans|planned|schedule|scheduled)\b|安排|计划|打算", re.IGNORECASE)
_LONGEST_NAMED, _MOST_NAMED, _A_WEEK, _COMING, _A_YEAR = 31, 200, 7, 300, 365
_WITHOUT_YEAR = 0.7
_EVERY_WEEK = 0.45
"""What names a day of the week, where the question is for some days that are to come."""


class Times(NamedTuple):
    """What a text says of when: the days, the days of the week by their numbers, and the rest of the text."""

    stretches: list[Stretch]
    weekdays: list[int]
    rest: str


def read_times(text: str, today: date, years: Iterable[int]) -> Times:
    """The days that the text speaks of.

    `today` is what relative expressions count from; a date without a year is of each of the `years`.
    """
    text = text.translate(TRADITIONAL)
    context = Context(today, tuple(years), _tense(text))
    found = [each for find in (chinese_times, english_times) for each in find(text, context)]
    for named in dates(text):
        if not any(each.start < named.end and named.start < each.end for each in found):
            days = (day(year, named.month, named.day) for year in context.or_any(named.year))
            found.append(Found(tuple(each for each in days if each is not None), named.start, named.end))
    if any(not each.vague for each in found):
        found = [each for each in found if not each.vague]
    in_order = sorted(found, key=lambda each: each.start)
    found = [*filter(None, starmap(partial(_from_to, text), pairwise(in_order))), *found]
    stretches = dict.fromkeys(stretch for each in found for stretch in each.stretches)
    rest = list(text)
    for each in found:
        rest[each.start : each.end] = " " * (each.end - each.start)
    weekdays = [each.weekday for each in found if each.weekday is not None]
    return Times(list(stretches)[:_MOST_STRETCHES], weekdays, "".join(rest))


def _tense(text: str) -> Tense:
    if _PLANNED.search(text):
        return Tense.ANY if _PAST.search(text) else Tense.FUTURE  # "What did we plan for Monday?"
    if _PAST.search(text):
        return Tense.PAST
    return Tense.FUTURE if _AHEAD.search(text) else Tense.ANY


def _from_to(text: str, before: Found, after: Found) -> Found | None:
    """The days from one expression to the next, if the text says so: "between May 3 and May 7"."""
    between = _AND if text[: before.start].lower().endswith("between ") else _FROM_TO
    if not between.fullmatch(text, before.end, after.start):
        return None
    lasts = sorted(each.last for each in after.stretches)
    ends = ((first.first, bisect_right(lasts, first.first)) for first in before.stretches)
    days = [Stretch(first, lasts[at]) for first, at in ends if at < len(lasts) and lasts[at] - first < _A_YEAR]
    return Found(tuple(days), before.start, after.end) if days else None


def named_days(stretches: Sequence[Stretch], weekdays: Sequence[int], today: date) -> dict[str, float]:
    """The terms by which texts name the days of the stretches, each with how much it says that a text does.

    Not of stretches longer than a month, of which many are that name a day at all. What is on every such `weekdays`, or
    on those of a week to come, is of these days as well.
    """
    named = dict.fromkeys(map(weekday_term, weekdays), 1.0)
    for stretch in stretches:
        if stretch.last - stretch.first >= _LONGEST_NAMED or len(named) >= _MOST_NAMED:
            continue
        says = specificity(stretch)
        coming = 0 <= stretch.last - today.toordinal() < _COMING
        first, last = max(stretch.first, 1), min(stretch.last, date.max.toordinal())  # the ends of the calendar
        for each in map(date.fromordinal, range(first, last + 1)):
            for year, share in ((each.year, says), (None, _WITHOUT_YEAR * says)):
                term = day_term(year, each.month, each.day)
                named[term] = max(share, named.get(term, 0.0))
            if coming and stretch.last - stretch.first < _A_WEEK:
                term = weekday_term(each.weekday())
                named[term] = max(_EVERY_WEEK * says, named.get(term, 0.0))
    return named


def specificity(stretch: Stretch) -> float:
    """How much it says that a record is of that time: a day more than a year."""
    days = stretch.last - stretch.first + 1
    return 1.0 if days <= 3 else 0.8 if days <= 31 else 0.4


def fading(stretch: Stretch) -> float:
    """In how many days the closeness of what is outside fades away."""
    return max(2.0, (stretch.last - stretch.first + 1) / 10)


def closeness(day: int, stretches: Sequence[Stretch]) -> float:
    """From 1, within a day that the question names, to 0."""
    best = 0.0
    for each in stretches:
        distance = max(each.first - day, day - each.last, 0)
        near = 1.0 if distance == 0 else 0.8 * math.exp(-distance / fading(each))
        best = max(best, near * specificity(each))
    return best
