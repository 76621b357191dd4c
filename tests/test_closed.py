"""A store that was closed opens again when it is used; what cannot is `unavailable`, and no error of a library."""

from __future__ import annotations

import httpx2
import pytest

from memshelf import (
    MEM0_OSS,
    DirectoryFileStore,
    EndpointEmbedder,
    InProcessRecordStore,
    MemoryStoreFileStore,
    Origin,
    PlatformFileStore,
    PostgresFileStore,
    PostgresRecordStore,
    SqliteFileStore,
    SqliteRecordStore,
    Workspace,
)
from memshelf.testing import refused

FILES = {
    "directory": lambda place, _: DirectoryFileStore(place / "files"),
    "sqlite": lambda place, _: SqliteFileStore(place / "files.db"),
    "postgres": lambda _, request: PostgresFileStore(request.getfixturevalue("postgres_server").dsn, "closed"),
}
RECORDS = {
    "in process": lambda *_: InProcessRecordStore(embedder=None),
    "sqlite": lambda place, _: SqliteRecordStore(place / "records.db", embedder=None),
    "postgres": lambda _, request: PostgresRecordStore(
        request.getfixturevalue("postgres_server").dsn, "closed", embedder=None
    ),
}


@pytest.mark.parametrize("kind", FILES)
async def test_files_are_read_and_written_after_the_store_was_closed(tmp_path, request, kind):
    store = FILES[kind](tmp_path, request)
    version = await store.write("a.md", "tea", expected=None, origin=Origin())
    await store.aclose()
    await store.aclose()
    assert (await store.read("a.md")).version == version
    await store.aclose()
    await store.write("a.md", "coffee", expected=version, origin=Origin())
    await store.purge()
    await store.aclose()


@pytest.mark.parametrize("kind", RECORDS)
async def test_records_are_found_and_added_after_the_store_was_closed(tmp_path, request, kind):
    store = RECORDS[kind](tmp_path, request)
    tea = await store.add("green tea")
    await store.aclose()
    await store.aclose()
    assert [each.id for each in await store.search("tea", limit=5)] == [tea.id]
    await store.aclose()
    await store.add("black tea")
    assert len((await store.list(limit=5)).records) == 2
    await store.purge()
    await store.aclose()


async def test_a_workspace_goes_on_after_it_was_closed(tmp_path):
    workspace = Workspace(tmp_path, embedder=None)
    async with workspace:
        file = await workspace.write_memory_entry("Tea", "Green.", "user")
    assert [each.file for each in await workspace.search("tea")] == [file]
    await workspace.forget(file)
    await workspace.aclose()


@pytest.mark.parametrize("store", [PlatformFileStore, MemoryStoreFileStore])
async def test_a_client_that_its_owner_closed_is_unavailable(store):
    client = httpx2.AsyncClient()
    await client.aclose()
    hosted = store("http://127.0.0.1:9", "key", "memstore_x", client=client)
    for call in (hosted.list(), hosted.write("a.md", "tea", expected=None, origin=Origin())):
        assert "client is closed" in (await refused("unavailable", call)).message
    embedder = EndpointEmbedder("http://127.0.0.1:9/v1", "model", dimension=2, http=client)
    assert "client is closed" in (await refused("unavailable", embedder.embed(["tea"]))).message


async def test_a_mem0_store_is_unavailable_behind_its_block():
    async with MEM0_OSS.open({"base_url": "https://127.0.0.1:9"}, namespace="ann") as store:
        pass
    for call in (store.list(limit=1), store.search("tea", limit=1), store.add("tea"), store.delete("x"), store.purge()):
        assert "Open the store again" in (await refused("unavailable", call)).message
