"""A store with its whole history, out of one database and into another. The format is that of `files/archive.py`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from memshelf.errors import MemoryStoreError
from memshelf.files.archive import Archived, Checked, Json, damaged
from memshelf.files.backends.sql.archive import Imported, history, import_versions
from memshelf.files.backends.sql.memory import Head
from memshelf.limits import StoreLimits
from memshelf.storage.ids import micros
from memshelf.storage.transaction import Transaction
from memshelf.stores.catalogue import metadata_json, select_store
from memshelf.stores.change import described
from memshelf.stores.model import Store
from memshelf.stores.rules import checked_description, checked_metadata, checked_name, checked_path, wire_path
from memshelf.stores.shelf import Shelf, StoreAccess

__all__ = ["PastOf", "import_store", "require_store", "valid_path"]

_ID = re.compile(r"memstore_[0-9a-f]{32}")


class PastOf(StoreAccess):
    """The history of one store, version by version, with what proves it."""

    async def page(self, after: int, most: int) -> tuple[Head, int, list[Archived]]:
        """Where the history stands, when it was begun, and the versions that follow the one with the number `after`."""
        return await self.read(lambda opened: history(opened.memory, after, most))


def valid_path(path: str) -> str:
    """The path, if it is one of a file in a store."""
    return checked_path(wire_path(path), StoreLimits())


@dataclass(frozen=True, slots=True)
class _Fields:
    id: str
    name: str
    description: str
    metadata: dict[str, str]
    created_at: int
    updated_at: int
    archived_at: int | None


async def import_store(
    shelf: Shelf, workspace_id: str, archive: Checked, versions: Callable[[], Iterable[Archived]]
) -> tuple[Store, Imported]:
    """Bring a store into a workspace under its own id, with its versions, their ids, times and authors; or, when it
    is there, go on with its history where the archive has more. All of it or nothing.

    Whoever imports says who wrote what, so that this is for those to whom the database belongs. `conflict` when the
    store that is there has another history or another workspace; `invalid_file` for an archive of no store.
    `versions` may be called more than once.
    """
    fields = _fields(archive.header.store, shelf.limits)

    async def write(transaction: Transaction) -> tuple[Store, Imported]:
        row = await transaction.fetch_one(
            f"SELECT workspace_id, memory_id FROM stores WHERE id = $1{transaction.for_update}",  # noqa: S608  # no value
            fields.id,
        )
        if row is not None and row[0] != workspace_id:
            raise MemoryStoreError("conflict", f"Store {fields.id} is in another workspace; nothing changed.")
        memory_id, imported = await import_versions(
            transaction,
            row[1] if row is not None else None,
            fields.id,
            archive,
            versions,
            lambda text: described(text, shelf.limits),
        )
        if row is None:
            await transaction.execute(
                "INSERT INTO stores (id, workspace_id, memory_id, name, description, metadata, created_at, updated_at, "
                "archived_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
                fields.id,
                workspace_id,
                memory_id,
                fields.name,
                fields.description,
                metadata_json(fields.metadata),
                fields.created_at,
                fields.updated_at,
                fields.archived_at,
            )
        return await select_store(transaction, workspace_id, fields.id), imported

    return await shelf.engine.write(write)


def require_store(archive: Checked, limits: StoreLimits) -> None:
    """`invalid_file` unless the archive's header describes a store."""
    _fields(archive.header.store, limits)


def _fields(store: Json | None, limits: StoreLimits) -> _Fields:
    if store is None:
        raise MemoryStoreError(
            "invalid_file", "This is the archive of a file memory, and of no store: see `memshelf files import`."
        )
    try:
        archived_at = store["archived_at"]
        fields = _Fields(
            id=store["id"],
            name=checked_name(store["name"], limits),
            description=checked_description(store["description"], limits),
            metadata=checked_metadata(store["metadata"], limits),
            created_at=_micros(store["created_at"]),
            updated_at=_micros(store["updated_at"]),
            archived_at=_micros(archived_at) if archived_at is not None else None,
        )
        valid = _ID.fullmatch(fields.id) is not None
    except (KeyError, TypeError, ValueError, AttributeError, MemoryStoreError):
        valid = False
    if not valid:
        raise damaged("its header does not describe a store.")
    return fields


def _micros(time: Any) -> int:
    moment = datetime.fromisoformat(time)
    if moment.tzinfo is None:
        raise ValueError("no time zone")
    return micros(moment)
