"""What the PostgreSQL store keeps beside its files, and what it lets go for good."""

from __future__ import annotations

import asyncio
import re
import secrets

import asyncpg
import pytest

from memshelf import HistoryFileStore, Origin, PostgresFileStore, SearchableFileStore, SqliteFileStore
from memshelf.storage import postgres_connection, postgres_migrations
from memshelf.storage.ids import Mint, from_micros
from memshelf.testing import refused

ORIGIN = Origin("run", "ann", None)


@pytest.fixture
def schema():
    return f"test_{secrets.token_hex(6)}"


@pytest.fixture
async def store(postgres_server, schema):
    async with PostgresFileStore(postgres_server.dsn, schema=schema) as store:
        yield store


@pytest.fixture
async def intruder(postgres_server, schema):
    """A connection of somebody else to the same tables."""
    connection = await asyncpg.connect(postgres_server.dsn, server_settings={"search_path": schema})
    yield connection
    await connection.close()


def test_it_is_every_kind_of_file_store():
    store = PostgresFileStore("postgresql://nowhere/none")  # nothing is opened before it is used
    assert isinstance(store, SearchableFileStore)
    assert isinstance(store, HistoryFileStore)


async def some_history(store):
    first = await store.write("a", "one", expected=None, origin=ORIGIN)
    await store.write("a", "two", expected=first, origin=ORIGIN)
    third = await store.write("b", "three", expected=None, origin=ORIGIN)
    await store.move("b", "c", expected=third, origin=ORIGIN)
    fifth = await store.write("d", "four", expected=None, origin=ORIGIN)
    await store.delete("d", expected=fifth, origin=ORIGIN)


@pytest.mark.parametrize(
    ("tampering", "says"),
    [
        ("UPDATE file_versions SET content = 'won' WHERE seq = 1", "version 1 .*other content"),
        ("UPDATE file_versions SET session_id = 'other' WHERE seq = 3", "version 3 .*does not follow"),
        ("DELETE FROM file_versions WHERE seq > 4", "versions 5 to 6 are missing"),
        ("UPDATE files SET path = 'z' WHERE path = 'a'", "live files do not agree"),
        ("DELETE FROM files WHERE path = 'c'", "live files do not agree"),
    ],
)
async def test_tampering_with_the_database_shows(store, intruder, tampering, says):
    await some_history(store)
    assert (await store.verify()).problems == ()
    await intruder.execute(tampering)
    report = await store.verify()
    assert any(re.search(says, problem) for problem in report.problems), report.problems


async def test_a_history_is_the_same_as_one_that_sqlite_keeps(store, tmp_path):
    def replayed():
        ticks = iter(range(1_700_000_000_000_000, 1_800_000_000_000_000))
        return Mint(clock=lambda: from_micros(next(ticks)), random=lambda count: bytes([7]) * count)

    async with SqliteFileStore(tmp_path / "memory.db", durable=False, mint=replayed()) as other:
        store._mint = replayed()
        await store.purge()
        await other.purge()
        for each in (store, other):
            each._mint = replayed()
            await some_history(each)
        assert (await store.verify()).head == (await other.verify()).head
        assert await store.versions() == await other.versions()


async def test_many_stores_of_one_database_share_commits_and_never_see_each_other(postgres_server, schema):
    names = ["user1", "user10", "user%", "用户", "USER1"]
    stores = [PostgresFileStore(postgres_server.dsn, name, schema=schema) for name in names]
    call = Origin("run", "ann", "call")
    versions = await asyncio.gather(
        *(store.write("a", name, expected=None, origin=call) for name, store in zip(names, stores, strict=True))
    )
    for store, name in zip(stores, names, strict=True):
        assert (await store.read("a")).text == name
        others = [version for version in versions if version != (await store.read("a")).version]
        assert len(others) == len(names) - 1
        await refused("not_found", store.read_version(others[0]))
    for store in stores:
        await store.aclose()


@pytest.mark.parametrize("by", ["a\x00b", "\ud800"])
async def test_a_name_that_the_database_cannot_hold_is_a_mistake(store, by):
    version = await store.write("a", "tea", expected=None, origin=ORIGIN)
    await store.delete("a", expected=version, origin=ORIGIN)
    with pytest.raises(ValueError, match="principal_id"):
        await store.redact(version, by=by)


# Erasure


async def dead_rows(intruder):
    """The rows that no query shows but the files of the database still hold, as text."""
    await intruder.execute("CREATE EXTENSION IF NOT EXISTS pageinspect SCHEMA pg_catalog")
    found = []
    for table in ("file_versions", "file_places", "files"):
        toast = await intruder.fetchval(
            "SELECT reltoastrelid::regclass::text FROM pg_class WHERE oid = $1::regclass", table
        )
        for relation in (table, toast):
            pages = await intruder.fetchval("SELECT pg_relation_size($1::regclass) / 8192", relation)
            for page in range(pages):
                query = "SELECT t_data FROM heap_page_items(get_raw_page($1, $2)) WHERE t_data IS NOT NULL"
                found += [row["t_data"] for row in await intruder.fetch(query, relation, page)]
    return b"\n".join(found)


async def index_entries(intruder):
    found = []
    for index in ("file_places_pkey", "files_pkey"):
        pages = await intruder.fetchval("SELECT pg_relation_size($1::regclass) / 8192", index)
        for page in range(1, pages):
            query = "SELECT data FROM bt_page_items($1, $2)"
            found += [
                bytes.fromhex((row["data"] or "").replace(" ", "")) for row in await intruder.fetch(query, index, page)
            ]
    return b"\n".join(found)


async def has_pageinspect(intruder):
    return await intruder.fetchval("SELECT count(*) FROM pg_available_extensions WHERE name = 'pageinspect'")


@pytest.mark.parametrize("erase", ["redact", "purge"])
async def test_no_row_and_no_index_entry_of_what_was_erased_is_left(store, intruder, erase):
    if not await has_pageinspect(intruder):
        pytest.skip("This server cannot show the insides of its pages.")
    secret = secrets.token_hex(20_000)  # too much for one page, and it does not compress well
    short = await store.write("hidden-place", "hidden-words", expected=None, origin=ORIGIN)
    long = await store.write("hidden-place", secret, expected=short, origin=ORIGIN)
    await store.delete("hidden-place", expected=long, origin=ORIGIN)
    await store.write("kept", "kept-words", expected=None, origin=ORIGIN)
    before = await dead_rows(intruder)
    assert b"hidden-words" in before
    assert b"hidden-place" in await index_entries(intruder)
    if erase == "redact":
        for version in (await store.versions("hidden-place")).versions:
            await store.redact(version.id, by="ann")
    else:
        await store.purge()
    rows = await dead_rows(intruder)
    assert b"hidden" not in rows
    assert b"hidden" not in await index_entries(intruder)
    assert len(rows) < len(secret) / 2
    assert (b"kept-words" in rows) == (erase == "redact")
    assert (await store.verify()).intact


async def test_a_reader_in_the_way_makes_a_redaction_unfinished_and_a_second_one_finishes_it(
    store, intruder, monkeypatch
):
    monkeypatch.setattr(postgres_connection, "PATIENCE", 0.2)
    first = await store.write("a", "hidden words of the past", expected=None, origin=ORIGIN)
    await store.write("a", "now", expected=first, origin=ORIGIN)
    async with intruder.transaction(isolation="repeatable_read"):
        await intruder.fetch("SELECT 1 FROM files")
        redacting = asyncio.ensure_future(store.redact(first, by="ann"))
        await store.write("b", "others go on meanwhile", expected=None, origin=ORIGIN)
        error = await refused("unavailable", redacting)
        assert "another transaction still sees them" in error.message
        assert "Call this again" in error.message
        assert (await store.read_version(first)).text is None
        assert await intruder.fetchval("SELECT wanted - done FROM erasures") == 0  # as its snapshot has it
    assert await intruder.fetchval("SELECT wanted - done FROM erasures") == 1
    monkeypatch.undo()
    assert (await store.redact(first, by="eve")).redacted_by == "ann"
    assert await intruder.fetchval("SELECT wanted - done FROM erasures") == 0


async def test_many_redactions_at_once_share_the_vacuuming(store, intruder):
    versions = [await store.write("a", "0", expected=None, origin=ORIGIN)]
    for each in range(1, 20):
        versions.append(await store.write("a", str(each), expected=versions[-1], origin=ORIGIN))
    await asyncio.gather(*(store.redact(version, by="ann") for version in versions[:-1]))
    assert [version.text for version in (await store.versions()).versions] == ["19"] + [None] * 19
    assert await intruder.fetchrow("SELECT wanted, done FROM erasures") == (19, 19)


# Migrations


async def test_the_schema_of_a_newer_memshelf_is_refused(postgres_server, store, schema, intruder):
    await store.write("a", "tea", expected=None, origin=ORIGIN)
    await intruder.execute("INSERT INTO migrations VALUES (1000, now())")
    await store.aclose()
    for operation in (store.read("a"), store.write("b", "tea", expected=None, origin=ORIGIN)):
        error = await refused("unavailable", operation)
        assert "schema 1000" in error.message
        assert "upgrade" in error.message
    assert await intruder.fetchval("SELECT count(*) FROM files") == 1


@pytest.mark.parametrize("table", ["files", "migrations", "something"])
async def test_tables_of_another_application_are_refused_and_left_alone(postgres_server, schema, intruder, table):
    await intruder.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {table} (x int)")
    store = PostgresFileStore(postgres_server.dsn, schema=schema)
    error = await refused("unavailable", store.write("a", "tea", expected=None, origin=ORIGIN))
    assert "another application" in error.message
    assert await intruder.fetchval("SELECT count(*) FROM pg_tables WHERE schemaname = $1", schema) == 1
    await store.aclose()


async def test_a_migration_that_fails_leaves_nothing(postgres_server, schema, intruder, monkeypatch):
    steps = postgres_migrations.steps("postgres")
    monkeypatch.setattr(postgres_migrations, "steps", lambda _: (*steps, "CREATE TABLE extra (x int); SELECT nothing"))
    store = PostgresFileStore(postgres_server.dsn, schema=schema)
    await refused("unavailable", store.write("a", "tea", expected=None, origin=ORIGIN))
    assert await intruder.fetchval("SELECT to_regnamespace($1)", schema) is None
    monkeypatch.setattr(postgres_migrations, "steps", lambda _: (*steps, "CREATE TABLE extra (x int)"))
    await store.write("a", "tea", expected=None, origin=ORIGIN)
    assert await intruder.fetchval("SELECT max(version) FROM migrations") == len(steps) + 1
    await store.aclose()
