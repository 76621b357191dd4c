"""The thread in which a store makes its changes."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, TypeAlias, TypeVar

__all__ = ["Worker"]

T = TypeVar("T")


class Worker:
    """Runs calls in turn in one thread, for tasks of any event loop. `after` runs after each, when it has answered.

    Changes take turns anyway, and writers that wait for another process must not use up the threads that readers
    share. The thread starts with the first call, and anew after `stop` and in a forked child. A process that ends does
    not wait for it: it may be waiting for another process itself.
    """

    def __init__(self, after: Callable[[], None]) -> None:
        self._after = after
        self._queues: dict[int, _Queue] = {}  # by process

    async def run(self, call: Callable[[], T]) -> T:
        """What the call returns or raises. When the caller is cancelled, a call that has begun goes on."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            if answer.cancelled():
                return
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001  # the caller's, as the result would be
                deliver(answer.set_exception, error)
            else:
                deliver(answer.set_result, result)
            self._after()

        def deliver(settle: Callable[[Any], None], value: object) -> None:  # a result or an exception
            def unless_cancelled() -> None:
                if not answer.done():
                    settle(value)

            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(unless_cancelled)

        while not self._queue().put(work):
            pass  # it was closed at this moment; the next is another
        return await answer

    async def stop(self) -> None:
        """Wait for the calls under way, and end the thread."""
        if (queue := self._queues.pop(os.getpid(), None)) is not None:
            await queue.close()

    def _queue(self) -> _Queue:
        process = os.getpid()
        return self._queues.get(process) or self._queues.setdefault(process, _Queue())


_Calls: TypeAlias = "SimpleQueue[Callable[[], object] | None]"


class _Queue:
    """Calls, and the thread that makes them; it starts with the first, and ends with `close` or with this object."""

    def __init__(self) -> None:
        self._calls: _Calls = SimpleQueue()
        self._thread: Thread | None = None
        self._changing = Lock()
        self._closed = False

    def put(self, call: Callable[[], object]) -> bool:
        """Whether the call will be made."""
        with self._changing:
            if self._closed:
                return False
            if self._thread is None:
                # An executor's thread would be waited for when the process ends. A change survives being cut off.
                self._thread = Thread(target=_work, args=(self._calls,), name="memshelf-directory", daemon=True)
                self._thread.start()
                weakref.finalize(self, self._calls.put, None).atexit = False
            self._calls.put(call)
            return True

    async def close(self) -> None:
        """Wait until every call that was put is made."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def end() -> None:
            with suppress(RuntimeError):  # the loop is closed: nobody waits any more
                loop.call_soon_threadsafe(ended.set)

        with self._changing:
            self._closed = True
            self._calls.put(end)
            self._calls.put(None)
        if self._thread is not None:
            await ended.wait()
            self._thread.join()  # it has nothing left to do


def _work(calls: _Calls) -> None:
    while (call := calls.get()) is not None:
        call()
        del call  # it knows its store, which may be done with before the next one comes
