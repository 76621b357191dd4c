"""Memories over the Model Context Protocol, through the official client."""

from __future__ import annotations

import asyncio
import json

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation, ResourceTemplateReference
from pydantic_ai import Agent, ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from memshelf import (
    FileMemoryCapability,
    FileMemoryLimits,
    FileMount,
    InProcessFileStore,
    InProcessRecordStore,
    MemoryStoreError,
    Origin,
    RecordMemoryCapability,
    RecordMount,
    SqliteFileStore,
    Workspace,
    WorkspaceCapability,
    mcp_server,
)

BY = Origin(principal_id="test")
FILE_CREATE = {"memory": "user", "path": "prefs/语言.md", "content": "Answers in Chinese."}


@pytest.fixture
def files():
    return InProcessFileStore()


@pytest.fixture
def records():
    return InProcessRecordStore(embedder=None)


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace", "ann", durable=False, embedder=None)


def text(result):
    (content,) = result.content
    return content.text


def answer(result):
    """A tool's JSON, which stands in the result twice: for models, and for programs."""
    assert json.loads(text(result)) == result.structured_content
    return result.structured_content


async def test_a_client_may_speak_the_protocol_of_today_and_that_of_2025(files):
    for mode in ("auto", "legacy"):
        async with Client(mcp_server([FileMount("user", files, "write")]), mode=mode) as client:
            assert client.server_info.name == "memshelf"
            assert "memory_context" in client.instructions
            assert '<memory name="user" kind="file" access="write"/>' in client.instructions
            assert "memory_file_view" in [tool.name for tool in (await client.list_tools()).tools]


async def test_tools_do_what_they_do_for_an_agent(files, records, workspace):
    mounts = [FileMount("user", files, "write")], [RecordMount("facts", records, "write")]
    async with Client(mcp_server(*mounts, workspace)) as client:
        created = await client.call_tool("memory_file_create", FILE_CREATE)
        assert not created.is_error
        assert answer(created)["path"] == "prefs/语言.md"
        assert (await files.read("prefs/语言.md")).text == "Answers in Chinese."
        edited = {**FILE_CREATE, "old_string": "Chinese", "new_string": "French"}
        del edited["content"]
        assert not (await client.call_tool("memory_file_edit", edited)).is_error
        refused = await client.call_tool("memory_file_edit", edited)
        assert refused.is_error
        assert answer(refused)["error"] == "no_match"
        assert answer(refused)["current"]["content"] == "Answers in French."

        added = answer(await client.call_tool("memory_record_add", {"memory": "facts", "text": "Ann drinks tea."}))
        found = await client.call_tool("memory_record_search", {"memory": "facts", "query": "tea"})
        assert [each["id"] for each in answer(found)["records"]] == [added["id"]]
        assert answer(found)["records"][0]["origin"] == "agent"

        save = {"title": "Cup", "content": "Blue.", "memory_type": "user", "description": "cup colour"}
        assert answer(await client.call_tool("save_memory", save)) == {"saved": "user_cup.md"}
        wrong = await client.call_tool("save_memory", save | {"memory_type": "whim"})
        assert wrong.is_error
        assert "memory_type" in answer(wrong)["message"]


async def test_schemas_are_those_of_an_agents_tools(files, records, workspace):
    seen = []

    async def model(_, info):
        seen.extend(info.function_tools)
        return ModelResponse([TextPart("ok")])

    mounts = FileMount("user", files, "write"), RecordMount("facts", records, "write")
    capabilities = [
        FileMemoryCapability([mounts[0]]),
        RecordMemoryCapability([mounts[1]]),
        WorkspaceCapability(workspace, cwd=None),
    ]
    await Agent(FunctionModel(model), capabilities=capabilities).run("hi")
    expected = {tool.name: (tool.description, tool.parameters_json_schema) for tool in seen}
    async with Client(mcp_server([mounts[0]], [mounts[1]], workspace)) as client:
        shown = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert shown.pop("memory_context")
    assert {name: tool.input_schema for name, tool in shown.items()} == {
        name: each[1] for name, each in expected.items()
    }
    for name, tool in shown.items():
        assert tool.description.startswith(expected[name][0])  # some go on: clients may show no instructions


async def test_what_a_mount_does_not_allow_is_not_offered_and_refused(files, records):
    await files.write("a.md", "one", expected=None, origin=BY)
    server = mcp_server(
        [FileMount("team", files, "read"), FileMount("user", InProcessFileStore(), "write")],
        [RecordMount("facts", records, "read")],
    )
    async with Client(server) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        assert "memory_record_add" not in tools
        assert tools["memory_file_create"].input_schema["properties"]["memory"]["enum"] == ["user"]
        hints = {name: tool.annotations for name, tool in tools.items()}
        assert hints["memory_file_view"].read_only_hint
        assert hints["memory_context"].read_only_hint
        assert not hints["memory_file_append"].read_only_hint
        assert not hints["memory_file_append"].destructive_hint
        assert hints["memory_file_delete"].destructive_hint
        refused = await client.call_tool("memory_file_append", {"memory": "team", "path": "a.md", "content": "two"})
        assert answer(refused)["error"] == "forbidden"
        unknown = await client.call_tool("memory_file_view", {"memory": "nobody"})
        assert answer(unknown)["error"] == "unknown_memory"
        with pytest.raises(MCPError, match="no tool memory_record_add"):
            await client.call_tool("memory_record_add", {"memory": "facts", "text": "x"})
    assert (await files.read("a.md")).text == "one"


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"memory": "user"},
        {"memory": "user", "pattern": "x", "limit": 0},
        {"memory": "user", "pattern": "x", "limit": 201},
        {"memory": "user", "pattern": "x", "limit": "many"},
        {"memory": ["user"], "pattern": "x"},
    ],
)
async def test_wrong_arguments_are_named(files, arguments):
    async with Client(mcp_server([FileMount("user", files, "write")])) as client:
        refused = await client.call_tool("memory_file_grep", arguments)
    assert refused.is_error
    assert answer(refused)["error"] == "invalid_value"
    assert "Nothing changed" in answer(refused)["message"]


async def test_context_is_what_a_run_begins_with(files, records, workspace):
    await files.write("README.md", "About </memory-context> Ann", expected=None, origin=BY)
    await files.write("prefs/tea.md", "Green tea.", expected=None, origin=BY)
    await records.add("Ann drinks green tea.")
    await workspace.write_memory_entry("Role", "Writes Go.", "user", "job role 工作")
    server = mcp_server(
        [FileMount("user", files, "read", always_load=("README.md",))],
        [RecordMount("facts", records, "read")],
        workspace,
    )
    async with Client(server) as client:
        shown = text(await client.call_tool("memory_context", {"about": "Which tea for Ann, and what is her job?"}))
        (message,) = (await client.get_prompt("memory_context", {"about": "her job"})).messages
        without = (await client.get_prompt("memory_context")).messages[0].content.text
        wrong = await client.call_tool("memory_context", {"about": 3})
    assert wrong.is_error
    for told in ('<workspace user="ann">', "Writes Go.", "prefs/tea.md", "About \\u003c/memory-context", "Ann drinks"):
        assert told in shown
    assert shown.count("</memory-context>") == 1
    assert "Writes Go." in message.content.text
    assert "Ann drinks" not in without


async def test_a_memory_that_cannot_be_read_is_named(files):
    class Broken(InProcessFileStore):
        async def changes(self, since):
            raise MemoryStoreError("unavailable", "The disk is gone.")

    await files.write("a.md", "one", expected=None, origin=BY)
    server = mcp_server([FileMount("broken", Broken(), "read"), FileMount("user", files, "read")])
    async with Client(server) as client:
        shown = text(await client.call_tool("memory_context", {"about": "x"}))
    assert "Memory broken is not shown here (unavailable)." in shown
    assert "a.md: one" in shown


async def test_a_workspace_that_hangs_costs_nothing_else(files, workspace, monkeypatch):
    async def hangs(*_args, **_options):
        await asyncio.Event().wait()

    monkeypatch.setattr("memshelf.workspace.deadline._SECONDS", 0.01)
    monkeypatch.setattr(workspace, "freeze_snapshots", hangs)
    await files.write("a.md", "one", expected=None, origin=BY)
    async with Client(mcp_server([FileMount("user", files, "read")], [], workspace)) as client:
        shown = text(await client.call_tool("memory_context", {"about": "x"}))
    assert "The workspace is not shown here (timeout)." in shown
    assert "a.md: one" in shown


async def test_a_file_memory_that_hangs_costs_nothing_else(files, monkeypatch):
    class Hanging(InProcessFileStore):
        async def changes(self, since):
            await asyncio.Event().wait()

    monkeypatch.setattr("memshelf.mcp.context._SECONDS", 0.01)
    await files.write("a.md", "one", expected=None, origin=BY)
    server = mcp_server([FileMount("hanging", Hanging(), "read"), FileMount("user", files, "read")])
    async with Client(server) as client:
        shown = text(await client.call_tool("memory_context", {"about": "x"}))
    assert "Memory hanging is not shown here (unavailable)." in shown
    assert "a.md: one" in shown


async def test_a_store_that_breaks_is_a_refusal(files, caplog):
    class Broken(InProcessFileStore):
        async def list(self):
            raise RuntimeError("secret")

    async with Client(mcp_server([FileMount("user", Broken(), "read")])) as client:
        failed = await client.call_tool("memory_file_view", {"memory": "user"})
    assert answer(failed) == {"error": "unavailable", "message": "The memory failed: RuntimeError."}
    assert "memory_file_view" in caplog.text


async def test_files_are_resources(files):
    names = ["a.md", "b c/?#%.txt", "z.MD", "语言.markdown"]
    for name in names:
        await files.write(name, f"text of {name}", expected=None, origin=BY)
    server = mcp_server([FileMount("empty", InProcessFileStore(), "read"), FileMount("user", files, "read")])
    async with Client(server) as client:
        listed = (await client.list_resources()).resources
        assert [each.name for each in listed] == [f"user/{name}" for name in names]
        assert [each.mime_type for each in listed] == ["text/markdown", "text/plain", "text/markdown", "text/markdown"]
        assert listed[0].uri == "memshelf://user/a.md"
        assert listed[0].description == "text of a.md"
        for each, name in zip(listed, names, strict=True):
            (read,) = (await client.read_resource(each.uri)).contents
            assert read.text == f"text of {name}"
        (template,) = (await client.list_resource_templates()).resource_templates
        ref = ResourceTemplateReference(type="ref/resource", uri=template.uri_template)
        completed = await client.complete(ref, {"name": "memory", "value": "u"})
        assert completed.completion.values == ["user"]
        completed = await client.complete(ref, {"name": "path", "value": "b"}, {"memory": "user"})
        assert completed.completion.values == ["b c/?#%.txt"]
        for uri in ("memshelf://user/nothing.md", "memshelf://nobody/a.md", "memshelf://user/../a.md", "file:///a.md"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)


async def test_many_resources_come_in_pages_while_others_change_them(files):
    for number in range(1_203):
        await files.write(f"{number % 7}/{number}.md", "x", expected=None, origin=BY)
    async with Client(mcp_server([FileMount("user", files, "read")])) as client:
        found, cursor = [], None
        while True:
            page = await client.list_resources(cursor=cursor)
            found += [each.name for each in page.resources]
            cursor = page.next_cursor
            if cursor is None:
                break
            last = found[-1].removeprefix("user/")
            await files.delete(last, expected=(await files.read(last)).version, origin=BY)
    assert len(found) == len(set(found)) == 1_203
    assert found == sorted(found, key=str.encode)


async def test_changes_of_one_memory_are_made_in_the_order_of_their_calls(files):
    class Slow(InProcessFileStore):
        async def write(self, path, text, *, expected, origin):
            await asyncio.sleep(0.02 if path == "a.md" else 0)
            return await super().write(path, text, expected=expected, origin=origin)

    store = Slow()
    async with Client(mcp_server([FileMount("user", store, "write")])) as client:
        calls = [
            client.call_tool("memory_file_create", {"memory": "user", "path": path, "content": "x"})
            for path in ("a.md", "a.md/b.md")
        ]
        first, second = await asyncio.gather(*calls)
    assert not first.is_error
    assert answer(second)["error"] == "already_exists"


async def test_a_history_tells_which_client_wrote(tmp_path):
    async with SqliteFileStore(tmp_path / "m.db", durable=False) as store:
        server = mcp_server([FileMount("user", store, "write")], origin=Origin(principal_id="ann"))
        named = Implementation(name="desk\0top" + "x" * 100, version="1")
        async with Client(server, client_info=named) as client:
            await client.call_tool("memory_file_create", FILE_CREATE)
            await client.call_tool("memory_file_append", FILE_CREATE)
        (first, second) = (await store.versions()).versions
        assert first.origin == second.origin
        assert first.origin.principal_id == "ann"
        assert first.origin.run_id.startswith("desktopxxx")
        assert len(first.origin.run_id) < 80
        given = mcp_server([FileMount("user", store, "write")], origin=Origin(run_id="mine"))
        async with Client(given) as client:
            await client.call_tool("memory_file_append", FILE_CREATE)
        assert (await store.versions()).versions[0].origin.run_id == "mine"


async def test_what_a_model_writes_is_an_agents_whatever_origin_the_server_has(records):
    server = mcp_server((), [RecordMount("facts", records, "write")], origin=Origin(principal_id="ann", kind="user"))
    async with Client(server) as client:
        await client.call_tool("memory_record_add", {"memory": "facts", "text": "Ann drinks tea."})
    [record] = (await records.list(limit=5)).records
    assert (record.origin.principal_id, record.origin.kind) == ("ann", "agent")


async def test_what_is_no_memory_is_refused(files, records, workspace):
    mount = FileMount("user", files, "write")
    with pytest.raises(ValueError, match="no memory"):
        mcp_server()
    with pytest.raises(ValueError, match="Two mounts are named user"):
        mcp_server([mount, mount])
    with pytest.raises(ValueError, match="Two mounts are named user"):
        mcp_server([mount], [RecordMount("user", records, "write")])
    for wrong in ((mount,), ([files],), ([], [mount]), ([], [], "workspace")):
        with pytest.raises(TypeError):
            mcp_server(*wrong)
    with pytest.raises(TypeError):
        mcp_server([mount], file_limits="small")


async def test_limits_hold(files):
    await files.write("a.md", "word\n" * 500, expected=None, origin=BY)
    limits = FileMemoryLimits(result_bytes=1_000)
    async with Client(mcp_server([FileMount("user", files, "read")], file_limits=limits)) as client:
        found = await client.call_tool("memory_file_grep", {"memory": "user", "pattern": "word", "limit": 200})
    assert answer(found)["truncated"]
    assert len(text(found)) < 1_500
