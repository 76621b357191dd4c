"""Redaction and purge leave no byte behind; what remains still verifies."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import subprocess
import time
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from memshelf import MemoryStoreError, Origin, SqliteFileStore
from memshelf.storage import sqlite_connection, sqlite_writer
from memshelf.testing import refused

ORIGIN = Origin("run", "ann", None)


@pytest.fixture
async def store(tmp_path):
    async with SqliteFileStore(tmp_path / "memory.db", durable=False) as store:
        yield store


def raw(place):
    """Every byte of the database's files. Another process reads them: closing a file drops this process's locks."""
    files = sorted(str(file) for file in place.iterdir())
    assert any(file.endswith("-wal") for file in files)
    return subprocess.run(["cat", *files], capture_output=True, check=True).stdout


def windows(text, width=16):
    """Pieces of a text such that any long stretch of it contains one."""
    data = text.encode()
    return [data[start : start + width] for start in range(0, len(data) - width, width)]


def noise(source, length):
    return "".join(source.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=length))


async def delete(store, path):
    await store.delete(path, expected=(await store.read(path)).version, origin=ORIGIN)


@pytest.mark.parametrize("length", [20, 4000, 60_000])
async def test_no_byte_of_a_redacted_version_is_left(store, tmp_path, length):
    source = random.Random(length)
    secret, path = noise(source, length), f"private/{noise(source, 40)}.md"
    first = await store.write(path, secret, expected=None, origin=ORIGIN)
    sha256 = (await store.read_version(first)).sha256
    await store.write("other", "tea", expected=None, origin=ORIGIN)
    await delete(store, path)
    assert windows(secret)[0] in raw(tmp_path)
    for version in (await store.versions(path)).versions:
        await store.redact(version.id, by="ann")
    left = raw(tmp_path)
    for trace in (*windows(secret), *windows(path), sha256.encode()):
        assert trace not in left
    assert (await store.verify()).intact
    assert [entry.path for entry in await store.list()] == ["other"]


async def test_no_byte_is_left_after_pages_were_split_and_merged(store, tmp_path):
    # Zeroing what is deleted does not suffice here: rearranged pages keep stale copies of rows.
    source = random.Random(5)
    live, secrets = {}, []

    async def create():
        path, text = f"dir{source.randrange(30)}/{noise(source, source.randrange(20, 200))}", noise(source, 32)
        text += f"\n{noise(source, 16)}" * source.choice([0, 4, 100, 300])
        live[path] = (await store.write(path, text, expected=None, origin=ORIGIN), text)

    async def forget():
        path = source.choice(sorted(live))
        version, text = live.pop(path)
        await store.delete(path, expected=version, origin=ORIGIN)
        secrets.append((path, text))

    for _ in range(1200):
        await (forget() if live and source.random() < 0.45 else create())
    versions = [version.id for path, _ in secrets[:-1] for version in (await store.versions(path)).versions]

    def redact_all(connection):
        for each in versions:
            connection.execute(
                "UPDATE file_versions SET path = NULL, sha256 = NULL, size = NULL, salt = NULL, content = NULL, "
                "redacted_at = 1 WHERE id = ?",
                (each,),
            )
        connection.execute(
            "DELETE FROM file_places WHERE NOT EXISTS "
            "(SELECT 1 FROM file_versions v WHERE v.file_id = file_places.file_id AND v.path = file_places.path)"
        )

    await store._engine.database.write(redact_all)  # what so many redactions do to the rows, without the rewriting
    for version in (await store.versions(secrets[-1][0])).versions:
        await store.redact(version.id, by="ann")
    left = raw(tmp_path)
    found = [trace for path, text in secrets for trace in (path.encode()[-16:], text.encode()[:32]) if trace in left]
    assert found == []
    assert all(text.encode()[:32] in left for _, text in live.values())
    assert (await store.verify()).intact


async def test_a_purge_leaves_no_byte_and_no_other_memory_changed(store, tmp_path):
    async with SqliteFileStore(tmp_path / "memory.db", "default%", durable=False) as other:
        kept = await other.write("a", "what the other memory holds", expected=None, origin=ORIGIN)
        cursor = (await other.changes(None)).cursor
        secret = noise(random.Random(1), 10_000)
        for each in range(20):
            await store.write(f"a/{each}", f"{secret}{each}", expected=None, origin=ORIGIN)
        await store.purge()
        left = raw(tmp_path)
        assert not any(trace in left for trace in windows(secret))
        assert (await other.read("a")).version == kept
        assert (await other.changes(cursor)).paths == ()
        assert (await other.verify()).versions == 1
        assert await store.list() == []
        assert (await store.verify()).versions == 0


@contextmanager
def another_reader(place):
    """A connection that holds a snapshot, as another process might."""
    connection = sqlite3.connect(place / "memory.db", isolation_level=None)
    connection.execute("BEGIN")
    connection.execute("SELECT count(*) FROM files").fetchone()
    yield
    connection.close()


async def test_a_reader_in_the_way_makes_a_redaction_unfinished_and_a_second_one_finishes_it(
    store, tmp_path, monkeypatch
):
    first = await store.write("a", "secret words of the past", expected=None, origin=ORIGIN)
    await store.write("a", "now", expected=first, origin=ORIGIN)
    passed = 0
    clock = SimpleNamespace(monotonic=lambda: time.monotonic() + passed, sleep=time.sleep)
    monkeypatch.setattr(sqlite_writer, "time", clock)
    with another_reader(tmp_path):
        redacting = asyncio.ensure_future(store.redact(first, by="ann"))
        await store.write("b", "others go on meanwhile", expected=None, origin=ORIGIN)
        assert not redacting.done()
        passed = sqlite_connection.PATIENCE
        error = await refused("unavailable", redacting)
        assert "bytes of it may remain" in error.message
        assert "another process" in error.message
        assert (await store.read_version(first)).text is None
        assert b"secret words" in raw(tmp_path)
    redacted = await store.redact(first, by="eve")
    assert redacted.redacted_by == "ann"
    assert b"secret words" not in raw(tmp_path)


async def test_a_redaction_that_waits_for_a_reader_ends_when_the_reader_does(store, tmp_path):
    first = await store.write("a", "secret words of the past", expected=None, origin=ORIGIN)
    await store.write("a", "now", expected=first, origin=ORIGIN)
    with another_reader(tmp_path):
        redacting = asyncio.ensure_future(store.redact(first, by="ann"))
        await store.write("b", "others go on meanwhile", expected=None, origin=ORIGIN)
        assert not redacting.done()
    await redacting
    assert b"secret words" not in raw(tmp_path)


async def test_an_unfinished_erasure_is_finished_by_the_next_one_of_any_memory(store, tmp_path):
    await store.write("a", "secret words of the past", expected=None, origin=ORIGIN)
    # As if the process had died between the deletion and the rewriting.
    for change in (
        "DELETE FROM files",
        "DELETE FROM file_places",
        "DELETE FROM file_versions",
        "UPDATE erasures SET wanted = wanted + 1",
    ):
        await store._engine.database.write(lambda connection, change=change: connection.execute(change))
    assert b"secret words" in raw(tmp_path)
    async with SqliteFileStore(tmp_path / "memory.db", "other", durable=False) as other:
        await other.purge()
    assert b"secret words" not in raw(tmp_path)


async def test_a_redaction_that_is_refused_erases_nothing(store):
    version = await store.write("a", "tea", expected=None, origin=ORIGIN)
    await refused("forbidden", store.redact(version, by="ann"))
    await refused("not_found", store.redact("memver_unknown", by="ann"))
    assert (await store.read("a")).text == "tea"


async def test_many_redactions_at_once_share_the_rewriting(store):
    versions = [await store.write("a", "0", expected=None, origin=ORIGIN)]
    for each in range(1, 30):
        versions.append(await store.write("a", str(each), expected=versions[-1], origin=ORIGIN))
    statements = []
    await store._engine.database.write(lambda connection: connection.set_trace_callback(statements.append))
    await asyncio.gather(*(store.redact(version, by="ann") for version in versions[:-1]))
    assert 0 < statements.count("VACUUM") < 15
    assert [version.text for version in (await store.versions()).versions] == ["29"] + [None] * 29


async def test_an_erasure_that_fails_for_want_of_space_says_that_bytes_may_remain(store):
    first = await store.write("a", "secret words of the past", expected=None, origin=ORIGIN)
    await store.write("a", "now", expected=first, origin=ORIGIN)

    def fail(action, *_):
        return sqlite3.SQLITE_DENY if action == sqlite3.SQLITE_ATTACH else sqlite3.SQLITE_OK  # as VACUUM begins

    await store._engine.database.write(lambda connection: connection.set_authorizer(fail))
    error = await refused("unavailable", store.redact(first, by="ann"))
    assert "bytes of it may remain" in error.message
    await store._engine.database.write(lambda connection: connection.set_authorizer(None))
    await store.redact(first, by="ann")


async def test_a_replay_of_a_redacted_call_is_refused_and_writes_nothing(store):
    call = Origin("run", "ann", "call")
    first = await store.write("a", "secret", expected=None, origin=call)
    await store.write("a", "now", expected=first, origin=ORIGIN)
    await store.redact(first, by="ann")
    with pytest.raises(MemoryStoreError) as error:
        await store.write("a", "secret", expected=None, origin=call)
    assert error.value.code == "forbidden"
    assert (await store.read("a")).text == "now"
