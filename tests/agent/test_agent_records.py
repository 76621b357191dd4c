"""RecordMemoryCapability: what it accepts, what it offers, and what its tools do."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.models.test import TestModel
from runners import every_way
from scripted import Script, contexts, recalled, recalls, record_call, returns, said

from memshelf import (
    AgentSpec,
    FileMemoryCapability,
    FileMount,
    HarnessBuilder,
    InProcessFileStore,
    MemoryStoreError,
    RecordMemoryLimits,
    ToolPermissions,
)
from memshelf.agent.capabilities.records import RecordMemoryCapability
from memshelf.agent.permissions import ToolPermissionCapability
from memshelf.origin import Origin
from memshelf.records.backends.in_process import InProcessRecordStore
from memshelf.records.mount import RecordMount
from memshelf.records.tools import RECORD_TOOLS, RecordTools


def _store():
    return InProcessRecordStore(embedder=None)


def _mount(name="facts", access="write", **options):
    return RecordMount(name, _store(), access, **options)


async def _offered(*mounts, **options):
    model = TestModel(call_tools=[])
    await Agent(model, capabilities=[RecordMemoryCapability(mounts, **options)]).run("hi")
    tools = model.last_model_request_parameters.function_tools
    return {tool.name: tool.parameters_json_schema["properties"]["memory"]["enum"] for tool in tools}


async def _returned(mounts, *calls, **options):
    script = Script(*calls, "done")
    result = await Agent(script.model, capabilities=[RecordMemoryCapability(mounts, **options)]).run("hi")
    return [(part.outcome, part.content) for part in returns(result.all_messages())]


# --- construction -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mounts", "options", "says"),
    [
        ([], {}, "at least one"),
        (_mount(), {}, r"a sequence, also of one: \[RecordMount"),
        ([_store()], {}, "RecordMount objects, not InProcessRecordStore"),
        ([_mount(), _mount()], {}, "Two mounts are named facts"),
        ([_mount()], {"tools": ("search", "purge")}, "Unknown record memory tools: purge"),
        ([_mount()], {"tools": "search"}, "`tools` is of type Collection"),
    ],
)
def test_arguments_that_cannot_be_meant_are_refused_with_the_reason(mounts, options, says):
    with pytest.raises((TypeError, ValueError), match=says):
        RecordMemoryCapability(mounts, **options)


def test_two_capabilities_on_one_agent_are_refused():
    both = [RecordMemoryCapability([_mount()]), RecordMemoryCapability([_mount("team")])]
    with pytest.raises(ValueError, match="2 RecordMemoryCapability objects; put all mounts into one"):
        Agent("test", capabilities=both)


def _clashing():
    files = FileMemoryCapability(
        [FileMount("user", InProcessFileStore(), "write"), FileMount("a", InProcessFileStore(), "read")]
    )
    return files, RecordMemoryCapability([_mount("facts"), _mount("user"), _mount("b")])


@pytest.mark.parametrize("order", [1, -1])
def test_one_name_for_a_file_and_a_record_memory_is_refused_when_the_agent_is_made(order):
    with pytest.raises(ValueError, match="are both named user; each needs a name of its own"):
        HarnessBuilder().build(AgentSpec(), model="test", capabilities=_clashing()[::order])
    with pytest.raises(ValueError, match="are both named user; each needs a name of its own"):
        Agent("test", capabilities=_clashing()[::order])


@pytest.mark.parametrize("order", [1, -1])
async def test_one_name_for_both_kinds_is_refused_when_a_run_brings_one_of_them(order):
    of_agent, of_run = _clashing()[::order]
    script = Script("never said")
    with pytest.raises(ValueError, match="both named user"):
        await Agent(script.model, capabilities=[of_agent]).run("hi", capabilities=[of_run])
    assert script.requests == []


async def test_a_run_may_bring_mounts_under_the_names_that_it_replaces():
    files, records = _clashing()
    agent = Agent(TestModel(call_tools=[]), capabilities=[files])
    await agent.run("hi", capabilities=[FileMemoryCapability([FileMount("c", InProcessFileStore(), "read")]), records])


# --- tools ------------------------------------------------------------------------------------------------------------


async def test_a_read_mount_offers_only_search_and_list():
    assert await _offered(_mount(access="read")) == {
        "memory_record_search": ["facts"],
        "memory_record_list": ["facts"],
    }


async def test_each_tool_names_exactly_the_mounts_that_allow_it():
    offered = await _offered(_mount("facts"), _mount("team", "read"), _mount("notes"))
    assert list(offered) == [tool.name for tool in RECORD_TOOLS.values()]
    for key, tool in RECORD_TOOLS.items():
        expected = ["facts", "team", "notes"] if key in ("search", "list") else ["facts", "notes"]
        assert offered[tool.name] == expected


async def test_tools_narrows_the_tools_of_every_mount():
    assert list(await _offered(_mount(), tools=("add", "search"))) == ["memory_record_search", "memory_record_add"]
    assert await _offered(_mount(access="read"), tools=("add", "delete")) == {}


async def test_a_record_is_added_searched_listed_updated_and_deleted():
    store = _store()
    mounts = [RecordMount("facts", store, "write")]
    [(outcome, added)] = await _returned(mounts, record_call("add", text="likes tea"))
    assert (outcome, added) == ("success", {"memory": "facts", "id": added["id"]})
    [record] = (await store.list(limit=5)).records
    assert (record.id, record.text, record.origin.kind) == (added["id"], "likes tea", "agent")
    assert record.origin.run_id
    assert record.origin.tool_call_id

    [(_, found), (_, listed), (_, updated)] = await _returned(
        mounts,
        record_call("search", query="tea"),
        record_call("list"),
        record_call("update", id=record.id, text="likes coffee"),
    )
    assert [(each["id"], each["text"], each["origin"]) for each in found["records"]] == [
        (record.id, "likes tea", "agent")
    ]
    assert (listed["records"][0]["text"], listed["next_cursor"]) == ("likes tea", None)
    assert updated == {"memory": "facts", "id": record.id, "updated": True}
    assert [each.text for each in (await store.list(limit=5)).records] == ["likes coffee"]

    [(_, deleted), (outcome, again)] = await _returned(
        mounts,
        record_call("delete", id=record.id),
        record_call("delete", id=record.id),
    )
    assert deleted == {"memory": "facts", "id": record.id, "deleted": True}
    assert (outcome, json.loads(again)["error"]) == ("failed", "record_not_found")
    assert (await store.list(limit=5)).records == ()


async def test_a_listing_goes_on_from_its_cursor():
    store = _store()
    for each in range(5):
        await store.add(f"record {each}")
    texts, cursor = [], None
    for _ in range(3):
        page = record_call("list", limit=2, cursor=cursor)  # null for the first page
        [(_, shown)] = await _returned([RecordMount("facts", store, "read")], page)
        texts += [record["text"] for record in shown["records"]]
        cursor = shown["next_cursor"]
    assert texts == [f"record {each}" for each in range(5)]
    assert cursor is None


async def test_a_result_holds_no_more_text_than_it_may():
    store, limits = _store(), RecordMemoryLimits(result_bytes=300)
    tools = RecordTools([RecordMount("facts", store, "write")], limits)
    for each in range(7):
        await store.add(f"茶 {each} " + "茶" * 40)
    texts, cursor, pages = [], None, 0
    while pages == 0 or cursor is not None:
        shown = await tools.list("facts", limit=5, cursor=cursor)
        texts += [record["text"][:3] for record in shown["records"]]
        cursor, pages = shown["next_cursor"], pages + 1
    assert (texts, pages) == ([f"茶 {each}" for each in range(7)], 4)
    found = await tools.search("facts", "茶", limit=7)
    assert (len(found["records"]), found["truncated"]) == (2, True)
    assert "truncated" not in await tools.search("facts", "茶", limit=2)


async def test_a_record_that_is_longer_than_a_result_may_be_is_cut():
    store = _store()
    await store.add("🍵" * 500)
    await store.add("short")
    tools = RecordTools([RecordMount("facts", store, "write")], RecordMemoryLimits(result_bytes=10))
    [record] = (page := await tools.list("facts"))["records"]
    assert (record["text"], record["truncated"]) == ("🍵🍵", True)
    assert [each["text"] for each in (await tools.list("facts", cursor=page["next_cursor"]))["records"]] == ["short"]


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        ("search", {"query": "tea", "limit": 0}),
        ("search", {"query": "tea", "limit": 21}),
        ("list", {"limit": 0}),
        ("list", {"limit": 101}),
    ],
)
async def test_a_limit_out_of_range_is_a_malformed_call(tool, args):
    script = Script(record_call(tool, **args), "done")
    result = await Agent(script.model, capabilities=[RecordMemoryCapability([_mount()])]).run("hi")
    [part] = returns(result.all_messages())
    assert part.outcome == "retried"
    assert "limit" in str(part.content)


async def test_the_changes_of_one_response_happen_in_the_order_they_were_written():
    store = _store()
    adds = [record_call("add", text=f"record {each}") for each in range(8)]
    await _returned([RecordMount("facts", store, "write")], adds)
    assert [each.text for each in (await store.list(limit=10)).records] == [f"record {each}" for each in range(8)]


async def test_permission_rules_find_the_ids_of_the_tools():
    store = _store()
    script = Script(record_call("add", text="likes tea"), "done")
    capabilities = [
        RecordMemoryCapability([RecordMount("facts", store, "write")]),
        ToolPermissionCapability(ToolPermissions(rules={"memory.record.*": "deny", "memory.record.search": "allow"})),
    ]
    result = await Agent(script.model, capabilities=capabilities).run("hi")
    [part] = returns(result.all_messages())
    assert (part.outcome, json.loads(part.content)["error"]) == ("failed", "permission_denied")
    assert (await store.list(limit=5)).records == ()
    ids = [tool.metadata["tool_id"] for tool in script.infos[0].function_tools]
    assert ids == [f"memory.record.{key}" for key in RECORD_TOOLS]

    script = Script(record_call("add", text="likes tea"), "done")
    capabilities[1] = ToolPermissionCapability(ToolPermissions(rules={"memory.record.add": "ask"}))
    agent = Agent(script.model, capabilities=capabilities, output_type=[str, DeferredToolRequests])
    asked = (await agent.run("hi")).output
    assert [each.tool_name for each in asked.approvals] == ["memory_record_add"]
    assert (await store.list(limit=5)).records == ()


@pytest.mark.parametrize("rule", ["memory.record.remove", "memory.record.view", "memory_record_add"])
def test_a_rule_that_means_no_record_tool_is_refused(rule):
    with pytest.raises(ValueError, match=r"no record tool has that ID|goes by its ID, memory\.record\.add"):
        ToolPermissions(rules={rule: "deny"})


class _Plain:
    """A store that keeps no origins, and whose writes may not be confirmed."""

    def __init__(self, store, failure=None):
        self.store, self.failure, self.writes = store, failure, 0

    async def search(self, query, *, limit):
        return await self.store.search(query, limit=limit)

    async def list(self, *, limit, cursor=None):
        return await self.store.list(limit=limit, cursor=cursor)

    async def add(self, text):
        return await self._written(self.store.add(text))

    async def update(self, record_id, text):
        return await self._written(self.store.update(record_id, text))

    async def delete(self, record_id):
        await self._written(self.store.delete(record_id))

    async def purge(self):
        await self.store.purge()

    async def _written(self, write):
        self.writes += 1
        result = await write
        if self.failure is not None:
            raise self.failure
        return result


async def test_an_origin_says_for_whom_records_are_written_but_the_words_are_always_the_agents():
    store = _store()
    script = Script(record_call("add", text="likes tea"), "done")
    memory = RecordMemoryCapability(
        [RecordMount("facts", store, "write")], origin=Origin(principal_id="ann", kind="user")
    )
    await Agent(script.model, capabilities=[memory]).run("hi")
    [record] = (await store.list(limit=5)).records
    assert (record.origin.principal_id, record.origin.kind) == ("ann", "agent")
    assert record.origin.run_id


async def test_a_store_that_keeps_no_origins_works_as_well():
    store = _store()
    record = await store.add("likes tea")
    shown = await _returned(
        [RecordMount("facts", _Plain(store), "write")],
        record_call("add", text="likes milk"),
        record_call("update", id=record.id, text="likes coffee"),
        record_call("search", query="likes"),
    )
    assert [outcome for outcome, _ in shown] == ["success"] * 3
    assert {each["text"] for each in shown[-1][1]["records"]} == {"likes milk", "likes coffee"}


async def test_an_unconfirmed_write_is_told_and_not_tried_again():
    plain = _Plain(_store(), MemoryStoreError("write_unconfirmed", "The answer was lost."))
    [(outcome, shown)] = await _returned([RecordMount("facts", plain, "write")], record_call("add", text="likes tea"))
    assert (outcome, json.loads(shown)) == (
        "failed",
        {"error": "write_unconfirmed", "message": "The answer was lost."},
    )
    assert plain.writes == 1


# --- facts that are superseded ----------------------------------------------------------------------------------------


async def test_a_model_that_updates_a_fact_recalls_only_the_newer_one():
    store = _store()
    await store.add("The user lives in Paris.", origin=Origin(kind="user"))
    await store.add("The user has a tortoise.")

    def update(messages):
        [record] = recalled(recalls(messages)[0])
        return record_call("update", id=record["id"], text="The user lives in Lyon.")

    script = Script(update, "noted", "Lyon")
    agent = Agent(script.model, capabilities=[RecordMemoryCapability([RecordMount("facts", store, "write")])])
    await agent.run("I moved. I no longer live in Paris.")
    await agent.run("Where do I live, still in Paris?")
    [record] = recalled(recalls(script.requests[-1])[0])
    assert (record["text"], record["origin"]) == ("The user lives in Lyon.", "agent")
    assert "Paris" not in str(recalls(script.requests[-1]))


async def test_a_replaced_record_gives_way_in_recall_and_says_so_in_a_search():
    store = _store()
    old = await store.add("The user lives in Paris.")
    new = await store.add("The user lives in Lyon.", replaces=old.id)
    script = Script(record_call("search", query="the user lives in Paris"), "done")
    memory = RecordMemoryCapability([RecordMount("facts", store, "read")])
    result = await Agent(script.model, capabilities=[memory]).run("Does the user live in Paris?")
    assert [each["id"] for each in recalled(recalls(script.requests[0])[0])] == [new.id]
    [part] = returns(result.all_messages())
    assert [(each["id"], each.get("replaced_by")) for each in part.content["records"]] == [
        (new.id, None),
        (old.id, new.id),
    ]


async def test_of_equally_close_records_the_newest_is_recalled_first():
    store = _store()
    days = (2, 4, 1, 3)
    for day in days:
        await store.add("The user drinks tea.", at=datetime(2026, 5, day, tzinfo=UTC))
    script = Script("ok")
    memory = RecordMemoryCapability([RecordMount("facts", store, "read")])
    await Agent(script.model, capabilities=[memory]).run("tea")
    shown = recalled(recalls(script.requests[0])[0])
    assert [each["at"] for each in shown] == [f"2026-05-0{day}T00:00Z" for day in (4, 3, 2, 1)]


async def test_a_fact_that_was_updated_comes_before_a_younger_record_that_is_as_close():
    store = _store()
    updated = await store.add("The user lives in Paris.", at=datetime(2026, 5, 1, tzinfo=UTC))
    await store.add("The user lives in Rome.", at=datetime(2026, 5, 2, tzinfo=UTC))
    update = record_call("update", id=updated.id, text="The user lives in Lyon.")
    script = Script(update, "noted", "Lyon")
    agent = Agent(script.model, capabilities=[RecordMemoryCapability([RecordMount("facts", store, "write")])])
    await agent.run("I moved.")
    await agent.run("Where does the user live?")
    shown = recalled(recalls(script.requests[-1])[0])
    assert [each["text"] for each in shown] == ["The user lives in Lyon.", "The user lives in Rome."]
    assert (shown[0]["at"], "updated_at" in shown[0]) == ("2026-05-01T00:00Z", True)


# --- beside file memory, and in every way to run ----------------------------------------------------------------------


@every_way
async def test_recall_reaches_the_first_request_and_stays_in_the_thread(run):
    store = _store()
    await store.add("The user drinks green tea.")
    script = Script(record_call("list"), "hello")
    messages = await run(script, [RecordMemoryCapability([RecordMount("facts", store, "read")])], "green tea?")
    assert [len(recalls(request)) for request in script.requests] == [1, 1]
    assert recalls(messages) == recalls(script.requests[0])
    assert said(messages[0])[-1] == "green tea?"


@pytest.mark.parametrize("order", [1, -1])
async def test_both_kinds_of_memory_speak_before_the_user_in_one_message(order):
    files, records = InProcessFileStore(), _store()
    await files.write("a.md", "about tea", expected=None, origin=Origin())
    await records.add("The user drinks green tea.")
    capabilities = [
        FileMemoryCapability([FileMount("user", files, "write")]),
        RecordMemoryCapability([RecordMount("facts", records, "write")]),
    ][::order]
    script = Script("hello")
    await Agent(script.model, capabilities=capabilities).run("green tea")
    [request] = script.requests[0]
    assert len(request.parts) == 1
    texts = said(request)
    assert texts[-1] == "green tea"
    assert len(texts) == 3
    assert len(contexts([request])) == len(recalls([request])) == 1
    assert len(script.infos[0].function_tools) == 12


async def test_a_list_with_an_empty_cursor_begins_at_the_beginning():
    mount = _mount()
    await mount.store.add("likes tea")
    [(outcome, page)] = await _returned([mount], record_call("list", cursor=""))
    assert (outcome, [record["text"] for record in page["records"]]) == ("success", ["likes tea"])
