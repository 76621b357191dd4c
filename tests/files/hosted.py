"""Memory stores behind the HTTP API, in the process of the test: for the contracts."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2

from memshelf.limits import FileFormat
from memshelf.service.app import create_app
from memshelf.service.config import ServiceConfig
from memshelf.service.state import ServiceState
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.storage.transaction import Engine
from memshelf.stores.catalogue import Stores
from memshelf.stores.shelf import Shelf

URL = "http://memshelf.test"


@asynccontextmanager
async def served(engine: Engine) -> AsyncIterator[httpx2.AsyncClient]:
    """A client of a service on that database."""
    transport = httpx2.ASGITransport(app=create_app(ServiceState(Shelf(engine), ServiceConfig())))
    async with httpx2.AsyncClient(transport=transport) as client:
        try:
            yield client
        finally:
            await engine.aclose()


async def account(engine: Engine, place: Path) -> tuple[str, str]:
    """A key and the id of a store, the same ones for the same place."""
    kept = place / "account.json"
    if not kept.exists():
        state = ServiceState(Shelf(engine), ServiceConfig())
        key = await state.accounts.create_key(f"workspace of {place}")
        caller = await state.gate.caller({b"x-api-key": key.encode()})
        store = await Stores(state.shelf, caller.workspace_id).create("Notes")
        kept.write_text(json.dumps([key, store.id]))
    key, store_id = json.loads(kept.read_text())
    return key, store_id


@asynccontextmanager
async def hosted(
    store_type: type[Any], place: Path, format: FileFormat | None = None, engine: Engine | None = None
) -> AsyncIterator[Any]:
    engine = engine or SqliteEngine(place / "memshelf.db", durable=False)
    async with served(engine) as client:
        key, store_id = await account(engine, place)
        async with store_type(URL, key, store_id, client=client, format=format) as store:
            yield store
