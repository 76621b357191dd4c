"""Stretches of days, and the arithmetic of months and weeks that time words need."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date
from enum import Enum

__all__ = [
    "EPOCH_DAY", "MICROS_A_DAY", "Context", "Found", "Part", "Stretch", "Tense", "around", "day", "day_of_month",
    "month", "month_away", "months", "recent", "span", "week", "weekday", "year",
]  # fmt: skip


MICROS_A_DAY = 86_400_000_000
EPOCH_DAY = date(1970, 1, 1).toordinal()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Whole days, as proleptic ordinals, both ends included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Found:
    """A time expression: the days that it may mean, and where it stands in the text."""

    stretches: tuple[Stretch, ...]
    start: int
    end: int
    vague: bool = False
    """It says of which day only if nothing else does: "on Tuesday", "the 16th"."""
    weekday: int | None = None
    """0 for Monday, if it is nothing but the name of that day."""


class Tense(Enum):
    """What the rest of a text says of when a day is that it names."""

    PAST = "past"
    FUTURE = "future"
    ANY = "any"


@dataclass(frozen=True, slots=True)
class Context:
    """What a time expression depends on: the day it is said, and the years that a date without one may mean."""

    today: date
    years: tuple[int, ...]
    tense: Tense = Tense.ANY

    def or_any(self, year: int | None) -> Iterator[int]:
        return iter(self.years if year is None else (year,))

    def each_year(self, first: tuple[int, int], last: tuple[int, int]) -> list[Stretch]:
        """From one day of the calendar to another, given by month and day."""
        ends = [(day(year, *first), day(year, *last)) for year in self.years]
        return [Stretch(start.first, end.last) for start, end in ends if start and end]


Part = tuple[int, int]
"""The first and last day of a part of a month."""


def day(year: int, month: int, number: int) -> Stretch | None:
    try:
        ordinal = date(year, month, number).toordinal()
    except ValueError:
        return None
    return Stretch(ordinal, ordinal)


def month(year: int, number: int, part: Part = (1, 31)) -> Stretch | None:
    if not (MINYEAR <= year <= MAXYEAR and 1 <= number <= 12):
        return None
    length = calendar.monthrange(year, number)[1]
    return Stretch(date(year, number, part[0]).toordinal(), date(year, number, min(part[1], length)).toordinal())


def months(year: int, first: int, last: int) -> Stretch | None:
    """From the first to the last month, of the next year if that is the smaller number."""
    start, end = month(year, first), month(year + (last < first), last)
    return Stretch(start.first, end.last) if start is not None and end is not None else None


def year(number: int) -> Stretch | None:
    return months(number, 1, 12)


def week(today: date, offset: int) -> Stretch:
    """The week, from Monday, that is `offset` weeks away."""
    monday = today.toordinal() - today.weekday() + 7 * offset
    return Stretch(monday, monday + 6)


def weekday(today: date, number: int, tense: Tense) -> list[Stretch]:
    """The next such day of the week, 0 being Monday, the last one before today, or either."""
    ahead = (number - today.weekday()) % 7
    coming = (ahead, *(() if ahead else (7,)))  # who says it on that day may mean the one in a week
    away = {Tense.PAST: (ahead - 7,), Tense.FUTURE: coming, Tense.ANY: (*coming, ahead - 7)}[tense]
    return [Stretch(each, each) for each in (max(1, today.toordinal() + days) for days in away)]


def day_of_month(context: Context, number: int) -> list[Stretch]:
    """The next day with this number, the last one, or either."""
    today = context.today
    months = (today.replace(day=1).toordinal() + 31 * offset for offset in (-1, 0, 1, 2))
    near = (date.fromordinal(min(max(1, each), date.max.toordinal())) for each in months)
    days = {each.first for month in near if (each := day(month.year, month.month, number)) is not None}
    ahead = [each for each in sorted(days) if each >= today.toordinal()][:1]
    past = [each for each in sorted(days) if each < today.toordinal()][-1:]
    chosen = {Tense.PAST: past, Tense.FUTURE: ahead, Tense.ANY: ahead + past}[context.tense]
    return [Stretch(each, each) for each in chosen]


def around(today: date, days: int, unit: int) -> Stretch:
    """What "so many units ago" means, `days` away: the longer the unit, the vaguer."""
    slack = unit // 2 if unit > 1 else 0
    middle = today.toordinal() + days
    return Stretch(max(1, middle - slack), max(1, middle + slack))


def span(today: date, days: int) -> Stretch:
    """From today to so many days ahead, or back."""
    ordinal = today.toordinal()
    return Stretch(max(1, min(ordinal, ordinal + days)), max(ordinal, ordinal + days))


def month_away(today: date, offset: int, part: Part = (1, 31)) -> Stretch | None:
    index = today.year * 12 + today.month - 1 + offset
    return month(index // 12, index % 12 + 1, part)


def recent(today: date) -> Stretch:
    return span(today, -30)
