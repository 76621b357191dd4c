"""A SQLite database and its threads."""

from __future__ import annotations

import asyncio
import gc
import os
import sqlite3
import stat
import subprocess
import sys
import textwrap
import threading
import weakref
from contextlib import closing

import pytest

from memshelf import MemoryStoreError
from memshelf.storage import sqlite_connection
from memshelf.storage.sqlite import Database
from memshelf.testing import refused


class User:
    """Somebody who uses a database."""


@pytest.fixture
async def database(tmp_path):
    user = User()
    database = Database.shared(tmp_path / "some.db", user, durable=False)
    await database.write(
        lambda connection: connection.execute("CREATE TABLE words (word TEXT, next REFERENCES memories)")
    )
    yield database
    await database.release(user)


def insert(word):
    return lambda connection: connection.execute("INSERT INTO words (word) VALUES (?)", (word,)).rowcount


def insert_and_refuse(word):
    def work(connection):
        insert(word)(connection)
        raise MemoryStoreError("forbidden", "not this one")

    return work


async def words(database):
    rows = await database.read(lambda connection: connection.execute("SELECT word FROM words ORDER BY word").fetchall())
    return [word for (word,) in rows]


class Gate:
    """Work that holds its thread until it is opened, so that what comes after it waits together."""

    def __init__(self):
        self.reached = asyncio.Event()
        self.opened = threading.Event()
        self.statements = []
        self._loop = asyncio.get_running_loop()

    def __call__(self, connection):
        connection.set_trace_callback(self.statements.append)
        self._loop.call_soon_threadsafe(self.reached.set)
        assert self.opened.wait(30)


async def handed_over():
    """Tasks ask in one turn of the loop, and what they ask for is handed to the database's thread at its end."""
    for _ in range(2):
        await asyncio.sleep(0)


async def together(database, *works):
    """What becomes of works that wait while the writer runs another, whose commit they share, and the statements."""
    gate = Gate()
    first = asyncio.ensure_future(database.write(gate))
    await gate.reached.wait()
    rest = [asyncio.ensure_future(database.write(work)) for work in works]
    await handed_over()
    gate.opened.set()
    results = await asyncio.gather(*rest, return_exceptions=True)
    await asyncio.gather(first, return_exceptions=True)
    return results, gate.statements


# Group commit


async def test_writers_that_wait_together_share_one_commit(database):
    results, statements = await together(database, *(insert(f"word {each}") for each in range(40)))
    assert results == [1] * 40
    assert statements.count("COMMIT") == 1
    assert len(await words(database)) == 40


async def test_a_refusal_undoes_only_its_own_work(database):
    results, statements = await together(database, insert("a"), insert_and_refuse("b"), insert("c"))
    assert [getattr(result, "code", result) for result in results] == [1, "forbidden", 1]
    assert statements.count("COMMIT") == 1
    assert await words(database) == ["a", "c"]


async def test_refusals_after_changes_undo_only_their_own_work_though_all_is_done_again(database):
    runs = []

    def counted(work, word):
        def run(connection):
            runs.append(word)
            return work(word)(connection)

        return run

    works = [counted(insert_and_refuse if word in "bd" else insert, word) for word in "abcde"]
    results, statements = await together(database, *works)
    assert [getattr(result, "code", result) for result in results] == [1, "forbidden", 1, "forbidden", 1]
    assert await words(database) == ["a", "c", "e"]
    assert "".join(runs) == "ab" + "abcde"
    assert statements.count("COMMIT") == 1


async def test_a_refusal_that_changed_nothing_costs_the_others_nothing(database):
    def refuse(_):
        raise MemoryStoreError("forbidden", "not this one")

    results, statements = await together(database, insert("a"), refuse, insert("c"))
    assert [getattr(result, "code", result) for result in results] == [1, "forbidden", 1]
    assert not any("ROLLBACK" in statement for statement in statements)


async def test_a_mistake_in_one_work_is_its_callers_alone(database):
    results, _ = await together(database, insert("a"), lambda _: 1 / 0, insert("c"))
    assert [type(result) for result in results] == [int, ZeroDivisionError, int]
    assert await words(database) == ["a", "c"]


async def test_a_commit_that_fails_fails_all_who_shared_it_and_changes_nothing(database):
    def dangling(connection):
        connection.execute("PRAGMA defer_foreign_keys = ON")  # so that it is the commit that fails
        connection.execute("INSERT INTO words VALUES ('dangling', 1000)")

    results, _ = await together(database, insert("a"), dangling, insert_and_refuse("b"), insert("c"))
    assert [result.code for result in results] == ["unavailable"] * 4
    assert "FOREIGN KEY" in results[0].message
    assert await words(database) == []
    await database.write(insert("later"))
    assert await words(database) == ["later"]


async def test_a_full_disk_is_unavailable_and_changes_nothing(database):
    await database.write(insert("before"))

    def limit(connection):
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages + 2}")

    await database.write(limit)
    results, _ = await together(database, insert("a"), insert("b" * 100_000), insert("c"))
    assert results[1].code == "unavailable"
    assert "full" in results[1].message
    stored = ["before", *(word for word, result in zip("abc", results, strict=True) if result == 1)]
    assert await words(database) == stored
    await database.write(lambda connection: connection.execute("PRAGMA max_page_count = 1000000"))
    await database.write(insert("later"))
    assert await words(database) == [*stored, "later"]


async def test_a_commit_that_the_disk_does_not_confirm_is_an_unknown_outcome(tmp_path):
    # A limit on the size of files makes the system refuse to write the log, which SQLite finds out as it commits.
    script = f"""
        import asyncio, os, resource
        from memshelf import MemoryStoreError, Origin, SqliteFileStore

        async def main():
            async with SqliteFileStore({str(tmp_path / "some.db")!r}) as store:
                await store.write("a", "tea", expected=None, origin=Origin())
                size = os.stat({str(tmp_path / "some.db-wal")!r}).st_size
                resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
                writes = (store.write(name, "tea" * 20_000, expected=None, origin=Origin()) for name in "bcd")
                for error in await asyncio.gather(*writes, return_exceptions=True):
                    print(error.code)
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
                await store.write("later", "tea", expected=None, origin=Origin())
                print(*[entry.path for entry in await store.list()], (await store.verify()).intact)

        asyncio.run(main())
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    assert done.stdout.split() == ["write_unconfirmed"] * 3 + ["a", "later", "True"]


async def test_a_read_never_waits_for_a_writer(database):
    await database.write(insert("a"))
    gate = Gate()
    writing = asyncio.ensure_future(database.write(gate))
    await gate.reached.wait()
    assert await words(database) == ["a"]
    gate.opened.set()
    await writing


async def test_a_reader_cannot_change_anything(database):
    with pytest.raises(MemoryStoreError, match="readonly") as error:
        await database.read(insert("a"))
    assert error.value.code == "unavailable"
    assert await words(database) == []


# Callers


async def test_a_caller_that_is_cancelled_while_it_waits_writes_nothing_and_harms_nobody(database):
    gate = Gate()
    first = asyncio.ensure_future(database.write(gate))
    await gate.reached.wait()
    waiting = asyncio.ensure_future(database.write(insert("cancelled")))
    other = asyncio.ensure_future(database.write(insert("other")))
    await handed_over()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    gate.opened.set()
    await asyncio.gather(first, other)
    assert await words(database) == ["other"]


def test_two_event_loops_in_two_threads_share_a_database(tmp_path):
    user = User()
    database = Database.shared(tmp_path / "some.db", user, durable=False)
    asyncio.run(database.write(lambda connection: connection.execute("CREATE TABLE words (word TEXT)")))
    both = threading.Barrier(2)

    async def write(name):
        both.wait(30)
        for each in range(50):
            await database.write(insert(f"{name}{each}"))

    threads = [threading.Thread(target=asyncio.run, args=(write(name),)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(asyncio.run(words(database))) == 100
    asyncio.run(database.release(user))


def test_a_caller_whose_loop_was_closed_harms_nobody(tmp_path):
    user = User()
    database = Database.shared(tmp_path / "some.db", user, durable=False)
    opened = threading.Event()

    async def leave():
        reached = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait(_):
            loop.call_soon_threadsafe(reached.set)
            assert opened.wait(30)

        task = asyncio.ensure_future(database.write(wait))
        await reached.wait()
        task.cancel()

    asyncio.run(leave())
    opened.set()
    assert asyncio.run(database.write(lambda _: "next")) == "next"
    asyncio.run(database.release(user))


# Sharing and closing


def database_threads(but=()):
    return [each for each in threading.enumerate() if each.name.startswith("memshelf-sqlite") and each not in but]


async def test_one_file_is_one_database_by_whatever_name(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    one, two, others = User(), User(), database_threads()
    database = Database.shared(tmp_path / "some.db", one, durable=True)
    assert Database.shared(tmp_path / "link" / ".." / tmp_path.name / "some.db", two, durable=True) is database
    await database.write(lambda _: None)
    await database.read(lambda _: None)
    threads = database_threads(but=others)
    assert len(threads) == 2
    await database.release(one)
    assert all(thread.is_alive() for thread in threads)
    await database.release(two)
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["some.db"]  # the log is gone: all is closed


async def test_what_was_submitted_before_the_release_is_done(tmp_path):
    user = User()
    database = Database.shared(tmp_path / "some.db", user, durable=False)
    writing = asyncio.ensure_future(database.write(lambda connection: connection.execute("CREATE TABLE words (word)")))
    await asyncio.sleep(0)
    await database.release(user)
    await writing
    assert await words(database) == []  # and it opens again
    await database.release(user)


async def test_the_threads_end_when_nobody_uses_the_database_any_more(tmp_path):
    user = User()
    database = Database.shared(tmp_path / "some.db", user, durable=False)
    await database.write(lambda _: None)
    await database.read(lambda _: None)
    threads = database_threads()
    del user, database
    gc.collect()
    for thread in threads:
        thread.join(30)
    assert not any(thread.is_alive() for thread in threads)


async def test_a_file_that_was_replaced_is_opened_anew(database, tmp_path):
    await database.write(insert("old"))
    generation = database.generation()
    for file in tmp_path.iterdir():
        file.unlink()
    assert database.generation() == generation + 1
    await database.write(lambda connection: connection.execute("CREATE TABLE words (word TEXT)"))
    assert await words(database) == []
    assert database.generation() == generation + 1


async def test_a_file_that_must_not_be_created_anew_is_missed_until_it_is_back(tmp_path):
    user, path, elsewhere = User(), tmp_path / "some.db", tmp_path / "elsewhere.db"
    database = Database.shared(path, user, durable=False, recreate=False)
    assert database.generation() == 0  # it is not there yet, and will be created
    await database.write(lambda connection: connection.execute("CREATE TABLE words (word TEXT)"))
    await database.write(insert("a"))
    path.rename(elsewhere)
    for _ in range(2):
        with pytest.raises(MemoryStoreError, match="removed") as missed:
            database.generation()
        assert missed.value.code == "unavailable"
    assert not path.exists()
    elsewhere.rename(path)
    assert database.generation() == 0
    await database.write(insert("b"))
    assert await words(database) == ["a", "b"]
    await database.release(user)


async def test_a_file_that_was_removed_beside_its_log_is_created_anew(database, tmp_path):
    await database.write(insert("old"))
    assert (tmp_path / "some.db-wal").stat().st_size
    (tmp_path / "some.db").unlink()
    assert database.generation() == 1
    await database.write(lambda connection: connection.execute("CREATE TABLE words (word TEXT)"))
    await database.write(insert("new"))
    assert await words(database) == ["new"]


async def test_a_file_that_was_put_beside_the_log_of_another_is_not_opened(database, tmp_path):
    await database.write(insert("old"))
    with closing(sqlite3.connect(tmp_path / "other.db")) as other, closing(sqlite3.connect(database.path)) as source:
        source.backup(other)
    await database.write(insert("in the log"))
    (tmp_path / "some.db").rename(tmp_path / "kept.db")
    (tmp_path / "other.db").rename(tmp_path / "some.db")
    with pytest.raises(MemoryStoreError, match="-wal") as refusal:
        database.generation()
    assert refusal.value.code == "unavailable"
    (tmp_path / "some.db").rename(tmp_path / "other.db")
    (tmp_path / "kept.db").rename(tmp_path / "some.db")
    generation = database.generation()
    assert await words(database) == ["in the log", "old"]
    (tmp_path / "other.db").rename(tmp_path / "some.db")
    for log in tmp_path.glob("some.db-*"):
        log.unlink()
    assert database.generation() == generation + 1
    assert await words(database) == ["old"]


async def test_a_commit_to_a_file_that_is_removed_meanwhile_is_an_unknown_outcome(database, tmp_path):
    def remove(connection):
        (tmp_path / "some.db").unlink()
        return insert("lost")(connection)

    error = await refused("write_unconfirmed", database.write(remove))
    assert "removed" in error.message


@pytest.mark.parametrize("replaced", [False, True])
async def test_a_file_that_is_gone_as_soon_as_it_is_opened_takes_no_write(tmp_path, monkeypatch, replaced):
    def connect_and_lose(path, **options):
        connection = connect(path, **options)
        for file in tmp_path.glob("some.db*"):
            file.unlink()
        if replaced:
            connect(path, **options).close()
        return connection

    connect, user = sqlite_connection.connect, User()
    connect(str(tmp_path / "some.db"), durable=True, query_only=False).close()
    database = Database.shared(tmp_path / "some.db", user, durable=True)
    with monkeypatch.context() as patched:
        patched.setattr("memshelf.storage.sqlite_threads.connect", connect_and_lose)
        await refused(
            "write_unconfirmed", database.write(lambda connection: connection.execute("CREATE TABLE words (a)"))
        )
    assert database.generation() == 1
    await database.write(lambda connection: connection.execute("CREATE TABLE words (word TEXT)"))
    await database.write(insert("new"))
    assert await words(database) == ["new"]
    await database.release(user)


@pytest.mark.parametrize("closing", ["", "await store.aclose()"])
def test_the_interpreter_exits_without_hanging_or_losing_what_was_answered(tmp_path, closing):
    script = f"""
        import asyncio
        from memshelf import Origin, SqliteFileStore

        store = SqliteFileStore({str(tmp_path / "some.db")!r})

        async def main():
            for each in range(20):
                await store.write(f"file {{each}}", "tea", expected=None, origin=Origin())
            asyncio.ensure_future(store.write("unanswered", "tea", expected=None, origin=Origin()))
            await asyncio.sleep(0)
            {closing}

        asyncio.run(main())
        print(len(asyncio.run(store.list())))
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) in (20, 21)
    assert [file.name for file in tmp_path.iterdir()] == ["some.db"], "a program that has ended leaves one file"
    with sqlite3.connect(tmp_path / "some.db") as connection:
        assert connection.execute("SELECT count(*) FROM files").fetchone()[0] >= 20
    connection.close()


# Opening


async def opening(path):
    user = User()
    database = Database.shared(path, user, durable=True)
    try:
        for run in (database.read, database.write):
            await run(lambda _: None)
    finally:
        await database.release(user)


async def test_files_are_private_and_missing_directories_are_made_private(tmp_path):
    old = os.umask(0)
    try:
        user = User()
        database = Database.shared(tmp_path / "a" / "b" / "some.db", user, durable=True)
        await database.write(lambda _: None)
        await database.read(lambda _: None)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (tmp_path / "a").rglob("*")}
    finally:
        os.umask(old)
    await database.release(user)
    assert modes == {"b": 0o700, "some.db": 0o600, "some.db-wal": 0o600, "some.db-shm": 0o600}
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o700


async def test_a_file_that_is_no_database_is_unavailable_and_left_alone(tmp_path):
    (tmp_path / "some.db").write_text("tea " * 1000)
    error = await refused("unavailable", opening(tmp_path / "some.db"))
    assert "not a database" in error.message
    assert (tmp_path / "some.db").read_text() == "tea " * 1000


async def test_an_empty_file_becomes_a_database(tmp_path):
    (tmp_path / "some.db").touch()
    await opening(tmp_path / "some.db")
    assert (tmp_path / "some.db").read_bytes().startswith(b"SQLite format 3")


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
async def test_what_is_no_file_is_unavailable(tmp_path, make):
    make(tmp_path / "some.db")
    error = await refused("unavailable", opening(tmp_path / "some.db"))
    assert "some.db is not a file" in error.message


async def test_a_parent_that_is_a_file_is_unavailable(tmp_path):
    (tmp_path / "parent").touch()
    await refused("unavailable", opening(tmp_path / "parent" / "some.db"))


async def test_an_old_sqlite_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 34, 1))
    error = await refused("unavailable", opening(tmp_path / "some.db"))
    assert "SQLite 3.35.0 or newer is needed" in error.message
    assert list(tmp_path.iterdir()) == []


async def test_opening_is_tried_again_with_the_next_call(tmp_path):
    user = User()
    (tmp_path / "some.db").mkdir()
    database = Database.shared(tmp_path / "some.db", user, durable=False)
    await refused("unavailable", database.write(lambda _: None))
    (tmp_path / "some.db").rmdir()
    assert await database.write(lambda _: "done") == "done"
    await database.release(user)


# Other processes


async def test_a_writer_that_does_not_finish_makes_others_unavailable_not_hang(database, monkeypatch):
    monkeypatch.setattr(sqlite_connection, "PATIENCE", 0.05)
    other = sqlite3.connect(database.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    results = await asyncio.gather(*(database.write(insert(each)) for each in "abc"), return_exceptions=True)
    assert [(result.code, "locked" in result.message) for result in results] == [("unavailable", True)] * 3
    assert await words(database) == []
    other.execute("ROLLBACK")
    other.close()
    await database.write(insert("later"))
    assert await words(database) == ["later"]


async def test_a_system_without_threads_to_give_is_unavailable_for_as_long(tmp_path, monkeypatch):
    user = User()
    database = Database.shared(tmp_path / "some.db", user, durable=False)
    start = threading.Thread.start

    def refuse(thread):
        if thread.name.startswith("memshelf-sqlite"):
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    calls = [database.read(lambda connection: None), database.write(lambda connection: None)]
    for call in calls:
        await refused("unavailable", asyncio.wait_for(call, 10))
    monkeypatch.undo()
    assert await database.write(lambda connection: 7) == 7
    await database.release(user)


async def test_what_was_asked_in_a_loop_that_was_closed_at_once_is_not_done_later(tmp_path):
    user = User()
    database = Database.shared(tmp_path / "some.db", user, durable=False)
    await database.write(lambda connection: connection.execute("CREATE TABLE words (word TEXT)"))

    def leave_at_once():
        async def ask():
            return asyncio.ensure_future(database.write(insert("ghost")))

        loop = asyncio.new_event_loop()
        loop.run_until_complete(ask())._log_destroy_pending = False
        loop.close()
        return weakref.ref(loop)

    await asyncio.to_thread(leave_at_once)
    await database.release(user)
    assert await words(database) == []
    left = await asyncio.to_thread(leave_at_once)
    await asyncio.to_thread(lambda: asyncio.run(words(database)))
    gc.collect()
    assert left() is None
    await database.release(user)


async def test_a_file_that_was_emptied_beside_its_log_is_not_taken_for_a_new_one(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_connection, "_MAKING", 0.05)
    path = tmp_path / "some.db"
    made = "from memshelf.storage.sqlite_connection import connect; import os\n"
    made += f"connection = connect({str(path)!r}, durable=True, query_only=False)\n"
    made += "connection.execute('CREATE TABLE words (word TEXT)')\nos._exit(0)"
    subprocess.run([sys.executable, "-c", made], check=True)
    whole, log = path.read_bytes(), path.with_name("some.db-wal")
    path.write_bytes(b"")
    kept = log.read_bytes()
    assert kept
    database = Database(str(path), durable=True)
    for use in (database.read, database.write):
        assert "some.db-wal" in (await refused("unavailable", use(lambda _: None))).message
    assert (path.read_bytes(), log.read_bytes()) == (b"", kept)
    path.write_bytes(whole)
    assert await database.read(lambda connection: connection.execute("SELECT count(*) FROM words").fetchone()) == (0,)
    await database.release(User())


async def test_a_directory_that_could_not_be_made_to_last_is_before_a_database_in_it_is(tmp_path, monkeypatch):
    path = tmp_path / "above" / "new" / "some.db"

    def refuse(_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    database = Database(str(path), durable=True)
    await refused("unavailable", database.write(lambda _: None))
    monkeypatch.undo()
    synced, real = set(), os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.add(os.fstat(fd).st_ino), real(fd))[1])
    await database.write(lambda _: None)
    assert {os.stat(each).st_ino for each in (tmp_path, tmp_path / "above", path.parent)} <= synced
    await database.release(User())


async def test_a_file_of_which_the_system_does_not_say_whether_it_is_there_is_not_taken_for_removed(
    database, monkeypatch
):
    await database.write(insert("one"))
    generation = database.generation()
    real = os.stat

    def refuse(path, *arguments, **options):
        if str(path) == database.path:
            raise OSError(5, "Input/output error", str(path))
        return real(path, *arguments, **options)

    with monkeypatch.context() as broken:
        broken.setattr(os, "stat", refuse)
        with pytest.raises(MemoryStoreError, match="unavailable"):
            database.generation()
        await refused("write_unconfirmed", database.write(insert("two")))
    assert database.generation() == generation
    await database.write(insert("three"))


async def test_a_file_that_cannot_be_looked_at_as_it_is_opened_is_opened_with_the_next_call(tmp_path, monkeypatch):
    database = Database(str(tmp_path / "some.db"), durable=True)
    await database.write(lambda _: None)
    await database.release(User())
    real, looked = os.stat, []

    def refuse(path, *arguments, **options):
        if str(path).endswith("-wal"):
            looked.append(path)
            raise OSError(5, "Input/output error", str(path))
        return real(path, *arguments, **options)

    with monkeypatch.context() as broken:
        broken.setattr(os, "stat", refuse)
        await refused("unavailable", database.write(lambda _: None))
    assert looked
    await database.write(lambda connection: connection.execute("CREATE TABLE words (word TEXT)"))
    await database.release(User())
