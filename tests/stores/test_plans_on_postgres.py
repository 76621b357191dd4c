"""How many rows PostgreSQL reads for a page of a long history, whatever it knows of the tables: nothing at first, and
statistics later."""

from __future__ import annotations

import json
import secrets
from datetime import UTC, datetime

import asyncpg
import pytest
from workspace_of_tests import ORIGIN, WORKSPACE

from memshelf.storage.ids import from_micros
from memshelf.storage.postgres import PostgresEngine
from memshelf.storage.postgres_transaction import PostgresTransaction
from memshelf.stores import retention
from memshelf.stores.catalogue import Period, Stores
from memshelf.stores.files import StoreFiles
from memshelf.stores.history import History
from memshelf.stores.memories import Memories
from memshelf.stores.shelf import Shelf
from memshelf.stores.versions import VersionFilter, Versions

FILES, EACH, LONG = 1_000, 5, 5_000


class Database:
    """A store with many files, one of which has a long history."""

    def __init__(self, shelf: Shelf, store: str, long: str, connection: asyncpg.Connection) -> None:
        self.shelf, self.store, self.long, self.connection = shelf, store, long, connection
        self.asked: list[tuple[str, tuple[object, ...]]] = []

    async def rows_read(self, call) -> int:
        """How many rows of tables and indexes the queries of a call look at."""
        self.asked.clear()
        await call()
        assert self.asked
        return sum([await self._explained(sql, values) for sql, values in self.asked])

    async def _explained(self, sql: str, values: tuple[object, ...]) -> int:
        explained = await self.connection.fetchval(f"EXPLAIN (ANALYZE, TIMING OFF, FORMAT JSON) {sql}", *values)
        return _rows(json.loads(explained)[0]["Plan"])


def _rows(node: dict) -> int:
    own = 0
    if "Relation Name" in node or "Index Name" in node:
        seen = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
        own = seen * node["Actual Loops"]
    return own + sum(_rows(below) for below in node.get("Plans", ()))


@pytest.fixture
async def database(postgres_server, monkeypatch):
    schema = f"plans_{secrets.token_hex(6)}"
    shelf = Shelf(PostgresEngine(postgres_server.dsn, schema))
    await shelf.engine.write(
        lambda transaction: transaction.execute("INSERT INTO workspaces VALUES ($1, $2, 0)", WORKSPACE, "default")
    )
    store = (await Stores(shelf, WORKSPACE).create("Notes")).id
    long = (await Memories(shelf, WORKSPACE, store).create("/zz/long.md", "x", origin=ORIGIN)).id
    connection = await asyncpg.connect(postgres_server.dsn, server_settings={"search_path": schema})
    memory = await connection.fetchval("SELECT memory_id FROM stores WHERE id = $1", store)
    versions = (
        "INSERT INTO file_versions (memory_id, seq, id, file_id, operation, moved, path, commitment, link, created_at, "
        "content, size) SELECT $1, 1 + n, 'memver_' || n, {file}, 'modified', 0, {path}, '', '', n, 'x', 1 "
        "FROM generate_series({first}, {last}) n"
    )
    last = FILES * EACH
    name = f"lpad((n % {FILES})::text, 4, '0')"
    file, path = f"'mem_' || {name}", f"'d/' || {name}"
    await connection.execute(versions.format(file=file, path=path, first=1, last=last), memory)
    of_long = versions.format(file=f"'{long}'", path="'zz/long.md'", first=last + 1, last=last + LONG)
    await connection.execute(of_long, memory)
    await connection.execute(
        "INSERT INTO file_places SELECT DISTINCT memory_id, path, file_id FROM file_versions ON CONFLICT DO NOTHING"
    )
    await connection.execute("UPDATE memories SET head_seq = $2 WHERE id = $1", memory, 1 + last + LONG)
    database = Database(shelf, store, long, connection)
    fetch = PostgresTransaction.fetch

    async def watched(transaction, sql, *values):
        if "file_versions" in sql:
            database.asked.append((sql, values))
        return await fetch(transaction, sql, *values)

    monkeypatch.setattr(PostgresTransaction, "fetch", watched)
    yield database
    await connection.close()
    await shelf.engine.aclose()


@pytest.mark.parametrize("statistics", [False, True])
async def test_a_page_reads_little_more_than_what_is_on_it(database, statistics):
    if statistics:
        await database.connection.execute("ANALYZE")
    at = (database.shelf, WORKSPACE, database.store)
    versions, history, files = Versions(*at), History(*at), StoreFiles(*at)
    one, early = VersionFilter(memory_id=database.long), from_micros(FILES * EACH // 2)
    recent = VersionFilter(memory_id=database.long, period=Period(since=from_micros(1)))
    moment = datetime.now(UTC)
    first = (await versions.page(limit=10, where=one)).next_page
    at_moment = (await history.at(moment, limit=10)).next_page
    at_early = (await history.at(early, limit=10)).next_page
    named = (await files.versions("zz/long.md", None, 10, None)).next_cursor
    epoch, _, seq = (await files.changes(None)).cursor.rpartition(":")
    pages = {
        "memory": lambda: versions.page(limit=10, where=one, content=True),
        "memory, later": lambda: versions.page(limit=10, where=one, page=first),
        "memory, since": lambda: versions.page(limit=10, where=recent),
        "path": lambda: files.versions("zz/long.md", None, 10, None),
        "path, later": lambda: files.versions("zz/long.md", from_micros(1), 10, named),
        "moment": lambda: history.at(moment, limit=10, content=True),
        "moment, later": lambda: history.at(moment, limit=10, page=at_moment),
        "early, later": lambda: history.at(early, limit=10, page=at_early),
        "changes": lambda: files.changes(f"{epoch}:{int(seq) - 10}"),
    }
    read = {name: await database.rows_read(page) for name, page in pages.items()}
    assert max(read.values()) <= 80, read


@pytest.mark.parametrize("statistics", [False, True])
async def test_looking_for_stores_with_old_versions_reads_one_of_each(database, statistics):
    await database.connection.execute(
        "INSERT INTO memories (name, epoch, head_seq, head_link, created_at) "
        "SELECT 'empty_' || n, '', 0, '', 0 FROM generate_series(1, 100) n"
    )
    await database.connection.execute(
        "INSERT INTO stores (id, workspace_id, memory_id, name, description, metadata, created_at, updated_at) "
        "SELECT m.name, $1, m.id, '', '', '{}', 0, 0 FROM memories m WHERE m.name LIKE 'empty_%'",
        WORKSPACE,
    )
    if statistics:
        await database.connection.execute("ANALYZE")
    found = []

    async def look():
        found.extend([id async for id, _ in retention._with_old_versions(database.shelf, 1 << 60)])

    assert await database.rows_read(look) <= 300
    assert found == [database.store]
