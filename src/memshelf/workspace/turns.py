"""How writers of one file take turns: the tasks of an event loop one after the other, all others by trying again."""

from __future__ import annotations

import asyncio
import random
from typing import Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from memshelf.errors import MemoryStoreError

__all__ = ["TRIES", "Turns", "give_way", "overtaken"]

TRIES: Final = 200
"""How often a write is tried when others keep getting in between."""

_LONGEST_WAIT = 0.02


def overtaken(error: MemoryStoreError, path: str) -> bool:
    """Whether a write was refused as somebody else wrote the file a moment ago, and not as something is in its way."""
    if error.code == "already_exists":
        return error.current is not None and error.current.path == path
    return error.code == "version_mismatch"


async def give_way(attempt: int) -> None:
    """Wait a little after an attempt: whoever got in between is done, and of many, each has to find a moment."""
    await asyncio.sleep(random.uniform(0, min(_LONGEST_WAIT, 0.001 * attempt)))  # noqa: S311  # no secret


class Turns:
    """A lock for each path in each event loop."""

    def __init__(self) -> None:
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, WeakValueDictionary[str, asyncio.Lock]] = (
            WeakKeyDictionary()
        )

    def of(self, path: str) -> asyncio.Lock:
        locks = self._locks.setdefault(asyncio.get_running_loop(), WeakValueDictionary())
        return locks.setdefault(path, asyncio.Lock())
