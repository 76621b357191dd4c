"""The stores of a workspace: create, retrieve, list, update, archive, delete."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from memshelf.files.backends.sql import changes
from memshelf.storage.ids import askable, from_micros, micros
from memshelf.storage.transaction import Row, Transaction
from memshelf.stores.cursors import decoded, encoded
from memshelf.stores.lifecycle import holds_stores, require_changeable, require_unused
from memshelf.stores.model import Page, Store
from memshelf.stores.rules import KEEP, Keep, checked_description, checked_metadata, checked_name, patched_metadata
from memshelf.stores.shelf import Opened, Shelf, StoreAccess, no_such_store

__all__ = ["Period", "Stores", "metadata_json", "select_store"]

_SELECT = "SELECT id, name, description, metadata, created_at, updated_at, archived_at FROM stores"


@dataclass(frozen=True, slots=True)
class Period:
    """A span of time; both ends belong to it, and `None` is open."""

    since: datetime | None = None
    until: datetime | None = None


class Stores:
    """The stores of one workspace. Whatever is not in it is `not_found`."""

    def __init__(self, shelf: Shelf, workspace_id: str) -> None:
        self._shelf = shelf
        self._workspace_id = workspace_id

    async def create(self, name: str, description: str = "", metadata: Mapping[str, str] | None = None) -> Store:
        """`invalid_value`. Names need not be unique."""
        limits, mint = self._shelf.limits, self._shelf.mint
        name = checked_name(name, limits)
        description = checked_description(description, limits)
        pairs = checked_metadata(metadata or {}, limits)

        async def insert(transaction: Transaction) -> Store:
            now = mint.now()
            id = mint.id("memstore", now)
            memory_id = await changes.create_memory(transaction, id, mint)
            await transaction.execute(
                "INSERT INTO stores (id, workspace_id, memory_id, name, description, metadata, created_at, updated_at) "
                "VALUES ($1, $2, $3, $4, $5, $6, $7, $7)",
                id,
                self._workspace_id,
                memory_id,
                name,
                description,
                metadata_json(pairs),
                now,
            )
            return await select_store(transaction, self._workspace_id, id)

        return await self._shelf.engine.write(insert)

    async def retrieve(self, store_id: str) -> Store:
        return await self._shelf.engine.read(
            lambda transaction: select_store(transaction, self._workspace_id, store_id), single=True
        )

    async def page(
        self,
        *,
        limit: int,
        page: str | None = None,
        period: Period = Period(),  # frozen
        archived: bool = False,
    ) -> Page[Store]:
        """The newest first, without archived ones unless asked for. `invalid_cursor`."""
        listing = ("stores", self._workspace_id, period.since, period.until, archived)
        where, values = "workspace_id = $1", list[object]([self._workspace_id])
        if period.since is not None:
            values.append(micros(period.since))
            where += f" AND created_at >= ${len(values)}"
        if period.until is not None:
            values.append(micros(period.until))
            where += f" AND created_at <= ${len(values)}"
        if page is not None:
            values += decoded(listing, page, int, str)
            where += f" AND (created_at, id) < (${len(values) - 1}, ${len(values)})"
        if not archived:
            where += " AND archived_at IS NULL"
        query = f"{_SELECT} WHERE {where} ORDER BY created_at DESC, id DESC LIMIT {limit + 1}"
        rows = await self._shelf.engine.read(lambda transaction: transaction.fetch(query, *values))
        stores = tuple(_store(row) for row in rows[:limit])
        more = len(rows) > limit
        return Page(stores, encoded(listing, (micros(stores[-1].created_at), stores[-1].id)) if more else None)

    async def update(
        self,
        store_id: str,
        *,
        name: str | Keep = KEEP,
        description: str | Keep = KEEP,
        metadata: Mapping[str, str | None] | Keep | None = KEEP,
    ) -> Store:
        """Change what is given. `metadata` sets the keys that it names and removes those that it maps to `None`; as a
        whole `None` it removes all. An update that changes nothing leaves `updated_at`. `invalid_value`,
        `store_archived`."""
        limits = self._shelf.limits
        if not isinstance(name, Keep):
            checked_name(name, limits)
        if not isinstance(description, Keep):
            checked_description(description, limits)

        async def change(opened: Opened) -> Store:
            store = await select_store(opened.transaction, self._workspace_id, store_id)
            require_changeable(store.archived_at)
            pairs = patched_metadata(store.metadata, metadata, limits)
            fields = (
                store.name if isinstance(name, Keep) else name,
                store.description if isinstance(description, Keep) else description,
                pairs,
            )
            if fields == (store.name, store.description, store.metadata):
                return store
            await opened.transaction.execute(
                "UPDATE stores SET name = $1, description = $2, metadata = $3, updated_at = $4 WHERE id = $5",
                fields[0],
                fields[1],
                metadata_json(pairs),
                self._after(store),
                store_id,
            )
            return await select_store(opened.transaction, self._workspace_id, store_id)

        return await self._access(store_id).write(change)

    async def archive(self, store_id: str) -> Store:
        """For good; archiving again changes nothing. `conflict` while running sessions may write to the store."""

        async def archive(opened: Opened) -> Store:
            if opened.archived_at is None:
                require_unused("archived", await _running(opened))
                store = await select_store(opened.transaction, self._workspace_id, store_id)
                await opened.transaction.execute(
                    "UPDATE stores SET archived_at = $1, updated_at = $1 WHERE id = $2",
                    self._after(store),
                    store_id,
                )
            return await select_store(opened.transaction, self._workspace_id, store_id)

        return await self._access(store_id).write(archive)

    async def delete(self, store_id: str) -> None:
        """Remove the store with its memories and versions; when this returns, no byte of them is left in the database,
        as far as the engine can tell. `conflict` while running sessions may write to the store."""

        async def delete(opened: Opened) -> None:
            require_unused("deleted", await _running(opened))
            await changes.purge(opened.memory, self._shelf.mint)
            await opened.transaction.execute("DELETE FROM stores WHERE id = $1", store_id)
            await opened.transaction.execute("DELETE FROM memories WHERE id = $1", opened.memory.id)

        await self._access(store_id).erase(delete)

    def _after(self, store: Store) -> int:
        """The time now; after the last change in any case, whatever the clock says."""
        return max(self._shelf.mint.now(), micros(store.updated_at) + 1)

    def _access(self, store_id: str) -> StoreAccess:
        return StoreAccess(self._shelf, self._workspace_id, store_id)


async def select_store(transaction: Transaction, workspace_id: str, store_id: str, lock: str = "") -> Store:
    """`not_found` when the workspace has no such store."""
    row = await transaction.fetch_one(
        f"{_SELECT} WHERE id = $1 AND workspace_id = $2{lock}", askable(store_id), workspace_id
    )
    if row is None:
        raise no_such_store(store_id)
    return _store(row)


async def _running(opened: Opened) -> list[str]:
    rows = await opened.transaction.fetch(
        "SELECT s.id, s.status, s.archived_at FROM session_resources r JOIN sessions s ON s.id = r.session_id "
        "WHERE r.store_id = $1 AND r.access = 'read_write' AND s.archived_at IS NULL AND s.status <> 'terminated' "
        "ORDER BY s.id",
        opened.store_id,
    )
    return [id for id, status, archived_at in rows if holds_stores(status, archived_at)]


def _store(row: Row) -> Store:
    id, name, description, metadata, created_at, updated_at, archived_at = row
    return Store(
        id=id,
        name=name,
        description=description,
        metadata=json.loads(metadata),
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        archived_at=from_micros(archived_at) if archived_at is not None else None,
    )


def metadata_json(metadata: Mapping[str, str]) -> str:
    return json.dumps(metadata, ensure_ascii=False)
