"""Servers for examples that run event loops of their own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager

SECONDS = 60


@contextmanager
def in_a_thread(server: AbstractAsyncContextManager[str]) -> Iterator[str]:
    """What the server yields, its address, while it runs in a thread."""
    ready, started = threading.Event(), list[tuple[str, asyncio.AbstractEventLoop, asyncio.Event]]()

    async def serve() -> None:
        done = asyncio.Event()
        async with server as address:
            started.append((address, asyncio.get_running_loop(), done))
            ready.set()
            await done.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert ready.wait(SECONDS)
    [(address, loop, done)] = started
    try:
        yield address
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(SECONDS)
