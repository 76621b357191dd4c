"""Workspaces on every kind of store."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from memshelf import InProcessFileStore, MemoryStoreFileStore, PostgresFileStore, SqliteFileStore, Workspace
from memshelf.storage.sqlite_engine import SqliteEngine

sys.path.append(str(Path(__file__).parents[1] / "files"))
from hosted import URL, account, served

USERS = ("default", "alice", "bob")
STORES = ("directory", "sqlite", "in process", "postgres", "hosted")


@pytest.fixture(params=STORES)
async def opened(request, tmp_path):
    """Opens workspaces that share what they keep, without an embedder; each is another handle on it."""
    async with AsyncExitStack() as stack:
        yield await _opener(request, tmp_path, stack)


async def _opener(request, place: Path, stack: AsyncExitStack) -> Callable[..., Workspace]:
    match request.param:
        case "directory":
            return lambda user_id=None: Workspace(place, user_id, durable=False, embedder=None)
        case "in process":
            kept: dict[str, InProcessFileStore] = {}

            def open_store(user_id: str):
                return kept.setdefault(user_id, InProcessFileStore())

            async def users():
                return [user_id for user_id, store in kept.items() if await store.list()]

        case "sqlite":
            engine = SqliteEngine(place / "workspace.db", durable=False)
            stack.push_async_callback(engine.aclose)

            def open_store(user_id: str):
                store = SqliteFileStore(place / "workspace.db", memory=user_id, durable=False)
                stack.push_async_callback(store.aclose)
                return store

            users = None
        case "postgres":
            server = request.getfixturevalue("postgres_server")

            def open_store(user_id: str):
                store = PostgresFileStore(server.dsn, memory=f"{place} {user_id}")
                stack.push_async_callback(store.aclose)
                return store

            users = None
        case "hosted":
            engine = SqliteEngine(place / "memshelf.db", durable=False)
            client = await stack.enter_async_context(served(engine))
            accounts = {}
            for user_id in USERS:
                (place / user_id).mkdir()
                accounts[user_id] = await account(engine, place / user_id)

            def open_store(user_id: str):
                key, store_id = accounts[user_id]
                return MemoryStoreFileStore(URL, key, store_id, client=client)

            users = None
    return lambda user_id=None: Workspace.on(open_store, user_id, users=users, embedder=None)


@pytest.fixture
def directory(tmp_path):
    """Opens workspaces in one directory, without an embedder."""
    return lambda user_id=None, **options: Workspace(
        tmp_path, user_id, **{"durable": False, "embedder": None} | options
    )
