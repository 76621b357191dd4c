"""How PostgreSQL's migrations are applied when a connection is opened."""

from __future__ import annotations

from typing import Any

from memshelf.errors import MemoryStoreError
from memshelf.storage.migrations import APPLICATION_ID, steps, too_new

__all__ = ["migrate"]


async def migrate(connection: Any, schema: str, quoted: str) -> None:  # Any: asyncpg has no types
    """Bring the schema up to date. Safe when several processes do it at once.

    `unavailable` when it holds tables that are not ours, or that a newer memshelf made.
    """
    known = steps("postgres")
    if await _applied(connection, schema, len(known)) == len(known):
        return
    await connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
    # One at a time for each schema; the lock goes with the transaction.
    await connection.fetch("SELECT pg_advisory_xact_lock($1, hashtext($2))", APPLICATION_ID, schema)
    # Another process may have migrated while this one waited for its turn.
    applied = await _applied(connection, schema, len(known))
    if not await connection.fetchval("SELECT to_regnamespace($1) IS NOT NULL", quoted):
        await connection.execute(f"CREATE SCHEMA {quoted}")
    if applied == 0:
        await connection.execute(
            "CREATE TABLE migrations (version INTEGER PRIMARY KEY, applied_at TIMESTAMPTZ NOT NULL)"
        )
    for version, step in enumerate(known[applied:], start=applied + 1):
        await connection.execute(step)
        await connection.execute("INSERT INTO migrations VALUES ($1, now())", version)
    await connection.execute("COMMIT")


async def _applied(connection: Any, schema: str, known: int) -> int:
    tables = await connection.fetch(
        "SELECT c.relname, EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'applied_at') "
        "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname = $1 AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') LIMIT 1000",
        schema,
    )
    if not tables:
        return 0
    if ("migrations", True) not in map(tuple, tables):  # others have a table of that name, without our column
        raise MemoryStoreError(
            "unavailable", f"The schema {schema} holds tables of another application; nothing changed."
        )
    version = int(await connection.fetchval("SELECT max(version) FROM migrations"))
    if version > known:
        raise too_new(version, known)
    return version
