"""The sessions of a workspace, as far as memory needs them: what each mounts, and whether it still runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from memshelf.errors import MemoryStoreError
from memshelf.mounts.mount import MountAccess, StoreMount, mount_path, require_mountable
from memshelf.storage.ids import askable, from_micros, micros
from memshelf.storage.transaction import Row, Transaction
from memshelf.stores.catalogue import select_store
from memshelf.stores.cursors import decoded, encoded
from memshelf.stores.lifecycle import SessionStatus, require_session_changeable, require_session_open
from memshelf.stores.model import Page
from memshelf.stores.rules import KEEP, Keep, checked_instructions, checked_metadata, patched_metadata
from memshelf.stores.shelf import Shelf

__all__ = ["Attachment", "Session", "SessionFilter", "Sessions"]

_SELECT = (
    "SELECT id, agent_id, agent_version, environment_id, title, metadata, status, created_at, updated_at, archived_at "
    "FROM sessions"
)
_MOST_CHARS = 255


@dataclass(frozen=True, slots=True)
class Attachment:
    """A store to mount in a new session."""

    store_id: str
    access: MountAccess = "read_write"
    instructions: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    id: str
    agent_id: str
    agent_version: int
    environment_id: str
    title: str | None
    metadata: Mapping[str, str]
    status: SessionStatus
    created_at: datetime
    updated_at: datetime
    archived_at: datetime | None
    mounts: tuple[StoreMount, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFilter:
    """Which sessions to list: those that match everything that is given. `since` and `until` belong to the span,
    `after` and `before` do not."""

    store_id: str | None = None
    agent_id: str | None = None
    agent_version: int | None = None
    statuses: tuple[SessionStatus, ...] = ()
    archived: bool = False
    since: datetime | None = None
    until: datetime | None = None
    after: datetime | None = None
    before: datetime | None = None


class Sessions:
    """The sessions of one workspace. Whatever is not in it is `not_found`."""

    def __init__(self, shelf: Shelf, workspace_id: str) -> None:
        self._shelf = shelf
        self._workspace_id = workspace_id

    async def create(
        self,
        *,
        prefix: Literal["sesn", "sess"],
        agent_id: str,
        agent_version: int,
        environment_id: str,
        attachments: Sequence[Attachment],
        title: str | None = None,
        metadata: Mapping[str, str] | None = None,
    ) -> Session:
        """A session that runs. `prefix` is what its id begins with.

        `invalid_value` for fields that are not as they must be, and for a store that is not there or is archived.
        """
        limits, mint = self._shelf.limits, self._shelf.mint
        require_mountable([each.store_id for each in attachments], limits)
        for each in attachments:
            checked_instructions(each.instructions, limits)
        pairs = checked_metadata(metadata or {}, limits)
        for field, text in (("agent", agent_id), ("environment_id", environment_id), ("title", title or " ")):
            _check_text(field, text)

        async def insert(transaction: Transaction) -> Session:
            mounts = await self._mounted(transaction, attachments)
            now = mint.now()
            id = mint.id(prefix, now)
            await transaction.execute(
                "INSERT INTO sessions (id, workspace_id, agent_id, agent_version, environment_id, title, metadata, "
                "status, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 'running', $8, $8)",
                id,
                self._workspace_id,
                agent_id,
                agent_version,
                environment_id,
                title,
                json.dumps(pairs, ensure_ascii=False),
                now,
            )
            for position, mount in enumerate(mounts):
                await transaction.execute(
                    "INSERT INTO session_resources (session_id, position, store_id, access, instructions, name, "
                    "description, mount_path) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
                    id,
                    position,
                    mount.store_id,
                    mount.access,
                    mount.instructions,
                    mount.name,
                    mount.description,
                    mount.path,
                )
            return await self._selected(transaction, id)

        return await self._shelf.engine.write(insert)

    async def _mounted(self, transaction: Transaction, attachments: Sequence[Attachment]) -> list[StoreMount]:
        # The stores are locked, in one order, so that none is archived or deleted between the check and the mount.
        stores = {}
        for store_id in sorted(each.store_id for each in attachments):
            try:
                store = await select_store(transaction, self._workspace_id, askable(store_id), transaction.for_update)
            except MemoryStoreError as error:
                if error.code != "not_found":
                    raise
                raise MemoryStoreError("invalid_value", f"resources: {error.message}") from None
            if store.archived_at is not None:
                raise MemoryStoreError("store_archived", f"resources: the memory store {store_id} is archived.")
            stores[store_id] = store
        return [
            StoreMount(
                store_id=each.store_id,
                access=each.access,
                instructions=each.instructions,
                name=stores[each.store_id].name,
                description=stores[each.store_id].description,
                path=mount_path(stores[each.store_id].name, each.store_id),
            )
            for each in attachments
        ]

    async def retrieve(self, session_id: str) -> Session:
        return await self._shelf.engine.read(lambda transaction: self._selected(transaction, session_id))

    async def page(
        self,
        *,
        limit: int,
        where: SessionFilter = SessionFilter(),
        page: str | None = None,
        newest_first: bool = True,  # frozen
    ) -> Page[Session]:
        """In the order of creation. `invalid_cursor`."""
        listing = ("sessions", self._workspace_id, str(where), newest_first)
        clauses, values = ["workspace_id = $1"], list[object]([self._workspace_id])

        def mark(value: object) -> str:
            values.append(value)
            return f"${len(values)}"

        if where.store_id is not None:
            store = mark(askable(where.store_id))
            clauses.append(f"id IN (SELECT session_id FROM session_resources WHERE store_id = {store})")  # noqa: S608  # a mark
        if where.agent_id is not None:
            clauses.append(f"agent_id = {mark(askable(where.agent_id))}")
        if where.agent_version is not None:
            clauses.append(f"agent_version = {mark(where.agent_version)}")
        if where.statuses:
            clauses.append(f"status IN ({', '.join(mark(status) for status in where.statuses)})")
        if not where.archived:
            clauses.append("archived_at IS NULL")
        for moment, sign in ((where.since, ">="), (where.until, "<="), (where.after, ">"), (where.before, "<")):
            if moment is not None:
                clauses.append(f"created_at {sign} {mark(micros(moment))}")
        if page is not None:
            created_at, id = decoded(listing, page, int, str)
            sign = "<" if newest_first else ">"
            clauses.append(f"(created_at, id) {sign} ({mark(created_at)}, {mark(id)})")
        way = "DESC" if newest_first else "ASC"
        query = f"{_SELECT} WHERE {' AND '.join(clauses)} ORDER BY created_at {way}, id {way} LIMIT {limit + 1}"

        async def select(transaction: Transaction) -> list[Session]:
            rows = await transaction.fetch(query, *values)
            mounts = await _mounts(transaction, [row[0] for row in rows])
            return [_session(row, mounts.get(row[0], ())) for row in rows]

        found = await self._shelf.engine.read(select)
        items = tuple(found[:limit])
        if len(found) <= limit:
            return Page(items, None)
        return Page(items, encoded(listing, (micros(items[-1].created_at), items[-1].id)))

    async def update(
        self,
        session_id: str,
        *,
        title: str | Keep | None = KEEP,
        metadata: Mapping[str, str | None] | Keep | None = KEEP,
    ) -> Session:
        """Change what is given, of `metadata` the keys that it names, as of a store. An update that changes nothing
        leaves `updated_at`. `invalid_value`; `conflict` when the session is archived."""
        if isinstance(title, str):
            _check_text("title", title or " ")

        async def change(transaction: Transaction) -> Session:
            session = await self._selected(transaction, session_id, transaction.for_update)
            require_session_changeable(session.archived_at)
            new_title = session.title if isinstance(title, Keep) else title
            pairs = patched_metadata(session.metadata, metadata, self._shelf.limits)
            if (new_title, pairs) == (session.title, session.metadata):
                return session
            await transaction.execute(
                "UPDATE sessions SET updated_at = $2, title = $3, metadata = $4 WHERE id = $1",
                session.id,
                self._after(session),
                new_title,
                json.dumps(pairs, ensure_ascii=False),
            )
            return await self._selected(transaction, session.id)

        return await self._shelf.engine.write(change)

    async def set_status(self, session_id: str, status: SessionStatus) -> Session:
        """`conflict` when the session has ended."""

        async def change(transaction: Transaction) -> Session:
            session = await self._selected(transaction, session_id, transaction.for_update)
            require_session_open(session.status, session.archived_at, status)
            if session.status == status:
                return session
            return await self._set(transaction, session, status=status)

        return await self._shelf.engine.write(change)

    async def archive(self, session_id: str) -> Session:
        """For good; archiving again changes nothing. From then on it keeps no store from being archived."""

        async def archive(transaction: Transaction) -> Session:
            session = await self._selected(transaction, session_id, transaction.for_update)
            if session.archived_at is not None:
                return session
            return await self._set(transaction, session, archived=True)

        return await self._shelf.engine.write(archive)

    async def delete(self, session_id: str) -> None:
        """Remove the session and its tokens. What it wrote stays, attributed to it."""

        async def delete(transaction: Transaction) -> None:
            await self._selected(transaction, session_id, transaction.for_update)
            for table in ("api_keys", "session_resources"):
                await transaction.execute(f"DELETE FROM {table} WHERE session_id = $1", session_id)  # noqa: S608  # no value
            await transaction.execute("DELETE FROM sessions WHERE id = $1", session_id)

        await self._shelf.engine.write(delete)

    async def _set(
        self, transaction: Transaction, session: Session, *, status: SessionStatus | None = None, archived: bool = False
    ) -> Session:
        now = self._after(session)
        await transaction.execute(
            "UPDATE sessions SET updated_at = $2, status = $3, archived_at = $4 WHERE id = $1",
            session.id,
            now,
            status or session.status,
            now if archived else None,
        )
        return await self._selected(transaction, session.id)

    def _after(self, session: Session) -> int:
        return max(self._shelf.mint.now(), micros(session.updated_at) + 1)  # whatever the clock says

    async def _selected(self, transaction: Transaction, session_id: str, lock: str = "") -> Session:
        row = await transaction.fetch_one(
            f"{_SELECT} WHERE id = $1 AND workspace_id = $2{lock}", askable(session_id), self._workspace_id
        )
        if row is None:
            raise MemoryStoreError("not_found", f"There is no session {session_id}.")
        return _session(row, (await _mounts(transaction, [session_id])).get(session_id, ()))


def _check_text(field: str, text: str) -> None:
    if not 0 < len(text) <= _MOST_CHARS or "\0" in text or askable(text) != text:
        raise MemoryStoreError("invalid_value", f"{field}: it has 1 to {_MOST_CHARS} characters of text.")


async def _mounts(transaction: Transaction, session_ids: Sequence[str]) -> dict[str, tuple[StoreMount, ...]]:
    """What each of the sessions mounts, in order."""
    if not session_ids:
        return {}
    marks = ", ".join(f"${number}" for number in range(1, len(session_ids) + 1))
    rows = await transaction.fetch(
        "SELECT session_id, store_id, access, instructions, name, description, mount_path FROM session_resources "  # noqa: S608  # marks
        f"WHERE session_id IN ({marks}) ORDER BY session_id, position",
        *session_ids,
    )
    mounts: dict[str, tuple[StoreMount, ...]] = {}
    for session_id, store_id, access, instructions, name, description, path in rows:
        mount = StoreMount(
            store_id=store_id,
            access=access,
            instructions=instructions,
            name=name,
            description=description,
            path=path,
        )
        mounts[session_id] = (*mounts.get(session_id, ()), mount)
    return mounts


def _session(row: Row, mounts: tuple[StoreMount, ...]) -> Session:
    id, agent_id, version, environment_id, title, metadata, status, created_at, updated_at, archived_at = row
    return Session(
        id=id,
        agent_id=agent_id,
        agent_version=version,
        environment_id=environment_id,
        title=title,
        metadata=json.loads(metadata),
        status=status,
        created_at=from_micros(created_at),
        updated_at=from_micros(updated_at),
        archived_at=from_micros(archived_at) if archived_at is not None else None,
        mounts=mounts,
    )
