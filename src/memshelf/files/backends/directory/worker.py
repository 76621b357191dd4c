"""The thread in which a store makes its changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from memshelf.turns import Turns

__all__ = ["Worker"]

T = TypeVar("T")


class Worker:
    """Runs calls in turn in one thread, for tasks of any event loop. `after` runs after each, when it has answered.

    Changes take turns anyway, and writers that wait for another process must not use up the threads that readers
    share. The thread starts with a call, also after `stop` and in a forked child. A process that ends does not wait for
    it: it may be waiting for another process itself, and a change survives being cut off.
    """

    def __init__(self, after: Callable[[], None]) -> None:
        self._after = after
        self._turns: dict[int, Turns] = {}  # by process

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

        while not self._here().put(work):
            pass  # it was closed at this moment; the next is another
        return await answer

    async def stop(self) -> None:
        """Wait for the calls under way, and end the thread."""
        if (turns := self._turns.pop(os.getpid(), None)) is not None:
            await turns.close()

    def _here(self) -> Turns:
        process = os.getpid()
        return self._turns.get(process) or self._turns.setdefault(process, Turns("memshelf-directory"))
