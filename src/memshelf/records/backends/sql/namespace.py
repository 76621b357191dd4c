"""The scripts of a record memory: what runs inside the database."""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from memshelf.arguments import checked_argument
from memshelf.embedding.protocol import Embedder
from memshelf.embedding.text import PASSAGES
from memshelf.origin import Origin
from memshelf.records.backends.drafts import Draft
from memshelf.records.backends.paging import cursor_position, page_cursor, record_missing
from memshelf.records.model import MemoryRecord, RecordPage
from memshelf.records.retrieval.analysis import ANALYSIS
from memshelf.storage.ids import Mint, from_micros
from memshelf.storage.transaction import Change, Row, Transaction

__all__ = ["Changed", "Missing", "Namespace", "model_id", "open_namespace"]

_REMOVALS_KEPT = 10_000
_AT_ONCE = 64
_INSERT = (
    "INSERT INTO records (namespace_id, position, changed, id, at, updated_at, thread, run_id, principal_id, "
    "tool_call_id, origin_kind, analysis, speaker, asks, terms, text, revised_at) "
    "VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)"
)
_KEEP_VECTORS = (
    "INSERT INTO record_vectors (namespace_id, position, model_id, vectors) VALUES ($1, $2, $3, $4) "
    "ON CONFLICT (namespace_id, position, model_id) DO UPDATE SET vectors = excluded.vectors"
)
# Vectors are looked up for each record, and never joined: on a table that was filled just now, of which PostgreSQL has
# no statistics yet, it takes a plan for a join that needs minutes.
_VECTORS = (
    "SELECT v.{} FROM record_vectors v "
    "WHERE v.namespace_id = r.namespace_id AND v.position = r.position AND v.model_id = {}"
)
_LACKING = (
    "r.namespace_id = $1 AND (r.analysis < $2 OR "
    f"(CAST($3 AS BIGINT) IS NOT NULL AND ({_VECTORS.format('model_id', '$3')}) IS NULL))"
)
_NOBODY = Origin()
_COLUMNS = (
    "r.id, r.text, r.updated_at, r.at, r.thread, r.run_id, r.principal_id, r.tool_call_id, r.origin_kind, "
    "(SELECT n.id FROM records n WHERE n.namespace_id = r.namespace_id AND n.position = r.replaced_by), "
    "r.revised_at IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class Changed:
    """What an index has to do after the change `since`: rows that begin as an `Entry` does, keys that are gone."""

    epoch: str
    since: int
    until: int
    entries: Sequence[Row]
    removed: list[int]
    unembedded: bool
    """Some of the records have no vectors of the model."""
    stale: bool
    """An older version of memshelf analysed some of them."""
    more: bool


@dataclass(frozen=True, slots=True)
class Missing:
    """A record without vectors of the model, or analysed by an older version. `embedded`: it has vectors."""

    position: int
    changed: int
    text: str
    turn: bool
    embedded: bool

    @property
    def revision(self) -> tuple[int, int]:
        """What a record is as it is, and no more once it is changed."""
        return self.position, self.changed


async def open_namespace(transaction: Transaction, name: str, epoch: str | None) -> Namespace | None:
    """The namespace, made with `epoch` if it is new; without one, `None` if there is none."""
    lock = transaction.for_update if epoch is not None else ""
    find = f"SELECT id, epoch, head, last_position, forgotten FROM record_namespaces WHERE name = $1 {lock}"  # noqa: S608  # ours
    row = await transaction.fetch_one(find, name)
    if row is None and epoch is not None:
        await transaction.execute(
            "INSERT INTO record_namespaces (name, epoch, head, last_position, forgotten) VALUES ($1, $2, 0, 0, 0) "
            "ON CONFLICT (name) DO NOTHING",
            name,
            epoch,
        )
        row = await transaction.fetch_one(find, name)
    return Namespace(transaction, *row) if row is not None else None


class Namespace:
    """One namespace inside one transaction."""

    def __init__(
        self, transaction: Transaction, id: int, epoch: str, head: int, last_position: int, forgotten: int
    ) -> None:
        self._transaction = transaction
        self.id = id
        self.epoch = epoch
        self.head = head
        self.last_position = last_position
        self.forgotten = forgotten

    async def add(
        self, drafts: Sequence[Draft], vectors: Sequence[bytes | None], model: int | None, mint: Mint
    ) -> builtins.list[MemoryRecord]:
        now, added = mint.now(), []
        for draft, rows in zip(drafts, vectors, strict=True):
            replaces = draft.new.replaces
            old = await self._position(replaces) if replaces is not None else None
            self.head += 1
            self.last_position += 1
            position, record = self.last_position, draft.record(mint.id("rec", now), now)
            origin, analysis, written_at = draft.new.origin or Origin(), draft.analysis, draft.written_at(now)
            values = (
                self.id, position, self.head, record.id, draft.at, written_at, draft.new.thread, origin.run_id,
                origin.principal_id, origin.tool_call_id, origin.kind, ANALYSIS, analysis.speaker, int(analysis.asks),
                analysis.terms, record.text.encode(), written_at if draft.new.revised else None,
            )  # fmt: skip
            await self._transaction.change((_INSERT, values), *self._vectors_of(position, rows, model))
            if old is not None:
                self.head += 1
                await self._transaction.execute(
                    "UPDATE records SET replaced_by = $1, changed = $2 WHERE namespace_id = $3 AND position = $4",
                    position, self.head, self.id, old,
                )  # fmt: skip
            added.append(record)
        await self._save()
        return added

    async def update(
        self, record_id: str, draft: Draft, vectors: bytes | None, model: int | None, now: int
    ) -> MemoryRecord:
        position, analysis = await self._position(record_id), draft.analysis
        origin = draft.new.origin or Origin()
        self.head += 1
        await self._transaction.execute(
            "UPDATE records SET changed = $1, updated_at = $2, revised_at = $2, run_id = $3, principal_id = $4, "
            "tool_call_id = $5, origin_kind = $6, analysis = $7, speaker = $8, asks = $9, terms = $10, text = $11 "
            "WHERE namespace_id = $12 AND position = $13",
            self.head, now, origin.run_id, origin.principal_id, origin.tool_call_id, origin.kind, ANALYSIS,
            analysis.speaker, int(analysis.asks), analysis.terms, draft.new.text.encode(), self.id, position,
        )  # fmt: skip
        # Those of other models are of the old text, too.
        await self._transaction.execute(
            "DELETE FROM record_vectors WHERE namespace_id = $1 AND position = $2", self.id, position
        )
        for sql, values in self._vectors_of(position, vectors, model):
            await self._transaction.execute(sql, *values)
        await self._save()
        return (await self.records([position]))[position]

    async def delete(self, record_id: str) -> None:
        position = await self._position(record_id)
        await self._transaction.execute(
            "DELETE FROM records WHERE namespace_id = $1 AND position = $2", self.id, position
        )
        self.head += 1
        await self._transaction.execute(
            "INSERT INTO record_removals (namespace_id, changed, position) VALUES ($1, $2, $3)",
            self.id, self.head, position,
        )  # fmt: skip
        restored = await self._transaction.fetch(
            "SELECT position FROM records WHERE namespace_id = $1 AND replaced_by = $2", self.id, position
        )
        for (each,) in restored:
            self.head += 1
            await self._transaction.execute(
                "UPDATE records SET replaced_by = NULL, changed = $1 WHERE namespace_id = $2 AND position = $3",
                self.head, self.id, each,
            )  # fmt: skip
        if self.head - self.forgotten > 2 * _REMOVALS_KEPT:
            self.forgotten = self.head - _REMOVALS_KEPT
            await self._transaction.execute(
                "DELETE FROM record_removals WHERE namespace_id = $1 AND changed <= $2", self.id, self.forgotten
            )
        await self._save()

    async def purge(self, epoch: str) -> None:
        for table in ("records", "record_removals"):
            await self._transaction.execute(f"DELETE FROM {table} WHERE namespace_id = $1", self.id)  # noqa: S608  # ours
        self.epoch = epoch
        await self._save()
        await self.leave_no_trace()

    async def leave_no_trace(self) -> None:
        """Ask that what this transaction deletes be erased after it."""
        await self._transaction.execute("UPDATE erasures SET wanted = wanted + 1")

    async def page(self, limit: int, cursor: str | None) -> RecordPage:
        rows = await self._added_after(cursor_position(cursor, self.epoch), limit + 1)
        more = len(rows) > limit
        return RecordPage(
            tuple(_record(row[1:]) for row in rows[:limit]),
            page_cursor(self.epoch, rows[limit - 1][0]) if more else None,
        )

    async def added_after(self, position: int, limit: int) -> tuple[builtins.list[MemoryRecord], int]:
        """At most `limit` records that were added after a position, and the position up to which these are all."""
        rows = await self._added_after(position, limit)
        return [_record(row[1:]) for row in rows], rows[-1][0] if len(rows) == limit else self.last_position

    async def _added_after(self, position: int, limit: int) -> Sequence[Row]:
        return await self._transaction.fetch(
            f"SELECT r.position, {_COLUMNS} FROM records r "  # noqa: S608  # ours
            "WHERE r.namespace_id = $1 AND r.position > $2 ORDER BY r.position LIMIT $3",
            self.id, position, limit,
        )  # fmt: skip

    async def records(self, positions: Iterable[int]) -> dict[int, MemoryRecord]:
        found, wanted = dict[int, MemoryRecord](), list(positions)
        for at in range(0, len(wanted), _AT_ONCE):
            part = wanted[at : at + _AT_ONCE]
            places = ", ".join(f"${number}" for number in range(2, len(part) + 2))
            rows = await self._transaction.fetch(
                f"SELECT r.position, {_COLUMNS} FROM records r "  # noqa: S608  # ours
                f"WHERE r.namespace_id = $1 AND r.position IN ({places})",
                self.id, *part,
            )  # fmt: skip
            found |= {row[0]: _record(row[1:]) for row in rows}
        return found

    async def stands_at(self) -> tuple[str, int]:
        """The epoch, and the number of the last change in it."""
        return self.epoch, self.head

    async def record(self, record_id: str) -> MemoryRecord:
        """`record_not_found`."""
        return (await self.records([await self._position(record_id)])).popitem()[1]

    async def changes(self, since: int, model: int | None, limit: int) -> Changed:
        """At most `limit` records that changed after `since`, in the order of their changes."""
        rows = await self._transaction.fetch(
            "SELECT r.position, r.at, r.terms, r.thread, r.speaker, r.asks, r.replaced_by, "  # noqa: S608  # ours
            f"({_VECTORS.format('vectors', '$1')}), r.revised_at, r.changed, r.analysis FROM records r "
            "WHERE r.namespace_id = $2 AND r.changed > $3 ORDER BY r.changed LIMIT $4",
            model, self.id, since, limit,
        )  # fmt: skip
        more = len(rows) == limit
        removed = await self._transaction.fetch(
            "SELECT position FROM record_removals WHERE namespace_id = $1 AND changed > $2", self.id, since
        )
        return Changed(
            self.epoch,
            since,
            rows[-1][9] if more else self.head,
            rows,
            [position for (position,) in removed],
            any(row[7] is None for row in rows),
            any(row[10] < ANALYSIS for row in rows),
            more,
        )

    async def missing(self, model: int | None, below: int | None, limit: int) -> builtins.list[Missing]:
        """Records to analyse or embed again, of those before the position `below`; the newest first, as they are the
        likeliest to be asked for."""
        rows = await self._transaction.fetch(
            "SELECT r.position, r.changed, r.text, r.thread, "  # noqa: S608  # ours
            f"({_VECTORS.format('model_id', '$3')}) FROM records r WHERE {_LACKING} "
            "AND r.position < $4 ORDER BY r.position DESC LIMIT $5",
            self.id, ANALYSIS, model, self.last_position + 1 if below is None else below, limit,
        )  # fmt: skip
        return [Missing(row[0], row[1], bytes(row[2]).decode(), row[3] is not None, row[4] is not None) for row in rows]

    async def count_missing(self, model: int | None) -> tuple[int, int]:
        """How many records are to be analysed or embedded again, and how many there are."""
        (missing,) = await self._one(
            f"SELECT count(*) FROM records r WHERE {_LACKING}",  # noqa: S608  # ours
            self.id, ANALYSIS, model,
        )  # fmt: skip
        (every,) = await self._one("SELECT count(*) FROM records WHERE namespace_id = $1", self.id)
        return missing, every

    async def fill(self, filled: Sequence[tuple[Missing, Draft, bytes | None]], model: int | None) -> None:
        """Keep what was missing, of the records that have not changed meanwhile. Without new vectors a record keeps
        those that it has."""
        for missing, draft, vectors in filled:
            self.head += 1
            analysis = draft.analysis
            count = await self._transaction.execute(
                "UPDATE records SET changed = $1, analysis = $2, speaker = $3, asks = $4, terms = $5 "
                "WHERE namespace_id = $6 AND position = $7 AND changed = $8",
                self.head, ANALYSIS, analysis.speaker, int(analysis.asks), analysis.terms, self.id,
                missing.position, missing.changed,
            )  # fmt: skip
            if count:
                for sql, values in self._vectors_of(missing.position, vectors, model):
                    await self._transaction.execute(sql, *values)
        await self._save()

    async def drop_other_models(self, model: int) -> None:
        await self._transaction.execute(
            "DELETE FROM record_vectors WHERE namespace_id = $1 AND model_id <> $2", self.id, model
        )

    def _vectors_of(self, position: int, vectors: bytes | None, model: int | None) -> builtins.list[Change]:
        if vectors is None or model is None:
            return []
        return [(_KEEP_VECTORS, (self.id, position, model, vectors))]

    async def _position(self, record_id: str) -> int:
        row = None
        if checked_argument("record_id", record_id, str).isprintable():  # no database takes half a surrogate pair
            row = await self._transaction.fetch_one(
                "SELECT position FROM records WHERE id = $1 AND namespace_id = $2", record_id, self.id
            )
        if row is None:
            raise record_missing(record_id)
        return int(row[0])

    async def _save(self) -> None:
        await self._transaction.execute(
            "UPDATE record_namespaces SET epoch = $1, head = $2, last_position = $3, forgotten = $4 WHERE id = $5",
            self.epoch, self.head, self.last_position, self.forgotten, self.id,
        )  # fmt: skip

    async def _one(self, sql: str, *values: object) -> Row:
        row = await self._transaction.fetch_one(sql, *values)
        assert row is not None  # noqa: S101  # a count is always there
        return row


async def model_id(transaction: Transaction, embedder: Embedder) -> int:
    """The number of what makes the vectors, which is given to it if it is new."""
    # Vectors of other passages are as useless as those of another model. The first version had no name.
    version = f"{embedder.version}#{PASSAGES}" if PASSAGES > 1 else embedder.version
    name = (embedder.model, version, embedder.dimension)
    find = "SELECT id FROM embedding_models WHERE name = $1 AND version = $2 AND dimension = $3"
    row = await transaction.fetch_one(find, *name)
    if row is None:
        await transaction.execute(
            "INSERT INTO embedding_models (name, version, dimension) VALUES ($1, $2, $3) "
            "ON CONFLICT (name, version, dimension) DO NOTHING",
            *name,
        )
        row = await transaction.fetch_one(find, *name)
    assert row is not None  # noqa: S101  # it was just made, if not by us
    return int(row[0])


def _record(row: Sequence[Any]) -> MemoryRecord:
    id, text, updated_at, at, thread, run_id, principal_id, tool_call_id, kind, replaced_by, revised = row
    origin = Origin(run_id, principal_id, tool_call_id, kind=kind)
    return MemoryRecord(
        id,
        bytes(text).decode(),
        updated_at=from_micros(updated_at),
        at=from_micros(at),
        thread=thread,
        origin=origin if origin != _NOBODY else None,
        replaced_by=replaced_by,
        revised=bool(revised),
    )
