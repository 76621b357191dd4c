"""Workspaces and the keys that open them. Of a key only a hash is kept."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from memshelf.errors import MemoryStoreError
from memshelf.limits import StoreLimits
from memshelf.mounts.mount import MountAccess
from memshelf.storage.ids import Mint, askable, from_micros
from memshelf.storage.transaction import Engine, Transaction
from memshelf.stores.lifecycle import SessionStatus
from memshelf.stores.rules import checked_name

__all__ = ["Accounts", "Caller", "Key", "digest"]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who a secret stands for: a key of a workspace, or a session of it, which may use only what it mounts; or a user
    who needs no secret, whose name then stands for the key as well."""

    key_id: str
    workspace_id: str
    session_id: str | None = None
    mounts: Mapping[str, MountAccess] | None = None
    user: str | None = None


@dataclass(frozen=True, slots=True)
class Key:
    """A key as its owner may see it: never the secret, only how it ends."""

    id: str
    workspace: str
    hint: str
    created_at: datetime
    revoked_at: datetime | None


def digest(secret: str) -> bytes:
    """What is kept of a secret. It is random and long, so that a plain hash cannot be tried out."""
    return hashlib.sha256(secret.encode(errors="replace")).digest()


class Accounts:
    def __init__(self, engine: Engine, mint: Mint | None = None) -> None:
        self._engine = engine
        self._mint = mint or Mint()

    async def first_key(self, workspace: str) -> str | None:
        """The secret of a first key, in a workspace of this name, if the database has no key yet; else `None`."""

        async def create(transaction: Transaction) -> str | None:
            # Two services that start at once wait for each other here, and one of them finds the other's key.
            workspace_id = await self._workspace(transaction, workspace)
            if await transaction.fetch_one("SELECT id FROM api_keys LIMIT 1") is not None:
                return None
            return await self._key(transaction, workspace_id, None)

        if await self._engine.read(lambda transaction: transaction.fetch_one("SELECT id FROM api_keys LIMIT 1")):
            return None
        return await self._engine.write(create)

    async def create_key(self, workspace: str) -> str:
        """The secret of a new key, which is shown only now. The workspace is made if there is none of this name."""

        async def create(transaction: Transaction) -> str:
            return await self._key(transaction, await self._workspace(transaction, workspace), None)

        return await self._engine.write(create)

    async def create_token(self, workspace_id: str, session_id: str) -> str:
        """The secret by which an agent acts as a session. It ends with the session. `not_found`, `conflict`."""

        async def create(transaction: Transaction) -> str:
            row = await transaction.fetch_one(
                "SELECT status, archived_at FROM sessions WHERE id = $1 AND workspace_id = $2",
                askable(session_id),
                workspace_id,
            )
            if row is None:
                raise MemoryStoreError("not_found", f"There is no session {session_id}.")
            if not _open(*row):
                raise MemoryStoreError("conflict", "The session has ended: it gets no token.")
            return await self._key(transaction, workspace_id, session_id)

        return await self._engine.write(create)

    async def workspace(self, name: str) -> str:
        """The id of the workspace with this name. `not_found`."""
        row = await self._engine.read(
            lambda transaction: transaction.fetch_one("SELECT id FROM workspaces WHERE name = $1", askable(name))
        )
        if row is None:
            raise MemoryStoreError("not_found", f"There is no workspace {name}.")
        return str(row[0])

    async def make_workspace(self, name: str) -> str:
        """The id of the workspace with this name, which is there from now on."""
        return await self._engine.write(lambda transaction: self._workspace(transaction, name))

    async def keys(self) -> list[Key]:
        """Every key of every workspace, the oldest first."""
        rows = await self._engine.read(
            lambda transaction: transaction.fetch(
                "SELECT k.id, w.name, k.hint, k.created_at, k.revoked_at FROM api_keys k "
                "JOIN workspaces w ON w.id = k.workspace_id WHERE k.session_id IS NULL ORDER BY k.created_at, k.id"
            )
        )
        return [
            Key(id, name, hint, from_micros(created), from_micros(revoked) if revoked is not None else None)
            for id, name, hint, created, revoked in rows
        ]

    async def revoke(self, key_id: str) -> None:
        """The key opens nothing any more; revoking again changes nothing. `not_found`."""

        async def revoke(transaction: Transaction) -> None:
            found = await transaction.execute(
                "UPDATE api_keys SET revoked_at = coalesce(revoked_at, $1) WHERE id = $2 AND session_id IS NULL",
                self._mint.now(),
                askable(key_id),
            )
            if not found:
                raise MemoryStoreError("not_found", f"There is no key {key_id}.")

        await self._engine.write(revoke)

    async def find(self, hash: bytes) -> Caller | None:
        """Whom the secret with this hash stands for; `None` when it is unknown, revoked, or its session has ended."""

        async def find(transaction: Transaction) -> Caller | None:
            row = await transaction.fetch_one(
                "SELECT k.id, k.workspace_id, k.session_id, s.status, s.archived_at FROM api_keys k "
                "LEFT JOIN sessions s ON s.id = k.session_id WHERE k.hash = $1 AND k.revoked_at IS NULL",
                hash,
            )
            if row is None:
                return None
            key_id, workspace_id, session_id, status, archived_at = row
            if session_id is None:
                return Caller(key_id, workspace_id)
            if not _open(status, archived_at):
                return None
            rows = await transaction.fetch(
                "SELECT store_id, access FROM session_resources WHERE session_id = $1", session_id
            )
            return Caller(key_id, workspace_id, session_id, dict([tuple(row) for row in rows]))

        return await self._engine.read(find)

    async def _workspace(self, transaction: Transaction, name: str) -> str:
        checked_name(name, StoreLimits())
        now = self._mint.now()
        await transaction.execute(
            "INSERT INTO workspaces (id, name, created_at) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING",
            self._mint.id("wrkspc", now),
            name,
            now,
        )
        query = f"SELECT id FROM workspaces WHERE name = $1{transaction.for_update}"  # noqa: S608  # no value
        row = await transaction.fetch_one(query, name)
        assert row is not None  # noqa: S101  # it was inserted, or was there
        return str(row[0])

    async def _key(self, transaction: Transaction, workspace_id: str, session_id: str | None) -> str:
        kind = "mst" if session_id is not None else "msk"
        secret = f"{kind}_{base64.b32encode(self._mint.random(30)).decode().lower()}"
        now = self._mint.now()
        await transaction.execute(
            "INSERT INTO api_keys (id, workspace_id, session_id, hash, hint, created_at) "
            "VALUES ($1, $2, $3, $4, $5, $6)",
            self._mint.id("apikey", now),
            workspace_id,
            session_id,
            digest(secret),
            secret[-4:],
            now,
        )
        return secret


def _open(status: SessionStatus, archived_at: int | None) -> bool:
    return archived_at is None and status != "terminated"
