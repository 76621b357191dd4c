"""Migrations."""

from __future__ import annotations

import sqlite3

import pytest

from memshelf import MemoryStoreError
from memshelf.storage import migrations
from memshelf.storage.migrations import migrate


@pytest.fixture
def connection(tmp_path):
    connection = sqlite3.connect(tmp_path / "some.db", isolation_level=None)
    yield connection
    connection.close()


def begin(connection):
    connection.execute("BEGIN IMMEDIATE")


def schema(connection):
    return connection.execute("SELECT sql FROM sqlite_master ORDER BY name").fetchall()


def add_step(monkeypatch, step):
    steps = (*migrations.steps("sqlite"), step)
    monkeypatch.setattr(migrations, "steps", lambda _: steps)


def test_a_new_database_gets_the_newest_schema_and_the_next_start_changes_nothing(connection):
    migrate(connection, begin)
    before = schema(connection)
    assert before
    assert connection.execute("PRAGMA user_version").fetchone() == (len(migrations.steps("sqlite")),)
    migrate(connection, lambda _: pytest.fail("nothing was left to do"))
    assert schema(connection) == before


def test_the_schema_of_a_newer_memshelf_is_refused(connection):
    migrate(connection, begin)
    connection.execute("PRAGMA user_version = 1000")
    with pytest.raises(MemoryStoreError, match=r"schema 1000.*upgrade") as refused:
        migrate(connection, begin)
    assert refused.value.code == "unavailable"


@pytest.mark.parametrize("mark", ["CREATE TABLE files (x)", "PRAGMA user_version = 1"])
def test_another_applications_database_is_refused_and_left_alone(connection, mark):
    connection.execute(mark)
    before = schema(connection)
    with pytest.raises(MemoryStoreError, match="another application"):
        migrate(connection, begin)
    assert schema(connection) == before


def test_a_migration_that_fails_leaves_the_schema_as_it_was(connection, monkeypatch):
    migrate(connection, begin)
    before, (steps,) = schema(connection), connection.execute("PRAGMA user_version").fetchone()
    add_step(
        monkeypatch,
        "CREATE TABLE extra (x);\n-- one; two\nINSERT INTO extra\nVALUES (1);\nINSERT INTO nowhere VALUES (1);",
    )
    with pytest.raises(sqlite3.OperationalError, match="nowhere"):
        migrate(connection, begin)
    assert schema(connection) == before
    assert connection.execute("PRAGMA user_version").fetchone() == (steps,)


def test_steps_that_an_older_memshelf_did_not_know_are_applied_to_its_database(connection, monkeypatch):
    migrate(connection, begin)
    (steps,) = connection.execute("PRAGMA user_version").fetchone()
    add_step(monkeypatch, "CREATE TABLE extra (x);")
    migrate(connection, begin)
    assert connection.execute("SELECT count(*) FROM extra").fetchone() == (0,)
    assert connection.execute("PRAGMA user_version").fetchone() == (steps + 1,)


def test_a_start_that_waited_for_another_finds_the_work_done(connection, tmp_path):
    def begin_late(waiting):
        other = sqlite3.connect(tmp_path / "some.db", isolation_level=None)
        migrate(other, begin)
        other.close()
        begin(waiting)

    migrate(connection, begin_late)
    assert connection.execute("SELECT count(*) FROM erasures").fetchone() == (1,)


def test_an_older_database_learns_where_its_files_have_stood(connection, monkeypatch):
    steps = migrations.steps("sqlite")
    monkeypatch.setattr(migrations, "steps", lambda _: steps[:3])
    migrate(connection, begin)
    connection.execute(
        "INSERT INTO memories (id, name, epoch, head_seq, head_link, created_at) VALUES (1, 'm', 'e', 3, '', 0)"
    )
    for seq, path in ((1, "a"), (2, "a"), (3, "b"), (4, None)):
        connection.execute(
            "INSERT INTO file_versions (memory_id, seq, id, file_id, operation, moved, path, commitment, link, "
            "created_at) VALUES (1, ?, ?, 'f', 'modified', 0, ?, '', '', 0)",
            (seq, str(seq), path),
        )
    monkeypatch.setattr(migrations, "steps", lambda _: steps)
    migrate(connection, begin)
    assert connection.execute("SELECT * FROM file_places").fetchall() == [(1, "a", "f"), (1, "b", "f")]
