"""A wrong argument is refused where it is given, and not by the first thing that would use it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from memshelf import (
    Agent,
    AgentSpec,
    DirectoryFileStore,
    EndpointEmbedder,
    Experiences,
    FileMemoryCapability,
    FileMount,
    HarnessBuilder,
    InProcessFileStore,
    InProcessRecordStore,
    PlatformFileStore,
    PydanticAIEmbedder,
    RecordMemoryCapability,
    RecordMount,
    SessionLog,
    SessionLogCapability,
    SqliteFileStore,
    SqliteRecordStore,
    Workspace,
    WorkspaceCapability,
    import_memories,
)

FILES = FileMount("files", InProcessFileStore(), "write")
RECORDS = RecordMount("records", InProcessRecordStore(embedder=None), "write")


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("model", lambda: Agent(5)),
        ("model", lambda: HarnessBuilder().build(AgentSpec(), model=5)),
        ("working_memory", lambda: Agent(working_memory=5)),
        ("permissions", lambda: Agent(permissions={"memory.*": "ask"})),
        ("permissions", lambda: HarnessBuilder().build(AgentSpec(), permissions="ask")),
        ("log", lambda: SessionLogCapability("chat")),
        ("limits", lambda: FileMemoryCapability([FILES], limits=8_192)),
        ("origin", lambda: FileMemoryCapability([FILES], origin="ann")),
        ("limits", lambda: RecordMemoryCapability([RECORDS], limits=5)),
        ("config", lambda: WorkspaceCapability(Workspace("w"), True)),
        ("cwd", lambda: WorkspaceCapability(Workspace("w"), cwd=5)),
        ("origin", lambda: WorkspaceCapability(Workspace("w"), origin="ann")),
        ("guide", lambda: FileMount("a", InProcessFileStore(), "write", guide=5)),
        ("cursor_key", lambda: FileMount("a", InProcessFileStore(), "write", cursor_key=5)),
        ("format", lambda: InProcessFileStore(format=5)),
        ("format", lambda: DirectoryFileStore("d", format=5)),
        ("format", lambda: SqliteFileStore("a.db", format=5)),
        ("format", lambda: PlatformFileStore("https://h", "key", "store", format=5)),
        ("max_chars", lambda: SqliteRecordStore("a.db", max_chars="many")),
        ("namespace", lambda: SqliteRecordStore("a.db", 5)),
        ("max_chars", lambda: InProcessRecordStore(max_chars=None)),
        ("model", lambda: EndpointEmbedder("http://h/v1", None, dimension=2)),
        ("dimension", lambda: EndpointEmbedder("http://h/v1", "model", dimension="2")),
        ("embedder", lambda: PydanticAIEmbedder("openai:text-embedding-3-small", dimension=2)),
        ("store", lambda: Experiences("w")),
        ("root", lambda: DirectoryFileStore(5)),
        ("database", lambda: SqliteFileStore(None)),
        ("database", lambda: SqliteRecordStore(b"a.db")),
        ("path", lambda: Workspace(5)),
        ("directory", lambda: SessionLog("chat", 5)),
    ],
)
def test_an_argument_of_another_type_is_refused_by_name(tmp_path, monkeypatch, name, make):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match=rf"^`{name}` is of type .+, not \w+\.$"):
        make()


@pytest.mark.parametrize("now", ["2026-01-01", date(2026, 1, 1), 5])
async def test_a_time_of_a_search_is_a_datetime(now):
    async with InProcessRecordStore(embedder=None) as store:
        with pytest.raises(TypeError, match=r"^`now` is of type datetime or None, not \w+\.$"):
            await store.search("tea", limit=1, now=now)


async def test_a_class_is_no_store_and_an_id_no_collection_of_ids(tmp_path):
    with pytest.raises(TypeError, match="is not a RecordStore"):
        RecordMount("records", SqliteRecordStore, "write")
    with pytest.raises(TypeError, match="is not a FileStore"):
        FileMount("files", SqliteFileStore, "write")
    async with SqliteRecordStore(tmp_path / "a.db", embedder=None) as store:
        record = await store.add("tea")
        with pytest.raises(TypeError, match="also of one"):
            await store.erase(record.id)
        assert len((await store.list(limit=5)).records) == 1


PLACES = [
    DirectoryFileStore,
    SqliteFileStore,
    SqliteRecordStore,
    Workspace,
    Workspace.folder,
    lambda place: SessionLog("chat", place),
    lambda place: Agent(session_id="chat", session_directory=place),
    SessionLog.list_sessions,
    SessionLog("chat").export,
]


@pytest.mark.parametrize("make", PLACES)
@pytest.mark.parametrize("kind", [str, Path])
def test_an_address_is_no_path_and_is_not_repeated(tmp_path, monkeypatch, make, kind):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"is a path on this machine; postgresql://... is the address") as refused:
        make(kind("postgresql://ann:s3cret@127.0.0.1/db"))
    assert "s3cret" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("make", PLACES)
@pytest.mark.parametrize("path", ["", "a\0b"])
def test_what_no_system_takes_for_a_path_is_refused_where_it_is_given(tmp_path, monkeypatch, make, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"is empty|NUL|kept in a file"):
        make(path)


async def test_an_import_names_what_it_was_given_instead_of_a_workspace(tmp_path):
    with pytest.raises(TypeError, match=r"^`into` is of type Workspace, not str\.$"):
        await import_memories(tmp_path, "workspace")
    with pytest.raises(TypeError, match=r"^`source` is of type str or PathLike, not Workspace\.$"):
        await import_memories(Workspace(tmp_path), Workspace(tmp_path))
