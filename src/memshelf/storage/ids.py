"""Times, ids and salts."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

__all__ = ["Mint", "askable", "from_micros", "micros", "utc_now"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def utc_now() -> datetime:
    return datetime.now(UTC)


def micros(moment: datetime) -> int:
    """Whole microseconds since 1970, exactly. The moment is aware."""
    since = moment - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def from_micros(value: int) -> datetime:
    return _EPOCH + timedelta(0, 0, value)


def askable(id: str) -> str:
    """The id, or one that is just as unknown but that every database and every server takes."""
    # What they do not take, a lone surrogate or NUL, is in no id: the answer is the same with something in its place.
    return id.encode(errors="replace").decode().replace("\0", "?")


@dataclass(frozen=True, slots=True)
class Mint:
    """A clock that answers aware times, and a source of random bytes; all that is made from them can be replayed."""

    clock: Callable[[], datetime] = utc_now
    random: Callable[[int], bytes] = os.urandom

    def now(self) -> int:
        """The time in whole microseconds since 1970."""
        return micros(self.clock())

    def id(self, prefix: str, now: int) -> str:
        """A unique id that sorts by its time, to the microsecond: the prefix and a version 7 UUID in hex."""
        milliseconds, rest = divmod(now, 1000)
        fraction = rest * 4096 // 1000
        tail = int.from_bytes(self.random(8), "big") & 0x3FFF_FFFF_FFFF_FFFF
        value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | 7 << 76 | fraction << 64 | 2 << 62 | tail
        return f"{prefix}_{value:032x}"
