"""Times as people give and read them."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

import click

from memshelf.cli import render
from memshelf.records.retrieval.offsets import LOCAL

__all__ = ["here", "parsed", "shown"]


def shown(time: datetime | str) -> str:
    """Local on a terminal, UTC in a pipe; of a text, the ISO 8601 time that it is, else `ValueError`."""
    time = datetime.fromisoformat(time) if isinstance(time, str) else time
    if render.on_terminal():
        with suppress(ValueError, OverflowError):  # the ends of the calendar have no local time
            return time.astimezone().replace(tzinfo=None).isoformat(" ", "seconds")
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def here(text: str | None, hint: str) -> datetime:
    """The same in the local time zone, whose days "yesterday" means; now for `None`."""
    time = parsed(text, hint) if text is not None else datetime.now(UTC)
    try:
        return time.astimezone(LOCAL)
    except (ValueError, OverflowError):  # the ends of the calendar
        return time


def parsed(text: str, hint: str) -> datetime:
    """An ISO 8601 time, in UTC; local unless it says otherwise. `hint` names the option that gave it."""
    try:
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):  # either of them also at the ends of the calendar, which have no UTC
        raise click.BadParameter(f"{text!r} is no ISO 8601 time.", param_hint=hint) from None
