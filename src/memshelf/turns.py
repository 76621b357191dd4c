"""Calls that are made one after the other, off the event loop, in a thread that is there only while it is needed."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import TypeAlias

from memshelf.errors import MemoryStoreError

__all__ = ["Turns"]

_IDLE_SECONDS = 5.0
"""How long a thread waits for the next call. A process may have thousands of stores, most of which nobody uses now."""

_Call: TypeAlias = Callable[[], object]


class Turns:
    """Makes calls in the order in which they were put. They answer by themselves, and raise nothing.

    The thread starts with a call, and ends when there was none for a while, with `close`, or with this object. A
    process that ends does not wait for it. It does not survive a fork: in a child, use another object.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._line = _Line()
        self._closed = False
        weakref.finalize(self, self._line.calls.put, None).atexit = False

    def put(self, call: _Call) -> bool:
        """Whether the call will be made: not after `close`. `unavailable` when the system has no thread to give."""
        with self._line.changing:
            if self._closed:
                return False
            if self._line.thread is None:
                # An executor's thread would be waited for when the process ends.
                thread = Thread(target=_work, args=(self._line,), name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:
                    raise MemoryStoreError("unavailable", f"The system refuses: {error}; nothing changed.") from error
                self._line.thread = thread
            self._line.calls.put(call)
            return True

    def end(self) -> Thread | None:
        """Take no more calls, and end the thread when those before are made; the thread, if there is one."""
        with self._line.changing:
            self._closed = True
            self._line.calls.put(None)
            return self._line.thread

    async def close(self) -> None:
        """`end`, and wait until every call that was put is made."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def tell() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(ended.set)

        with self._line.changing:
            if waits := self._line.thread is not None:
                self._line.calls.put(tell)
        thread = self.end()
        if waits:
            await ended.wait()
        if thread is not None:
            thread.join()  # it has nothing left to do


class _Line:
    """What a thread knows: not the object whose calls these are, with which it is to end."""

    def __init__(self) -> None:
        self.calls: SimpleQueue[_Call | None] = SimpleQueue()
        self.changing = Lock()
        self.thread: Thread | None = None


def _work(line: _Line) -> None:
    while True:
        try:
            call = line.calls.get(timeout=_IDLE_SECONDS)
        except Empty:
            with line.changing:
                if line.calls.empty():
                    line.thread = None
                    return
            continue
        if call is None:
            with line.changing:
                line.thread = None
            return
        call()
        del call  # it knows its store, which may be done with before the next one comes
