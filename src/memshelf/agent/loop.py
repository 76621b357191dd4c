"""The event loop of those who have none."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from memshelf.forks import Process

__all__ = ["run_sync"]

Answer = TypeVar("Answer")


class _Loop:
    """The loop of one thread. It stays open between calls, because the connections of a model belong to a loop."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.process = Process()

    def __del__(self) -> None:  # the thread has ended
        if self.process.here:
            self.runner.close()


_OF_THREAD = threading.local()


def run_sync(coroutine: Coroutine[Any, Any, Answer]) -> Answer:
    """Run to the end, and return what comes of it. `RuntimeError` where an event loop is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _loop().runner.run(coroutine)
    coroutine.close()
    raise RuntimeError("run_sync is for code without an event loop. There is one here: use `await agent.run(...)`.")


def _loop() -> _Loop:
    loop: _Loop | None = getattr(_OF_THREAD, "loop", None)
    if loop is None or not loop.process.here:  # after a fork, the loop is the parent's
        loop = _OF_THREAD.loop = _Loop()
    return loop


@atexit.register
def _close() -> None:
    """The main thread outlives the modules that closing its loop needs."""
    _OF_THREAD.__dict__.clear()
