"""What a time zone is off UTC at each moment: not the same all year where clocks are changed."""

from __future__ import annotations

import os
import time
from bisect import bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from memshelf.records.retrieval.days import EPOCH_DAY, MICROS_A_DAY

__all__ = ["LOCAL", "Offsets", "offsets_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_STEP = 14 * MICROS_A_DAY
"""Nowhere are clocks changed, and changed back, within it."""
_MINUTE = 60_000_000
_EARLIEST, _LATEST = ((year - 1970) * 365 * MICROS_A_DAY for year in (1900, 2100))


class _Local(tzinfo):
    def utcoffset(self, dt: datetime | None) -> timedelta | None:
        return dt.replace(tzinfo=None).astimezone().utcoffset() if dt is not None else None

    def dst(self, _: datetime | None, /) -> timedelta | None:
        return None

    def tzname(self, _: datetime | None, /) -> str | None:
        return None

    def fromutc(self, dt: datetime) -> datetime:
        there = dt.replace(tzinfo=UTC).astimezone()
        here = there.replace(tzinfo=self)
        # Where clocks were set back, an hour comes twice, and this is its second time.
        return here if here.utcoffset() == there.utcoffset() else here.replace(fold=1)


LOCAL: tzinfo = _Local()
"""The time zone of the process, also on days when its clocks are set otherwise than now."""


@dataclass(frozen=True, slots=True)
class Offsets:
    """Microseconds east of UTC: the first of `values` before the first of `changes`, and the next from each on."""

    changes: tuple[int, ...]
    values: tuple[int, ...]

    def at(self, moment: int) -> int:
        """The one at a moment, in microseconds since 1970."""
        return self.values[bisect_right(self.changes, moment)]


def offsets_of(zone: tzinfo, first_day: int, last_day: int) -> Offsets:
    """Those of a zone on these days, which are proleptic ordinals."""
    if isinstance(zone, timezone):
        return Offsets((), (_offset(zone, 0),))
    first, last = (min(max((day - EPOCH_DAY) * MICROS_A_DAY, _EARLIEST), _LATEST) for day in (first_day, last_day))
    first, last = first // _STEP - 1, last // _STEP + 2
    if zone is LOCAL:
        return _local(first, last, os.environ.get("TZ"), time.tzname)
    return _changing(zone, first, last)


@lru_cache(maxsize=16)
def _local(first: int, last: int, *zone: object) -> Offsets:
    del zone  # another one is found out anew
    return _changing(LOCAL, first, last)


def _changing(zone: tzinfo, first: int, last: int) -> Offsets:
    changes: list[int] = []
    values = [_offset(zone, first * _STEP)]
    for step in range(first, last):
        before, after = step * _STEP, (step + 1) * _STEP
        if _offset(zone, after) == values[-1]:
            continue
        while after - before > _MINUTE:
            middle = (before + after) // 2
            if _offset(zone, middle) == values[-1]:
                before = middle
            else:
                after = middle
        changes.append(after - after % _MINUTE)
        values.append(_offset(zone, (step + 1) * _STEP))
    return Offsets(tuple(changes), tuple(values))


def _offset(zone: tzinfo, moment: int) -> int:
    there = (_EPOCH + timedelta(microseconds=moment)).astimezone(zone)
    return (there.utcoffset() or timedelta()) // _MICROSECOND
