"""The records of one mem0 user as a record memory."""

from __future__ import annotations

import asyncio
import builtins
from datetime import UTC, datetime

from memshelf.credentials import SecretsPolicy
from memshelf.errors import MemoryStoreError
from memshelf.limits import page_limit
from memshelf.records.backends.mem0.answers import Found, added_id, awaited, found, results
from memshelf.records.backends.mem0.connection import Connection, UnreadableError, unconfirmed
from memshelf.records.backends.mem0.dialect import Dialect
from memshelf.records.backends.mem0.listing import Cursor, Fetched, Listing
from memshelf.records.backends.paging import FOUND, LISTED, record_missing
from memshelf.records.model import MemoryRecord, RecordPage
from memshelf.records.text import admitted_text, is_blank
from memshelf.untrusted import sound

__all__ = ["MAX_RECORD_CHARS", "Mem0RecordStore"]

MAX_RECORD_CHARS = 8_000
_MOST_RESULTS = 1_000
_WAITS = (0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 4.0)
_NEVER = datetime.max.replace(tzinfo=UTC)


class Mem0RecordStore:
    """The records whose mem0 `user_id` is `namespace`.

    Texts, of up to 8000 characters, are stored as they are: mem0 is told to infer nothing. Every change is confirmed
    by reading back; one that is not is `write_unconfirmed`, and never sent again. A mem0 id is anybody's, so a record
    is read before it is changed, and one of another user does not exist here.

    The open-source server lists at most 1000 records, of which this store shows the oldest first. The platform's order
    is its own.
    """

    def __init__(self, connection: Connection, dialect: Dialect, namespace: str, secrets: SecretsPolicy) -> None:
        self._connection = connection
        self._dialect = dialect
        self._namespace = namespace
        self._secrets = secrets

    async def search(self, query: str, *, limit: int = FOUND) -> builtins.list[MemoryRecord]:
        limit = page_limit(limit)
        if is_blank(query):
            return []
        asked = sound(query[:MAX_RECORD_CHARS])
        request = self._dialect.search(self._namespace, asked, min(limit, _MOST_RESULTS))
        items = self._parsed(await self._connection.read(request))
        ours = [item.record for item in items if self._may_be_ours(item)]
        return sorted(ours, key=lambda record: -(record.score or 0.0))[:limit]

    async def list(self, *, limit: int = LISTED, cursor: str | None = None) -> RecordPage:
        limit = page_limit(limit)
        known = Cursor.parse(cursor, self._namespace) if cursor is not None else None
        listing = Listing(self._page, self._dialect.page_size)
        start = end = await listing.resume(known) if known is not None else 0
        shown: builtins.list[Found] = []
        ids: set[str] = set()
        async for at, item in listing.walk(start):
            if not self._may_be_ours(item) or item.record.id in ids:
                continue
            if len(shown) == limit:
                return _page_of(shown, Cursor.between(shown, end, item).text(self._namespace))
            shown.append(item)
            ids.add(item.record.id)
            end = at + 1
        return _page_of(shown, None)

    async def add(self, text: str) -> MemoryRecord:
        text = admitted_text(text, max_chars=MAX_RECORD_CHARS, secrets=self._secrets)
        answer = await self._connection.write(self._dialect.add(self._namespace, text))
        if answer.status == 404:
            raise MemoryStoreError("unavailable", "The server does not know how to add a record; nothing changed.")
        try:
            record_id = added_id(await self._carried_out(answer.value))
        except UnreadableError as unreadable:
            raise unconfirmed(str(unreadable)) from None
        return await self._confirmed(record_id, text)

    async def _carried_out(self, answer: object) -> object:
        """The answer to an add, or of the event that the platform made of it, once that is over. `write_unconfirmed`
        when it is not after ten seconds."""
        event_id = awaited(answer)
        request = self._dialect.event(event_id) if event_id is not None else None
        if request is None:
            return answer
        for wait in _WAITS:
            await asyncio.sleep(wait)
            try:
                event = await self._connection.read(request)
            except MemoryStoreError as error:
                raise unconfirmed(error.message) from None
            if awaited(event) is None:
                return event
        raise unconfirmed("The server has not added the record yet.")

    async def update(self, record_id: str, text: str) -> MemoryRecord:
        text = admitted_text(text, max_chars=MAX_RECORD_CHARS, secrets=self._secrets)
        await self._ours(record_id)
        answer = await self._connection.write(self._dialect.update(record_id, text))
        if answer.status == 404:
            raise record_missing(record_id)
        return await self._confirmed(record_id, text)

    async def delete(self, record_id: str) -> None:
        await self._ours(record_id)
        answer = await self._connection.write(self._dialect.delete(record_id))
        if answer.status != 404 and await self._read_back(record_id) is not None:
            raise unconfirmed("The server still has the record.")

    async def purge(self) -> None:
        """Remove every record of the namespace, and wait, up to ten seconds, until none is listed."""
        answer = await self._connection.write(self._dialect.purge(self._namespace))
        for wait in _WAITS:
            await asyncio.sleep(wait)
            try:
                if not (await self.list(limit=1)).records:
                    return
            except MemoryStoreError as error:
                if answer.status == 404:
                    raise
                raise unconfirmed(error.message) from None
        raise unconfirmed("The server still lists records.")

    async def _page(self, number: int) -> Fetched:
        if not self._dialect.paged and number > 0:
            return Fetched([], more=False)
        # Behind the last page, which may have gone since, the platform has nothing to find.
        absent = (404,) if number > 0 else ()
        answer = await self._connection.read(self._dialect.page(self._namespace, number), absent=absent)
        if answer is None and number > 0:
            return Fetched([], more=False)
        items = self._parsed(answer)
        if not self._dialect.paged:
            items.sort(key=lambda item: item.created_at or _NEVER)
        return Fetched(items, self._dialect.paged and isinstance(answer, dict) and answer.get("next") is not None)

    async def _ours(self, record_id: str) -> None:
        """`record_not_found` unless the record is of this namespace."""
        item = await self._find(record_id)
        if item is None or item.user_id != self._namespace:
            raise record_missing(record_id)

    async def _find(self, record_id: str) -> Found | None:
        request = self._dialect.get(record_id)
        answer = await self._connection.read(request, absent=(400, 404)) if request is not None else None
        if answer is None:
            return None
        try:
            item = found(answer)
        except UnreadableError as unreadable:
            raise MemoryStoreError("unavailable", str(unreadable)) from None
        if item.record.id != record_id:
            raise MemoryStoreError("unavailable", "The server answered with another record than the one asked for.")
        return item

    async def _confirmed(self, record_id: str, text: str) -> MemoryRecord:
        item = await self._read_back(record_id)
        if item is None or item.record.text != text or item.user_id != self._namespace:
            raise unconfirmed("The server does not have the record as it was written.")
        return item.record

    async def _read_back(self, record_id: str) -> Found | None:
        try:
            return await self._find(record_id)
        except MemoryStoreError as error:
            raise unconfirmed(f"The change could not be read back: {error.message}") from None

    def _parsed(self, answer: object) -> builtins.list[Found]:
        try:
            return [found(item) for item in results(answer)]
        except UnreadableError as unreadable:
            raise MemoryStoreError("unavailable", str(unreadable)) from None

    def _may_be_ours(self, item: Found) -> bool:
        """Whether the record is of this namespace or of nobody named: the server's filter chose it."""
        return item.user_id is None or item.user_id == self._namespace


def _page_of(shown: builtins.list[Found], next_cursor: str | None) -> RecordPage:
    return RecordPage(tuple(item.record for item in shown), next_cursor)
