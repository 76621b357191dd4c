"""Recall through the capability: which requests it reaches, what it reports, and what it never does to a run."""

from __future__ import annotations

import asyncio

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    ImageUrl,
    ModelRequest,
    RunContext,
    UserPromptPart,
)
from scripted import Script, recalled, recalls, record_call, said

from memshelf import (
    InProcessRecordStore,
    MemoryRecallEvent,
    RecordMemoryCapability,
    RecordMemoryLimits,
    RecordMount,
    ToolPermissions,
)
from memshelf.agent.events import RecallDelivery
from memshelf.agent.permissions import ToolPermissionCapability


class _Asked(InProcessRecordStore):
    """Remembers its queries."""

    def __init__(self, search=None):
        super().__init__(embedder=None)
        self.queries, self._search = [], search

    async def search(self, query, *, limit, now=None):
        self.queries.append(query)
        if self._search is not None:
            return await self._search()
        return await super().search(query, limit=limit, now=now)


async def _store(*texts, **options):
    store = _Asked(**options)
    for text in texts or ("The user drinks green tea.",):
        await store.add(text)
    return store


def _memory(*stores, access="write", **options):
    mounts = [RecordMount(f"facts{each}" if each else "facts", store, access) for each, store in enumerate(stores)]
    return RecordMemoryCapability(mounts, **options)


async def _events(script, memory, prompt):
    async with Agent(script.model, capabilities=[memory]).run_stream_events(prompt) as stream:
        return [event async for event in stream if isinstance(event, MemoryRecallEvent)]


# --- which requests ---------------------------------------------------------------------------------------------------


async def test_each_run_of_a_thread_recalls_once_for_what_it_is_asked_then():
    store = await _store("The user drinks green tea.", "The user has a tortoise.")
    script = Script(record_call("list"), "one", "two")
    agent = Agent(script.model, capabilities=[_memory(store)])
    first = await agent.run("green tea?")
    await agent.run("how old is the tortoise?", message_history=first.all_messages())
    assert store.queries == ["green tea?", "how old is the tortoise?"]
    blocks = recalls(script.requests[-1])
    assert [recalled(block)[0]["text"] for block in blocks] == [
        "The user drinks green tea.",
        "The user has a tortoise.",
    ]
    assert recalls(script.requests[0]) == blocks[:1]  # an earlier request stays as it was sent


async def test_an_approval_that_resumes_a_run_recalls_nothing():
    store = await _store()
    script = Script(record_call("add", text="likes milk"), "done")
    ask = ToolPermissionCapability(ToolPermissions(rules={"memory.record.add": "ask"}))
    agent = Agent(script.model, capabilities=[_memory(store), ask], output_type=[str, DeferredToolRequests])
    first = await agent.run("green tea")
    approvals = DeferredToolResults(approvals={call.tool_call_id: True for call in first.output.approvals})
    await agent.run(message_history=first.all_messages(), deferred_tool_results=approvals)
    assert store.queries == ["green tea"]


async def test_a_run_inside_another_recalls_nothing():
    store, inner = await _store(), Script("inner")
    memory = _memory(store)
    outer = Agent(Script("done").model, capabilities=[memory])

    @outer.instructions
    async def ask_another(_: RunContext[object]) -> str:
        return (await Agent(inner.model, capabilities=[memory]).run("green tea, inside")).output

    await outer.run("green tea, outside")
    assert store.queries == ["green tea, outside"]
    assert recalls(inner.requests[0]) == []


async def test_the_query_is_all_that_the_user_wrote_and_nothing_else():
    store = await _store()
    script = Script("hello", "hello")
    agent = Agent(script.model, capabilities=[_memory(store)])
    await agent.run(["green", ImageUrl("https://example.com/a.png"), "tea"])
    front_end = ModelRequest([UserPromptPart("black"), UserPromptPart(["tea", "please"])])
    await agent.run(message_history=[front_end])
    assert store.queries == ["green\ntea", "black\ntea\nplease"]


async def test_an_input_without_text_recalls_nothing_and_reports_nothing():
    store = await _store()
    script = Script("hello")
    assert await _events(script, _memory(store), [ImageUrl("https://example.com/a.png")]) == []
    assert store.queries == []
    assert recalls(script.requests[0]) == []


async def test_what_is_recalled_can_be_told_from_what_the_user_said():
    script = Script("hello")
    await Agent(script.model, capabilities=[_memory(await _store())]).run("green tea")
    [part] = script.requests[0][0].parts
    metadata = [getattr(item, "metadata", None) for item in part.content]
    assert metadata == [{"memshelf": {"memory": "facts", "recall": "recalled"}}, None]


async def test_an_input_about_nothing_known_is_sent_as_it_is():
    script = Script("hello")
    [event] = await _events(script, _memory(await _store()), "walrus")
    assert said(script.requests[0][0]) == ["walrus"]
    assert event.memories == [RecallDelivery(memory="facts", outcome="nothing", records=0, bytes=0)]


# --- what it reports, and what it never does --------------------------------------------------------------------------


async def test_the_event_tells_outcomes_and_counts_without_content():
    async def fail():
        raise ConnectionError("the network is gone")

    async def never():
        await asyncio.Event().wait()

    large = await _store("green tea " * 2_000)
    stores = [await _store(), await _store(search=fail), await _store(search=never), large, await _store("walrus")]
    script = Script("hello")
    memory = _memory(*stores, limits=RecordMemoryLimits(recall_seconds=2))
    [event] = await _events(script, memory, "green tea")
    [block] = recalls(script.requests[0])
    assert event.memories == [
        RecallDelivery(memory="facts", outcome="recalled", records=1, bytes=len(block.encode())),
        RecallDelivery(memory="facts1", outcome="unavailable", records=0, bytes=0),
        RecallDelivery(memory="facts2", outcome="timeout", records=0, bytes=0),
        RecallDelivery(memory="facts3", outcome="omitted", records=0, bytes=0),
        RecallDelivery(memory="facts4", outcome="nothing", records=0, bytes=0),
    ]
    assert "tea" not in repr(event)


async def test_a_store_that_never_answers_and_cannot_be_cancelled_delays_a_run_by_the_deadline_only():
    release = asyncio.Event()

    async def stubborn():
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        return []

    script = Script("hello")
    memory = _memory(await _store(search=stubborn), limits=RecordMemoryLimits(recall_seconds=0.05))
    result = await asyncio.wait_for(Agent(script.model, capabilities=[memory]).run("green tea"), 30)
    assert result.output == "hello"
    assert recalls(script.requests[0]) == []
    release.set()


async def test_runs_at_the_same_time_share_a_capability():
    store = await _store("The user drinks green tea.", "The user has a tortoise.")
    memory = _memory(store)
    scripts = [Script("done") for _ in range(8)]
    prompts = ["green tea", "tortoise"] * 4
    await asyncio.gather(
        *(
            Agent(script.model, capabilities=[memory]).run(prompt)
            for script, prompt in zip(scripts, prompts, strict=True)
        )
    )
    for script, prompt in zip(scripts, prompts, strict=True):
        [block] = recalls(script.requests[0])
        assert prompt in recalled(block)[0]["text"]
