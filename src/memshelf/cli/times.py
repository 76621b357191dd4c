"""Times as people give and read them."""

from __future__ import annotations

import re
import unicodedata
from contextlib import suppress
from datetime import UTC, datetime

import click

from memshelf.cli import render
from memshelf.records.retrieval.offsets import LOCAL

__all__ = ["here", "parsed", "shown", "utc"]


def shown(time: datetime | str) -> str:
    """Local on a terminal, UTC in a pipe; of a text, the ISO 8601 time that it is, else `ValueError`."""
    time = datetime.fromisoformat(time) if isinstance(time, str) else time
    if render.on_terminal():
        with suppress(ValueError, OverflowError):  # the ends of the calendar have no local time
            return time.astimezone().replace(tzinfo=None).isoformat(" ", "seconds")
    return utc(time)


def utc(time: datetime) -> str:
    """For programs."""
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def here(text: str | None, hint: str) -> datetime:
    """As `parsed`, but in the local time zone, whose days "yesterday" means; now for `None`."""
    time = parsed(text, hint) if text is not None else datetime.now(UTC)
    try:
        return time.astimezone(LOCAL)
    except (ValueError, OverflowError):  # the ends of the calendar
        return time


_YEAR_FIRST = re.compile(
    r"(?P<year>[0-9]{4})(?P<mark>[-/.年]) ?(?P<month>[0-9]{1,2})(?:(?P=mark)|月) ?(?P<day>[0-9]{1,2})日?"
    r"(?:(?:T| ?)(?P<time>[0-9]{1,2}(?::[0-9]{2}){1,2}(?:\.[0-9]+)?) ?(?P<zone>Z|[+-][0-9]{2}:?[0-9]{2})?)?"
)


def parsed(text: str, hint: str) -> datetime:
    """A time in UTC; local unless it says otherwise. It is in ISO 8601, or with the year first as people write it, such
    as 2026/11/30 9:00. `hint` names the option that gave it."""
    try:
        return datetime.fromisoformat(_iso(text)).astimezone(UTC)
    except (ValueError, OverflowError):  # either of them also at the ends of the calendar, which have no UTC
        wanted = "2026-11-30, 2026-11-30T09:00 or 2026-11-30T09:00Z"
        raise click.BadParameter(f"{text!r} is no time; give one such as {wanted}.", param_hint=hint) from None


def _iso(text: str) -> str:
    found = _YEAR_FIRST.fullmatch(unicodedata.normalize("NFKC", text).strip())
    if found is None:
        return text
    time = f"T{found['time'].zfill(5 if found['time'].count(':') == 1 else 8)}" if found["time"] else ""
    return f"{found['year']}-{found['month']:0>2}-{found['day']:0>2}{time}{found['zone'] or ''}"
