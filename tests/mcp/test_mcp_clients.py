"""What clients and the models behind them do, and what they cannot take."""

from __future__ import annotations

import asyncio
import json
from itertools import pairwise

import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceTemplateReference

from golden_files import compare
from memshelf import (
    FileMount,
    InProcessFileStore,
    InProcessRecordStore,
    MemoryRecord,
    MemoryStoreError,
    Origin,
    RecordMount,
    Workspace,
    mcp_server,
)

BY = Origin(principal_id="test")
SHOWN_CHARS = 2_048
"""What Claude Code shows of a server's instructions, and of a tool's description."""


class Unreadable(InProcessFileStore):
    async def list(self):
        raise MemoryStoreError("unavailable", "The disk is gone.")


class Hanging(InProcessFileStore):
    async def list(self):
        await asyncio.Event().wait()


class Breaking(InProcessFileStore):
    async def list(self):
        raise RuntimeError("secret")


@pytest.fixture
def all_kinds(tmp_path):
    return mcp_server(
        [FileMount("user", InProcessFileStore(), "write")],
        [RecordMount("facts", InProcessRecordStore(embedder=None), "write")],
        Workspace(tmp_path / "workspace", "ann", durable=False, embedder=None),
    )


async def test_instructions_fit_into_what_clients_show_golden(all_kinds):
    async with Client(all_kinds) as client:
        assert len(client.instructions) <= SHOWN_CHARS
        compare("mcp/instructions.txt", f"{client.instructions}\n")
    many = [FileMount(f"project-{number}", InProcessFileStore(), "read") for number in range(12)]
    async with Client(mcp_server(many)) as client:
        assert len(client.instructions) <= SHOWN_CHARS
        assert "without being asked" not in client.instructions  # nothing can be saved
        assert all(f'name="project-{number}"' in client.instructions for number in range(12))


async def test_the_tools_alone_say_when_to_recall_and_when_to_save(all_kinds):
    async with Client(all_kinds) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert "beginning of every conversation" in tools["memory_context"].description
    saving = {name for name, tool in tools.items() if "without being asked" in tool.description}
    assert saving == {"memory_file_create", "memory_record_add", "save_memory"}
    loaded = {name for name, tool in tools.items() if tool.meta.get("anthropic/alwaysLoad")}
    assert loaded == {*saving, "memory_context"}


async def test_tools_are_described_for_every_client_and_provider(all_kinds):
    async with Client(all_kinds) as client:
        tools = (await client.list_tools()).tools
    for tool in tools:
        assert tool.title
        assert len(tool.name) + len("mcp__memshelf__") <= 60
        assert len(tool.description) <= SHOWN_CHARS
        hints = tool.annotations
        assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
        assert tool.input_schema["type"] == "object"
        for parameter in tool.input_schema["properties"].values():
            assert isinstance(parameter["type"], str)  # no unions, which not every provider takes
            assert set(parameter) <= {"type", "description", "enum", "default", "minimum", "maximum"}
            assert parameter.get("default", "") is not None
        assert "$defs" not in tool.input_schema
    once = {tool.name for tool in tools if tool.annotations.idempotent_hint and not tool.annotations.read_only_hint}
    assert "memory_record_update" in once
    assert not once & {"memory_file_append", "memory_file_edit", "memory_record_add", "edit_rules"}


async def test_null_is_what_was_left_out(all_kinds):
    async with Client(all_kinds) as client:
        listed = await client.call_tool("memory_record_list", {"memory": "facts", "limit": None, "cursor": None})
        shown = await client.call_tool("memory_context", {"about": None})
        missing = await client.call_tool("memory_file_view", {"memory": None})
    assert not listed.is_error
    assert not shown.is_error
    assert "memory: Field required" in missing.structured_content["message"]


async def test_what_a_client_adds_of_its_own_is_ignored_and_told(all_kinds):
    own = {"toolCallId": "call_1", "task_progress": None}
    async with Client(all_kinds) as client:
        added = await client.call_tool("memory_record_add", {"memory": "facts", "text": "Ann drinks tea.", **own})
        assert not added.is_error
        assert added.structured_content["ignored"] == ["toolCallId", "task_progress"]
        misnamed = await client.call_tool("memory_record_add", {"memory": "facts", "content": "Ann drinks tea."})
        assert misnamed.is_error
        assert misnamed.structured_content["message"] == "text: Field required. Nothing changed."
        assert misnamed.structured_content["ignored"] == ["content"]
        assert not (await client.call_tool("memory_context", {"about": "tea", **own})).is_error


async def test_no_answer_repeats_what_is_endless(all_kinds):
    endless = "x" * 100_000
    async with Client(all_kinds) as client:
        for tool in (await client.list_tools()).tools:
            schema = tool.input_schema
            given = {name: (schema["properties"][name].get("enum") or ["a"])[0] for name in schema["required"]}
            for name, parameter in schema["properties"].items():
                if parameter["type"] == "string":
                    answer = await client.call_tool(tool.name, {**given, name: endless})
                    assert len(answer.content[0].text) < 2_000, (tool.name, name)
        unknown = {endless: 1} | {f"{number}{endless[:50]}": 1 for number in range(10_000)}
        shown = await client.call_tool("memory_file_view", {"memory": "user", **unknown})
        assert shown.structured_content["ignored"][5:] == ["9996 more"]
        assert len(shown.content[0].text) < 1_000
        for asked in (client.read_resource, client.get_prompt, lambda name: client.call_tool(name, {})):
            for name in (endless, f"memshelf://user/{endless}"):
                with pytest.raises(MCPError) as caught:
                    await asked(name)
                assert len(caught.value.error.model_dump_json()) < 2_000


async def test_a_memory_that_cannot_be_listed_is_told_and_costs_no_other(monkeypatch):
    monkeypatch.setattr("memshelf.mcp.resources._SECONDS", 0.05)
    good = InProcessFileStore()
    await good.write("a.md", "one", expected=None, origin=BY)
    stores = {"broken": Breaking(), "gone": Unreadable(), "hanging": Hanging(), "user": good}
    async with Client(mcp_server([FileMount(name, store, "read") for name, store in stores.items()])) as client:
        listed = {each.name: each for each in (await client.list_resources()).resources}
        assert list(listed) == [
            "broken (cannot be listed)",
            "gone (cannot be listed)",
            "hanging (cannot be listed)",
            "user/a.md",
        ]
        assert "unavailable: The disk is gone." in listed["gone (cannot be listed)"].description
        assert "secret" not in listed["broken (cannot be listed)"].description
        ref = ResourceTemplateReference(type="ref/resource", uri="memshelf://{memory}/{+path}")
        for memory in ("gone", "broken", "hanging"):
            completed = await client.complete(ref, {"name": "path", "value": ""}, {"memory": memory})
            assert completed.completion.values == []


async def test_pages_go_on_behind_a_memory_that_cannot_be_listed(monkeypatch):
    monkeypatch.setattr("memshelf.mcp.resources._PAGE", 2)
    good = InProcessFileStore()
    for name in ("a.md", "b.md", "c.md", "d.md"):
        await good.write(name, "one", expected=None, origin=BY)
    mounts = [FileMount("one", good, "read"), FileMount("gone", Unreadable(), "read"), FileMount("two", good, "read")]
    async with Client(mcp_server(mounts)) as client:
        pages, cursor = [], None
        while not pages or cursor is not None:
            page = await client.list_resources(cursor=cursor)
            pages.append([each.name for each in page.resources])
            cursor = page.next_cursor
    found = [name for page in pages for name in page]
    expected = [f"{memory}/{name}.md" for memory in ("one", "two") for name in "abcd"]
    assert [name for name in found if "gone" not in name] == expected
    assert "gone (cannot be listed)" in found
    assert all(first != second for first, second in pairwise(pages))


async def test_letter_case_does_not_count_in_what_leads_a_uri():
    store = InProcessFileStore()
    await store.write("A.md", "one", expected=None, origin=BY)
    async with Client(mcp_server([FileMount("user", store, "read")])) as client:
        for uri in ("MEMSHELF://user/A.md", "Memshelf://USER/A.md", "memshelf://user/%41.md"):
            assert (await client.read_resource(uri)).contents[0].text == "one"
        with pytest.raises(MCPError, match="not_found"):
            await client.read_resource("memshelf://user/a.md")


async def test_a_file_that_cannot_be_read_is_an_error_without_its_secrets(caplog):
    class Broken(InProcessFileStore):
        async def read(self, path):
            raise RuntimeError("secret")

    async with Client(mcp_server([FileMount("user", Broken(), "read")])) as client:
        with pytest.raises(MCPError, match=r"unavailable: The memory failed: RuntimeError\."):
            await client.read_resource("memshelf://user/a.md")
    assert "The memory user could not be read." in caplog.text


async def test_halves_of_surrogate_pairs_end_no_connection():
    half = "tea \ud83d"

    class Loose(InProcessRecordStore):
        async def search(self, query, *, limit=10):
            return [MemoryRecord(id="r1", text=half)]

    records = RecordMount("facts", Loose(embedder=None), "write")
    async with Client(mcp_server([FileMount("user", InProcessFileStore(), "write")], [records])) as client:
        found = await client.call_tool("memory_record_search", {"memory": "facts", "query": "tea"})
        assert found.structured_content["records"][0]["text"] == "tea \ufffd"
        assert json.loads(found.content[0].text) == found.structured_content
        refused = await client.call_tool("memory_file_create", {"memory": "user", "path": "a.md", "content": half})
        assert refused.structured_content["error"] == "invalid_file"
        assert (await client.call_tool("memory_file_view", {"memory": "user", half: 1})).structured_content["ignored"]
        assert not (await client.call_tool("memory_context", {"about": half})).is_error


async def test_no_path_of_the_disk_is_shown(tmp_path):
    workspace = Workspace(tmp_path / "workspace", "ann", durable=False, embedder=None)
    await workspace.store.write("AGENTS.md", "Always answer in French.", expected=None, origin=BY)
    await workspace.write_memory_entry("Tea", "Green.", "user", "tea drink")
    await workspace.experiences.learn("No, use spaces.", asked="Indent it.")
    async with Client(mcp_server([], [], workspace)) as client:
        shown = (await client.call_tool("memory_context", {"about": "tea"})).content[0].text
        assert str(tmp_path) not in shown
        assert '<standing-rules from="AGENTS.md">' in shown
        assert '<memory-index from="MEMORY.md">' in shown
        for name in ("AGENTS.md", "MEMORY.md"):
            assert not (await client.call_tool("read_memory", {"path": name})).is_error


async def test_a_call_that_is_cancelled_keeps_nobody_waiting():
    begun = asyncio.Event()

    class Hanging(InProcessFileStore):
        async def write(self, path, text, *, expected, origin):
            if path == "slow.md":
                begun.set()
                await asyncio.Event().wait()
            return await super().write(path, text, expected=expected, origin=origin)

    async with Client(mcp_server([FileMount("user", Hanging(), "write")])) as client:
        create = {"memory": "user", "content": "x"}
        slow = asyncio.create_task(client.call_tool("memory_file_create", {**create, "path": "slow.md"}))
        await begun.wait()
        waiting = asyncio.create_task(client.call_tool("memory_file_create", {**create, "path": "b.md"}))
        slow.cancel()
        assert not (await asyncio.wait_for(waiting, 10)).is_error


async def test_resources_are_offered_only_where_there_are_files():
    facts = RecordMount("facts", InProcessRecordStore(embedder=None), "write")
    async with Client(mcp_server([], [facts])) as client:
        assert client.server_capabilities.resources is None
        assert client.server_capabilities.completions is None
    async with Client(mcp_server([FileMount("user", InProcessFileStore(), "write")])) as client:
        assert client.server_capabilities.resources is not None


async def test_other_clients_that_get_ahead_many_times_do_not_fail_a_change():
    class Contended(InProcessFileStore):
        ahead = 12

        async def write(self, path, text, *, expected, origin):
            if expected is not None and self.ahead:
                self.ahead -= 1
                raise MemoryStoreError("version_mismatch", "Somebody else was first.")
            return await super().write(path, text, expected=expected, origin=origin)

    store = Contended()
    await store.write("log.md", "begun", expected=None, origin=BY)
    async with Client(mcp_server([FileMount("user", store, "write")])) as client:
        line = {"memory": "user", "path": "log.md", "content": "one"}
        assert not (await client.call_tool("memory_file_append", line)).is_error
    assert (await store.read("log.md")).text == "begun\none"
