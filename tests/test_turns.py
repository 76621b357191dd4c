"""Calls that take turns in a thread that is there only while it is needed."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from concurrent.futures import Future

import pytest

from memshelf import DirectoryFileStore, InProcessRecordStore, Origin, turns
from memshelf.turns import Turns

PATIENCE = 20


def made(line: Turns, call: Callable[[], object]) -> Future[object]:
    """The result of a call that was put."""
    future: Future[object] = Future()
    assert line.put(lambda: future.set_result(call()))
    return future


def thread_of(line: Turns) -> threading.Thread:
    thread = made(line, threading.current_thread).result(PATIENCE)
    assert isinstance(thread, threading.Thread)
    return thread


def test_calls_are_made_in_their_order_in_one_thread():
    line, seen = Turns("turns"), []
    for number in range(100):
        assert line.put(lambda number=number: seen.append((number, threading.current_thread().name)))
    thread_of(line)
    assert seen == [(number, "turns") for number in range(100)]
    assert line.end() is not None


def test_a_thread_that_nobody_uses_ends_and_the_next_call_starts_another(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(turns, "_IDLE_SECONDS", 0.01)
    line = Turns("turns")
    first = thread_of(line)
    first.join(PATIENCE)
    assert not first.is_alive()
    second = thread_of(line)
    assert second is not first
    second.join(PATIENCE)
    assert not second.is_alive()


def test_no_call_is_lost_to_a_thread_that_is_about_to_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(turns, "_IDLE_SECONDS", 0.0)
    line = Turns("turns")
    for number in range(2_000):
        assert made(line, lambda number=number: number).result(PATIENCE) == number


def test_a_line_that_is_forgotten_takes_its_thread_along():
    line = Turns("turns")
    thread = thread_of(line)
    del line
    gc.collect()
    thread.join(PATIENCE)
    assert not thread.is_alive()


async def test_what_was_put_is_made_before_a_line_is_closed_and_nothing_afterwards():
    line, gate, seen = Turns("turns"), threading.Event(), []
    line.put(lambda: gate.wait(PATIENCE))
    line.put(lambda: seen.append("made"))
    closing = asyncio.create_task(line.close())
    await asyncio.sleep(0)
    gate.set()
    await closing
    assert seen == ["made"]
    assert not line.put(lambda: seen.append("late"))
    await line.close()
    assert seen == ["made"]


async def test_stores_that_nobody_uses_have_no_threads(tmp_path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(turns, "_IDLE_SECONDS", 0.01)
    before = set(threading.enumerate())
    files = [DirectoryFileStore(tmp_path / str(number), durable=False) for number in range(20)]
    records = [InProcessRecordStore(embedder=None) for _ in range(20)]
    for store in files:
        await store.write("a", "tea", expected=None, origin=Origin())
    for store in records:
        await store.add("Likes tea.")
        assert len(await store.search("tea")) == 1
    for thread in set(threading.enumerate()) - before:
        if thread.name in ("memshelf-directory", "memshelf-recall"):
            await asyncio.to_thread(thread.join, PATIENCE)
            assert not thread.is_alive()
    for store in files:
        assert (await store.read("a")).text == "tea"
    for store in records:
        assert len(await store.search("tea")) == 1
