"""The days that a text names in full, as one term each: however they are written, and in whichever language."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from memshelf.records.retrieval.english_times import MONTHS

__all__ = ["dates"]

_MONTH = f"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})"
_DAY = r"(?P<day>[0-9]{1,2})"
_TH = r"(?:st|nd|rd|th)?"
_YEAR = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}(?![0-9])")
_FROM_YEAR = (
    re.compile(rf"(?<![./-]).{{4}}(?P<between>[-/.])(?P<month>[0-9]{{1,2}})(?P=between){_DAY}(?![0-9])"),
    re.compile(rf".{{4}}\s?年\s?(?P<month>[0-9]{{1,2}})\s?月\s?{_DAY}(?![0-9])"),
)
_TO_YEAR = (
    re.compile(rf"\b{_MONTH}\.? {{1,2}}{_DAY}{_TH},? {{1,2}}.{{4}}$"),
    re.compile(rf"(?<![0-9]){_DAY}{_TH}(?: of)? {{1,2}}{_MONTH}\.?,? {{1,2}}.{{4}}$"),
)
_LONGEST = len("30th of  september.,  2026")


def dates(text: str) -> Iterator[tuple[str, str]]:
    """The dates of a text in lower case, each in ISO 8601 and as it is written there.

    What is no date of the calendar is left out.
    """
    for year in _YEAR.finditer(text):  # which few texts have, and is found several times faster than dates are
        start, end = year.span()
        found = [form.match(text, start) for form in _FROM_YEAR]
        found += [form.search(text, max(0, end - _LONGEST), end) for form in _TO_YEAR]
        for match in found:
            if match is None:
                continue
            month = match["month"]
            try:
                day = date(int(year[0]), MONTHS.get(month) or int(month), int(match["day"]))
            except ValueError:
                continue
            yield day.isoformat(), match[0]
