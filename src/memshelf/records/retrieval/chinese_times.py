"""Time expressions in Chinese."""

from __future__ import annotations

import re
from collections.abc import Iterator

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

__all__ = ["TRADITIONAL", "chinese_times", "number"]

_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2, "几": 3}
_NUMBER = r"[0-9]{1,3}|[一二三四五六七八九十]{1,3}"
TRADITIONAL = str.maketrans("個週後號內這兩幾過來節禮聖誕國慶勞動婦兒", "个周后号内这两几过来节礼圣诞国庆劳动妇儿")
"""What time expressions are written with besides, one character for one."""

_YEAR_WORDS = {"前年": -2, "去年": -1, "今年": 0, "明年": 1}
_YEAR = r"(?:(?P<year>(?:19|20)[0-9]{2}|[一二][〇零一二三四五六七八九]{3})\s*年|(?P<relative_year>前年|去年|今年|明年))"
_MONTH_PARTS: dict[str, Part] = {
    "初": (1, 10), "上旬": (1, 10), "中": (11, 20), "中旬": (11, 20), "中下旬": (11, 31),
    "下旬": (21, 31), "底": (21, 31), "末": (21, 31),
}  # fmt: skip
_YEAR_PARTS = {
    "初": (1, 2), "中": (5, 8), "底": (11, 12), "末": (11, 12), "上半年": (1, 6), "下半年": (7, 12),
    "春天": (3, 5), "夏天": (6, 8), "秋天": (9, 11), "冬天": (12, 2),
}  # fmt: skip
_DAY_WORDS = {
    "大前天": -3, "前天": -2, "昨天": -1, "昨日": -1, "昨晚": -1, "今天": 0, "今日": 0, "今早": 0, "今晚": 0,
    "明天": 1, "明日": 1, "明早": 1, "明晚": 1, "后天": 2, "大后天": 3,
}  # fmt: skip
_OFFSETS = {"上上": -2, "上": -1, "这": 0, "本": 0, "下": 1, "下下": 2}
_BACK = frozenset(("过去", "最近", "近"))
_UNITS = {"天": 1, "日": 1, "周": 7, "星期": 7, "礼拜": 7, "月": 30, "年": 365}
# Feasts of the lunar calendar move: the days that they can fall on.
_FEASTS = {
    "元旦": ((1, 1), (1, 3)), "情人节": ((2, 14), (2, 14)), "妇女节": ((3, 8), (3, 8)), "清明": ((4, 3), (4, 6)),
    "劳动节": ((5, 1), (5, 5)), "五一": ((5, 1), (5, 5)), "儿童节": ((6, 1), (6, 1)), "国庆": ((10, 1), (10, 8)),
    "圣诞": ((12, 24), (12, 26)), "春节": ((1, 20), (2, 20)), "元宵": ((2, 5), (3, 6)), "端午": ((5, 28), (6, 25)),
    "中秋": ((9, 8), (10, 8)),
}  # fmt: skip

_TO = r"\s*(?:至|到|-|—|~|～)\s*"
_DATE = re.compile(
    rf"(?:{_YEAR}\s*的?)?(?P<month>{_NUMBER})\s*月(?!前|后|内)份?"
    rf"(?:(?P<day>{_NUMBER})\s*[日号]?(?:(?:{_TO}|和|、)(?:(?P<last_month>{_NUMBER})月)?(?P<last_day>{_NUMBER})\s*[日号])?"
    rf"|的?(?P<part>中下旬|上旬|中旬|下旬|初|中(?!午)|底|末)"
    rf"|{_TO}(?P<to_month>{_NUMBER})\s*月)?"
)
_WHOLE_YEAR = re.compile(rf"{_YEAR}(?!\s*的?(?:{_NUMBER})\s*月)年?(?P<part>上半年|下半年|[春夏秋冬]天|初|中|底|末)?")
_DAY = re.compile("|".join(sorted(_DAY_WORDS, key=len, reverse=True)))
_WEEK = re.compile(r"(?P<offset>上上|上|这|本|下下|下)个?(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天末])?")
_WEEKDAY = re.compile(
    "(?<![上这本下个每几两一二三四五六七八九十0-9])(?:周|星期|礼拜)(?P<weekday>[一二三四五六日天])(?!次)"
)
_ASKED_FOR = "(?=[有我要能会可的做去是，。？?! ]|[上下]午|晚|早|那天|当天|$)"
_WEEKEND = re.compile(f"(?<![上这本下个])(?:周|星期|礼拜)末{_ASKED_FOR}")
_DAY_OF_MONTH = re.compile(rf"(?<![月0-9一二三四五六七八九十])(?P<day>{_NUMBER})号{_ASKED_FOR}")
_MONTH = re.compile(r"(?P<offset>上上|上|这|本|下下|下)个?月(?P<part>初|中|底|末)?")
_SO_MANY = rf"(?P<count>{_NUMBER}|[两几])\s*个?(?P<unit>{'|'.join(_UNITS)})"
_AGO = re.compile(f"{_SO_MANY}(?:之|以)?(?P<direction>前|后)")
_SPAN = re.compile(f"(?P<offset>过去|最近|近|未来|接下来|今后|往后)的?这?{_SO_MANY}")
_RECENT = re.compile(f"(?:最近|近来|近期|近日)(?!的?这?{_SO_MANY})")
_FEAST = re.compile("|".join(_FEASTS))


def chinese_times(text: str, context: Context) -> Iterator[Found]:
    for match in _DATE.finditer(text):
        yield _found(match, [_date(match, year) for year in context.or_any(_year(match, context))])
    for match in _WHOLE_YEAR.finditer(text):
        named = _year(match, context)
        part = _YEAR_PARTS.get(match["part"])
        if named is not None:
            yield _found(match, [months(named, *part) if part else year(named)])
    for match in _DAY.finditer(text):
        yield _found(match, [around(context.today, _DAY_WORDS[match[0]], 1)])
    for match in _WEEK.finditer(text):
        yield _found(match, [_week(match, context)])
    for match in _WEEKDAY.finditer(text):
        named = _weekday(match)
        yield Found(tuple(weekday(context.today, named, context.tense)), *match.span(), vague=True, weekday=named)
    if context.tense is Tense.FUTURE:  # else it is any weekend
        for match in _WEEKEND.finditer(text):
            whole = week(context.today, 0)
            yield Found((Stretch(whole.first + 5, whole.last),), *match.span(), vague=True)
    for match in _DAY_OF_MONTH.finditer(text):
        yield Found(tuple(day_of_month(context, number(match["day"]))), *match.span(), vague=True)
    for match in _MONTH.finditer(text):
        part_of_month = _MONTH_PARTS.get(match["part"], (1, 31))
        yield _found(match, [month_away(context.today, _OFFSETS[match["offset"]], part_of_month)])
    for match in _AGO.finditer(text):
        days = -_counted(match) if match["direction"] == "前" else _counted(match)
        yield _found(match, [around(context.today, days, _UNITS[match["unit"]])])
    for match in _SPAN.finditer(text):
        days = -_counted(match) if match["offset"] in _BACK else _counted(match)
        yield _found(match, [span(context.today, days)])
    for match in _RECENT.finditer(text):
        yield _found(match, [recent(context.today)])
    for match in _FEAST.finditer(text):
        yield _found(match, context.each_year(*_FEASTS[match[0]]))


def _found(match: re.Match[str], stretches: list[Stretch] | list[Stretch | None]) -> Found:
    return Found(tuple(each for each in stretches if each is not None), *match.span())


def _counted(match: re.Match[str]) -> int:
    """In days."""
    return number(match["count"]) * _UNITS[match["unit"]]


def _year(match: re.Match[str], context: Context) -> int | None:
    if match["year"]:
        return number(match["year"])
    return context.today.year + _YEAR_WORDS[match["relative_year"]] if match["relative_year"] else None


def _date(match: re.Match[str], year: int) -> Stretch | None:
    of_year = number(match["month"])
    if match["day"]:
        first = day(year, of_year, number(match["day"]))
        if not match["last_day"]:
            return first
        last = day(year, number(match["last_month"]) if match["last_month"] else of_year, number(match["last_day"]))
        return Stretch(first.first, last.last) if first and last and first.first <= last.last else first
    if match["to_month"]:
        return months(year, of_year, number(match["to_month"]))
    return month(year, of_year, _MONTH_PARTS.get(match["part"], (1, 31)))


def _week(match: re.Match[str], context: Context) -> Stretch:
    whole = week(context.today, _OFFSETS[match["offset"]])
    if not match["weekday"]:
        return whole
    if match["weekday"] == "末":
        return Stretch(whole.first + 5, whole.last)
    ordinal = whole.first + _weekday(match)
    return Stretch(ordinal, ordinal)


def _weekday(match: re.Match[str]) -> int:
    return "一二三四五六日".find(match["weekday"].replace("天", "日"))


def number(text: str) -> int:
    """What figures say, Arabic or Chinese ones."""
    if text.isascii():
        return int(text)
    tens, ten, ones = text.rpartition("十")
    if ten:
        return (_DIGITS.get(tens, 1) if tens else 1) * 10 + (_DIGITS.get(ones, 0) if ones else 0)
    value = 0
    for digit in text:
        value = value * 10 + _DIGITS[digit]
    return value
