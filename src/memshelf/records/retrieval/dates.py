"""The days that a text names, as terms: the same however they are written, in English as in Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import islice
from typing import NamedTuple

from memshelf.records.retrieval.chinese_times import number
from memshelf.records.retrieval.english_times import MONTHS

__all__ = ["NamedDay", "dates", "day_term", "days_between"]

_LEAP_YEAR = 2000
_MONTH = f"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
_YEAR = "(?P<year>(?:19|20)[0-9]{2})"
_DAY = "(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
_NO_DAY = "(?<!(?<![0-9:])[0-9] )(?<!(?<![0-9:])[0-9]{2} )(?<![0-9](?:st|nd|rd|th) )"
"""In "2 Dec 15:30" the month belongs to the number before it."""
_NUMBER = "[0-9]{1,2}|[一二三四五六七八九十]{1,3}"

# Each form from what is rare in it to its end, and what stands before that: few texts have dates, and so one is read
# several times faster.
_FORMS = tuple(
    (re.compile(f"{before}$"), re.compile(form))
    for before, form in (
        ("", r"(?P<year>(?:19|20)(?<![0-9./-]..)[0-9]{2})(?P<between>[./-])(?P<month>[0-9]{1,2})"
             r"(?P=between)(?P<day>[0-9]{1,2})(?![0-9])"),
        ("", "(?P<year>(?:19|20)(?<![0-9]..)[0-9]{2})(?P<month>[0-9]{2})(?P<day>[0-9]{2})(?![0-9])"),
        ("(?<![0-9./-])(?P<day>[0-9]{1,2})", rf"(?P<sep>[./-])(?P<month>[0-9]{{1,2}})(?P=sep){_YEAR}(?![0-9])"),
        ("(?<![0-9a-z./])(?P<day>[0-9]{1,2})", r"(?P<sep>/)(?P<month>[0-9]{1,2})(?![0-9a-z/%]|\.[0-9])"),
        # Without the nought, "12-18" is nearly always so many.
        ("(?<![0-9a-z./:_-])(?P<month>0[1-9])",
         r"-(?P<day>[0-3][0-9])(?![0-9a-z/:%_-]|\.[0-9]| ?[分点时天个人岁年月周次元度级℃])"),
        (rf"{_NO_DAY}(?<![a-z]){_MONTH}\.? ?", f" {_DAY}(?![0-9a-z]|:[0-9])(?:,? {{1,2}}{_YEAR}(?![0-9]))?"),
        (f"(?<![0-9:]){_DAY}(?: of)? ?", f" {_MONTH}(?![a-z])(?:\\.?,? {{1,2}}{_YEAR}(?![0-9]))?"),
        (rf"(?:(?P<year>(?:19|20)[0-9]{{2}}|[一二][〇零一二三四五六七八九]{{3}})\s?年\s?)?(?P<month>{_NUMBER})\s?",
         rf"月\s?(?P<day>{_NUMBER})(?![0-9])(?:\s?[日号])?"),
    )
)  # fmt: skip
_DIGIT = re.compile("[0-9]")
"""All forms but the last one need one."""
_LONGEST_BEFORE = len("september.  ")

_JOINED = r"\s?(?:[-–—~]|to|until|till|through|至|到)\s?"
_UNTIL = re.compile(_JOINED)
_LAST_DAY = re.compile(
    "(?:the )?(?P<day>[0-9]{1,2}|[一二三四五六七八九十]{1,3}(?=[日号]))(?:st|nd|rd|th)?"
    rf"(?![0-9a-z/:%]|[.-][0-9]| ?[ap]\.?m)(?:,? {_YEAR}(?![0-9]))?"
)
_FIRST_DAY = re.compile(rf"(?<![0-9a-z./:-]){_DAY}{_JOINED}(?:the )?$")
_DAY_FIRST = re.compile("[0-9]{1,2}(?:st|nd|rd|th)?(?: of)? ?[a-z]")
_LONGEST_RANGE, _MOST_RANGES = 31, 100


class NamedDay(NamedTuple):
    """A day of the calendar, of any year if that is `None`, and where a text names it."""

    year: int | None
    month: int
    day: int
    start: int
    end: int

    @property
    def term(self) -> str:
        """What it is named by, in ISO 8601; without a year it is a term of its own."""
        return day_term(self.year, self.month, self.day)

    @property
    def of_any_year(self) -> str:
        """The day whatever its year, as something else may name it."""
        return f"-{day_term(None, self.month, self.day)}"


def day_term(year: int | None, month: int, day: int) -> str:
    return f"{'-' if year is None else year}-{month:02}-{day:02}"


def dates(text: str) -> Iterator[NamedDay]:
    """The days that a text in lower case names. 3/5/2026 and 3/15 are all that they may be."""
    for before, form in _FORMS if _DIGIT.search(text) else _FORMS[-1:]:
        for found in form.finditer(text):
            head = before.search(text, max(0, found.start() - _LONGEST_BEFORE), found.start())
            if head is None:
                continue
            parts = head.groupdict() | found.groupdict()
            year = number(parts["year"]) if parts.get("year") else None
            month, day = MONTHS.get(parts["month"]) or number(parts["month"]), number(parts["day"])
            either = [(month, day), (day, month)] if parts.get("sep") in ("/", "-") else [(month, day)]
            if year is None and "sep" in parts and _is_fraction(day, month):
                continue
            for each in dict.fromkeys(either):
                if _date(year, *each):
                    yield NamedDay(year, *each, head.start(), found.end())


def days_between(text: str, named: Sequence[NamedDay]) -> set[str]:
    """The terms of the days within the ranges of a text that names some days: "May 3-7", 5月3日到7日.

    Not those of ranges longer than a month; of those with a year, only with it.
    """
    terms: set[str] = set()
    for first, last in islice(_ranges(text, named), _MOST_RANGES):
        for each in _days(first, last):
            if first.year or last.year:
                terms.add(day_term(each.year, each.month, each.day))
            else:
                terms |= {day_term(None, each.month, each.day), f"-{day_term(None, each.month, each.day)}"}
    return terms.difference(*((each.term, each.of_any_year) for each in named))


def _days(first: NamedDay, last: NamedDay) -> list[date]:
    year = first.year or last.year or _LEAP_YEAR
    for from_year, to_year in ((year, year), (year, year + 1), (year - 1, year)):
        if first.year in (None, from_year) and last.year in (None, to_year):
            start, end = _date(from_year, first.month, first.day), _date(to_year, last.month, last.day)
            if start and end and 0 < (end - start).days <= _LONGEST_RANGE:
                return list(map(date.fromordinal, range(start.toordinal(), end.toordinal() + 1)))
    return []


def _ranges(text: str, named: Sequence[NamedDay]) -> Iterator[tuple[NamedDay, NamedDay]]:
    ends = {each.end for each in named}
    starting: dict[int, list[NamedDay]] = {}
    for each in named:
        starting.setdefault(each.start, []).append(each)
    for day in named:
        if (joined := _UNTIL.match(text, day.end)) is not None:
            lasts = starting.get(joined.end(), []) or _same_month(day, _LAST_DAY.match(text, joined.end()))
            yield from ((day, last) for last in lasts)
        if _DAY_FIRST.match(text, day.start):
            before = _FIRST_DAY.search(text, max(0, day.start - _LONGEST_BEFORE), day.start)
            if before is not None and ends.isdisjoint(range(before.start(), before.end())):
                yield from ((first, day) for first in _same_month(day, before))


def _same_month(day: NamedDay, other: re.Match[str] | None) -> list[NamedDay]:
    if other is None:
        return []
    year = other.groupdict().get("year")
    same = day._replace(day=number(other["day"]), year=number(year) if year else day.year)
    return [same] if _date(same.year, same.month, same.day) else []


def _is_fraction(above: int, below: int) -> bool:
    return (above, below) == (24, 7) or (above < below and below in (2, 3, 4, 5, 10))


def _date(year: int | None, month: int, day: int) -> date | None:
    try:
        return date(year or _LEAP_YEAR, month, day)
    except ValueError:
        return None
