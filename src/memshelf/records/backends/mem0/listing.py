"""Pages of our own over a listing that mem0 offers by offset only, and that may move between two of them.

A cursor is the offset at which the next page begins, and knows the last records before it, by hashes of their ids, and
when the last of them was made. When they are found elsewhere, because records came or went before them, the page begins
there; when all of them are gone, at the first record that was made later.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from itertools import pairwise

from memshelf.errors import MemoryStoreError
from memshelf.records.backends.mem0.answers import Found
from memshelf.storage.ids import micros

__all__ = ["Cursor", "Fetched", "Listing"]

_CURSOR = re.compile(r"([0-9a-f]{8})\.([0-9]{1,9})\.(-?[0-9]{1,18})\.((?:[0-9a-f]{10}){1,3})")
_LAST = 3
_MOST_PAGES = 1_000


@dataclass(frozen=True, slots=True)
class Cursor:
    """`offset` counts what the server lists; `made` is in microseconds since 1970, negative in a listing that begins
    with the newest, and 0 when the server does not say."""

    offset: int
    made: int
    last: tuple[str, ...]

    @classmethod
    def between(cls, shown: list[Found], offset: int, following: Found) -> Cursor:
        made = _made(shown[-1])
        rising = made <= _made(following)
        return cls(offset, made if rising else -made, tuple(_hash(each) for each in shown[-_LAST:]))

    def text(self, namespace: str) -> str:
        return f"{_digest(namespace, 8)}.{self.offset}.{self.made}.{''.join(self.last)}"

    @classmethod
    def parse(cls, text: str, namespace: str) -> Cursor:
        """`invalid_cursor`."""
        parts = _CURSOR.fullmatch(text)
        if parts is None or parts[1] != _digest(namespace, 8):
            raise _foreign()
        return cls(int(parts[2]), int(parts[3]), tuple(parts[4][at : at + 10] for at in range(0, len(parts[4]), 10)))


@dataclass(frozen=True, slots=True)
class Fetched:
    """A page of the server's, and whether there is another one."""

    items: list[Found]
    more: bool


class Listing:
    """What the server lists, fetched page by page as it is needed, and no page twice."""

    def __init__(self, fetch: Callable[[int], Awaitable[Fetched]], page_size: int) -> None:
        self._fetch = fetch
        self._size = page_size
        self._pages: dict[int, Fetched] = {}
        self._ids: set[str] = set()

    async def walk(self, start: int) -> AsyncIterator[tuple[int, Found]]:
        """The records from an offset on, each with its own."""
        number, skipped = divmod(start, self._size)
        while True:
            page = await self._page(number)
            for at, item in enumerate(page.items[skipped:], number * self._size + skipped):
                yield at, item
            if not page.more:
                return
            number, skipped = number + 1, 0

    async def resume(self, cursor: Cursor) -> int:
        """The offset of the first record after those that the cursor knows. `invalid_cursor` when that is not to be
        told any more."""
        expected = max(cursor.offset - 1, 0) // self._size
        for number in (expected, max(expected - 1, 0)):
            page = await self._page(number)
            known = [at for at, item in enumerate(page.items) if _hash(item) in cursor.last]
            if known:
                return await self._behind(number * self._size + known[-1] + 1, cursor)
        everything = [each async for each in self.walk(0)]
        known = [at for at, item in everything if _hash(item) in cursor.last]
        return known[-1] + 1 if known else _later(everything, cursor)

    async def _behind(self, start: int, cursor: Cursor) -> int:
        async for at, item in self.walk(start):
            if _hash(item) not in cursor.last:
                return at
            start = at + 1
        return start

    async def _page(self, number: int) -> Fetched:
        if (page := self._pages.get(number)) is None:
            page = self._pages[number] = await self._fetch(number)
            ids = {item.record.id for item in page.items}
            if page.more and (ids <= self._ids or len(self._pages) > _MOST_PAGES):
                raise MemoryStoreError("unavailable", "The server's listing does not end.")
            self._ids |= ids
        return page


def _later(everything: list[tuple[int, Found]], cursor: Cursor) -> int:
    """The offset of the first record that was made after the cursor's, or before it in a listing that begins with the
    newest. Records of the very same time are shown again rather than skipped."""
    sign = -1 if cursor.made < 0 else 1
    times = [_made(item) * sign for _, item in everything]
    if not times or not cursor.made or not all(times) or any(one > two for one, two in pairwise(times)):
        raise _foreign()
    beyond = [at for (at, _), time in zip(everything, times, strict=True) if time >= cursor.made]
    return beyond[0] if beyond else everything[-1][0] + 1


def _made(item: Found) -> int:
    return max(micros(item.created_at), 0) if item.created_at is not None else 0


def _hash(item: Found) -> str:
    return _digest(item.record.id, 10)


def _digest(text: str, length: int) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:length]


def _foreign() -> MemoryStoreError:
    return MemoryStoreError("invalid_cursor", "The cursor is not of this record memory, or no longer.")
