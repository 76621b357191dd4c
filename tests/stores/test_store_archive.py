"""Imports of a store on PostgreSQL: while others import the same one, and of many memories."""

from __future__ import annotations

import asyncio
import hashlib
import io

import asyncpg
import pytest

from memshelf.errors import MemoryStoreError
from memshelf.files import archive
from memshelf.files.archive import Header
from memshelf.origin import Origin
from memshelf.service.accounts import Accounts
from memshelf.storage.postgres import PostgresEngine
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.stores.archive import PastOf, import_store, valid_path
from memshelf.stores.catalogue import Stores
from memshelf.stores.memories import Memories
from memshelf.stores.shelf import Shelf
from memshelf.stores.verification import verified


@pytest.fixture
def database(postgres_server):
    return postgres_server.new_database()


async def archived(engine, files=0):
    """The archive of a new store with three versions of a memory, and so many other memories."""
    shelf, accounts = Shelf(engine), Accounts(engine)
    workspace = await accounts.make_workspace("default")
    store = await Stores(shelf, workspace).create("Notes")
    memories = Memories(shelf, workspace, store.id)
    memory = await memories.create("/a.md", "one", origin=Origin(api_key_id="apikey_1"))
    for content in ("two", "three"):
        await memories.update(memory.id, content=content, origin=Origin(api_key_id="apikey_1"))
    await asyncio.gather(*(memories.create(f"/{n}.md", f"# {n}", origin=Origin()) for n in range(files)))
    head, created_at, versions = await PastOf(shelf, workspace, store.id).page(0, 10 + files)
    fields = {
        "id": store.id,
        "name": store.name,
        "description": store.description,
        "metadata": {},
        "created_at": store.created_at.isoformat(),
        "updated_at": store.updated_at.isoformat(),
        "archived_at": None,
    }
    lines = [archive.header_json(Header(head.epoch, created_at, fields)), *map(archive.version_json, versions)]
    data = b"".join(map(archive.line_of, lines))
    hash = hashlib.sha256(data).hexdigest()
    return store.id, data + archive.line_of(archive.end_json(len(versions), head.link, hash))


async def brought_in(dsn, workspace, data):
    """Import an archive with connections of its own: what was added, or why nothing was."""

    async def bring():
        engine = PostgresEngine(dsn)
        try:
            workspace_id = await Accounts(engine).make_workspace(workspace)
            checked = archive.checked(io.BytesIO(data), valid_path)
            _, imported = await import_store(
                Shelf(engine), workspace_id, checked, lambda: archive.versions_of(io.BytesIO(data), checked)
            )
            return imported.added, imported.present
        except MemoryStoreError as error:
            return error.code
        finally:
            await engine.aclose()

    return await asyncio.to_thread(asyncio.run, bring())


async def at_once(dsn, *imports):
    """Run imports so that each has looked whether the store is there before any of them writes."""
    connection, watching = await asyncpg.connect(dsn), await asyncpg.connect(dsn)
    try:
        async with asyncio.timeout(60):
            async with connection.transaction():
                await connection.execute("LOCK TABLE memshelf.memories IN SHARE MODE")
                running = [asyncio.create_task(brought_in(dsn, *each)) for each in imports]
                while await watching.fetchval(_WAITING) < len(imports):
                    assert not any(task.done() for task in running)
            return await asyncio.gather(*running)
    finally:
        await connection.close()
        await watching.close()


_WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'memshelf.memories'::regclass"


@pytest.fixture
async def packed(database, tmp_path):
    """A store's id and archive, and a database that has its workspaces but not the store."""
    source = SqliteEngine(tmp_path / "source.db", durable=False)
    id, data = await archived(source)
    await source.aclose()
    engine = PostgresEngine(database)
    for name in ("default", "other"):
        await Accounts(engine).make_workspace(name)
    await engine.aclose()
    return id, data


async def test_two_imports_at_once_bring_in_one_store(database, packed):
    id, data = packed
    answers = await at_once(database, ("default", data), ("default", data))
    assert sorted(answers) == [(0, 3), (3, 0)]
    engine = PostgresEngine(database)
    report = await verified(engine, id)
    assert (report.intact, report.versions) == (True, 3)
    await engine.aclose()


async def test_of_two_workspaces_that_import_a_store_at_once_one_gets_it(database, packed):
    _, data = packed
    answers = await at_once(database, ("default", data), ("other", data))
    assert sorted(answers, key=str) == [(3, 0), "conflict"]


_READ = "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables"


async def test_an_import_reads_each_version_a_few_times_whatever_the_server_knows_of_its_tables(database, tmp_path):
    source = SqliteEngine(tmp_path / "source.db", durable=False)
    id, data = await archived(source, files=1_000)
    await source.aclose()
    engine = PostgresEngine(database)
    await archived(engine)
    await engine.aclose()
    connection = await asyncpg.connect(database)
    await connection.execute("ANALYZE")  # now it knows of one store that all versions are of
    before = await connection.fetchval(_READ)
    assert await brought_in(database, "default", data) == (1_003, 0)
    assert await connection.fetchval(_READ) - before < 20_000
    await connection.close()
    engine = PostgresEngine(database)
    workspace = await Accounts(engine).make_workspace("default")
    report = await verified(engine, id)
    assert (report.intact, report.problems) == (True, ())
    page = await Memories(Shelf(engine), workspace, id).page(limit=2_000, content=True)
    assert {memory.path: memory.content for memory in page.items} == {
        "/a.md": "three",
        **{f"/{n}.md": f"# {n}" for n in range(1_000)},
    }
    await engine.aclose()


async def test_an_import_sends_many_versions_at_once(database, tmp_path, monkeypatch):
    source = SqliteEngine(tmp_path / "source.db", durable=False)
    _, data = await archived(source, files=1_000)
    await source.aclose()
    asked = []
    for name in ("execute", "fetch", "fetchrow"):
        real = getattr(asyncpg.Connection, name)

        async def counted(*args, real=real, **options):
            asked.append(args[1])
            return await real(*args, **options)

        monkeypatch.setattr(asyncpg.Connection, name, counted)
    assert await brought_in(database, "default", data) == (1_003, 0)
    assert sum("file_versions" in sql for sql in asked) < 60
