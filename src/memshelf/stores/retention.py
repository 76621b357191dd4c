"""How long versions are kept, and erasing those that are past."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from memshelf.files.backends.sql.changes import erase
from memshelf.files.backends.sql.expiry import Past, past
from memshelf.files.backends.sql.memory import Head
from memshelf.storage.ids import Mint, askable
from memshelf.storage.transaction import Row, Transaction
from memshelf.stores.model import NoSuchStoreError
from memshelf.stores.shelf import Opened, Shelf, StoreAccess, no_such_store

__all__ = ["RETENTION", "Expired", "Retention", "expire"]

RETENTION = "memshelf_retention"
"""Who erased a version that expired: no person and no key."""

_LEAST_DAYS = 30
_MOST_DAYS = 36_500
_MOST_RECENT = 1_000_000
_DAY = 86_400_000_000
_LOOKED_AT = 1_000
_BATCH_VERSIONS = 100
_BATCH_BYTES = 4_194_304


@dataclass(frozen=True, slots=True)
class Retention:
    """Which versions are kept: all that a memory held at any time within the last `days`, and of each memory that is
    still there the `recent` newest, however old they are. So a store can be listed, compared and taken back to what it
    was at any moment of those days, also where memories were deleted since."""

    days: int
    recent: int = 10

    def __post_init__(self) -> None:
        if not _LEAST_DAYS <= self.days <= _MOST_DAYS:
            raise ValueError(f"Versions are kept for {_LEAST_DAYS} to {_MOST_DAYS:,} days, not {self.days}.")
        if not 1 <= self.recent <= _MOST_RECENT:
            raise ValueError(f"Of each memory, the 1 to {_MOST_RECENT:,} newest versions are kept, not {self.recent}.")

    def before(self, now: int) -> int:
        """Which versions are past at a time: those that no memory held since this one. In microseconds since 1970."""
        return now - self.days * _DAY


@dataclass(frozen=True, slots=True)
class Expired:
    """How many versions of a store expired, and how many bytes of content they had at most: when two processes expire
    the same versions, each is counted once, but its bytes may be counted by both."""

    versions: int
    bytes: int


async def expire(
    shelf: Shelf, retention: Retention, *, store_id: str | None = None, dry_run: bool = False
) -> AsyncIterator[tuple[str, Expired]]:
    """Erase the paths and contents of the versions that are past, in every store of every workspace or in one; store
    after store, by its id, what expired. A version that expired is a redacted one, by `RETENTION`, and the history
    verifies.

    It goes from store to store in small transactions, so that others write meanwhile, and may be repeated, ended in
    the midst, or run by several processes at once. When this has come to its end, no byte of what expired is left in
    the database, as far as the engine can tell: the database is rewritten once for all, which is also done for erasures
    that others left unfinished. `unavailable` as for a redaction: what was told stays erased, and the next run finishes
    the rest.

    With `dry_run` nothing changes. `not_found` when there is no such store.
    """
    before = retention.before(shelf.mint.now())
    chosen = _with_old_versions(shelf, before) if store_id is None else _only(shelf, store_id)
    async for id, workspace_id in chosen:
        try:
            found = await _expire(StoreAccess(shelf, workspace_id, id), before, retention.recent, dry_run=dry_run)
        except NoSuchStoreError:  # it was deleted meanwhile, with all its versions
            continue
        if found.versions:
            yield id, found
    if not dry_run:
        await shelf.engine.erase(_nothing)


async def _with_old_versions(shelf: Shelf, before: int) -> AsyncIterator[tuple[str, str]]:
    """The stores with versions from before a time, by id, with their workspaces. The others, which may be many, are not
    opened."""
    after = ""
    # Not whether there is one: an engine that looks for any may go through all versions there are, store by store.
    query = (
        "SELECT s.id, s.workspace_id, (SELECT min(v.created_at) FROM file_versions v "  # noqa: S608  # no value
        f"WHERE v.memory_id = s.memory_id) FROM stores s WHERE s.id > $1 ORDER BY s.id LIMIT {_LOOKED_AT}"
    )
    while True:
        rows = await shelf.engine.read(partial(_fetched, query=query, values=(after,)))
        for id, workspace_id, oldest in rows:
            if oldest is not None and oldest < before:
                yield id, workspace_id
        if len(rows) < _LOOKED_AT:
            return
        after = rows[-1][0]


async def _fetched(transaction: Transaction, query: str, values: Sequence[object]) -> Sequence[Row]:
    return await transaction.fetch(query, *values)


async def _only(shelf: Shelf, store_id: str) -> AsyncIterator[tuple[str, str]]:
    row = await shelf.engine.read(
        lambda transaction: transaction.fetch_one("SELECT workspace_id FROM stores WHERE id = $1", askable(store_id))
    )
    if row is None:
        raise no_such_store(store_id)
    yield store_id, row[0]


async def _expire(store: StoreAccess, before: int, recent: int, *, dry_run: bool) -> Expired:
    after, versions, size = 0, 0, 0
    while True:
        head, found = await store.read(partial(_look, after=after, before=before, recent=recent))
        for batch in _batches(found):
            erased = len(batch)
            if not dry_run:
                erased = await store.write(partial(_erase, batch=batch, mint=store.shelf.mint), keeps=True)
            versions += erased
            size += sum(each.size for each in batch) if erased else 0
        after += _LOOKED_AT
        if after >= head.seq:
            return Expired(versions, size)


async def _look(opened: Opened, after: int, before: int, recent: int) -> tuple[Head, list[Past]]:
    return opened.head, await past(opened.memory, after, after + _LOOKED_AT, before, recent)


async def _erase(opened: Opened, batch: Sequence[Past], mint: Mint) -> int:
    return await erase(opened.memory, {each.id: each.file_id for each in batch}, RETENTION, mint)


def _batches(found: Iterable[Past]) -> Iterator[list[Past]]:
    """What one transaction erases: few enough versions, and little enough content, that nobody waits long for it."""
    batch: list[Past] = []
    size = 0
    for each in found:
        if batch and (len(batch) == _BATCH_VERSIONS or size + each.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(each)
        size += each.size
    if batch:
        yield batch


async def _nothing(transaction: Transaction) -> None:
    """For an erasure that only finishes others."""
    del transaction
