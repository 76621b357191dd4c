"""A record memory in the memory of this process: for tests, examples, and as the simplest store there can be."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from memshelf.arguments import checked_argument, checked_number
from memshelf.closing import Closes
from memshelf.credentials import SecretsPolicy, check_policy
from memshelf.limits import page_limit
from memshelf.origin import Origin
from memshelf.records.backends.drafts import Draft, draft_all
from memshelf.records.backends.paging import FOUND, LISTED, cursor_position, page_cursor, record_missing
from memshelf.records.model import MemoryRecord, NewRecord, RecordPage
from memshelf.records.recall import EmbedderChoice, Recall
from memshelf.storage.ids import Mint, micros

__all__ = ["InProcessRecordStore"]


@dataclass(frozen=True, slots=True)
class _Kept:
    record: MemoryRecord
    draft: Draft
    vectors: bytes | None
    replaced_by: int | None = None

    @property
    def revised_at(self) -> int | None:
        return micros(self.record.updated_at) if self.record.revised and self.record.updated_at is not None else None


class InProcessRecordStore(Closes):
    """Records that live as long as this object. Use it from one event loop."""

    def __init__(
        self,
        *,
        embedder: EmbedderChoice = "default",
        max_chars: int = 100_000,
        secrets: SecretsPolicy = "warn",
        mint: Mint | None = None,
    ) -> None:
        self._recall = Recall(embedder)
        self._max_chars = checked_number("max_chars", max_chars)
        self._secrets = check_policy(secrets)
        self._mint = mint or Mint()
        self._kept: dict[int, _Kept] = {}
        self._next = 1
        self._epoch = self._mint.id("recs", self._mint.now())

    async def aclose(self) -> None:
        """End the thread that searches. The records stay, and it starts again when needed."""
        self._recall.close()

    async def search(
        self, query: str, *, limit: int = FOUND, now: datetime | None = None
    ) -> builtins.list[MemoryRecord]:
        limit = page_limit(limit)
        if self._recall.forked():
            await self._index(self._kept)
        found = await self._recall.search(query, limit=limit, now=now, clock=self._mint.clock())
        return [replace(self._kept[key].record, score=score) for key, score in found if key in self._kept]

    async def list(self, *, limit: int = LISTED, cursor: str | None = None) -> RecordPage:
        limit = page_limit(limit)
        after = cursor_position(cursor, self._epoch)
        keys = [key for key in self._kept if key > after]
        more = len(keys) > limit
        return RecordPage(
            tuple(self._kept[key].record for key in keys[:limit]),
            page_cursor(self._epoch, keys[limit - 1]) if more else None,
        )

    async def add(
        self,
        text: str,
        *,
        at: datetime | None = None,
        thread: str | None = None,
        origin: Origin | None = None,
        replaces: str | None = None,
    ) -> MemoryRecord:
        new = NewRecord(text=text, at=at, thread=thread, origin=origin, replaces=replaces)
        return (await self.add_many([new]))[0]

    async def add_many(self, records: Iterable[NewRecord]) -> builtins.list[MemoryRecord]:
        drafts = await draft_all(records, self._max_chars, self._mint.now(), secrets=self._secrets)
        passages = [draft.analysis.passages for draft in drafts]
        vectors = await self._recall.vectors(passages)
        if self._recall.embedder is not None and None in vectors and len(vectors) > 1:
            vectors = await self._recall.vectors_apart(passages) or vectors
        replaced = [self._key(draft.new.replaces) for draft in drafts]
        now, changed, added = self._mint.now(), set[int](), []
        for draft, old, rows in zip(drafts, replaced, vectors, strict=True):
            key, self._next = self._next, self._next + 1
            record = draft.record(self._mint.id("rec", now), now)
            self._kept[key] = _Kept(record, draft, rows)
            if old is not None:
                kept = self._kept[old]
                self._kept[old] = replace(kept, replaced_by=key, record=replace(kept.record, replaced_by=record.id))
                changed.add(old)
            added.append(record)
            changed.add(key)
        await self._index(sorted(changed))
        return added

    async def update(self, record_id: str, text: str, *, origin: Origin | None = None) -> MemoryRecord:
        kept = self._kept[self._found(record_id)]
        new = replace(kept.draft.new, text=text, origin=origin or kept.draft.new.origin, updated_at=None, revised=True)
        (draft,) = await draft_all([new], self._max_chars, kept.draft.at, secrets=self._secrets)
        vectors = await self._recall.vectors([draft.analysis.passages])
        key = self._found(record_id)  # it may be gone by now
        kept = self._kept[key]
        updated = replace(draft.record(record_id, self._mint.now()), replaced_by=kept.record.replaced_by)
        self._kept[key] = _Kept(updated, draft, vectors[0], kept.replaced_by)
        await self._index([key])
        return updated

    async def delete(self, record_id: str) -> None:
        key = self._found(record_id)
        del self._kept[key]
        restored = [each for each, kept in self._kept.items() if kept.replaced_by == key]
        for each in restored:
            kept = self._kept[each]
            self._kept[each] = replace(kept, replaced_by=None, record=replace(kept.record, replaced_by=None))
        await self._index(restored, gone=[key])

    async def purge(self) -> None:
        self._kept.clear()
        self._epoch = self._mint.id("recs", self._mint.now())
        await self._recall.change(self._recall.reset)

    async def _index(self, changed: Iterable[int], *, gone: Sequence[int] = ()) -> None:
        kept = [(key, self._kept[key]) for key in (self._kept if self._recall.forked() else changed)]
        entries = [each.draft.entry(key, each.replaced_by, each.vectors, each.revised_at) for key, each in kept]

        def change() -> None:
            self._recall.index.remove(gone)
            self._recall.index.put(entries)

        await self._recall.change(change)

    def _key(self, record_id: str | None) -> int | None:
        return None if record_id is None else self._found(record_id)

    def _found(self, record_id: str) -> int:
        checked_argument("record_id", record_id, str)
        for key, kept in self._kept.items():
            if kept.record.id == record_id:
                return key
        raise record_missing(record_id)
