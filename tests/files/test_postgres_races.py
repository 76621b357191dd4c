"""Processes that write to one memory in PostgreSQL, each without a lock as often as it can: one chain, nothing lost."""

from __future__ import annotations

import asyncio
import itertools
import random
import secrets
from functools import partial

import pytest

from forked import finish, fork, in_child
from memshelf import FileFormat, MemoryStoreError, Origin, PostgresFileStore
from memshelf.files import edits
from memshelf.storage import postgres_writer
from memshelf.storage.postgres_unlocked import UnlockedTransaction

ROUNDS = 15


@pytest.fixture
def make(postgres_server):
    return partial(PostgresFileStore, postgres_server.dsn, schema=f"test_{secrets.token_hex(6)}")


async def write(store, name, source):
    """Append to a file of all, create one that others would create too, move another, and do what all do by one call of
    a tool. The answers are what it created of what others would have, and what those calls have answered."""
    created, called = [], []
    for each in range(ROUNDS):
        origin = Origin(name, None, f"{each}")
        await edits.append(store, "log", f"{name} {each}", origin=origin, format=FileFormat(), retries=10_000)
        path = f"shared/{each}"
        try:
            await store.write(path, name, expected=None, origin=Origin())
        except MemoryStoreError as error:
            assert error.code == "already_exists"
        else:
            created.append(path)
        version = await store.write(f"{name}/{each}", name, expected=None, origin=Origin())
        await store.move(f"{name}/{each}", f"moved/{name}/{each}", expected=version, origin=Origin())
        await asyncio.sleep(source.random() * 0.002)  # so that a task is alone now and then
        called.append(
            await store.write(f"calls/{each}", "made once", expected=None, origin=Origin("all", None, f"{each}"))
        )
    return created, called


def process(number, tasks):
    async def body(store, report):
        postgres_writer._CAUTION = 0
        without_lock = 0
        commit = UnlockedTransaction.commit

        async def counted(transaction):
            nonlocal without_lock
            await commit(transaction)
            without_lock += 1

        UnlockedTransaction.commit = counted
        source = random.Random(number)
        done = await asyncio.gather(*(write(store, f"{number}.{task}", source) for task in range(tasks)))
        report(" ".join(itertools.chain(*(created for created, _ in done))))
        report(" ".join(itertools.chain(*(called for _, called in done))))
        report(f"{without_lock}")

    return body


@pytest.mark.parametrize(("processes", "tasks"), [(3, 1), (2, 8)])
def test_writes_without_a_lock_in_several_processes_form_one_chain_and_none_is_lost(make, processes, tasks):
    async def begin():
        async with make() as store:
            await store.write("log", "start", expected=None, origin=Origin())

    async def outcome():
        async with make() as store:
            texts = {entry.path: (await store.read(entry.path)).text for entry in await store.list()}
            return texts, (await store.versions(path="log", limit=500)).versions, await store.verify()

    asyncio.run(begin())
    children = [fork(in_child(make, process(number, tasks))) for number in range(processes)]
    reports = [each.split("\n") for each in finish(children)]
    texts, versions, report = asyncio.run(outcome())

    assert report.intact
    names = [f"{number}.{task}" for number in range(processes) for task in range(tasks)]
    appended = [f"{name} {each}" for name in names for each in range(ROUNDS)]
    assert sorted(texts["log"].split("\n")) == sorted(["start", *appended])
    for after, before in itertools.pairwise(versions):
        assert after.parent_id == before.id
    created, called, without_lock = (
        [word for line in lines for word in line.split()] for lines in zip(*reports, strict=True)
    )
    assert sorted(created) == sorted({f"shared/{each}" for each in range(ROUNDS)})
    moved = {f"moved/{name}/{each}" for name in names for each in range(ROUNDS)}
    assert set(texts) == {"log", *created, *moved, *(f"calls/{each}" for each in range(ROUNDS))}
    assert len(set(called)) == ROUNDS
    if tasks == 1:  # where there are more, they may always share their commits
        assert sum(map(int, without_lock)) > 0
