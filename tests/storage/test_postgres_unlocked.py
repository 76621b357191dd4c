"""Scripts on PostgreSQL that run without a lock: as if they had one."""

from __future__ import annotations

import asyncio
import itertools
import secrets

import asyncpg
import pytest

from memshelf import MemoryStoreError
from memshelf.storage import postgres_writer
from memshelf.storage.postgres import PostgresEngine
from memshelf.storage.postgres_unlocked import UnlockedTransaction
from memshelf.testing import refused

COUNTED = "SELECT number FROM counted WHERE id = $1"


@pytest.fixture
async def engine(postgres_server):
    engine = PostgresEngine(postgres_server.dsn, f"test_{secrets.token_hex(6)}")

    async def prepare(transaction):
        await transaction.execute("CREATE TABLE counted (id BIGINT PRIMARY KEY, number BIGINT NOT NULL)")
        await transaction.execute(
            "CREATE TABLE words (number BIGINT PRIMARY KEY, word TEXT UNIQUE, by BIGINT DEFAULT txid_current())"
        )
        await transaction.execute("INSERT INTO counted VALUES (1, 0)")

    await engine.write(prepare)
    yield engine
    await engine.aclose()


@pytest.fixture
async def other(engine, postgres_server):
    """Another process's engine, as it were: with connections of its own."""
    other = PostgresEngine(f"{postgres_server.dsn}?", engine._place.schema)
    yield other
    await other.aclose()


class Adding:
    """A script that adds a word under the next number, and knows how often it ran, and with which locks."""

    def __init__(self, word, *, then=None):
        self.word = word
        self.then = then
        self.locks = []

    async def __call__(self, transaction):
        self.locks.append(transaction.for_update.strip())
        (number,) = await transaction.fetch_one(COUNTED + transaction.for_update, 1)
        transaction.rests_on(COUNTED, (1,), (number,))
        if self.then is not None:
            await self.then(transaction, len(self.locks))
        insert = "INSERT INTO words (number, word) VALUES ($1, $2)"
        moves = "UPDATE counted SET number = $2 WHERE id = $1"
        await transaction.change((insert, (number + 1, self.word)), stands=(moves, (1, number + 1)))
        return number + 1


def add(engine, script):
    return engine.write(script, key=1, unlocked=True)


async def words(engine):
    rows = await engine.read(lambda transaction: transaction.fetch("SELECT word FROM words ORDER BY number"))
    return [word for (word,) in rows]


async def test_a_write_that_is_alone_takes_two_round_trips(engine):
    assert await add(engine, Adding("a")) == 1
    queries = []
    engine._part().writer._connection.add_query_logger(queries.append)
    script = Adding("b")
    assert await add(engine, script) == 2
    assert (script.locks, len(queries)) == ([""], 2)
    assert await words(engine) == ["a", "b"]


async def test_the_first_write_of_a_connection_has_a_lock_which_a_standby_would_not_give(engine):
    await engine.aclose()
    first, second = Adding("a"), Adding("b")
    await add(engine, first)
    await add(engine, second)
    assert (first.locks, second.locks) == (["FOR NO KEY UPDATE"], [""])


async def test_a_write_that_others_were_faster_than_is_done_again_with_a_lock(engine, other):
    await add(engine, Adding("a"))

    async def overtake(_, run):
        if run == 1:
            await add(other, Adding("b"))

    script = Adding("c", then=overtake)
    assert await add(engine, script) == 3
    assert script.locks == ["", "FOR NO KEY UPDATE"]
    assert await words(engine) == ["a", "b", "c"]


async def test_where_others_write_as_well_the_next_writes_have_a_lock_at_once(engine, other):
    await add(engine, Adding("a"))

    async def overtake(_, run):
        if run == 1:
            await add(other, Adding("b"))

    await add(engine, Adding("c", then=overtake))
    scripts = [Adding(f"{number}") for number in range(postgres_writer._CAUTION)]
    for script in scripts:
        await add(engine, script)
    assert [len(script.locks) for script in scripts] == [1] * len(scripts)
    assert [script.locks[0] for script in scripts[-2:]] == ["FOR NO KEY UPDATE", ""]


async def test_a_row_that_somebody_has_locked_is_waited_for_with_a_lock_only(engine, postgres_server):
    await add(engine, Adding("a"))
    holder, watcher = [await asyncpg.connect(postgres_server.dsn) for _ in range(2)]
    begun = holder.transaction()
    await begun.start()
    await holder.execute(f"SELECT FROM {engine._place.schema}.counted WHERE id = 1 FOR NO KEY UPDATE")
    script = Adding("b")
    writing = asyncio.ensure_future(add(engine, script))
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%FOR NO KEY UPDATE'"
    async with asyncio.timeout(30):
        while not await watcher.fetchval(waiting):
            await asyncio.sleep(0.01)
    await begun.rollback()
    assert await writing == 2
    assert script.locks == ["", "FOR NO KEY UPDATE"]
    await holder.close()
    await watcher.close()


async def test_who_comes_while_it_reads_shares_its_commit(engine):
    await add(engine, Adding("a"))
    rest = []

    async def others_come(_, run):
        if run == 1:
            rest.extend(asyncio.ensure_future(add(engine, Adding(word))) for word in "cd")
            await asyncio.sleep(0)

    script = Adding("b", then=others_come)
    await add(engine, script)
    await asyncio.gather(*rest)
    assert script.locks == ["", "FOR NO KEY UPDATE"]
    commits = await engine.read(lambda transaction: transaction.fetch("SELECT DISTINCT by FROM words WHERE number > 1"))
    assert len(commits) == 1
    assert await words(engine) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("queries", [1, 2])
async def test_a_refusal_that_rests_on_several_queries_is_looked_at_again_with_a_lock(engine, queries):
    await add(engine, Adding("a"))

    async def refuse(transaction, _):
        for _ in range(queries - 1):
            await transaction.fetch("SELECT 1")
        raise MemoryStoreError("forbidden", "not this one")

    script = Adding("b", then=refuse)
    await refused("forbidden", add(engine, script))
    assert script.locks == ["", "FOR NO KEY UPDATE"][:queries]
    assert await words(engine) == ["a"]


@pytest.mark.parametrize("statement", ["execute", "fetch"])
async def test_a_script_that_changes_something_at_once_is_given_a_lock(engine, statement):
    await add(engine, Adding("a"))

    async def insert(transaction, _):
        await getattr(transaction, statement)("INSERT INTO words VALUES ($1, $2)", -1, "at once")

    script = Adding("b", then=insert)
    await add(engine, script)
    assert script.locks == ["", "FOR NO KEY UPDATE"]
    assert await words(engine) == ["at once", "a", "b"]


async def test_a_script_that_reads_after_its_change_or_says_not_what_it_rests_on_is_given_a_lock(engine):
    await add(engine, Adding("a"))
    locks = []

    async def read_late(transaction):
        await Adding("b")(transaction)
        locks.append(transaction.for_update)
        await transaction.fetch("SELECT 1")

    async def rest_on_nothing(transaction):
        locks.append(transaction.for_update)
        await transaction.change(("INSERT INTO words (number, word) VALUES ($1, $2)", (7, "c")))

    await add(engine, read_late)
    assert len(locks) == 2
    await add(engine, Adding("without"))
    await add(engine, rest_on_nothing)
    assert len(locks) == 4
    assert await words(engine) == ["a", "b", "without", "c"]


async def test_a_script_that_changes_one_thing_twice_is_given_a_lock(engine):
    await add(engine, Adding("a"))

    async def insert(transaction, _):
        await transaction.change(("INSERT INTO words (word, number) VALUES ($2, $1)", (7, "wrong")), of="seven")
        await transaction.change(("UPDATE words SET word = $2 WHERE number = $1", (7, "right")), of="seven")

    script = Adding("b", then=insert)
    await add(engine, script)
    assert script.locks == ["", "FOR NO KEY UPDATE"]
    assert await words(engine) == ["a", "b", "right"]


async def test_a_change_that_the_database_refuses_leaves_nothing_behind(engine):
    await add(engine, Adding("a"))
    with pytest.raises(asyncpg.UniqueViolationError):
        await add(engine, Adding("a"))
    assert await add(engine, Adding("b")) == 2
    assert await words(engine) == ["a", "b"]


async def test_a_script_for_which_nobody_waits_any_more_is_not_run(engine):
    await add(engine, Adding("a"))
    unwanted, wanted = Adding("b"), Adding("c")
    writing = asyncio.ensure_future(add(engine, unwanted))
    await asyncio.sleep(0)
    writing.cancel()
    await asyncio.wait([writing])
    await engine.write(Adding("between"), key=1)
    assert await add(engine, wanted) == 3
    assert (unwanted.locks, wanted.locks) == ([], [""])
    assert await words(engine) == ["a", "between", "c"]


async def test_a_connection_that_is_found_lost_before_the_change_is_sent_is_made_up_for(engine, other):
    await add(engine, Adding("a"))

    async def kill(transaction, run):
        if run == 1:
            connection = engine._part().writer._connection
            await other.read(lambda each: each.fetch("SELECT pg_terminate_backend($1)", connection.get_server_pid()))
            async with asyncio.timeout(30):
                while not connection.is_closed():
                    await asyncio.sleep(0.01)

    assert await add(engine, Adding("b", then=kill)) == 2
    assert await words(engine) == ["a", "b"]


async def test_a_connection_to_a_server_that_became_a_standby_is_left_for_another_one(engine):
    await add(engine, Adding("a"))
    await engine._part().writer._connection.execute("SET default_transaction_read_only = on")
    script = Adding("b")
    assert await add(engine, script) == 2
    assert script.locks == ["", "FOR NO KEY UPDATE"]
    assert await words(engine) == ["a", "b"]


async def test_a_change_that_the_server_undid_for_the_sake_of_another_is_made_with_a_lock(engine, monkeypatch):
    await add(engine, Adding("a"))

    async def undone(_):
        raise asyncpg.DeadlockDetectedError("deadlock detected")

    monkeypatch.setattr(UnlockedTransaction, "commit", undone)
    script = Adding("b")
    assert await add(engine, script) == 2
    assert script.locks == ["", "FOR NO KEY UPDATE"]
    assert await words(engine) == ["a", "b"]


async def test_many_engines_that_write_at_once_number_their_words_without_a_gap(engine, postgres_server, monkeypatch):
    monkeypatch.setattr(postgres_writer, "_CAUTION", 0)
    engines = [
        PostgresEngine(f"{postgres_server.dsn}?application_name={each}", engine._place.schema) for each in "abcd"
    ]
    scripts = [[Adding(f"{name}{each}") for each in range(60)] for name in "abcd"]

    async def keep_adding(engine, scripts):
        return [await add(engine, script) for script in scripts]

    numbers = await asyncio.gather(*map(keep_adding, engines, scripts))
    assert sorted(itertools.chain(*numbers)) == list(range(1, 241))
    assert len(await words(engine)) == 240
    locks = [script.locks for script in itertools.chain(*scripts)]
    assert [""] in locks
    assert ["", "FOR NO KEY UPDATE"] in locks
    for each in engines:
        await each.aclose()


class Counting(Adding):
    """`Adding`, which asks for nothing that a script before it has left, and knows what each run found."""

    def __init__(self, word, *, refuses=None):
        super().__init__(word)
        self.refuses = refuses
        self.found = []

    async def __call__(self, transaction):
        self.locks.append(transaction.for_update.strip())
        self.found.append(transaction.found)
        number = transaction.found
        if number is None:
            (number,) = await transaction.fetch_one(COUNTED + transaction.for_update, 1)
        transaction.rests_on(COUNTED, (1,), (number,))
        if number == self.refuses:
            raise MemoryStoreError("forbidden", "not at this number")
        insert = "INSERT INTO words (number, word) VALUES ($1, $2)"
        moves = "UPDATE counted SET number = $2 WHERE id = $1"
        await transaction.change((insert, (number + 1, self.word)), stands=(moves, (1, number + 1)))
        transaction.left = number + 1
        return number + 1


async def test_a_write_that_goes_on_where_the_last_one_ended_takes_one_round_trip(engine):
    await add(engine, Counting("a"))
    queries = []
    engine._part().writer._connection.add_query_logger(queries.append)
    scripts = [Counting(word) for word in "bc"]
    assert [await add(engine, script) for script in scripts] == [2, 3]
    assert [(script.locks, script.found) for script in scripts] == [([""], [1]), ([""], [2])]
    assert len(queries) == 2
    assert await words(engine) == ["a", "b", "c"]


async def test_what_a_write_has_left_comes_to_nothing_once_somebody_else_has_written(engine, other):
    await add(engine, Counting("a"))
    await add(other, Adding("b"))
    scripts = [Counting(word) for word in "cde"]
    assert [await add(engine, script) for script in scripts] == [3, 4, 5]
    # Who was overtaken does not count on it the next time that it will not be.
    assert [script.found for script in scripts] == [[1, None], [None], [4]]
    assert [script.locks for script in scripts] == [["", ""], [""], [""]]
    assert await words(engine) == ["a", "b", "c", "d", "e"]


async def test_nothing_rests_on_what_a_commit_has_left_that_was_not_confirmed(engine, monkeypatch):
    """It may be committed at any later time, so also between what a script asks for and its change."""
    await add(engine, Counting("a"))
    execute = asyncpg.Connection.execute

    async def lost(connection, query, *values, **options):
        if query == "COMMIT":
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        return await execute(connection, query, *values, **options)

    with monkeypatch.context() as broken:
        broken.setattr(asyncpg.Connection, "execute", lost)
        await refused("write_unconfirmed", engine.write(Counting("b"), key=1))

    async def nothing(_):
        pass

    await engine.write(nothing, key=2)
    script = Counting("c")
    assert await add(engine, script) == 2
    assert (script.locks, script.found) == ([""], [None])


async def test_a_write_that_leaves_nothing_also_takes_what_was_left_before(engine):
    await add(engine, Counting("a"))
    await engine.write(Adding("b"), key=1)
    script = Counting("c")
    assert await add(engine, script) == 3
    assert (script.locks, script.found) == ([""], [None])


async def test_a_refusal_is_never_of_what_was_left_only(engine, other):
    await add(engine, Counting("a"))
    await add(other, Adding("b"))
    script = Counting("c", refuses=1)
    assert await add(engine, script) == 3
    assert script.found == [1, None]
    await refused("forbidden", add(engine, Counting("d", refuses=3)))
    assert await words(engine) == ["a", "b", "c"]


async def test_nothing_is_left_behind_by_what_erases_and_little_by_the_others(engine, monkeypatch):
    monkeypatch.setattr(postgres_writer, "_MOST_LEFT", 2)
    await add(engine, Counting("a"))
    for key in (2, 3, 4):

        async def leave(transaction, key=key):
            transaction.left = key

        await engine.write(leave, key=key)
    assert engine._part().writer._left == {3: 3, 4: 4}

    async def erase(_):
        pass

    await engine.write(erase)
    assert engine._part().writer._left == {}


async def test_what_is_supposed_to_be_new_and_is_not_is_looked_up(engine):
    supposed = []

    async def once(transaction):
        if transaction.supposes:
            supposed.append(transaction.found)
        elif await transaction.fetch_one("SELECT FROM words WHERE word = 'once'") is not None:
            return "was there"
        return await Counting("once")(transaction)

    await add(engine, Counting("a"))
    assert await add(engine, once) == 2
    assert await add(engine, once) == "was there"
    assert supposed == [1, 2]
    assert await words(engine) == ["a", "once"]
