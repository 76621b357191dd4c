"""What `SqliteRecordStore` promises beyond the contract: vectors, their models, failures, erasure, processes."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import subprocess
import sys
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from memshelf import MemoryStoreError, Origin, SqliteFileStore
from memshelf.records.backends.sqlite import SqliteRecordStore
from memshelf.records.model import NewRecord
from memshelf.records.retrieval import analysis
from memshelf.storage import sqlite_connection


def _rows(place: Path, sql: str) -> list[tuple]:
    with sqlite3.connect(place / "memory.db") as connection:
        rows = connection.execute(sql).fetchall()
    connection.close()
    return rows


def _change(place: Path, sql: str) -> None:
    with sqlite3.connect(place / "memory.db") as connection:
        connection.execute(sql)
    connection.close()


def _models(place: Path) -> dict[int, tuple[str, str, int]]:
    """Which model each record's vectors are of."""
    rows = _rows(place, "SELECT v.position, m.name, m.version, m.dimension FROM record_vectors v "
                        "JOIN embedding_models m ON m.id = v.model_id")  # fmt: skip
    return {position: tuple(model) for position, *model in rows}


@pytest.mark.parametrize(
    "failure",
    [MemoryStoreError("unavailable", "The endpoint is down."), RuntimeError("quokka"), OSError(), KeyError("quokka")],
    ids=lambda failure: type(failure).__name__,
)
async def test_a_failing_embedder_loses_no_record_and_is_said_once(tmp_path, hashing, failure, caplog):
    embedder = hashing()
    embedder.failure = failure
    with caplog.at_level(logging.WARNING):
        async with SqliteRecordStore(tmp_path / "memory.db", embedder=embedder) as store:
            for each in range(3):
                await store.add(f"the quokka likes marmalade {each}")
            assert len(await store.search("quokka", limit=5)) == 3
            assert [record.levelname for record in caplog.records] == ["WARNING"]
            assert "quokka" not in caplog.text
            await _code("unavailable", store.reindex())
            embedder.failure = None
            await store.reindex()
    assert len(_models(tmp_path)) == 3


@pytest.mark.parametrize("model", [None, "hashing"])
async def test_a_store_that_has_seen_much_finds_what_one_that_was_just_opened_finds(tmp_path, hashing, model):
    def opened():
        return SqliteRecordStore(tmp_path / "memory.db", embedder=hashing() if model else None)

    words = ["tea", "coffee", "milk", "juice", "water"]
    async with opened() as store:
        added = []
        for each in range(40):
            thread = f"t{each % 3}" if each % 2 else None
            text = f"{words[each % 5]} with {words[each % 3]} {words[each % 4]} {each}"
            added.append(await store.add(text, thread=thread))
            await store.search("tea", limit=5)
        for record in added[::3]:
            await store.delete(record.id)
        await store.update(added[1].id, "tea and water")
        async with opened() as fresh:
            for question in words:
                assert await store.search(question, limit=20) == await fresh.search(question, limit=20)


@pytest.mark.parametrize(
    "answer", [[], [[1.0] * 32] * 3, [[1.0] * 31] * 2, [[float("nan")] * 32] * 2, [[1e300] * 32] * 2]
)
async def test_an_answer_that_is_not_one_vector_a_text_is_no_vector(tmp_path, hashing, answer):
    embedder = hashing()
    embedder.answer = answer
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=embedder) as store:
        await store.add_many([NewRecord(text="the quokka"), NewRecord(text="the walrus")])
        assert [record.text for record in await store.search("walrus", limit=1)] == ["the walrus"]
    assert _models(tmp_path) == {}


async def test_a_search_sets_off_the_indexing_of_what_has_no_vectors(tmp_path, hashing):
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=None) as store:
        await store.add_many(NewRecord(text=f"the quokka likes marmalade {each}") for each in range(100))
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=hashing()) as store:
        assert len(await store.search("quokka", limit=5)) == 5
        assert store._filling is not None
        await store._filling
        assert len(_models(tmp_path)) == 100
        assert len(await store.search("quokka", limit=5)) == 5


@pytest.mark.parametrize(
    "change", [{"model": "another"}, {"version": "2"}, {"dimension": 48}], ids=["model", "version", "dimension"]
)
async def test_another_model_is_noticed_and_its_vectors_are_never_compared(tmp_path, hashing, change):
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=hashing()) as store:
        await store.add_many(NewRecord(text=f"record number {each}") for each in range(150))
    other = hashing(**change)
    seen = []
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=other) as store:
        await store._catch_up()
        assert store._recall.index.table.missing().all()
        await store.reindex(progress=lambda done, every: seen.append((done, every)))
        await store._catch_up()
        assert not store._recall.index.table.missing()[-150:].any()
    assert set(_models(tmp_path).values()) == {(other.model, other.version, other.dimension)}
    assert seen[0][1] == seen[-1][0] == seen[-1][1] == 150
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


async def test_indexing_goes_on_where_it_stopped(tmp_path, hashing, down):
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=None) as store:
        await store.add_many(NewRecord(text=f"record number {each}") for each in range(150))
    embedder = hashing()

    def stop(done: int, _: int) -> None:
        embedder.failure = down if done else None

    async with SqliteRecordStore(tmp_path / "memory.db", embedder=embedder) as store:
        await _code("unavailable", store.reindex(progress=stop))
        kept = len(_models(tmp_path))
        assert 0 < kept < 150
        embedder.failure = None
        seen = []
        await store.reindex(progress=lambda done, every: seen.append((done, every)))
        assert seen[0] == (kept, 150)
    assert sorted(embedder.embedded) == sorted(f"record number {each}" for each in range(150))


async def test_an_update_leaves_no_vector_of_the_old_text(tmp_path, hashing, down):
    embedder = hashing()
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=embedder) as store:
        record = await store.add("the quokka likes marmalade")
        before = _rows(tmp_path, "SELECT vectors FROM record_vectors")
        await store.update(record.id, "the walrus plays cribbage")
        after = _rows(tmp_path, "SELECT vectors FROM record_vectors")
        assert len(after) == 1
        assert after != before
        embedder.failure = down
        await store.update(record.id, "an owl")
        assert _rows(tmp_path, "SELECT vectors FROM record_vectors") == []
        await store.delete(record.id)
    assert _rows(tmp_path, "SELECT count(*) FROM records") == [(0,)]


async def test_records_of_an_older_analysis_are_analysed_again(tmp_path, hashing, monkeypatch):
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=None) as store:
        await store.add("the quokka likes marmalade", thread="chat")
    _change(tmp_path, "UPDATE records SET analysis = 0, terms = x''")
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=None) as store:
        assert await store.search("quokka", limit=5) == []
        await store._filling
        assert len(await store.search("quokka", limit=5)) == 1
    assert _rows(tmp_path, "SELECT analysis FROM records") == [(analysis.ANALYSIS,)]


async def test_records_that_are_analysed_again_keep_their_vectors(tmp_path, hashing):
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=hashing()) as store:
        await store.add_many(NewRecord(text=f"the quokka likes marmalade {each}", thread="chat") for each in range(150))
    before = _rows(tmp_path, "SELECT * FROM record_vectors")
    _change(tmp_path, "UPDATE records SET analysis = 0, terms = x''")
    _change(tmp_path, "DELETE FROM record_vectors WHERE position = 70")
    embedder, seen = hashing(), []
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=embedder) as store:
        assert await store.unindexed() == 150
        await store.reindex(progress=lambda done, every: seen.append((done, every)))
        assert (seen[0], seen[-1]) == ((0, 150), (150, 150))
        assert await store.unindexed() == 0
        assert (await store.search("marmalade 7", limit=1))[0].text == "the quokka likes marmalade 7"
    assert embedder.embedded == ["the quokka likes marmalade 69"]
    assert sorted(_rows(tmp_path, "SELECT * FROM record_vectors")) == sorted(before)


async def test_records_are_analysed_again_though_the_embedder_is_down(tmp_path, hashing, down):
    embedder = hashing()
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=embedder) as store:
        await store.add("the quokka likes marmalade")
    _change(tmp_path, "UPDATE records SET analysis = 0, terms = x''")
    embedder.failure = down
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=embedder) as store:
        await store.reindex()
        assert len(await store.search("quokka", limit=5)) == 1


async def test_what_a_newer_version_analysed_is_left_to_it(tmp_path, hashing):
    """Or two processes of different versions would analyse each other's records for ever."""
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=hashing()) as store:
        await store.add("the quokka likes marmalade")
        _change(tmp_path, f"UPDATE records SET analysis = {analysis.ANALYSIS + 1}")
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=hashing()) as store:
        assert await store.unindexed() == 0
        assert len(await store.search("quokka", limit=5)) == 1
        assert store._filling is None
        await store.reindex()
    assert _rows(tmp_path, "SELECT analysis FROM records") == [(analysis.ANALYSIS + 1,)]


async def test_vectors_of_other_passages_are_made_again(tmp_path, hashing, monkeypatch):
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=hashing()) as store:
        await store.add("the quokka likes marmalade")
    monkeypatch.setattr("memshelf.records.backends.sql.namespace.PASSAGES", 2)
    embedder = hashing()
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=embedder) as store:
        assert await store.unindexed() == 1
        await store.reindex()
    assert embedder.embedded == ["the quokka likes marmalade"]
    assert [version for _, version, _ in _models(tmp_path).values()] == ["1#2"]


async def test_a_purge_leaves_no_byte_of_text_words_or_vectors(tmp_path, hashing):
    async with SqliteRecordStore(tmp_path / "memory.db", "mine", embedder=hashing()) as mine:
        async with SqliteRecordStore(tmp_path / "memory.db", "theirs", embedder=hashing()) as theirs:
            kept = await theirs.add("the walrus plays cribbage")
            await mine.add_many(
                NewRecord(text=f"secret marmalade {each}", thread="secret-thread", origin=Origin("secret-run"))
                for each in range(200)
            )
            terms = [bytes(row[0]) for row in _rows(tmp_path, "SELECT terms FROM records WHERE thread IS NOT NULL")]
            await mine.search("marmalade", limit=5)
            await mine.purge()
            assert await mine.search("marmalade", limit=5) == []
            assert [found.id for found in await theirs.search("walrus", limit=5)] == [kept.id]
        data = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert b"cribbage" in data
    for trace in (b"marmalade", b"secret-thread", b"secret-run", *terms[:3]):
        assert trace not in data


async def test_records_that_are_erased_leave_no_byte_and_no_others_go(tmp_path, hashing):
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=hashing()) as store:
        added = await store.add_many(
            NewRecord(text=f"secret marmalade {each:03}", thread=f"thread-{each:03}") for each in range(200)
        )
        await store.update(added[7].id, "secret marmalade 007, and quokkas")
        (terms,) = _rows(tmp_path, "SELECT terms FROM records WHERE thread = 'thread-007'")[0]
        await store.erase([added[7].id, added[9].id, added[7].id])
        assert added[7].id not in [record.id for record in await store.search("quokkas", limit=500)]
        assert len((await store.list(limit=1_000)).records) == 198
        data = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    for trace in (b"marmalade 007", b"marmalade 009", b"quokkas", b"thread-007", added[9].id.encode(), terms):
        assert trace not in data
    assert b"marmalade 008" in data


async def test_when_one_record_is_not_there_none_is_erased(tmp_path):
    async with (
        SqliteRecordStore(tmp_path / "memory.db", "mine", embedder=None) as mine,
        SqliteRecordStore(tmp_path / "memory.db", "theirs", embedder=None) as theirs,
    ):
        ours, other = await mine.add("tea"), await theirs.add("coffee")
        await _code("record_not_found", mine.erase([ours.id, other.id]))
        await _code("record_not_found", mine.erase([ours.id, "\ud800"]))
        assert [record.id for record in (await mine.list(limit=5)).records] == [ours.id]
        assert [record.id for record in (await theirs.list(limit=5)).records] == [other.id]


async def test_an_erasure_that_others_keep_from_its_end_is_finished_by_calling_it_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_connection, "PATIENCE", 0.1)
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=None) as store:
        secret = await store.add("secret marmalade")
        with closing(sqlite3.connect(tmp_path / "memory.db")) as reading:
            reading.execute("BEGIN")
            reading.execute("SELECT count(*) FROM records").fetchone()
            await _code("unavailable", store.erase([secret.id]))
        await _code("record_not_found", store.erase([secret.id]))
        assert b"marmalade" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())


async def test_who_adds_only_what_is_missing_hears_of_what_others_added_first(tmp_path):
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=None) as store:
        first, second = await store.add("tea"), await store.add("coffee")
        assert await store.add_unless_others([NewRecord(text="tea")], 0) == ([], [first, second], 2)
        await store.delete(second.id)
        added, others, position = await store.add_unless_others([NewRecord(text="milk")], 2)
        assert ([record.text for record in added], others, position) == (["milk"], [], 3)
        await store.purge()
        assert await store.add_unless_others([], 3) == ([], [], 3)
        assert (await store.list(limit=5)).records == ()


async def test_files_and_records_share_a_database(tmp_path):
    async with (
        SqliteFileStore(tmp_path / "memory.db") as files,
        SqliteRecordStore(tmp_path / "memory.db", embedder=None) as store,
    ):
        await asyncio.gather(
            files.write("a.md", "tea", expected=None, origin=Origin()),
            *(store.add(f"tea {each}") for each in range(10)),
        )
        assert len(await store.search("tea", limit=20)) == 10
        assert (await files.read("a.md")).text == "tea"


_CHILD = """
import asyncio, sys
from memshelf.records.backends.sqlite import SqliteRecordStore

async def main():
    async with SqliteRecordStore(sys.argv[1], embedder=None) as store:
        records = [await store.add(f"marmalade {sys.argv[2]} {each}") for each in range(30)]
        await store.delete(records[0].id)

asyncio.run(main())
"""


async def test_what_other_processes_do_is_seen_by_an_open_store(tmp_path):
    database = tmp_path / "memory.db"
    async with SqliteRecordStore(database, embedder=None) as store:
        await store.add("the first marmalade")
        assert len(await store.search("marmalade", limit=100)) == 1
        children = [subprocess.Popen([sys.executable, "-c", _CHILD, database, name]) for name in ("one", "two")]
        assert [await asyncio.to_thread(child.wait) for child in children] == [0, 0]
        assert len(await store.search("marmalade", limit=100)) == 59


async def test_many_searches_and_changes_at_once_agree_with_the_store(tmp_path, hashing):
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=hashing(), durable=False) as store:
        await store.add_many(NewRecord(text=f"marmalade {each}") for each in range(50))
        fresh = SqliteRecordStore(tmp_path / "memory.db", embedder=hashing(), durable=False)

        async def change(each: int) -> None:
            record = await store.add(f"marmalade and tea {each}")
            await store.update(record.id, f"marmalade and coffee {each}")
            if each % 2:
                await store.delete(record.id)

        await asyncio.gather(
            *(change(each) for each in range(40)), *(fresh.search("marmalade", limit=100) for _ in range(40))
        )
        for each in (store, fresh):
            found = {record.text for record in await each.search("marmalade", limit=200)}
            expected = {f"marmalade {n}" for n in range(50)} | {f"marmalade and coffee {n}" for n in range(0, 40, 2)}
            assert found == expected
        await fresh.aclose()


async def test_an_index_that_missed_more_removals_than_are_kept_is_right_again(tmp_path, monkeypatch):
    monkeypatch.setattr("memshelf.records.backends.sql.namespace._REMOVALS_KEPT", 5)
    async with (
        SqliteRecordStore(tmp_path / "memory.db", embedder=None) as store,
        SqliteRecordStore(tmp_path / "memory.db", embedder=None) as other,
    ):
        added = await store.add_many(NewRecord(text=f"marmalade {each}") for each in range(60))
        assert len(await other.search("marmalade", limit=100)) == 60
        for record in added[:40]:
            await store.delete(record.id)
        await store.update(added[50].id, "marmalade once more")
        for each in (other, store):
            assert {found.id for found in await each.search("marmalade", limit=100)} == {each.id for each in added[40:]}
    (kept,) = _rows(tmp_path, "SELECT count(*) FROM record_removals")[0]
    assert kept < 40


async def test_an_index_with_many_dead_records_is_built_anew(tmp_path):
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=None, durable=False) as store:
        record = await store.add("marmalade")
        for _ in range(1_010):
            await store.update(record.id, "marmalade")
            await store._catch_up()
        assert len(store._recall.index.keys) < 100
        assert len(await store.search("marmalade", limit=5)) == 1


async def test_a_replaced_database_file_is_read_anew(tmp_path):
    database = tmp_path / "memory.db"
    async with SqliteRecordStore(tmp_path / "other.db", embedder=None) as other:
        await other.add("the walrus plays cribbage")
    async with SqliteRecordStore(database, embedder=None) as store:
        await store.add("the quokka likes marmalade")
        assert len(await store.search("quokka", limit=5)) == 1
        (tmp_path / "other.db").replace(database)
        for rest in ("memory.db-wal", "memory.db-shm"):
            (tmp_path / rest).unlink(missing_ok=True)
        assert await store.search("quokka", limit=5) == []
        assert len(await store.search("walrus", limit=5)) == 1


async def test_a_store_is_not_kept_in_no_file(tmp_path):
    for database in ("", ":memory:"):
        with pytest.raises(ValueError, match="kept in a file"):
            SqliteRecordStore(database)
    for namespace in ("", "a\nb"):
        with pytest.raises(ValueError, match="namespace"):
            SqliteRecordStore(tmp_path / "memory.db", namespace)
    async with SqliteRecordStore(tmp_path / "memory.db", embedder=None) as store:
        with pytest.raises(ValueError, match="limit"):
            await store.search("tea", limit=0)
        await _code("invalid_text", store.add("tea", thread="a\nb"))
        await store.add("tea", at=datetime(1, 1, 1, tzinfo=UTC))
        assert len(await store.search("tea in May", limit=1)) == 1


async def _code(code: str, operation) -> None:
    with pytest.raises(MemoryStoreError) as caught:
        await operation
    assert caught.value.code == code


async def test_a_backup_that_is_put_back_under_a_running_process_is_what_is_searched(tmp_path):
    with (
        closing(sqlite3.connect(tmp_path / "memory.db")) as live,
        closing(sqlite3.connect(tmp_path / "kept.db")) as kept,
    ):
        async with SqliteRecordStore(tmp_path / "memory.db", embedder=None) as store:
            green, black = [await store.add(f"likes {colour} tea") for colour in ("green", "black")]
            live.backup(kept)
            await store.delete(green.id)
            await store.update(black.id, "plays the cello")
            assert [record.text for record in await store.search("cello")] == ["plays the cello"]
            kept.backup(live)
            assert {record.text for record in await store.search("tea")} == {"likes green tea", "likes black tea"}
            assert await store.search("cello") == []
