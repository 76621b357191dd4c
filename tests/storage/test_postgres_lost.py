"""A PostgreSQL server that is not there, goes away, and comes back."""

from __future__ import annotations

import asyncio
import secrets

import asyncpg
import pytest

from memshelf import Origin, PostgresFileStore, PostgresRecordStore
from memshelf.storage import postgres_connection, postgres_readers, postgres_writer
from memshelf.storage.postgres import PostgresEngine
from memshelf.storage.postgres_unlocked import UnlockedTransaction
from memshelf.testing import refused
from postgres_server import PostgresServer


@pytest.fixture
def schema():
    return f"test_{secrets.token_hex(6)}"


class Line:
    """A way to the server that can be cut: at once, or when certain words are sent over it."""

    def __init__(self, server):
        self._server = server
        self._writers = set()
        self._carrying = set()
        self._words = None
        self._delivered = False
        self._open = asyncio.Event()
        self._open.set()
        self.connections = 0

    async def __aenter__(self):
        self._listener = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        port = self._listener.sockets[0].getsockname()[1]
        self.dsn = self._server.dsn.replace(f":{self._server.port}/", f":{port}/")
        return self

    async def __aexit__(self, *_):
        self._listener.close()
        self.go_on()
        self.cut()
        if self._carrying:
            await asyncio.wait(self._carrying)

    def cut(self):
        for writer in self._writers:
            writer.transport.abort()

    def cut_at(self, words, *, delivered=False):
        """Cut the connection that next sends these words: before the server has them, or after it has answered."""
        self._words, self._delivered = words, delivered

    def hang(self):
        """Carry nothing any more, until `go_on`."""
        self._open.clear()

    def go_on(self):
        self._open.set()

    async def _connect(self, reader, writer):
        self.connections += 1
        self._carrying.add(asyncio.current_task())
        asyncio.current_task().add_done_callback(self._carrying.discard)
        from_server, to_server = await asyncio.open_connection("127.0.0.1", self._server.port)
        writers = {writer, to_server}
        self._writers |= writers
        last = asyncio.Event()
        pumps = [
            asyncio.ensure_future(self._send(reader, to_server, last)),
            asyncio.ensure_future(self._answer(from_server, writer, last)),
        ]
        await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        for each in writers:
            each.transport.abort()
        self._writers -= writers
        await asyncio.gather(*pumps, return_exceptions=True)

    async def _send(self, reader, writer, last):
        while data := await reader.read(65_536):
            if self._words is not None and self._words in data:
                self._words = None
                if not self._delivered:
                    return
                last.set()
            await self._open.wait()
            writer.write(data)

    async def _answer(self, reader, writer, last):
        while data := await reader.read(65_536):
            if last.is_set():
                return
            await self._open.wait()
            writer.write(data)


@pytest.fixture
async def line(postgres_server):
    async with Line(postgres_server) as line:
        yield line


@pytest.fixture
async def engine(line, schema):
    engine = PostgresEngine(line.dsn, schema)
    await engine.write(lambda transaction: transaction.execute("CREATE TABLE words (id BIGSERIAL, word TEXT)"), key=1)
    assert await words(engine) == []
    yield engine
    await engine.aclose()


def insert(word):
    return lambda transaction: transaction.execute("INSERT INTO words (word) VALUES ($1)", word)


async def words(engine):
    rows = await engine.read(lambda transaction: transaction.fetch("SELECT word FROM words ORDER BY word"), single=True)
    return [word for (word,) in rows]


async def test_a_server_that_is_not_there_is_unavailable(schema):
    engine = PostgresEngine("postgresql://nobody:hidden-word@127.0.0.1:1/none", schema)
    for call in (engine.read(insert("a")), engine.write(insert("a")), engine.write(insert("a"), key=1)):
        error = await refused("unavailable", call)
        assert "nothing changed" in error.message
        assert "hidden-word" not in error.message
    await engine.aclose()


@pytest.mark.parametrize("wrong", ["password", "database"])
async def test_a_server_that_does_not_let_us_in_is_unavailable(postgres_server, schema, wrong):
    dsn = postgres_server.dsn
    dsn = dsn.replace(postgres_server.password, "hidden-word") if wrong == "password" else f"{dsn}-none"
    engine = PostgresEngine(dsn, schema)
    error = await refused("unavailable", engine.write(insert("a")))
    assert "hidden-word" not in error.message
    assert postgres_server.password not in error.message
    await engine.aclose()


async def test_connections_that_were_lost_while_nobody_used_them_are_opened_anew(engine, line):
    await asyncio.gather(*(engine.read(lambda each: each.fetch("SELECT pg_sleep(0.01)")) for _ in range(5)))
    before = line.connections
    line.cut()
    assert await words(engine) == []
    line.cut()
    await engine.write(insert("a"), key=1)
    assert await words(engine) == ["a"]
    assert line.connections > before


@pytest.mark.parametrize("words_sent", [b"BEGIN", b"INSERT INTO words", b"SELECT word"])
async def test_a_connection_that_is_lost_before_the_commit_is_made_up_for(engine, line, words_sent):
    line.cut_at(words_sent)
    await asyncio.gather(*(engine.write(insert(word), key=1) for word in "abc"))
    assert await words(engine) == ["a", "b", "c"]


@pytest.mark.parametrize("delivered", [True, False])
async def test_a_commit_whose_answer_is_lost_is_unconfirmed_for_all_who_shared_it(engine, line, delivered):
    line.cut_at(b"COMMIT", delivered=delivered)
    both = asyncio.gather(*(engine.write(insert(word), key=1) for word in "ab"), return_exceptions=True)
    assert [error.code for error in await both] == ["write_unconfirmed"] * 2
    assert await words(engine) == (["a", "b"] if delivered else [])
    await engine.write(insert("c"), key=1)
    assert (await words(engine))[-1] == "c"


async def joined(engine, first_word, *others):
    """Writes of words, of which all but the first come while it runs, and join its commit."""
    reached, go = asyncio.Event(), asyncio.Event()

    async def hold(transaction):
        await insert(first_word)(transaction)
        reached.set()
        await go.wait()

    first = asyncio.ensure_future(engine.write(hold, key=1))
    await reached.wait()
    rest = [asyncio.ensure_future(engine.write(insert(word), key=1)) for word in others]
    await asyncio.sleep(0)
    go.set()
    return await asyncio.gather(first, *rest, return_exceptions=True)


@pytest.mark.parametrize("delivered", [True, False])
async def test_a_commit_whose_answer_is_lost_is_unconfirmed_for_all_who_joined_it(engine, line, delivered):
    line.cut_at(b"COMMIT", delivered=delivered)
    assert [error.code for error in await joined(engine, "a", "b", "c")] == ["write_unconfirmed"] * 3
    assert await words(engine) == (["a", "b", "c"] if delivered else [])


async def test_a_connection_that_is_lost_under_those_who_joined_is_made_up_for(engine, line):
    line.cut_at(b"the last")
    assert not any(isinstance(each, Exception) for each in await joined(engine, "a", "b", "the last"))
    assert await words(engine) == ["a", "b", "the last"]
    assert line._words is None  # it was cut


async def test_a_line_that_is_lost_again_and_again_is_unavailable(engine, line):
    async def cut(transaction):
        line.cut()
        await transaction.fetch("SELECT 1")

    for call in (engine.read(cut), engine.read(cut, single=True), engine.write(cut), engine.write(cut, key=1)):
        await refused("unavailable", call)
    assert await words(engine) == []


async def test_a_server_that_does_not_answer_is_unavailable_or_unconfirmed(engine, line, pass_time):
    line.cut()  # what is held back is of the connections to come
    held = asyncio.Event()
    original, line._answer = line._answer, None

    async def hold_back(reader, writer, last):
        while data := await reader.read(65_536):
            if b"COMMIT" in data:
                pass_time(postgres_connection._ANSWERING)
                await held.wait()
            writer.write(data)

    line._answer = hold_back
    await refused("write_unconfirmed", engine.write(insert("a"), key=1))
    held.set()
    line._answer = original
    assert await words(engine) == ["a"]


@pytest.mark.parametrize("key", [None, 1])
async def test_a_server_that_became_a_standby_is_left_for_the_one_in_its_place(engine, line, key):
    connections = set()

    async def write(transaction):
        [(connection,)] = await transaction.fetch("SELECT pg_backend_pid()")
        connections.add(connection)
        if len(connections) == 1:
            await transaction.execute("SET TRANSACTION READ ONLY")
        return await insert("a")(transaction)

    await engine.write(write, key=key)
    assert len(connections) == 2
    assert await words(engine) == ["a"]


@pytest.fixture
async def unlocked(engine):
    """Inserts a word by a script that runs without a lock, at first."""
    await engine.write(lambda each: each.execute("CREATE TABLE counted (id TEXT, number BIGINT)"))
    await engine.write(lambda each: each.execute("INSERT INTO counted VALUES ('the only one', 0)"))
    query = "SELECT number FROM counted WHERE id = $1"

    async def script(transaction, word):
        (number,) = await transaction.fetch_one(query + transaction.for_update, "the only one")
        transaction.rests_on(query, ("the only one",), (number,))
        change = "INSERT INTO words (word) VALUES ($1)", (word,)
        moved = "UPDATE counted SET number = $2 WHERE id = $1", ("the only one", number + 1)
        await transaction.change(change, stands=moved)

    return lambda word: engine.write(lambda transaction: script(transaction, word), key=1, unlocked=True)


async def test_a_connection_that_is_lost_while_a_script_reads_without_a_lock_is_made_up_for(engine, line, unlocked):
    line.cut_at(b"the only one")
    await unlocked("a")
    assert line._words is None  # it was cut
    assert await words(engine) == ["a"]


@pytest.mark.parametrize("delivered", [True, False])
async def test_a_change_without_a_lock_whose_answer_is_lost_is_unconfirmed(engine, line, unlocked, delivered):
    await unlocked("a")
    line.cut_at(b"the word", delivered=delivered)
    await refused("write_unconfirmed", unlocked("the word"))
    assert await words(engine) == (["a", "the word"] if delivered else ["a"])
    await unlocked("z")
    assert (await words(engine))[-1] == "z"


async def test_a_server_that_hangs_when_a_script_reads_without_a_lock_is_unavailable(
    engine, line, unlocked, monkeypatch
):
    await unlocked("a")
    monkeypatch.setattr(UnlockedTransaction, "patience", 0.3)
    monkeypatch.setattr(postgres_connection, "CONNECTING", 0.3)
    line.hang()
    async with asyncio.timeout(10):
        await refused("unavailable", unlocked("b"))
    monkeypatch.undo()  # connecting may take its time again
    line.go_on()
    assert await words(engine) == ["a"]


@pytest.fixture
async def few(postgres_server, schema):
    """An engine on a server that lets it have three connections."""
    owner = await asyncpg.connect(postgres_server.dsn)
    await owner.execute(f"CREATE ROLE {schema} LOGIN PASSWORD 'few' CONNECTION LIMIT 3")
    await owner.execute(f"GRANT CREATE ON DATABASE postgres TO {schema}")
    engine = PostgresEngine(
        postgres_server.dsn.replace(f"postgres:{postgres_server.password}", f"{schema}:few"), schema
    )
    yield engine
    await engine.aclose()
    await owner.execute(f"DROP OWNED BY {schema}; DROP ROLE {schema}")
    await owner.close()


async def who(transaction):
    await transaction.fetch("SELECT pg_sleep(0.01)")
    return (await transaction.fetch_one("SELECT pg_backend_pid()"))[0]


async def test_where_a_server_takes_few_connections_reads_wait_for_each_other(few):
    pids = await asyncio.gather(*(few.read(who) for _ in range(20)))
    assert len(set(pids)) <= 3


async def test_readers_make_room_for_the_writer(few):
    await asyncio.gather(*(few.read(who) for _ in range(20)))
    await few.write(lambda transaction: transaction.execute("CREATE TABLE words (word TEXT)"))
    reads = [few.read(who) for _ in range(20)]
    await asyncio.gather(few.write(insert("a"), key=1), *reads, few.write(insert("b"), key=1))
    assert await words(few) == ["a", "b"]


async def test_where_others_have_all_connections_there_is_none(few):
    reading = asyncio.Barrier(4)

    async def hold(transaction):
        await reading.wait()
        return await transaction.fetch("SELECT 1")

    held = [asyncio.ensure_future(few.read(hold)) for _ in range(3)]
    other = PostgresEngine(f"{few._place.dsn}?", few._place.schema)  # a place of its own, with other connections
    async with asyncio.timeout(30):
        while reading.n_waiting < 3:
            await asyncio.sleep(0.01)
    for call in (other.read(who), other.write(who), other.write(who, key=1)):
        error = await refused("unavailable", call)
        assert "too many connections" in error.message
    await reading.wait()
    await asyncio.gather(*held)
    await few.aclose()
    assert await other.read(who)
    await other.aclose()


async def hanging(engine, line, monkeypatch):
    """An engine with eight connections for reading and one for writing, over which nothing comes any more."""
    await engine.write(insert("a"), key=1)
    everybody = asyncio.Barrier(9)

    async def meet(transaction):
        await everybody.wait()
        await transaction.fetch("SELECT 1")

    await asyncio.gather(*(engine.read(meet) for _ in range(8)), engine.write(meet, key=1))
    for module in (postgres_connection, postgres_readers, postgres_writer):
        monkeypatch.setattr(module, "CONNECTING", 0.3)
    line.hang()


async def test_a_server_that_hangs_is_found_out_once_and_not_once_for_each_connection(engine, line, monkeypatch):
    await hanging(engine, line, monkeypatch)
    calls = [engine.read(insert("r")) for _ in range(3)]
    calls += [engine.write(insert(f"w{number}"), key=number or None) for number in range(3)]
    async with asyncio.timeout(10):
        await asyncio.gather(*(refused("unavailable", call) for call in calls))
        await refused("unavailable", engine.read(insert("r")))
    monkeypatch.undo()  # connecting may take its time again
    line.go_on()
    assert await words(engine) == ["a"]


async def test_a_read_waits_for_a_connection_only_so_long(engine, line, monkeypatch):
    await engine.write(insert("a"), key=1)
    monkeypatch.setattr(postgres_readers, "PATIENCE", 0.2)
    everybody, go = asyncio.Barrier(9), asyncio.Event()

    async def hold(transaction):
        await everybody.wait()
        await go.wait()
        return await transaction.fetch("SELECT word FROM words")

    holding = [asyncio.ensure_future(engine.read(hold)) for _ in range(8)]
    await everybody.wait()
    error = await refused("unavailable", words(engine))
    assert "busy" in error.message
    go.set()
    assert len(await asyncio.gather(*holding)) == 8
    assert await words(engine) == ["a"]


async def test_a_lock_that_others_keep_makes_a_write_unavailable(engine, postgres_server, schema, monkeypatch):
    monkeypatch.setattr(postgres_connection, "PATIENCE", 0.2)
    await engine.write(insert("a"), key=1)
    reached, go = asyncio.Event(), asyncio.Event()

    async def hold(transaction):
        await transaction.execute("UPDATE words SET word = 'b'")
        reached.set()
        await go.wait()

    holding = asyncio.ensure_future(engine.write(hold, key=1))
    await reached.wait()
    other = PostgresEngine(f"{postgres_server.dsn}?", schema)  # a place of its own, with other connections
    error = await refused("unavailable", other.write(lambda each: each.execute("UPDATE words SET word = 'c'"), key=1))
    assert "lock timeout" in error.message
    go.set()
    await holding
    await other.write(lambda each: each.execute("UPDATE words SET word = 'd'"), key=1)
    assert await words(engine) == ["d"]
    await other.aclose()


async def test_a_server_that_crashes_and_comes_back_is_used_again_and_has_what_was_acknowledged(schema):
    server = await asyncio.to_thread(PostgresServer)
    try:
        engine = PostgresEngine(server.dsn, schema)
        await engine.write(lambda transaction: transaction.execute("CREATE TABLE words (id BIGSERIAL, word TEXT)"))
        acknowledged, codes, stop = [], set(), False

        async def keep_writing(name):
            count = 0
            while not stop:
                count += 1
                try:
                    await engine.write(insert(f"{name}{count}"), key=1)
                    acknowledged.append(f"{name}{count}")
                except postgres_writer.MemoryStoreError as error:
                    codes.add(error.code)
                    await asyncio.sleep(0.01)

        writing = [asyncio.ensure_future(keep_writing(name)) for name in "abcd"]
        for _ in range(3):
            reached = len(acknowledged) + 20
            while len(acknowledged) < reached:
                await asyncio.sleep(0.01)
            await asyncio.to_thread(server.halt)
            await refused("unavailable", engine.read(lambda each: each.fetch("SELECT 1"), single=True))
            await asyncio.to_thread(server.start)
        stop = True
        await asyncio.gather(*writing)
        assert codes <= {"unavailable", "write_unconfirmed"}
        assert "unavailable" in codes
        found = await words(engine)
        assert set(acknowledged) <= set(found)
        assert len(found) == len(set(found))
        await engine.aclose()
    finally:
        await asyncio.to_thread(server.stop)


async def test_tables_that_are_gone_while_a_backup_is_restored_are_unavailable_until_they_are_back(
    postgres_server, schema
):
    files = PostgresFileStore(postgres_server.dsn, schema=schema)
    records = PostgresRecordStore(postgres_server.dsn, schema=schema, embedder=None)
    version = await files.write("a.md", "one", expected=None, origin=Origin())
    await records.add("likes tea")
    operator = await asyncpg.connect(postgres_server.dsn)
    await operator.execute(f"ALTER SCHEMA {schema} RENAME TO {schema}_away")
    await refused("unavailable", files.list())
    await refused("unavailable", files.write("a.md", "two", expected=version, origin=Origin()))
    await refused("unavailable", files.purge())
    await refused("unavailable", records.add("likes coffee"))
    await refused("unavailable", records.search("tea"))
    await operator.execute(f"ALTER SCHEMA {schema}_away RENAME TO {schema}")
    await files.write("a.md", "two", expected=version, origin=Origin())
    assert [record.text for record in await records.search("tea")] == ["likes tea"]
    await files.aclose()
    await records.aclose()
    await operator.close()
