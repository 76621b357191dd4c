"""A wrong argument is refused where it is given, and not by the first thing that would use it."""

from __future__ import annotations

import traceback
from datetime import date
from pathlib import Path

import pytest

from memshelf import (
    MEM0_OSS,
    Agent,
    AgentSpec,
    BundledEmbedder,
    CompactionCapability,
    DirectoryFileStore,
    EndpointEmbedder,
    Experiences,
    FileMemoryCapability,
    FileMemoryLimits,
    FileMount,
    HandoffCapability,
    HarnessBuilder,
    HistoryWindowCapability,
    InProcessFileStore,
    InProcessRecordStore,
    MemoryCursors,
    MemoryStoreError,
    MemoryStoreFileStore,
    Origin,
    PlatformFileStore,
    PostgresFileStore,
    PydanticAIEmbedder,
    RecordMemoryCapability,
    RecordMount,
    SessionLog,
    SessionLogCapability,
    SessionSummaryCapability,
    SqliteFileStore,
    SqliteRecordStore,
    ToolPermissions,
    WorkingMemory,
    Workspace,
    WorkspaceCapability,
    WorkspaceMemoryConfig,
    find_secrets,
    import_memories,
    open_memory_store,
    session_state,
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
        ("origin", lambda: RecordMemoryCapability([RECORDS], origin="ann")),
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
        ("durable", lambda: SqliteFileStore("a.db", durable="no")),
        ("durable", lambda: DirectoryFileStore("d", durable=None)),
        ("memory", lambda: SqliteFileStore("a.db", 5)),
        ("schema", lambda: PostgresFileStore("postgresql://h/d", schema=5)),
        ("tools", lambda: Agent(tools="search")),
        ("num_history_turns", lambda: Agent(num_history_turns="5")),
        ("num_history_turns", lambda: HistoryWindowCapability(num_history_turns=True)),
        ("add_history_to_context", lambda: Agent(add_history_to_context="no")),
        ("usage_limits", lambda: Agent("test").run_sync("hi", usage_limits=5)),
        ("approvals", lambda: Agent("test").run_sync("hi", approvals=True)),
        ("memory", lambda: HistoryWindowCapability(5)),
        ("memory", lambda: CompactionCapability(memory="m")),
        ("memory", lambda: SessionSummaryCapability(True)),
        ("threshold", lambda: CompactionCapability("0.9")),
        ("context_window_tokens", lambda: CompactionCapability(context_window_tokens="8000")),
        ("reminder", lambda: HandoffCapability("0.6")),
        ("log", lambda: session_state("chat")),
        ("rules", lambda: ToolPermissions(rules=["memory.*"])),
        ("tools", lambda: FileMemoryCapability([FILES], tools="view")),
        ("positions", lambda: MemoryCursors("user")),
        ("always_load", lambda: FileMount("a", InProcessFileStore(), "write", always_load="README.md")),
        ("recall", lambda: RecordMount("a", InProcessRecordStore(embedder=None), "write", recall="no")),
        ("format", lambda: FileMemoryLimits(format=5)),
        ("text", lambda: find_secrets(None)),
        ("store", lambda: MemoryStoreFileStore("https://h", "key", None)),
        ("store", lambda: PlatformFileStore("https://h", "key", 5)),
        ("headers", lambda: PlatformFileStore("https://h", "key", "store", headers=None)),
        ("timeout", lambda: PlatformFileStore("https://h", "key", "store", timeout="30")),
        ("client", lambda: PlatformFileStore("https://h", "key", "store", client=5)),
        ("http", lambda: EndpointEmbedder("http://h/v1", "model", dimension=2, http=5)),
        ("http", lambda: MEM0_OSS.open({"base_url": "https://h"}, namespace="ann", http=5)),
        ("create_session_summary", lambda: WorkingMemory(create_session_summary="no")),
        ("summary_seconds", lambda: WorkingMemory(summary_seconds="60")),
        ("auto_extract_memory", lambda: WorkspaceMemoryConfig(auto_extract_memory="no")),
        ("config", lambda: Workspace("w", "ann", {"memory_dir": ""})),
        ("stores", lambda: Workspace(None, stores=InProcessFileStore())),
        (r"open_store\(user_id\)", lambda: Workspace.on(lambda user_id: user_id)),
    ],
)
def test_an_argument_of_another_type_is_refused_by_name(tmp_path, monkeypatch, name, make):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(TypeError, match=rf"^`{name}` is of type .+, not .+\.$"):
        make()


@pytest.mark.parametrize("now", ["2026-01-01", date(2026, 1, 1), 5])
async def test_a_time_of_a_search_is_a_datetime(now):
    async with InProcessRecordStore(embedder=None) as store:
        with pytest.raises(TypeError, match=r"^`now` is of type datetime or None, not \w+\.$"):
            await store.search("tea", limit=1, now=now)


async def test_a_store_of_a_server_is_an_id_before_anything_is_asked():
    for store, refusal in ((5, TypeError), ("", ValueError)):
        with pytest.raises(refusal, match=r"^`store` is "):
            await open_memory_store("http://127.0.0.1:1", "key", store)


async def test_a_class_is_no_store_and_an_id_no_collection_of_ids(tmp_path):
    with pytest.raises(TypeError, match="is not a RecordStore"):
        RecordMount("records", SqliteRecordStore, "write")
    with pytest.raises(TypeError, match="is not a FileStore"):
        FileMount("files", SqliteFileStore, "write")
    with pytest.raises(
        TypeError, match=r"^Mount files: str is not a FileStore, such as SqliteFileStore\('user.db'\) is.$"
    ):
        FileMount("files", "notes.db", "write")
    async with SqliteRecordStore(tmp_path / "a.db", embedder=None) as store:
        record = await store.add("tea")
        with pytest.raises(TypeError, match="also of one"):
            await store.erase(record.id)
        with pytest.raises(TypeError, match=r"^`record_ids` is of type Iterable, not int\.$"):
            await store.erase(5)
        with pytest.raises(TypeError, match=r"^`record_id` is of type str, not MemoryRecord\.$"):
            await store.erase([record])
        assert len((await store.list(limit=5)).records) == 1


async def test_an_address_that_cannot_be_read_does_not_tell_the_password(tmp_path):
    store = PostgresFileStore("postgresql://ann:s3cret/and-more@127.0.0.1/db")
    with pytest.raises(MemoryStoreError, match="percent-encoded") as refused:
        await store.list()
    assert "s3cret" not in "".join(traceback.format_exception(refused.value))


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


@pytest.mark.parametrize(
    "given",
    [SqliteFileStore("a.db"), Workspace("w"), FILES, "files", FileMemoryCapability],
    ids=lambda given: str(getattr(given, "__name__", type(given).__name__)),
)
def test_what_is_no_capability_is_told_how_a_store_becomes_one(given):
    for make in (
        lambda: Agent(capabilities=[given]),
        lambda: HarnessBuilder().build(AgentSpec(), capabilities=[given]),
    ):
        with pytest.raises(TypeError, match=r"such as FileMemoryCapability\(\[FileMount\(.+\)\]\), not "):
            make()


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("store", lambda: MemoryStoreFileStore("https://h", "key", "")),
        ("store", lambda: PlatformFileStore("https://h", "key", "")),
        ("dimension", lambda: EndpointEmbedder("http://h/v1", "model", dimension=0)),
        ("max_chars", lambda: InProcessRecordStore(max_chars=0)),
    ],
)
def test_an_id_that_is_empty_or_a_number_that_is_none_is_refused_by_name(name, make):
    with pytest.raises(ValueError, match=rf"^`{name}` is "):
        make()


def test_the_class_of_an_embedder_is_no_embedder():
    with pytest.raises(TypeError, match="is an Embedder"):
        InProcessRecordStore(embedder=BundledEmbedder)


@pytest.mark.parametrize("output_type", ["json", None])
def test_an_output_type_is_a_type(output_type):
    with pytest.raises(TypeError, match=r"^output_type is a type"):
        Agent(output_type=output_type)


@pytest.mark.parametrize(
    "make",
    [lambda: Workspace.on(InProcessFileStore()), lambda: Workspace.on(lambda user_id: user_id, users=["ann"]),
     lambda: WorkingMemory(count_tokens=5), lambda: HandoffCapability(count_tokens="words")],
)  # fmt: skip
def test_what_is_no_function_is_refused_where_it_is_given(make):
    with pytest.raises(TypeError, match=r"^`\w+` is a function, not \w+\.$"):
        make()


def test_a_class_of_the_same_name_is_told_apart():
    class FileFormat:
        """Another library's."""

    with pytest.raises(TypeError, match=r"is of type FileFormat or None, not test_arguments\.FileFormat\.$"):
        InProcessFileStore(format=FileFormat())
    with pytest.raises(TypeError, match=r"is of type FileStore, not the class SqliteFileStore\.$"):
        Experiences(SqliteFileStore)


@pytest.mark.parametrize("origin", [None, "ann"])
@pytest.mark.parametrize("store", ["in process", "directory", "sqlite"])
async def test_an_origin_is_an_origin_whether_or_not_the_store_keeps_it(tmp_path, store, origin):
    store = {
        "in process": InProcessFileStore,
        "directory": lambda: DirectoryFileStore(tmp_path / "d"),
        "sqlite": lambda: SqliteFileStore(tmp_path / "a.db"),
    }[store]()
    version = await store.write("a.md", "tea", expected=None, origin=Origin())
    for call in (
        store.write("b.md", "tea", expected=None, origin=origin),
        store.move("a.md", "b.md", expected=version, origin=origin),
        store.delete("a.md", expected=version, origin=origin),
    ):
        with pytest.raises(TypeError, match=r"^`origin` is of type Origin, not \w+\.$"):
            await call
    assert [entry.path for entry in await store.list()] == ["a.md"]


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("pattern", lambda s: s.search(5, regex=False, case_sensitive=False, path="", limit=5)),
        ("since", lambda s: s.versions(since="2026-01-01")),
        ("version_id", lambda s: s.read_version(None)),
        ("version_id", lambda s: s.restore(None, expected=None, origin=Origin())),
        ("version_id", lambda s: s.redact(5, by="ann")),
        ("by", lambda s: s.redact("memver_1", by=None)),
        ("origin", lambda s: s.replayed("ann")),
    ],
)
async def test_a_call_of_a_history_names_what_is_of_another_type(tmp_path, name, call):
    async with SqliteFileStore(tmp_path / "a.db") as store:
        with pytest.raises(TypeError, match=rf"^`{name}` is of type .+, not \w+\.$"):
            await call(store)
        with pytest.raises(ValueError, match="limit"):
            await store.search("tea", regex=False, case_sensitive=False, path="", limit=0)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("file", lambda w: w.read_entry(5)),
        ("file", lambda w: w.forget(None)),
        ("query", lambda w: w.search(None)),
        ("limit", lambda w: w.search("tea", "5")),
        ("query", lambda w: w.get_relevant_memories(None)),
        ("limit", lambda w: w.get_relevant_memories("tea", None)),
        ("already_surfaced", lambda w: w.get_relevant_memories("tea", already_surfaced=[])),
        ("query", lambda w: w.search_conversations(5)),
        ("session_id", lambda w: w.archive_conversation([{"role": "user", "content": "hi"}], 5)),
        ("cwd", lambda w: w.rules(5)),
        ("messages", lambda w: w.archive_conversation(None)),
        ("query", lambda w: w.freeze_snapshots(5)),
        ("messages", lambda w: w.experiences.learn_from(5)),
        ("lesson", lambda w: w.experiences.learn(b"Use tabs.")),
        ("asked", lambda w: w.experiences.learn("Use tabs.", asked=None)),
        ("file", lambda w: w.experiences.forget(None)),
        ("query", lambda w: w.experiences.recall(b"tea")),
        ("limit", lambda w: w.experiences.recall("tea", None)),
        ("query", lambda w: w.experiences.learned_experiences(5)),
    ],
)
async def test_a_call_of_a_workspace_names_what_is_of_another_type(tmp_path, name, call):
    with pytest.raises(TypeError, match=rf"^`{name}` is of type .+, not \w+\.$"):
        await call(Workspace(tmp_path, embedder=None))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("query", lambda log: log.search(None)),
        ("limit", lambda log: log.search("tea", "5")),
        ("name", lambda log: log.rename(5)),
        ("rows", lambda log: log.extend("row")),
        ("row", lambda log: log.extend({"type": "user"})),
        ("row_ids", lambda log: log.retract("row_1")),
        ("keep", lambda log: log.boundary("so far", keep="row_1")),
        ("summary", lambda log: log.boundary(None)),
        ("rows", lambda log: log.create(None)),
        ("suspended", lambda log: log.seal(suspended="no")),
    ],
)
def test_a_call_of_a_session_log_names_what_is_of_another_type_and_appends_nothing(tmp_path, name, call):
    log = SessionLog("chat", tmp_path)
    with pytest.raises(TypeError, match=rf"^`{name}` is of type .+, not \w+\.$"):
        call(log)
    assert not log.exists()


@pytest.mark.parametrize("make", [InProcessRecordStore, lambda **kw: SqliteRecordStore("a.db", **kw)])
async def test_a_record_is_named_by_its_id_and_a_page_by_its_cursor(tmp_path, monkeypatch, make):
    monkeypatch.chdir(tmp_path)
    async with make(embedder=None) as store:
        record = await store.add("tea")
        for call in (store.delete(record), store.update(record, "coffee")):
            with pytest.raises(TypeError, match=r"^`record_id` is of type str, not MemoryRecord\.$"):
                await call
        with pytest.raises(TypeError, match=r"^`cursor` is of type str"):
            await store.list(limit=5, cursor=1)
        assert (await store.list(limit=5)).records == (record,)
