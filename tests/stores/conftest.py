"""A shelf in a SQLite database, with a workspace."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.stores.catalogue import Stores
from memshelf.stores.memories import Memories
from memshelf.stores.shelf import Shelf

sys.path.append(str(Path(__file__).parent))
from workspace_of_tests import WORKSPACE


@pytest.fixture
async def shelf(tmp_path: Path) -> AsyncIterator[Shelf]:
    shelf = Shelf(SqliteEngine(tmp_path / "shelf.db", durable=False))
    await shelf.engine.write(
        lambda transaction: transaction.execute("INSERT INTO workspaces VALUES ($1, $2, 0)", WORKSPACE, "default")
    )
    yield shelf
    await shelf.engine.aclose()


@pytest.fixture
async def store(shelf: Shelf) -> str:
    return (await Stores(shelf, WORKSPACE).create("Notes")).id


@pytest.fixture
def memories(shelf: Shelf, store: str) -> Memories:
    return Memories(shelf, WORKSPACE, store)
