"""Stretches of days, and the arithmetic of months and weeks that time words need."""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import MAXYEAR, MINYEAR, date

__all__ = [
    "EPOCH_DAY", "MICROS_A_DAY", "Context", "Found", "Part", "Stretch", "around", "day", "month", "month_away",
    "months", "recent", "span", "week", "year",
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


@dataclass(frozen=True, slots=True)
class Context:
    """What a time expression depends on: the day it is said, and the years that a date without one may mean."""

    today: date
    years: tuple[int, ...]

    def or_any(self, year: int | None) -> Iterator[int]:
        return iter(self.years if year is None else (year,))


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
