"""What was used before a fork works in the child: what it knows is there, and no lock is held for ever."""

from __future__ import annotations

import asyncio
import signal
import threading
from contextlib import nullcontext
from typing import Any

import pytest

from forked import finish, fork
from memshelf import Experiences, InProcessFileStore, InProcessRecordStore, Origin, SqliteRecordStore, Workspace
from memshelf.forks import Process
from memshelf.meaning.files import FileMeaning

_TEA = "Alice likes green tea."


class Letters:
    """An embedder: what has the same letters means the same."""

    model, version, dimension = "letters", "1", 26

    async def embed(self, texts, *, query=False):
        return [[0.01 + text.lower().count(chr(ord("a") + at)) for at in range(26)] for text in texts]


def _be_killed_if_it_hangs():
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(30)


def _in_a_child(ask, held=None):
    """What `ask` answers in a child that is forked while somebody else is within `held`."""

    def work(report):
        signal.alarm(5)  # or else it might wait for a thread that is not there
        report(str(asyncio.run(ask())))

    with held or nullcontext():
        child = fork(work)
    return finish([child])


@pytest.mark.parametrize("kind", ["in process", "SQLite"])
def test_records_are_found_in_a_child_and_so_is_what_it_adds(tmp_path, kind):
    store: Any = (
        InProcessRecordStore(embedder=Letters())
        if kind == "in process"
        else SqliteRecordStore(tmp_path / "records.db", embedder=Letters())
    )

    async def ask():
        return [found.text for found in await store.search("green tea", limit=3)]

    async def add_and_ask():
        await store.add("Bob drinks black tea.")
        return sorted(await ask())

    asyncio.run(store.add(_TEA))
    assert asyncio.run(ask()) == [_TEA]
    assert _in_a_child(ask) == [str([_TEA])]
    assert _in_a_child(add_and_ask) == [str([_TEA, "Bob drinks black tea."])]
    assert _TEA in asyncio.run(ask())
    asyncio.run(store.aclose())


def test_files_are_found_by_meaning_in_a_child():
    store = InProcessFileStore()
    meaning = FileMeaning(store, embedder=Letters())

    async def ask():
        return [hit.path for hit in await meaning.search("green tea", limit=3)]

    asyncio.run(store.write("tea.md", _TEA, expected=None, origin=Origin()))
    assert asyncio.run(ask()) == ["tea.md"]
    assert _in_a_child(ask) == ["['tea.md']"]
    asyncio.run(meaning.aclose())


@pytest.mark.parametrize("held", ["catalogue", "recall"])
def test_entries_are_found_and_written_in_a_child_that_was_forked_during_a_change(tmp_path, held):
    workspace = Workspace(tmp_path / "workspace", embedder=Letters())

    async def write(title):
        return await workspace.write_memory_entry(title, _TEA)

    async def ask():
        await write("In the child")
        return sorted(entry.title for entry in await workspace.search("a teen agrees", limit=5))  # in no word of it

    asyncio.run(write("Before"))
    catalogue = workspace._user.catalogue
    lock = {"catalogue": catalogue, "recall": catalogue.recall}[held]._changing
    assert _in_a_child(ask, lock) == [str(["Before", "In the child"])]
    assert len(asyncio.run(workspace.list_entries())) == 2
    asyncio.run(workspace.aclose())


def test_the_user_of_a_workspace_can_be_changed_and_deleted_in_a_child_that_was_forked_during_a_change(tmp_path):
    workspace = Workspace(tmp_path / "workspace", user_id="alice", embedder=None)

    async def ask():
        workspace.set_user("alice")
        found = [entry.title for entry in await workspace.list_entries()]
        return [*found, await workspace.delete_user("alice", confirm=True), await workspace.list_entries()]

    asyncio.run(workspace.write_memory_entry("Tea", _TEA))
    assert _in_a_child(ask, workspace._user.catalogue._changing) == ["['Tea', True, []]"]


def test_corrections_are_recalled_in_a_child_that_was_forked_during_a_change():
    experiences = Experiences(InProcessFileStore(), embedder=Letters())

    async def ask():
        return [each.lesson for each in await experiences.recall("green tea")]

    asyncio.run(experiences.learn("No milk in green tea."))
    assert asyncio.run(ask()) == ["No milk in green tea."]
    assert _in_a_child(ask, experiences._recall._changing) == ["['No milk in green tea.']"]
    experiences.close()


async def test_what_was_asked_for_just_before_a_fork_is_done_by_the_parent_alone(tmp_path):
    async with SqliteRecordStore(tmp_path / "records.db", embedder=None) as store:
        await store.list()  # which creates it
        adding = asyncio.create_task(store.add(_TEA))
        asked = store._engine._database._asked
        while not any(asked.values()):
            await asyncio.sleep(0)

        def work(report):
            asyncio._set_running_loop(None)  # the loop under which it was forked is the parent's
            signal.alarm(5)
            asyncio.run(store.aclose())

        child = fork(work)
        await adding
        await asyncio.to_thread(finish, [child])
        assert [record.text for record in (await store.list()).records] == [_TEA]


def test_a_child_that_is_forked_during_a_computation_gives_numpy_its_threads_back():
    threadpoolctl = pytest.importorskip("threadpoolctl")
    from memshelf.embedding.blas import one_thread

    def threads():
        return {each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"}

    async def ask():
        with one_thread():
            assert threads() == {1}
        return threads()

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        assert _in_a_child(ask, one_thread()) == ["{2}"]
        assert threads() == {2}


def test_threads_of_a_child_wait_until_what_was_the_parents_is_forgotten():
    process = Process()

    async def ask():
        forgetting, go_on, answers = threading.Event(), threading.Event(), []

        def forget():
            forgetting.set()
            go_on.wait(10)
            answers.append("forgotten")

        threads = [threading.Thread(target=lambda: answers.append(process.forked(forget))) for _ in range(2)]
        threads[0].start()
        forgetting.wait(10)
        threads[1].start()
        go_on.set()
        for thread in threads:
            thread.join()
        return answers[0], sorted(answers[1:]), process.forked(forget)

    assert _in_a_child(ask) == ["('forgotten', [False, True], False)"]
