"""The service in the process of its caller: for commands on local data, without a socket and without a key."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2

from memshelf.service.accounts import Caller
from memshelf.service.app import create_app
from memshelf.service.auth import Gate
from memshelf.service.config import ServiceConfig
from memshelf.service.state import ServiceState
from memshelf.storage.transaction import Engine
from memshelf.stores.shelf import Shelf

__all__ = ["client_of"]


class _OpenGate(Gate):
    """Whoever can read the database needs no key."""

    def __init__(self, state: ServiceState, caller: Caller) -> None:
        super().__init__(state.accounts, state.config.key_seconds, state.clock)
        self._caller = caller

    async def caller(self, headers: Mapping[bytes, bytes]) -> Caller:
        del headers
        return self._caller


@asynccontextmanager
async def client_of(engine: Engine, workspace: str, user: str) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of the service on this database, whose changes are the user's. Closes the engine at the end.
    `not_found` when there is no workspace of this name."""
    state = ServiceState(Shelf(engine), ServiceConfig(body_bytes=67_108_864))
    try:
        state.gate = _OpenGate(state, Caller(user, await state.accounts.workspace(workspace), user=user))
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=create_app(state))) as client:
            yield client
    finally:
        await engine.aclose()
