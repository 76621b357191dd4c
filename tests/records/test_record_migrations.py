"""Records that an older memshelf wrote."""

from __future__ import annotations

import sqlite3
from contextlib import closing

from memshelf import Origin, SqliteRecordStore
from memshelf.storage import migrations

_BEFORE_ORIGINS = 4


def _older_database(path):
    with closing(sqlite3.connect(path)) as database:
        for step in migrations.steps("sqlite")[:_BEFORE_ORIGINS]:
            database.executescript(step)
        database.execute(f"PRAGMA application_id = {migrations.APPLICATION_ID}")
        database.execute(f"PRAGMA user_version = {_BEFORE_ORIGINS}")
        database.execute("INSERT INTO record_namespaces VALUES (1, 'default', 'recs_1', 2, 2, 0)")
        for position, run_id in ((1, None), (2, "run")):
            database.execute(
                "INSERT INTO records (namespace_id, position, changed, id, at, updated_at, run_id, analysis, asks, "
                "terms, text) VALUES (1, ?, ?, ?, 0, 0, ?, 0, 0, x'', ?)",
                (position, position, f"rec_{position}", run_id, b"the user drinks green tea"),
            )
        database.commit()


async def test_records_without_kinds_of_origin_are_read_found_and_updated(tmp_path):
    _older_database(tmp_path / "records.db")
    async with SqliteRecordStore(tmp_path / "records.db", embedder=None) as store:
        records = (await store.list(limit=5)).records
        assert [record.origin for record in records] == [None, Origin("run")]
        await store.reindex()
        updated = await store.update("rec_1", "the user drinks green tea", origin=Origin(kind="user"))
        assert updated.origin == Origin(kind="user")
        assert [record.id for record in await store.search("green tea", limit=5)] == ["rec_1", "rec_2"]
