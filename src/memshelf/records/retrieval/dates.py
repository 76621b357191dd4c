"""The days that a text names, as terms: the same however they are written, in English as in Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from typing import NamedTuple

from memshelf.records.retrieval.chinese_times import number
from memshelf.records.retrieval.english_times import MONTHS

__all__ = ["NamedDay", "dates", "day_term"]

_LEAP_YEAR = 2000
_MONTH = f"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
_YEAR = "(?P<year>(?:19|20)[0-9]{2})"
_DAY = "(?P<day>[0-9]{1,2})(?:st|nd|rd|th)?"
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
        (rf"(?<![a-z]){_MONTH}\.? ?", f" {_DAY}(?![0-9a-z])(?:,? {{1,2}}{_YEAR}(?![0-9]))?"),
        (f"(?<![0-9]){_DAY}(?: of)? ?", f" {_MONTH}(?![a-z])(?:\\.?,? {{1,2}}{_YEAR}(?![0-9]))?"),
        (rf"(?:(?P<year>(?:19|20)[0-9]{{2}}|[一二][〇零一二三四五六七八九]{{3}})\s?年\s?)?(?P<month>{_NUMBER})\s?",
         rf"月\s?(?P<day>{_NUMBER})(?![0-9])(?:\s?[日号])?"),
    )
)  # fmt: skip
_LONGEST_BEFORE = len("september.  ")


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
    """The days that a text in lower case names. 3/5/2026 is both that it may be."""
    for before, form in _FORMS:
        for found in form.finditer(text):
            head = before.search(text, max(0, found.start() - _LONGEST_BEFORE), found.start())
            if head is None:
                continue
            parts = head.groupdict() | found.groupdict()
            year = number(parts["year"]) if parts["year"] else None
            month, day = MONTHS.get(parts["month"]) or number(parts["month"]), number(parts["day"])
            either = [(month, day), (day, month)] if parts.get("sep") in ("/", "-") else [(month, day)]
            for each in dict.fromkeys(either):
                if _exists(year, *each):
                    yield NamedDay(year, *each, head.start(), found.end())


def _exists(year: int | None, month: int, day: int) -> bool:
    try:
        date(year or _LEAP_YEAR, month, day)
    except ValueError:
        return False
    return True
