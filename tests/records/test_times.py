"""Time expressions in Chinese and English."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, strategies as st

from memshelf.records.backends.in_process import InProcessRecordStore
from memshelf.records.retrieval.days import Stretch
from memshelf.records.retrieval.offsets import LOCAL, offsets_of
from memshelf.records.retrieval.times import closeness, read_times

TODAY = date(2025, 11, 15)  # a Saturday


def _read(text: str) -> list[tuple[str, str]]:
    found = read_times(text, TODAY, [2024, 2025]).stretches
    return [(date.fromordinal(each.first).isoformat(), date.fromordinal(each.last).isoformat()) for each in found]


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2025年1月25日参加", "2025-01-25", "2025-01-25"),
        ("2025年3月", "2025-03-01", "2025-03-31"),
        ("2025年2月下旬", "2025-02-21", "2025-02-28"),
        ("2025年6月中下旬", "2025-06-11", "2025-06-30"),
        ("2025年1月9日至11日期间", "2025-01-09", "2025-01-11"),
        ("2025年12月30日到1月2日", "2025-12-30", "2025-12-30"),
        ("2025年3月至4月", "2025-03-01", "2025-04-30"),
        ("去年夏天", "2024-06-01", "2024-08-31"),
        ("去年十二月二十三号", "2024-12-23", "2024-12-23"),
        ("2025年底", "2025-11-01", "2025-12-31"),
        ("今年", "2025-01-01", "2025-12-31"),
        ("昨天", "2025-11-14", "2025-11-14"),
        ("大前天", "2025-11-12", "2025-11-12"),
        ("上周", "2025-11-03", "2025-11-09"),
        ("上周三", "2025-11-05", "2025-11-05"),
        ("上上个星期", "2025-10-27", "2025-11-02"),
        ("这周末", "2025-11-15", "2025-11-16"),
        ("下个月", "2025-12-01", "2025-12-31"),
        ("上个月底", "2025-10-21", "2025-10-31"),
        ("三天前", "2025-11-12", "2025-11-12"),
        ("两个月前", "2025-09-01", "2025-10-01"),
        ("最近", "2025-10-16", "2025-11-15"),
        ("on 23 January, 2022", "2022-01-23", "2022-01-23"),
        ("on January 23rd, 2022", "2022-01-23", "2022-01-23"),
        ("in the beginning of November 2022", "2022-11-01", "2022-11-10"),
        ("the first half of September 2022", "2022-09-01", "2022-09-15"),
        ("late February 2024", "2024-02-21", "2024-02-29"),
        ("in May 2022", "2022-05-01", "2022-05-31"),
        ("in 2022", "2022-01-01", "2022-12-31"),
        ("summer 2021", "2021-06-01", "2021-08-31"),
        ("last winter", "2024-12-01", "2025-02-28"),
        ("yesterday", "2025-11-14", "2025-11-14"),
        ("the day before yesterday", "2025-11-13", "2025-11-13"),
        ("last Friday", "2025-11-14", "2025-11-14"),
        ("last Saturday", "2025-11-08", "2025-11-08"),
        ("next Saturday", "2025-11-22", "2025-11-22"),
        ("last week", "2025-11-03", "2025-11-09"),
        ("last month", "2025-10-01", "2025-10-31"),
        ("two weeks ago", "2025-10-29", "2025-11-04"),
        ("a few days ago", "2025-11-12", "2025-11-12"),
        ("2025-03-05", "2025-03-05", "2025-03-05"),
        ("2025/3", "2025-03-01", "2025-03-31"),
        ("the day after tomorrow", "2025-11-17", "2025-11-17"),
        ("in three days", "2025-11-18", "2025-11-18"),
        ("in 2 weeks", "2025-11-26", "2025-12-02"),
        ("ten days from now", "2025-11-25", "2025-11-25"),
        ("the next two weeks", "2025-11-15", "2025-11-29"),
        ("over the past 10 days", "2025-11-05", "2025-11-15"),
        ("in the last few weeks", "2025-10-25", "2025-11-15"),
        ("大后天", "2025-11-18", "2025-11-18"),
        ("下下周", "2025-11-24", "2025-11-30"),
        ("下下个月", "2026-01-01", "2026-01-31"),
        ("下個月", "2025-12-01", "2025-12-31"),
        ("兩週後", "2025-11-26", "2025-12-02"),
        ("the week after next", "2025-11-24", "2025-11-30"),
        ("the month before last", "2025-09-01", "2025-09-30"),
        ("December 14-18, 2025", "2025-12-14", "2025-12-18"),
        ("明晚", "2025-11-16", "2025-11-16"),
        ("未来两周", "2025-11-15", "2025-11-29"),
        ("接下来的10天", "2025-11-15", "2025-11-25"),
        ("过去三个月", "2025-08-17", "2025-11-15"),
        ("最近一周", "2025-11-08", "2025-11-15"),
        ("What do I have on Tuesday?", "2025-11-18", "2025-11-18"),
        ("Am I free Friday evening?", "2025-11-21", "2025-11-21"),
        ("What did I do on Friday?", "2025-11-14", "2025-11-14"),
        ("next Friday", "2025-11-21", "2025-11-21"),
        ("周二有什么安排？", "2025-11-18", "2025-11-18"),
        ("我週二做了什麼", "2025-11-11", "2025-11-11"),
        ("礼拜天去过哪里？", "2025-11-09", "2025-11-09"),
    ],
)  # fmt: skip
def test_an_expression_means_these_days(text, first, last):
    assert _read(text) == [(first, last)]


@pytest.mark.parametrize(
    "text",
    [
        "may I ask", "May I ask", "they march on", "fall in love", "version 1.74", "2025年2月30日", "十", "月",
        "call 2025550123", "What does May Jones take?", "three days", "13月", "on the second day", "week",
        "every Tuesday", "on Tuesdays", "每周二", "一周一次", "三周二百元", "24/7", "3/4 cup",
    ],
)  # fmt: skip
def test_other_words_mean_no_time(text):
    assert _read(text) == []


@pytest.mark.parametrize(
    "text",
    ["between 2025-12-14 and 2025-12-18", "from 2025-12-14 to Dec 18, 2025", "2025年12月14日—2025年12月18日",
     "14.12.2025 - 18.12.2025"],
)  # fmt: skip
def test_days_from_one_to_another_are_those_between_as_well(text):
    assert _read(text)[0] == ("2025-12-14", "2025-12-18")


@pytest.mark.parametrize(
    ("simplified", "traditional"), [("圣诞节", "聖誕節"), ("国庆节", "國慶節"), ("最近几个礼拜", "最近幾個禮拜")]
)
def test_a_time_in_traditional_characters_is_the_same(simplified, traditional):
    assert _read(simplified) == _read(traditional) != []


def test_days_from_one_to_another_may_reach_into_the_next_year():
    assert _read("from Dec 30 to Jan 2")[:1] == [("2024-12-30", "2025-01-02")]
    assert ("2024-02-29", "2024-03-02") in _read("Feb 29 to Mar 2")


def test_two_days_are_not_those_between():
    assert _read("2025-12-14 and 2025-12-18") == [("2025-12-14", "2025-12-14"), ("2025-12-18", "2025-12-18")]
    assert _read("between us, yesterday and today") == [("2025-11-14", "2025-11-14"), ("2025-11-15", "2025-11-15")]


def test_a_day_of_the_week_alone_is_the_next_or_the_last_one():
    for text in ("Friday's notes", "What did we plan for Friday?"):
        assert _read(text) == [("2025-11-21", "2025-11-21"), ("2025-11-14", "2025-11-14")]
    assert _read("What is on Saturday?") == [("2025-11-15", "2025-11-15"), ("2025-11-22", "2025-11-22")]
    assert read_times("周二和星期五", TODAY, [2025]).weekdays == [1, 4]


def test_a_date_without_a_year_is_of_every_year_there_are_records_of():
    assert _read("3月5日") == [("2024-03-05", "2024-03-05"), ("2025-03-05", "2025-03-05")]
    assert _read("anything in May?") == [("2024-05-01", "2024-05-31"), ("2025-05-01", "2025-05-31")]
    assert _read("12/18") == [("2024-12-18", "2024-12-18"), ("2025-12-18", "2025-12-18")]
    assert _read("Chinese New Year") == _read("春节") == [("2024-01-20", "2024-02-20"), ("2025-01-20", "2025-02-20")]
    assert _read("March 5") == [("2024-03-05", "2024-03-05"), ("2025-03-05", "2025-03-05")]


def test_closeness_fades_outside_and_a_day_says_more_than_a_year():
    day = Stretch(1000, 1000)
    near = [closeness(at, [day]) for at in (1000, 1001, 1003, 1100)]
    assert near == sorted(near, reverse=True)
    assert near[0] == 1.0
    assert near[-1] < 1e-6
    assert closeness(1000, [Stretch(900, 1264)]) < 0.5
    assert closeness(1000, []) == 0.0


@given(st.text(st.sampled_from("0123456789年月日号周上下前后去今明两三十一天至到-/ lastweekagoMay,."), max_size=40))
def test_no_text_breaks_the_reading(text):
    for each in read_times(text, TODAY, [1, 2025, 9999]).stretches:
        assert 1 <= each.first <= each.last


_NEW_YORK = ZoneInfo("America/New_York")


class _NeverHashed(tzinfo):
    """As some packages make time zones: one that is no key of a dictionary."""

    __hash__ = None

    def __eq__(self, other):
        return self is other

    def utcoffset(self, dt):
        return _NEW_YORK.utcoffset(dt)

    def dst(self, dt):
        return _NEW_YORK.dst(dt)

    def fromutc(self, dt):
        return _NEW_YORK.fromutc(dt.replace(tzinfo=_NEW_YORK)).replace(tzinfo=self)


@pytest.mark.parametrize(
    "zone",
    [
        UTC, timezone(timedelta(hours=5, minutes=45)), _NEW_YORK, _NeverHashed(), ZoneInfo("Australia/Lord_Howe"),
        ZoneInfo("Africa/Casablanca"), ZoneInfo("Asia/Shanghai"), ZoneInfo("Pacific/Apia"),
    ],
    ids=lambda zone: getattr(zone, "key", type(zone).__name__),
)  # fmt: skip
def test_the_days_of_a_zone_are_its_own_also_where_clocks_are_changed(zone):
    first, last = datetime(2010, 12, 1, tzinfo=UTC), datetime(2012, 12, 1, tzinfo=UTC)
    offsets = offsets_of(zone, first.toordinal(), last.toordinal())
    moment, step = first, timedelta(minutes=29)
    while moment < last:
        expected = moment.astimezone(zone).utcoffset()
        assert offsets.at(round(moment.timestamp()) * 1_000_000) == expected // timedelta(microseconds=1), moment
        moment += step


def test_the_offsets_of_no_days_and_of_all_days_are_there():
    for first, last in ((1 << 40, -(1 << 40)), (1, date.max.toordinal())):
        offsets = offsets_of(_NEW_YORK, first, last)
        assert len(offsets.values) == len(offsets.changes) + 1


@pytest.mark.parametrize(
    ("now", "yesterday"),
    [
        (datetime(2026, 11, 1, 12, tzinfo=_NEW_YORK), ["the 31st at night"]),
        (datetime(2026, 11, 2, 12, tzinfo=_NEW_YORK), ["the first at night", "the first, early"]),
    ],
)
async def test_yesterday_begins_and_ends_at_midnight_when_clocks_are_changed(now, yesterday):
    """On the first of November, New York's day has 25 hours."""
    async with InProcessRecordStore(embedder=None) as store:
        for text, at in (
            ("the 31st at night", datetime(2026, 10, 31, 23, 30, tzinfo=_NEW_YORK)),
            ("the first, early", datetime(2026, 11, 1, 0, 30, tzinfo=_NEW_YORK)),
            ("the first at night", datetime(2026, 11, 1, 23, 30, tzinfo=_NEW_YORK)),
            ("the second, early", datetime(2026, 11, 2, 0, 30, tzinfo=_NEW_YORK)),
        ):
            await store.add(f"standup on {text}", at=at)
        found = await store.search("What standup was there yesterday?", limit=4, now=now)
    best = [each.text.removeprefix("standup on ") for each in found if each.score == found[0].score]
    assert sorted(best) == yesterday


def test_the_local_time_zone_is_the_one_that_is_set(monkeypatch):
    days = date(2024, 1, 1).toordinal(), date(2024, 12, 31).toordinal()
    for zone in ("America/New_York", "Asia/Tokyo", "Europe/Berlin", "America/New_York"):
        monkeypatch.setenv("TZ", zone)
        time.tzset()
        assert offsets_of(LOCAL, *days) == offsets_of(ZoneInfo(zone), *days)
    monkeypatch.undo()
    time.tzset()
