"""Serving the application on a socket, until the process is told to end."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn
import uvloop

from memshelf.service.app import Beside, create_app
from memshelf.service.config import ServiceConfig
from memshelf.service.logs import RequestLog
from memshelf.service.protocol import protocol_for
from memshelf.service.state import ServiceState
from memshelf.stores.shelf import Shelf

__all__ = ["bound", "run"]

_BACKLOG = 2_048
_YOUNG_OBJECTS = 20_000
"""How many more objects than were freed may be made before there is a search for garbage: 32 requests at once make
more than Python's 700, and their garbage is freed without a search."""


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens there; port 0 is any free one. `OSError`, which names the address."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        raise OSError(error.errno, error.strerror, f"{host}:{port}") from error
    return listener


def run(
    shelf: Shelf,
    config: ServiceConfig,
    listener: socket.socket,
    log: RequestLog,
    started: Callable[[], None],
    beside: Beside | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM, then finish what was begun. `started` is called when requests are answered."""
    state = ServiceState(shelf, config, log=log)
    settings = uvicorn.Config(
        create_app(state, beside),
        http=protocol_for(config, shelf.mint),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=max(1, round(config.idle_seconds)),
        timeout_graceful_shutdown=max(1, round(config.shutdown_seconds)),
    )
    server = _Server(settings, state, started)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(server.serve(sockets=[listener]))


class _Server(uvicorn.Server):
    def __init__(self, settings: uvicorn.Config, state: ServiceState, started: Callable[[], None]) -> None:
        super().__init__(settings)
        self._state = state
        self._tell = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            gc.collect()
            gc.freeze()  # no search for garbage looks again at what is there to stay
            gc.set_threshold(_YOUNG_OBJECTS)
            self._tell()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await super().shutdown(sockets)
        if self.force_exit:  # SIGINT came twice: requests are not waited for, but the database is closed as ever
            for task in self.server_state.tasks:
                task.cancel()
            await self.lifespan.shutdown()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        # uvicorn's own way raises the signal again at the end, so that being told to end would look like a failure.
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._end, number)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _end(self, number: int) -> None:
        self._state.ending = True
        self.handle_exit(number, None)
