"""What scripts on SQLite hand on to each other, within a commit and not beyond it."""

from __future__ import annotations

import asyncio
import threading
from functools import partial

import pytest

from memshelf import MemoryStoreError
from memshelf.storage.sqlite_engine import SqliteEngine


@pytest.fixture
async def engine(tmp_path):
    engine = SqliteEngine(tmp_path / "some.db", durable=False)
    await engine.database.write(lambda connection: connection.execute("CREATE TABLE words (word TEXT)"))
    yield engine
    await engine.aclose()


def script(name, found, *, insert=False, left=True, fail=False):
    """Notes what it finds, and leaves its name."""

    async def run(transaction):
        found.append((name, transaction.found))
        if insert:
            await transaction.execute("INSERT INTO words VALUES ($1)", name)
        if fail:
            raise MemoryStoreError("forbidden", "not this one")
        if left:
            transaction.left = name

    return run


async def together(engine, *scripts):
    """Run scripts in one commit, each with its key."""
    await in_one_commit(engine, *(partial(engine.write, each, key=key) for each, key in scripts))


async def in_one_commit(engine, *calls):
    """Make calls that share a commit: they come while another's work holds the thread."""
    loop, held, go_on = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    def hold(_):
        loop.call_soon_threadsafe(held.set)
        assert go_on.wait(30)

    holding = asyncio.ensure_future(engine.database.write(hold))
    await held.wait()
    waiting = [asyncio.ensure_future(each()) for each in calls]
    for _ in range(2):  # asked for in the first turn of the loop, handed over at its end
        await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(holding, *waiting, return_exceptions=True)


async def test_what_a_script_leaves_is_found_by_the_next_with_its_key(engine):
    found = []
    await together(
        engine,
        (script("a", found, insert=True), 1),
        (script("b", found), 1),
        (script("c", found, left=False), 1),
        (script("d", found), 1),
    )
    assert found == [("a", None), ("b", "a"), ("c", "b"), ("d", None)]


async def test_what_another_key_leaves_is_not_found(engine):
    found = []
    await together(
        engine, (script("a", found), 1), (script("b", found), 2), (script("c", found), None), (script("d", found), None)
    )
    assert found == [("a", None), ("b", None), ("c", None), ("d", None)]


async def test_what_was_left_is_not_found_when_something_changed_since(engine):
    found = []
    await in_one_commit(
        engine,
        partial(engine.write, script("a", found), key=1),
        partial(engine.database.write, lambda connection: connection.execute("INSERT INTO words VALUES ('other')")),
        partial(engine.write, script("b", found), key=1),
    )
    assert found == [("a", None), ("b", None)]


async def test_what_was_left_is_not_found_after_its_commit(engine):
    found = []
    await engine.write(script("a", found), key=1)
    await engine.write(script("b", found), key=1)
    assert found == [("a", None), ("b", None)]


async def test_what_a_script_left_that_was_undone_is_not_found(engine):
    found = []
    await together(
        engine,
        (script("a", found, insert=True), 1),
        (script("b", found, insert=True, fail=True), 1),
        (script("c", found), 1),
    )
    first_attempt = [("a", None), ("b", "a")]
    assert found == [*first_attempt, *first_attempt, ("c", None)]


async def test_a_script_that_fails_and_changed_nothing_leaves_what_it_found(engine):
    found = []
    await together(engine, (script("a", found), 1), (script("b", found, fail=True), 1), (script("c", found), 1))
    assert found == [("a", None), ("b", "a"), ("c", "a")]
