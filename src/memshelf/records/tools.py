"""The five tools through which a model reads and changes its record memories, free of any framework.

A door (an agent, an MCP server) binds them to a model: it offers `RECORD_TOOLS`, calls `RecordTools.search` and so on,
returns the result as JSON, and turns a `MemoryStoreError` into the JSON of `failure`.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Literal, TypeAlias

from memshelf.errors import MemoryStoreError
from memshelf.limits import RecordMemoryLimits
from memshelf.mounted import Json, MemoryTool, chosen, reached
from memshelf.origin import Origin
from memshelf.records.model import MemoryRecord
from memshelf.records.mount import RecordMount
from memshelf.records.protocol import RecallRecordStore, RecordStore
from memshelf.records.text import validate_record_text
from memshelf.untrusted import size

__all__ = [
    "MOST_FOUND",
    "MOST_LISTED",
    "RECORD_TOOLS",
    "RecordTool",
    "RecordToolKey",
    "RecordTools",
    "failure",
    "selected",
    "shown_record",
]

RecordToolKey: TypeAlias = Literal["search", "list", "add", "update", "delete"]
RecordTool: TypeAlias = MemoryTool[RecordToolKey]

_TOOLS: tuple[RecordTool, ...] = (
    MemoryTool("record", "search", "read", "Find the records of a memory that are closest in meaning to a query."),
    MemoryTool("record", "list", "read", "List the records of a memory, page by page, in the order they were added."),
    MemoryTool("record", "add", "write", "Add one record to a memory."),
    MemoryTool("record", "update", "write", "Replace the whole text of a record."),
    MemoryTool("record", "delete", "write", "Delete a record for good."),
)
RECORD_TOOLS: dict[RecordToolKey, RecordTool] = {tool.key: tool for tool in _TOOLS}

MOST_FOUND, MOST_LISTED = 20, 100
"""How many records one search, and one page of a listing, has at most."""

_LATER = timedelta(minutes=1)


def selected(tools: Collection[RecordToolKey] | None) -> tuple[RecordTool, ...]:
    """The tools named, in their usual order; all of them for `None`. `ValueError` for an unknown name."""
    return chosen(RECORD_TOOLS, tools)


class RecordTools:
    """The tools over a set of mounts.

    Every call checks again that the memory is mounted (`unknown_memory`) and that its access allows the tool
    (`forbidden`). Results are JSON values; a refusal is raised as `MemoryStoreError`. `origin` reaches stores that keep
    it: a record is from whoever wrote its text last.
    """

    def __init__(self, mounts: Sequence[RecordMount], limits: RecordMemoryLimits | None = None) -> None:
        self._mounts = {mount.name: mount for mount in mounts}
        self._limits = limits or RecordMemoryLimits()

    async def search(self, memory: str, query: str, *, limit: int = 5) -> Json:
        """The records closest to `query`, closest first: as many as fit into a result, and one at least."""
        found = await self._store(memory, "search").search(query, limit=limit)
        records = self._fitting(found)
        result: Json = {"memory": memory, "records": records}
        if len(records) < len(found):
            result["truncated"] = True
        if not found:
            result["hint"] = (
                f'No record is close. Try other words, or read them all with memory_record_list(memory="{memory}").'
            )
        return result

    async def list(self, memory: str, *, limit: int = 20, cursor: str = "") -> Json:
        """One page of records, as many as fit into a result, and the cursor of the next one, `None` on the last."""
        store = self._store(memory, "list")
        page = await store.list(limit=limit, cursor=cursor or None)
        records = self._fitting(page.records)
        if len(records) < len(page.records):
            page = await store.list(limit=len(records), cursor=cursor or None)
            records = self._fitting(page.records)
        return {"memory": memory, "records": records, "next_cursor": page.next_cursor}

    async def add(self, memory: str, text: str, *, origin: Origin) -> Json:
        store, text = self._store(memory, "add"), self._checked(text)
        if isinstance(store, RecallRecordStore):
            record = await store.add(text, origin=origin)
        else:
            record = await store.add(text)
        return {"memory": memory, "id": record.id}

    async def update(self, memory: str, id: str, text: str, *, origin: Origin) -> Json:
        store, text = self._store(memory, "update"), self._checked(text)
        if isinstance(store, RecallRecordStore):
            record = await store.update(id, text, origin=origin)
        else:
            record = await store.update(id, text)
        return {"memory": memory, "id": record.id, "updated": True}

    async def delete(self, memory: str, id: str) -> Json:
        await self._store(memory, "delete").delete(id)
        return {"memory": memory, "id": id, "deleted": True}

    def _fitting(self, records: Sequence[MemoryRecord]) -> builtins.list[Json]:
        """The records that fit into a result, from the first on. The text of a first one that does not is cut."""
        shown: builtins.list[Json] = []
        left = self._limits.result_bytes
        for record in records:
            item = shown_record(record)
            left -= size(record.text)
            if left < 0 and shown:
                break
            if left < 0:
                cut = record.text.encode(errors="surrogatepass")[: self._limits.result_bytes]
                item |= {"text": cut.decode(errors="ignore"), "truncated": True}
            shown.append(item)
        return shown

    def _store(self, memory: str, key: RecordToolKey) -> RecordStore:
        return reached(self._mounts, memory, RECORD_TOOLS[key]).store

    def _checked(self, text: str) -> str:
        return validate_record_text(text, max_chars=self._limits.record_chars)


def failure(error: MemoryStoreError) -> Json:
    """A refusal as the model sees it."""
    return {"error": error.code, "message": error.message}


def shown_record(record: MemoryRecord) -> Json:
    """A record as the model sees it: what is known of it, in this order.

    `at` is when it happened, and `updated_at` when it was last written, unless that is the same time. `origin` is the
    kind of its origin. `replaced_by` names the record that corrects it.
    """
    shown: Json = {"id": record.id, "text": record.text}
    if record.score is not None:
        shown["score"] = round(float(record.score), 2)  # a store's own may be another kind of number
    if record.at is not None:
        shown["at"] = _time(record.at)
    if record.updated_at is not None and (record.at is None or record.updated_at - record.at >= _LATER):
        shown["updated_at"] = _time(record.updated_at)
    if record.origin is not None and record.origin.kind is not None:
        shown["origin"] = record.origin.kind
    if record.replaced_by is not None:
        shown["replaced_by"] = record.replaced_by
    return shown


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ")
