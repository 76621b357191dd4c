"""A PostgreSQL database: group commit, snapshots, and the connections of event loops and processes."""

from __future__ import annotations

import asyncio
import gc
import os
import re
import secrets
import threading
import time
import warnings

import asyncpg
import pytest

from memshelf import MemoryStoreError
from memshelf.storage import postgres_connection, postgres_migrations
from memshelf.storage.postgres import PostgresEngine
from memshelf.testing import refused


@pytest.fixture
def schema():
    return f"test_{secrets.token_hex(6)}"


@pytest.fixture
async def engine(postgres_server, schema):
    engine = PostgresEngine(postgres_server.dsn, schema)
    await engine.write(lambda transaction: transaction.execute("CREATE TABLE words (id BIGSERIAL, word TEXT UNIQUE)"))
    yield engine
    await engine.aclose()


def insert(word):
    async def script(transaction):
        await transaction.execute("INSERT INTO words (word) VALUES ($1)", word)
        return (await transaction.fetch_one("SELECT pg_current_xact_id()::text"))[0]

    return script


def insert_and_refuse(word):
    async def script(transaction):
        await insert(word)(transaction)
        raise MemoryStoreError("forbidden", "not this one")

    return script


async def until(dsn, count, which, *values):
    """Wait until the server has so many processes of a kind."""
    watcher = await asyncpg.connect(dsn)
    try:
        deadline = time.monotonic() + 30
        while await watcher.fetchval(f"SELECT count(*) FROM pg_stat_activity WHERE {which}", *values) != count:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.01)
    finally:
        await watcher.close()


ASLEEP = "wait_event = 'PgSleep'"


async def words(engine):
    rows = await engine.read(lambda transaction: transaction.fetch("SELECT word FROM words ORDER BY word"), single=True)
    return [word for (word,) in rows]


async def together(engine, *scripts, keys=()):
    """What becomes of scripts that wait while the writer is busy with another."""
    reached, go = asyncio.Event(), asyncio.Event()

    async def hold(_):
        reached.set()
        await go.wait()

    first = asyncio.ensure_future(engine.write(hold, key=0))
    await reached.wait()
    keys = keys or [1] * len(scripts)
    rest = [asyncio.ensure_future(engine.write(script, key=key)) for script, key in zip(scripts, keys, strict=True)]
    await asyncio.sleep(0)
    go.set()
    await first
    return await asyncio.gather(*rest, return_exceptions=True)


# Group commit


async def test_writers_that_wait_together_share_one_commit(engine):
    results = await together(engine, *(insert(f"word {each}") for each in range(20)))
    assert len(set(results)) == 1
    assert len(await words(engine)) == 20


async def test_scripts_without_a_key_share_their_commit_with_nobody(engine):
    results = await together(engine, *map(insert, "abcd"), keys=[None, 1, None, 1])
    assert len(set(results)) == 3
    assert results[1] == results[3]


async def meanwhile(engine, key, first, *scripts):
    """What becomes of a script, and of those that come with their keys while it runs."""
    reached, go = asyncio.Event(), asyncio.Event()

    async def held(transaction):
        result = await first(transaction)
        reached.set()
        await go.wait()
        return result

    running = asyncio.ensure_future(engine.write(held, key=key))
    await reached.wait()
    rest = [asyncio.ensure_future(engine.write(script, key=other)) for other, script in scripts]
    await asyncio.sleep(0)
    go.set()
    return await asyncio.gather(running, *rest, return_exceptions=True)


async def test_scripts_that_come_while_others_run_share_their_commit_if_the_order_of_keys_lets_them(engine):
    coming = [(2, insert("c")), (3, insert("d")), (1, insert("e")), (None, insert("f")), (2, insert("b"))]
    first, *others = await meanwhile(engine, 2, insert("a"), *coming)
    assert [other == first for other in others] == [True, True, False, False, True]
    rows = await engine.read(lambda transaction: transaction.fetch("SELECT word FROM words ORDER BY id"), single=True)
    assert "".join(word for (word,) in rows)[:4] == "acbd"


async def test_a_script_that_comes_while_others_run_and_fails_undoes_only_its_own_work(engine):
    coming = [(1, insert_and_refuse("b")), (1, insert("c"))]
    first, refusal, last = await meanwhile(engine, 1, insert("a"), *coming)
    assert (refusal.code, first) == ("forbidden", last)
    assert await words(engine) == ["a", "c"]


async def test_a_script_without_a_key_shares_its_commit_with_nobody_that_comes_while_it_runs(engine):
    first, other = await meanwhile(engine, None, insert("a"), (1, insert("b")))
    assert first != other


async def test_scripts_that_share_a_commit_run_in_the_order_of_their_keys(engine):
    await together(engine, *map(insert, "abcde"), keys=[3, 1, 2, 1, 3])
    rows = await engine.read(lambda transaction: transaction.fetch("SELECT word FROM words ORDER BY id"), single=True)
    assert "".join(word for (word,) in rows) == "bdcae"


async def test_refusals_after_changes_undo_only_their_own_work(engine):
    results = await together(engine, insert("a"), insert_and_refuse("b"), insert("c"), insert_and_refuse("d"))
    assert [getattr(result, "code", None) for result in results] == [None, "forbidden", None, "forbidden"]
    assert results[0] == results[2]
    assert await words(engine) == ["a", "c"]


async def test_a_refusal_that_changed_nothing_costs_the_others_nothing(engine):
    runs = []

    async def refuse(_):
        raise MemoryStoreError("forbidden", "not this one")

    async def counted(transaction):
        runs.append(1)
        return await insert("a")(transaction)

    results = await together(engine, counted, refuse)
    assert [getattr(result, "code", None) for result in results] == [None, "forbidden"]
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("statement", "error"),
    [
        ("SELECT nothing FROM words", asyncpg.UndefinedColumnError),
        ("INSERT INTO words (word) VALUES ('a')", asyncpg.UniqueViolationError),
    ],
)
async def test_a_mistake_in_one_script_is_its_callers_alone(engine, statement, error):
    results = await together(engine, insert("a"), lambda transaction: transaction.execute(statement), insert("c"))
    assert isinstance(results[1], error)
    assert await words(engine) == ["a", "c"]


async def test_a_caller_that_is_cancelled_while_it_waits_writes_nothing(engine):
    reached, go = asyncio.Event(), asyncio.Event()

    async def hold(_):
        reached.set()
        await go.wait()

    first = asyncio.ensure_future(engine.write(hold, key=0))
    await reached.wait()
    waiting = [asyncio.ensure_future(engine.write(insert(word), key=1)) for word in ("cancelled", "other")]
    await asyncio.sleep(0)
    waiting[0].cancel()
    go.set()
    await asyncio.gather(first, waiting[1])
    assert await words(engine) == ["other"]


async def test_two_commits_that_wait_for_each_other_both_come_about(engine, postgres_server, schema):
    for word in "ab":
        await engine.write(insert(word))
    both = threading.Barrier(2)

    def lock(*in_order):
        first_time = True

        async def script(transaction):
            nonlocal first_time
            for word in in_order:
                await transaction.fetch_one("SELECT id FROM words WHERE word = $1 FOR UPDATE", word)
                if first_time:
                    first_time = False
                    both.wait(30)  # each has what the other will ask for
            return await transaction.execute("UPDATE words SET word = word")

        return script

    async def elsewhere():
        other = PostgresEngine(postgres_server.dsn, schema)
        return await other.write(lock("b", "a"))

    other = asyncio.create_task(asyncio.to_thread(asyncio.run, elsewhere()))
    await asyncio.sleep(0)
    assert await engine.write(lock("a", "b")) == 2
    assert await other == 2


# Reading


async def test_a_read_sees_one_snapshot_whatever_is_committed_meanwhile(engine):
    async def twice(transaction):
        before = await transaction.fetch("SELECT word FROM words")
        await engine.write(insert("meanwhile"))
        return before == await transaction.fetch("SELECT word FROM words")

    assert await engine.read(twice)
    assert await words(engine) == ["meanwhile"]


@pytest.mark.parametrize("single", [True, False])
async def test_a_reader_cannot_change_anything(engine, single):
    change = "INSERT INTO words (word) VALUES ('a')"
    error = await refused("unavailable", engine.read(lambda each: each.execute(change), single=single))
    assert "read-only" in error.message
    assert await words(engine) == []


async def test_a_script_that_is_said_to_run_one_statement_runs_no_other(engine):
    async def two(transaction):
        await transaction.fetch("SELECT 1")
        await transaction.fetch("SELECT 2")

    with pytest.raises(RuntimeError, match="single statement"):
        await engine.read(two, single=True)
    await engine.read(two)


async def test_many_reads_at_once_share_a_few_connections(engine):
    async def who(transaction):
        await transaction.fetch("SELECT pg_sleep(0.001)")
        return (await transaction.fetch_one("SELECT pg_backend_pid()"))[0]

    pids = await asyncio.gather(*(engine.read(who) for _ in range(60)))
    assert 1 < len(set(pids)) <= 8


async def test_a_read_that_is_cancelled_ends_at_the_server_too(engine, postgres_server):
    reading = asyncio.ensure_future(engine.read(lambda each: each.fetch("SELECT pg_sleep(60)"), single=True))
    await until(postgres_server.dsn, 1, ASLEEP)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert await words(engine) == []
    await until(postgres_server.dsn, 0, ASLEEP)


# Tables


async def test_only_the_tables_of_the_schema_are_meant(postgres_server, schema):
    outsider = await asyncpg.connect(postgres_server.dsn)
    await outsider.execute("CREATE TABLE IF NOT EXISTS public.erasures (wanted text); SET search_path = public")
    engine = PostgresEngine(postgres_server.dsn, f'{schema} "quoted"')
    assert await engine.read(lambda each: each.fetch_one("SELECT one FROM erasures"), single=True) is not None
    await engine.aclose()
    await outsider.execute("DROP TABLE public.erasures")
    await outsider.close()


@pytest.mark.parametrize("schema", ["", "a\nb", "\ud800", "x" * 64, "é" * 32])
def test_a_schema_without_a_proper_name_is_refused_at_construction(schema):
    with pytest.raises(ValueError, match="schema's name"):
        PostgresEngine("postgresql://localhost/some", schema)


@pytest.mark.parametrize("dsn", ["", "some.db", "mysql://localhost/some"])
def test_a_dsn_of_something_else_is_refused_at_construction(dsn):
    with pytest.raises(ValueError, match="postgresql://"):
        PostgresEngine(dsn)


# Event loops, closing, forking


async def pids(engine):
    """The server's processes for an engine's writer and for one of its readers."""
    query = "SELECT pg_backend_pid()"
    writer = await engine.write(lambda transaction: transaction.fetch_one(query))
    reader = await engine.read(lambda transaction: transaction.fetch_one(query), single=True)
    return [writer[0], reader[0]]


async def gone(dsn, pids):
    """Wait until these processes of the server have ended."""
    await until(dsn, 0, "pid = ANY($1)", pids)


async def test_what_keeps_a_connection_from_being_opened_is_told_to_readers_and_writers(
    postgres_server, schema, monkeypatch
):
    steps = (*postgres_migrations.steps("postgres"), "SELECT nothing")
    monkeypatch.setattr(postgres_migrations, "steps", lambda _: steps)
    engine = PostgresEngine(postgres_server.dsn, schema)
    for call in (engine.read, engine.write, engine.erase):
        error = await refused("unavailable", call(lambda each: each.fetch("SELECT 1")))
        assert '"nothing" does not exist' in error.message
    await engine.aclose()


async def test_an_old_server_is_named(postgres_server, schema, monkeypatch):
    monkeypatch.setattr(postgres_connection, "_OLDEST", 1000)
    engine = PostgresEngine(postgres_server.dsn, schema)
    error = await refused("unavailable", engine.read(lambda each: each.fetch("SELECT 1")))
    await engine.aclose()
    assert re.search(r"PostgreSQL 1000 or newer is needed; this server is \d+\.\d", error.message)


async def test_engines_of_one_place_share_connections_until_the_last_is_closed(postgres_server, schema):
    one, two = (PostgresEngine(postgres_server.dsn, schema) for _ in range(2))
    shared = await pids(one)
    assert await pids(two) == shared
    await one.aclose()
    assert await pids(two) == shared
    await two.aclose()
    await gone(postgres_server.dsn, shared)
    assert await pids(two) != shared  # and it opens again
    await two.aclose()


async def test_what_was_asked_before_the_end_is_done(engine):
    writing = [asyncio.ensure_future(engine.write(insert(word), key=1)) for word in "abc"]
    reading = asyncio.ensure_future(engine.read(lambda each: each.fetch_one("SELECT 1"), single=True))
    await asyncio.sleep(0)
    await engine.aclose()
    await asyncio.gather(*writing, reading)
    assert await words(engine) == ["a", "b", "c"]


async def test_an_engine_that_nobody_has_any_more_leaves_no_connection(postgres_server, schema):
    engine = PostgresEngine(postgres_server.dsn, schema)
    left = await pids(engine)
    del engine
    gc.collect()
    await gone(postgres_server.dsn, left)


def test_a_loop_that_ends_leaves_no_connection_and_the_next_loop_has_its_own(postgres_server, schema):
    engine = PostgresEngine(postgres_server.dsn, schema)
    first = asyncio.run(pids(engine))
    asyncio.run(gone(postgres_server.dsn, first))
    assert asyncio.run(pids(engine)) != first
    asyncio.run(engine.aclose())


def test_a_loop_that_ends_in_the_midst_of_reads_and_writes_leaves_no_connection(postgres_server, schema):
    engine, used = PostgresEngine(postgres_server.dsn, schema), []

    async def leave():
        used.extend(await pids(engine))
        for call in (engine.read, engine.write):
            asyncio.ensure_future(call(lambda each: each.fetch("SELECT pg_sleep(1)")))  # noqa: RUF006  # left behind
        await until(postgres_server.dsn, 2, ASLEEP)

    asyncio.run(leave())
    asyncio.run(gone(postgres_server.dsn, used))
    asyncio.run(pids(engine))
    asyncio.run(engine.aclose())


def test_two_event_loops_at_once_use_one_engine_and_either_closes_it_for_both(postgres_server, schema):
    engine = PostgresEngine(postgres_server.dsn, schema)
    both, closed, left = threading.Barrier(2), threading.Event(), {}

    async def use(name):
        await asyncio.to_thread(both.wait, 30)
        if name == "a":
            await engine.write(lambda each: each.execute("CREATE TABLE words (id BIGSERIAL, word TEXT UNIQUE)"))
        await asyncio.to_thread(both.wait, 30)
        await asyncio.gather(*(engine.write(insert(f"{name}{each}"), key=1) for each in range(50)))
        assert f"{name}49" in await words(engine)
        left[name] = await pids(engine)
        await asyncio.to_thread(both.wait, 30)
        if name == "a":
            await engine.aclose()
            await gone(postgres_server.dsn, left["a"] + left["b"])
            closed.set()
        else:
            await asyncio.to_thread(closed.wait, 30)
        assert len(await words(engine)) == 100

    threads = [threading.Thread(target=asyncio.run, args=(use(name),)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert closed.is_set()
    asyncio.run(engine.aclose())


async def test_a_forked_child_and_its_parent_both_go_on(engine):
    await engine.write(insert("before"))
    used = await pids(engine)
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest's workers have threads, which the child leaves be
        pid = os.fork()
    if pid == 0:
        answer = "failed"
        try:
            asyncio._set_running_loop(None)  # the loop under which it was forked is the parent's

            async def go_on():
                await engine.write(insert("child"))
                assert not set(await pids(engine)) & set(used)
                found = await words(engine)
                await engine.aclose()
                return found

            answer = ",".join(asyncio.run(go_on()))
        finally:
            os.write(write, answer.encode())
            os._exit(0)
    os.close(write)
    answer = await asyncio.to_thread(os.read, read, 1000)
    os.close(read)
    os.waitpid(pid, 0)
    assert answer == b"before,child"
    await engine.write(insert("parent"))
    assert await pids(engine) == used
    assert await words(engine) == ["before", "child", "parent"]
