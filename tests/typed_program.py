"""A user's program, which is only type-checked: what the public names are to mypy, and that classes of one's own are
taken for the protocols."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import assert_type

from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent

from memshelf import (
    Agent,
    AgentSpec,
    BundledEmbedder,
    Changes,
    DirectoryFileStore,
    Embedder,
    EndpointEmbedder,
    EntryInfo,
    Executable,
    FileEntry,
    FileMemoryCapability,
    FileMount,
    FileStore,
    FileText,
    FullResync,
    HarnessBuilder,
    HarnessResult,
    HarnessState,
    HistoryFileStore,
    InProcessFileStore,
    InProcessRecordStore,
    MemoryCursors,
    MemoryEntry,
    MemoryRecord,
    MemoryStoreError,
    MemoryStoreFileStore,
    NewRecord,
    Origin,
    PlatformFileStore,
    PostgresFileStore,
    PostgresRecordStore,
    RecallRecordStore,
    RecordMemoryCapability,
    RecordMount,
    RecordPage,
    RecordStore,
    SearchableFileStore,
    Secret,
    SqliteFileStore,
    SqliteRecordStore,
    Version,
    VersionPage,
    Workspace,
    WorkspaceMemoryConfig,
    find_secrets,
    mask_secrets,
    open_memory_store,
)


class OwnEmbedder:
    model, version, dimension = "own", "1", 3

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> list[list[float]]:
        return [[1.0, 0.0, float(query)] for _ in texts]


class OwnRecords:
    async def search(self, query: str, *, limit: int = 5) -> builtins.list[MemoryRecord]:
        return []

    async def list(self, *, limit: int = 50, cursor: str | None = None) -> RecordPage:
        return RecordPage((), None)

    async def add(self, text: str) -> MemoryRecord:
        return MemoryRecord(id="1", text=text)

    async def update(self, record_id: str, text: str) -> MemoryRecord:
        return MemoryRecord(id=record_id, text=text)

    async def delete(self, record_id: str) -> None: ...

    async def purge(self) -> None: ...


class Answer(BaseModel):
    text: str


own_embedder: Embedder = OwnEmbedder()
own_records: RecordStore = OwnRecords()
embedders: list[Embedder] = [BundledEmbedder(), EndpointEmbedder("http://127.0.0.1/v1", "m", dimension=3)]
recalled: list[RecallRecordStore] = [
    InProcessRecordStore(embedder=own_embedder),
    SqliteRecordStore("records.db", embedder=None),
    PostgresRecordStore("postgresql://127.0.0.1"),
]
records: list[RecordStore] = [own_records, *recalled]
searched: list[SearchableFileStore] = [InProcessFileStore(), DirectoryFileStore("files")]
kept: list[HistoryFileStore] = [SqliteFileStore("files.db"), PostgresFileStore("postgresql://127.0.0.1")]
files: list[FileStore] = [*searched, *kept]


async def stores(store: SqliteFileStore) -> None:
    assert_type(await store.write("a.md", "x", expected=None, origin=Origin()), str)
    assert_type(await store.read("a.md"), FileText)
    assert_type(await store.list(), list[FileEntry])
    assert_type(await store.changes(None), Changes | FullResync)
    assert_type(await store.versions("a.md"), VersionPage)
    assert_type((await store.versions("a.md")).versions, tuple[Version, ...])
    async with SqliteRecordStore("records.db") as facts:
        assert_type(facts, SqliteRecordStore)
        assert_type(await facts.search("x", limit=1), list[MemoryRecord])
        assert_type(await facts.add_many([NewRecord(text="x")]), list[MemoryRecord])
        assert_type((await facts.list()).records, tuple[MemoryRecord, ...])
    hosted = await open_memory_store("http://127.0.0.1", "key", "notes")
    assert_type(hosted, MemoryStoreFileStore | PlatformFileStore)
    try:
        await hosted.read("a.md")
    except MemoryStoreError as error:
        assert_type(error.current, FileText | None)
    assert_type(find_secrets("x"), list[Secret])
    assert_type(mask_secrets("x"), str)


async def agents(store: FileStore) -> None:
    memory = FileMemoryCapability([FileMount("user", store, "write")], cursors=MemoryCursors())
    facts = RecordMemoryCapability([RecordMount("facts", own_records, "read")])
    assert_type((await PydanticAgent("test", capabilities=[memory, facts]).run("x")).output, str)
    executable = HarnessBuilder().build(AgentSpec(model="test"), output_type=str, capabilities=(memory,))
    assert_type(executable, Executable[str])
    result = await executable.run("x")
    assert_type(result, HarnessResult[str])
    assert_type(result.state, HarnessState)
    assert_type(result.output_or_raise(), str)
    built = HarnessBuilder().build(AgentSpec(model="test"), output_type=Answer)
    assert_type((await built.run("x")).output_or_raise(), Answer)


async def workspaces() -> None:
    async with Workspace.on(lambda user: SqliteFileStore("users.db", user)) as workspace:
        assert_type(workspace, Workspace)
        assert_type(await workspace.write_memory_entry("Tea", "Green."), str)
        assert_type(await workspace.list_entries(), list[EntryInfo])
        assert_type(await workspace.search("tea"), list[MemoryEntry])
        config = WorkspaceMemoryConfig(max_memory_entries=5)
        agent = Agent("test", workspace=workspace, session_id="s", long_term_memory_config=config)
        assert_type(agent, Agent[str])
        assert_type(agent.run_sync("x").output_or_raise(), str)
        typed = Agent("test", output_type=Answer)
        assert_type((await typed.run("x")).output_or_raise(), Answer)
