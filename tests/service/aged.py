"""Stores whose versions were written long ago."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

from memshelf.origin import Origin
from memshelf.service.accounts import Accounts
from memshelf.service.data import engine_for
from memshelf.storage.ids import Mint
from memshelf.stores.catalogue import Stores
from memshelf.stores.memories import Memories
from memshelf.stores.shelf import Shelf

LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


async def old_store(shelf: Shelf, *contents: str) -> str:
    """A store with a memory of these contents, the last of which is current."""
    workspace = await Accounts(shelf.engine).make_workspace("default")
    store = (await Stores(shelf, workspace).create("Old")).id
    memories = Memories(shelf, workspace, store)
    memory = await memories.create("/a.md", contents[0], origin=Origin(api_key_id="apikey_1"))
    for content in contents[1:]:
        await memories.update(memory.id, content=content, origin=Origin(api_key_id="apikey_1"))
    return store


def prepared(where: tuple[str, ...], *contents: str) -> tuple[str, str]:
    """An old store in a service's data, and a key for it."""
    option, place = where
    engine = engine_for(place, None) if option == "--data" else engine_for(None, place)

    async def prepare() -> tuple[str, str]:
        try:
            store = await old_store(Shelf(engine, mint=Mint(lambda: LONG_AGO)), *contents)
            return store, await Accounts(engine).create_key("default")
        finally:
            await engine.aclose()

    return asyncio.run(prepare())
