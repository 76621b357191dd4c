"""Time expressions in English, and dates in figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from memshelf.records.retrieval.days import (
    Context,
    Found,
    Part,
    Stretch,
    Tense,
    around,
    day,
    day_of_month,
    month,
    month_away,
    months,
    recent,
    span,
    week,
    weekday,
    year,
)
from memshelf.records.retrieval.weekdays import WEEKDAYS

__all__ = ["MONTHS", "english_times"]

_MONTH_NAMES = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, 1)}
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}
_COUNTS = {
    word: count
    for count, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
} | {"a": 1, "an": 1, "couple": 2, "few": 3, "several": 4}
_UNITS = {"day": 1, "week": 7, "month": 30, "year": 365}
_SEASONS = {"spring": (3, 5), "summer": (6, 8), "autumn": (9, 11), "fall": (9, 11), "winter": (12, 2)}
_PARTS: dict[str, Part] = {
    "early": (1, 10), "beginning of": (1, 10), "start of": (1, 10), "mid": (11, 20), "middle of": (11, 20),
    "late": (21, 31), "end of": (21, 31), "first half of": (1, 15), "second half of": (16, 31),
}  # fmt: skip
_OFFSETS = {"last": -1, "past": -1, "previous": -1, "this": 0, "next": 1, "coming": 1}
_DAYS = {
    "the day before yesterday": -2, "yesterday": -1, "last night": -1, "today": 0, "tonight": 0, "this morning": 0,
    "the day after tomorrow": 2, "tomorrow": 1,
}  # fmt: skip
_LUNAR_NEW_YEAR = ((1, 20), (2, 20))
_FEASTS = {
    "christmas": ((12, 20), (12, 27)), "halloween": ((10, 28), (10, 31)), "valentine": ((2, 12), (2, 15)),
    "thanksgiving": ((11, 22), (11, 28)), "easter": ((3, 22), (4, 25)), "chinese new year": _LUNAR_NEW_YEAR,
    "lunar new year": _LUNAR_NEW_YEAR, "spring festival": _LUNAR_NEW_YEAR, "new year": ((1, 1), (1, 2)),
    "christmas eve": ((12, 24), (12, 24)), "christmas day": ((12, 25), (12, 25)),
    "new year's eve": ((12, 31), (12, 31)),
}  # fmt: skip
# These are words of their own, too: a month only with a day, a year or a part, or written large after a
# word such as "in".
_AMBIGUOUS = frozenset(("may", "march", "mar", "dec", "jan", "sept"))

_BEFORE_MONTH = re.compile(r"\b(?:in|of|for|from|to|by|until|since|before|after|during|last|next|this|and|or) $", re.I)
_YEAR = r"(?:19|20)\d\d"
_ISO = re.compile(rf"(?<![\d-])(?P<year>{_YEAR})[-/.](?P<month>\d\d?)(?:[-/.](?P<day>\d\d?))?(?!\d)")
_DATE = re.compile(
    rf"\b(?:(?P<part>{'|'.join(_PARTS)})[ -]+)?(?:(?P<day>\d\d?)(?:st|nd|rd|th)?(?: of)?,? +)?"
    rf"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\b\.?"
    rf"(?:,? +(?:the )?(?P<day_after>\d\d?)(?:st|nd|rd|th)?\b(?!\d)"
    rf"(?: ?[-–] ?(?P<last_day>\d\d?)\b(?![-/.\d]))?)?(?:,?(?: of)? *(?P<year>{_YEAR})\b)?",
    re.IGNORECASE,
)
_SEASON = re.compile(
    rf"\b(?:(?P<offset>last|this|next) )?(?P<season>{'|'.join(_SEASONS)})(?: of)?(?: (?P<year>{_YEAR}))?\b",
    re.IGNORECASE,
)
_WHOLE_YEAR = re.compile(rf"\b(?:in|during|of|since|until|by|year) (?P<year>{_YEAR})\b", re.IGNORECASE)
_DAY = re.compile(rf"\b(?:{'|'.join(_DAYS)})\b", re.IGNORECASE)
_RELATIVE = re.compile(
    rf"\b(?P<offset>{'|'.join(_OFFSETS)}) (?P<unit>weekend|week|month|year|{'|'.join(WEEKDAYS)})\b", re.IGNORECASE
)
_WEEKDAY = re.compile(
    rf"{''.join(f'(?<!{each} )' for each in (*_OFFSETS, 'every', 'each'))}\b(?P<weekday>{'|'.join(WEEKDAYS)})\b", re.I
)
_WEEKEND = re.compile(r"\b(?:the|on|every) weekends?\b|\bat weekends\b", re.IGNORECASE)
_DAY_OF_MONTH = re.compile(
    r"\bon the (?P<day>\d\d?)(?:st|nd|rd|th)\b(?! (?!at|in|of this|after|before)[a-z])", re.IGNORECASE
)
_AFTER_NEXT = re.compile(r"\bthe (?P<unit>week|weekend|month|year) (?P<direction>after next|before last)\b", re.I)
_COUNTED = rf"(?P<count>\d{{1,3}}|{'|'.join(_COUNTS)})(?: of)? (?P<unit>{'|'.join(_UNITS)})s?"
_AWAY = re.compile(rf"\b(?P<ahead>in )?{_COUNTED}\b(?P<direction> ago| from now)?", re.IGNORECASE)
_SPAN = re.compile(rf"\b(?P<offset>{'|'.join(_OFFSETS)}) {_COUNTED}\b", re.IGNORECASE)
_RECENT = re.compile(r"\b(?:recently|lately)\b", re.IGNORECASE)
_FEAST = re.compile(
    rf"\b(?P<feast>{'|'.join(sorted(_FEASTS, key=len, reverse=True))})(?:['’]?s)?(?: day| eve)?\b", re.IGNORECASE
)


def english_times(text: str, context: Context) -> Iterator[Found]:
    for match in _ISO.finditer(text):
        number, of_month = int(match["year"]), int(match["month"])
        yield _found(match, [day(number, of_month, int(match["day"])) if match["day"] else month(number, of_month)])
    for match in _DATE.finditer(text):
        if _names_a_month(match):
            years = context.or_any(int(match["year"]) if match["year"] else None)
            yield _found(match, [_date(match, number) for number in years])
    for match in _SEASON.finditer(text):
        yield _found(match, _season(match, context))
    for match in _WHOLE_YEAR.finditer(text):
        yield _found(match, [year(int(match["year"]))])
    for match in _DAY.finditer(text):
        yield _found(match, [around(context.today, _DAYS[match[0].lower()], 1)])
    for match in _RELATIVE.finditer(text):
        yield _found(match, [_relative(match["unit"].lower(), _OFFSETS[match["offset"].lower()], context.today)])
    for match in _WEEKDAY.finditer(text):
        number = WEEKDAYS.index(match["weekday"].lower())
        yield Found(tuple(weekday(context.today, number, context.tense)), *match.span(), vague=True, weekday=number)
    if context.tense is Tense.FUTURE:  # else it is any weekend
        for match in _WEEKEND.finditer(text):
            whole = week(context.today, 0)
            yield Found((Stretch(whole.first + 5, whole.last),), *match.span(), vague=True)
    for match in _DAY_OF_MONTH.finditer(text):
        yield Found(tuple(day_of_month(context, int(match["day"]))), *match.span(), vague=True)
    for match in _AFTER_NEXT.finditer(text):
        offset = 2 if match["direction"].lower() == "after next" else -2
        yield _found(match, [_relative(match["unit"].lower(), offset, context.today)])
    for match in _AWAY.finditer(text):
        if match["direction"] or match["ahead"]:
            days = -_counted(match) if (match["direction"] or "").lower() == " ago" else _counted(match)
            yield _found(match, [around(context.today, days, _UNITS[match["unit"].lower()])])
    for match in _SPAN.finditer(text):
        yield _found(match, [span(context.today, _counted(match) * (_OFFSETS[match["offset"].lower()] or 1))])
    for match in _RECENT.finditer(text):
        yield _found(match, [recent(context.today)])
    for match in _FEAST.finditer(text):
        yield _found(match, context.each_year(*_FEASTS[match["feast"].lower()]))


def _found(match: re.Match[str], stretches: list[Stretch] | list[Stretch | None]) -> Found:
    return Found(tuple(each for each in stretches if each is not None), *match.span())


def _counted(match: re.Match[str]) -> int:
    """In days."""
    count = match["count"].lower()
    return (int(count) if count.isdigit() else _COUNTS[count]) * _UNITS[match["unit"].lower()]


def _names_a_month(match: re.Match[str]) -> bool:
    name = match["month"]
    if match["day"] or match["day_after"] or match["year"] or match["part"] or name.lower() not in _AMBIGUOUS:
        return True
    return bool(name[0].isupper() and _BEFORE_MONTH.search(match.string, 0, match.start()))


def _date(match: re.Match[str], year: int) -> Stretch | None:
    number = MONTHS[match["month"].lower()]
    if match["day"] or match["day_after"]:
        first = day(year, number, int(match["day"] or match["day_after"]))
        last = day(year, number, int(match["last_day"])) if match["last_day"] else None
        return Stretch(first.first, last.last) if first and last and first.first <= last.last else first
    return month(year, number, _PARTS[match["part"].lower()] if match["part"] else (1, 31))


def _season(match: re.Match[str], context: Context) -> list[Stretch | None]:
    first, last = _SEASONS[match["season"].lower()]
    if match["year"]:
        return [months(int(match["year"]), first, last)]
    if match["offset"]:
        return [months(context.today.year + _OFFSETS[match["offset"].lower()], first, last)]
    if match["season"].lower() in ("spring", "fall"):  # words of their own, too
        return []
    return [months(number, first, last) for number in context.years]


def _relative(unit: str, offset: int, today: date) -> Stretch | None:
    if unit == "year":
        return year(today.year + offset)
    if unit == "month":
        return month_away(today, offset)
    whole = week(today, offset)
    if unit == "week":
        return whole
    if unit == "weekend":
        return Stretch(whole.first + 5, whole.last)
    # "Last Friday" is the latest one before today, "next Friday" the first one after it.
    ordinal = week(today, 0).first + WEEKDAYS.index(unit)
    if offset < 0 and ordinal >= today.toordinal():
        ordinal -= 7
    if offset > 0 and ordinal <= today.toordinal():
        ordinal += 7
    return Stretch(ordinal, ordinal)
