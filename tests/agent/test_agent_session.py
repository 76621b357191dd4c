"""SessionLogCapability: what is on the disk at each moment of a run, and how a session goes on."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    BinaryContent,
    DeferredToolRequests,
    DeferredToolResults,
    ImageUrl,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RequestUsage,
    TextPart,
    Tool,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.capabilities import AbstractCapability
from runners import every_way, plain
from scripted import Script, body, call, returns, said

from memshelf import (
    AgentSpec,
    FileMemoryCapability,
    FileMount,
    HarnessBuilder,
    HarnessState,
    InProcessFileStore,
    MemoryStoreError,
    Origin,
    SessionLog,
    SessionLogCapability,
    ToolPermissions,
    session_state,
)


class _Listing(BaseModel):
    names: list[str]


@pytest.fixture
def log(tmp_path):
    return SessionLog("s1", tmp_path, durable=False)


def _kinds(log):
    return [row["event"] if row["type"] == "event" else row["type"] for row in log.rows()]


def _contents(log):
    return [row["content"] for row in log.rows()]


def _dumped(messages):
    return ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")


def _asked(request):
    """What the user said in a request."""
    texts = [text for message in request for text in said(message)]
    return [text for text in texts if not text.startswith("<memory-context")]


async def _memory(**files):
    store = InProcessFileStore()
    for name, text in files.items():
        await store.write(f"{name}.md", text, expected=None, origin=Origin())
    return FileMemoryCapability([FileMount("user", store, "write")])


# --- what is on the disk, and when ------------------------------------------------------------------------------------


@every_way
async def test_every_message_is_on_the_disk_before_what_it_leads_to_happens(log, run):
    seen = []

    def look(answer):
        def answered(messages):
            seen.append(_kinds(log))
            return answer

        return answered

    class Looks(InProcessFileStore):
        async def list(self):
            seen.append(_kinds(log))
            return await super().list()

    memory = FileMemoryCapability([FileMount("user", Looks(), "write")])
    script = Script(look(call("view", memory="user")), look("done"))
    await run(script, [memory, SessionLogCapability(log)], "hi")
    before_model, before_tool, before_answer = [each for each in seen if each]
    assert before_model == ["user"]
    assert before_tool == ["user", "assistant"]
    assert before_answer == ["user", "assistant", "tool"]
    assert _kinds(log) == ["user", "assistant", "tool", "assistant"]


@every_way
async def test_a_later_agent_goes_on_with_the_very_messages(log, run):
    script = Script(call("view", memory="user"), "one", "two")
    before = await run(script, [await _memory(a="tea"), SessionLogCapability(log)], "first")
    after = await run(script, [SessionLogCapability(SessionLog("s1", log.directory))], "second")
    assert after[: len(before)] == before
    assert said(script.requests[-1][-1]) == ["second"]
    assert [row["type"] for row in log.load()] == ["user", "assistant", "tool", "assistant", "user", "assistant"]


async def test_a_row_reads_without_the_framework(log):
    script = Script(call("view", id="call-1", memory="user"), "It is about tea.")
    memory = await _memory(a="tea")
    await Agent(script.model, system_prompt="Be kind.", capabilities=[memory, SessionLogCapability(log)]).run("what?")
    system, user, asked, result, answer = log.load()
    assert (system["type"], system["content"]) == ("system", "Be kind.")
    assert (user["type"], user["content"]) == ("user", "what?")
    assert body(user["context"][0]["content"]) == {"files": [], "index": ["a.md: tea"]}
    assert asked["tool_calls"] == [{"id": "call-1", "name": "memory_file_view", "args": {"memory": "user"}}]
    assert (result["tool_call_id"], result["tool_name"], result["outcome"]) == ("call-1", "memory_file_view", "success")
    assert result["content"]["files"] == [{"path": "a.md", "description": "tea"}] or "a.md" in str(result["content"])
    assert (answer["type"], answer["content"]) == ("assistant", "It is about tea.")
    assert len({row["run_id"] for row in log.load()}) == 1


@pytest.mark.parametrize(
    "prompt",
    [
        "lone \ud800 and \u2028",
        ["look", ImageUrl("https://example.com/x.png")],
        ["look", BinaryContent(b"\x00\xff", media_type="image/png")],
        [ImageUrl("https://example.com/x.png")],
    ],
)
async def test_input_of_any_kind_is_logged_and_replayed(log, prompt):
    script = Script("one", "two")
    messages = await plain(script, [SessionLogCapability(log)], prompt)
    later = await plain(script, [SessionLogCapability(log)], "again")
    assert _dumped(later[: len(messages)]) == _dumped(messages)
    assert isinstance(log.load()[0]["content"], str) == isinstance(prompt, str)


@pytest.mark.parametrize(
    "listed",
    [["a\udcff.txt", "🍵"], {"names\ud800": ["a\udcff.txt"]}, "a\udcff.txt", _Listing(names=["a\udcff.txt"])],
    ids=["a list", "a dictionary", "a text", "a model"],
)
async def test_a_lone_surrogate_in_a_tools_result_does_not_end_its_session(log, listed):
    script = Script(ToolCallPart("ls", {}), "one", "two")
    agent = Agent(script.model, capabilities=[SessionLogCapability(log)], tools=[Tool(lambda: listed, name="ls")])
    await agent.run("list \ud800")
    await Agent(script.model, capabilities=[SessionLogCapability(log)]).run("go on")
    for request in script.requests:
        assert "\ufffd" in ModelMessagesTypeAdapter.dump_json(request).decode()
    assert all("\ufffd" in str(part.content) for request in script.requests for part in returns(request))
    assert log.load()[0]["content"] == "list \ud800", "the log keeps what was said"
    assert "list \ufffd" in session_state(log).model_dump_json()
    assert "\\udcff" in json.dumps(log.load()[2]["content"])


class _Packed(BaseModel):
    raw: bytes = b"\xff"


async def test_what_a_tool_returns_that_is_no_json_costs_no_result_beside_it(log):
    def send(messages):
        for part in returns(messages):
            part.model_response_str()
        return "sent"

    script = Script([ToolCallPart("good", {}), ToolCallPart("bad", {})], send, send)
    tools = [Tool(lambda: "done", name="good"), Tool(lambda: [_Packed()], name="bad")]
    agent = Agent(script.model, capabilities=[SessionLogCapability(log)], tools=tools)
    with pytest.raises(ValueError, match="utf-8"):
        await agent.run("hi")
    assert (await agent.run("go on")).output == "sent"
    good, bad = returns(script.requests[-1])
    assert (good.content, good.outcome) == ("done", "success")
    assert (bad.content.partition(".")[0], bad.outcome) == ("The call was made", "failed")


async def test_instructions_are_logged_once_a_run_and_replayed_in_every_message(log):
    script = Script(call("view", memory="user"), "one", "two")
    instructions = "Be very kind. " * 100
    agent = Agent(script.model, instructions=instructions, capabilities=[await _memory(), SessionLogCapability(log)])
    first = await agent.run("hi")
    assert Path(log.path).read_text().count(instructions.strip()) == 1
    await agent.run("again")
    assert script.requests[-1][:-1] == first.all_messages()


async def test_output_tools_and_retries_are_replayed(log):
    script = Script(
        call("final_result", response="x"), call("final_result", response=7), call("final_result", response=8)
    )
    agent = Agent(script.model, output_type=int, capabilities=[SessionLogCapability(log)])
    first = await agent.run("a number")
    assert first.output == 7
    assert _kinds(log)[-2:] == ["tool", "completed"]
    await agent.run("another")
    parts = [part for message in script.requests[-1] for part in message.parts]
    assert parts[:-1] == [part for message in first.all_messages() for part in message.parts]
    assert "interrupted" not in _kinds(log)


async def test_the_session_is_the_conversation(log):
    messages = await plain(Script("one"), [SessionLogCapability(log)], "hi")
    assert {message.conversation_id for message in messages} == {"s1"}


async def test_a_run_that_brings_a_history_goes_on_with_that_and_logs_what_is_new(log):
    script = Script("one", "two", "three")
    agent = Agent(script.model, capabilities=[SessionLogCapability(log)])
    first = await agent.run("a")
    second = await agent.run("b", message_history=first.all_messages())
    await agent.run("c", message_history=second.all_messages())
    assert _contents(log) == ["a", "one", "b", "two", "c", "three"]
    assert _asked(script.requests[-1]) == ["a", "b", "c"]


async def test_a_session_that_begins_with_a_history_has_that_too(log):
    history = [ModelRequest([UserPromptPart("before")]), ModelResponse([TextPart("yes")])]
    agent = Agent(Script("one").model, capabilities=[SessionLogCapability(log)])
    await agent.run("a", message_history=history)
    assert _contents(log) == ["before", "yes", "a", "one"]


async def test_input_that_a_front_end_put_into_the_history_is_logged_before_the_model_is_asked(log):
    seen = []
    script = Script(lambda messages: (seen.append(_contents(log)), "one")[1])
    history = [
        ModelRequest([UserPromptPart("old")]),
        ModelResponse([TextPart("yes")]),
        ModelRequest([UserPromptPart("now")]),
    ]
    log.extend([{"type": "user", "content": "old"}, {"type": "assistant", "content": "yes"}])
    await Agent(script.model, capabilities=[SessionLogCapability(log)]).run(message_history=history)
    assert seen == [["old", "yes", "now"]]


@pytest.mark.parametrize(("content", "shown"), [(None, []), (" ", []), (["Likes", {"text": "tea"}], ["Likes\\ntea"])])
async def test_a_boundary_of_another_program_shows_the_text_that_it_has(log, content, shown):
    log.append("user", "long ago")
    log.append("compact_boundary", content)
    log.append("user", "What do I drink?")
    log.append("assistant", "Tea.")
    script = Script("one")
    await plain(script, [SessionLogCapability(log)], "hi")
    [first, *_] = script.requests[0]
    *before, own = first.parts[0].content if shown else [first.parts[0].content]
    assert own == "What do I drink?"
    assert [text.content.split('"')[-2] for text in before] == shown


async def test_rows_that_other_programs_wrote_are_gone_on_with(log):
    log.append("system", "Be kind.")
    log.append("user", ["look", {"a": 1}])
    log.append("assistant", "I see.", tool_calls=[{"id": "1", "name": "view", "args": {"x": 1}}])
    log.append("tool", {"rows": 3}, tool_call_id="1", tool_name="view")
    log.append("assistant", "Three rows.")
    log.append("user", "broken", pydantic_ai={"message": {"parts": 7}, "part": 3})
    log.append("assistant", "ok", pydantic_ai={"message": {"usage": "x", "parts": [{}]}})
    script = Script("one")
    await plain(script, [SessionLogCapability(log)], "hi")
    *_, request = script.requests
    assert [[part.part_kind for part in message.parts] for message in request] == [
        ["system-prompt", "user-prompt"],
        ["text", "tool-call"],
        ["tool-return"],
        ["text"],
        ["user-prompt"],
        ["text"],
        ["user-prompt"],
    ]
    assert request[0].parts[1].content == '["look", {"a": 1}]'


async def test_what_cannot_be_logged_is_not_asked(tmp_path):
    (tmp_path / "file").write_text("")
    script = Script("one")
    with pytest.raises(MemoryStoreError, check=lambda error: error.code == "unavailable"):
        await plain(script, [SessionLogCapability(SessionLog("s1", tmp_path / "file" / "x"))], "hi")
    assert script.requests == []


async def test_one_object_serves_runs_at_the_same_time_and_later_ones_see_them_one_after_the_other(log):
    both = asyncio.Event()
    asked = []

    async def wait(messages):
        asked.append(1)
        if len(asked) == 2:
            both.set()
        await both.wait()
        return call("view", memory="user")

    def script(answer):
        return Script(lambda messages: wait(messages), answer)

    capabilities = [await _memory(a="x"), SessionLogCapability(log)]
    await asyncio.gather(plain(script("A"), capabilities, "a"), plain(script("B"), capabilities, "b"))
    last = Script("done")
    await plain(last, [SessionLogCapability(log)], "c")
    shown = [(said(message) or [part.part_kind for part in message.parts])[-1] for message in last.requests[0]]
    assert shown in (
        ["a", "tool-call", "tool-return", "text", "b", "tool-call", "tool-return", "text", "c"],
        ["b", "tool-call", "tool-return", "text", "a", "tool-call", "tool-return", "text", "c"],
    )


# --- runs that do not end -------------------------------------------------------------------------------------------


async def test_a_model_that_fails_leaves_the_question_and_a_closed_turn(log):
    script = Script(RuntimeError("down"), "two")
    with pytest.raises(RuntimeError, match="down"):
        await plain(script, [SessionLogCapability(log)], "first")
    assert _kinds(log) == ["user", "interrupted"]
    await plain(script, [SessionLogCapability(log)], "second")
    assert _asked(script.requests[1]) == ["first", "second"]


class _Stops(AbstractCapability[object]):
    """Does something in place of the first tool call."""

    def __init__(self, act):
        self._act = act

    async def before_tool_execute(self, ctx, *, call, tool_def, args):
        await self._act()
        return args


async def test_a_run_that_is_cancelled_in_a_tool_is_closed_at_once(log):
    inside = asyncio.Event()

    async def hang():
        inside.set()
        await asyncio.Event().wait()

    script = Script([call("view", id="1", memory="user"), call("view", id="2", memory="user")], "two")
    capabilities = [await _memory(), _Stops(hang), SessionLogCapability(log)]
    task = asyncio.ensure_future(plain(script, capabilities, "hi"))
    await inside.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert _kinds(log) == ["user", "assistant", "tool", "tool", "interrupted"]
    assert {row["outcome"] for row in log.rows() if row["type"] == "tool"} == {"interrupted"}
    await plain(script, [SessionLogCapability(log)], "again")
    results = returns(script.requests[1])
    assert [part.tool_call_id for part in results] == ["1", "2"]
    assert all("may or may not have taken effect" in part.content for part in results)


@pytest.mark.parametrize("times", [1, 3])
async def test_a_run_that_is_cancelled_while_results_are_logged_has_them_once(log, monkeypatch, times):
    entered, release = threading.Event(), threading.Event()
    extend = log.extend

    def slowly(rows):
        rows = list(rows)
        if rows[0]["type"] == "tool":
            entered.set()
            release.wait()
        return extend(rows)

    monkeypatch.setattr(log, "extend", slowly)
    script = Script([call("view", id="1", memory="user"), call("view", id="2", memory="user")], "two")
    task = asyncio.ensure_future(plain(script, [await _memory(), SessionLogCapability(log)], "hi"))
    await asyncio.to_thread(entered.wait)
    for _ in range(times):
        task.cancel()
        for _ in range(20):
            await asyncio.sleep(0)  # so that whoever does not wait for the log gets there
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [row["tool_call_id"] for row in log.rows() if row["type"] == "tool"] == ["1", "2"]
    assert _kinds(log)[-1] == "interrupted"
    assert len(script.requests) == 1  # a run that is over asks its model no more


async def test_a_run_that_is_cancelled_makes_no_other_call_while_its_end_is_logged(log, monkeypatch):
    ending, logged, begun, end = threading.Event(), threading.Event(), asyncio.Event(), asyncio.Event()
    seal, made = log.seal, []

    def slowly(**options):
        ending.set()
        logged.wait()
        return seal(**options)

    async def first():
        begun.set()
        await end.wait()

    tools = [Tool(first, name="first_one", sequential=True), Tool(lambda: made.append(1), name="other_one")]
    script = Script([call("first_one"), call("other_one")], "done")
    task = asyncio.ensure_future(plain(script, [SessionLogCapability(log)], "hi", tools=tools))
    await begun.wait()
    monkeypatch.setattr(log, "seal", slowly)
    task.cancel()
    await asyncio.to_thread(ending.wait)
    end.set()  # which comes before the framework cancels the call
    for _ in range(50):
        await asyncio.sleep(0)  # so that the other call would be made
    logged.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert made == []
    assert [row["outcome"] for row in log.rows() if row["type"] == "tool"] == ["interrupted"] * 2


async def test_an_answer_that_is_cut_off_is_kept_as_far_as_it_came(log):
    executable = HarnessBuilder().build(
        AgentSpec(), model=Script("one two three", "next").model, capabilities=[SessionLogCapability(log)]
    )
    async with executable.stream("hi") as stream:
        async for event in stream:
            if "two" in str(event):
                stream.cancel()
    assert stream.result.status == "cancelled"
    _, answer, *_ = log.load()
    assert answer["type"] == "assistant"
    assert answer["content"].startswith("one")
    assert "three" not in answer["content"]


@pytest.mark.parametrize("moment", ["model", "tool", "second model", "summary"])
def test_a_process_killed_at_any_moment_loses_nothing_that_was_said(tmp_path, moment):
    done = subprocess.run([sys.executable, __file__, moment, str(tmp_path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    log = SessionLog("s1", tmp_path)
    rows = {"model": 1, "tool": 2, "second model": 3, "summary": 4}[moment]
    assert _kinds(log) == ["user", "assistant", "tool", "assistant"][:rows]
    script = Script("back again")
    asyncio.run(plain(script, [SessionLogCapability(log)], "what happened?"))
    [request] = script.requests
    assert _asked(request) == ["do it", "what happened?"]
    results = returns(request)
    assert [part.outcome for part in results] == {1: [], 2: ["interrupted"]}.get(rows, ["success"])
    assert _kinds(log).count("interrupted") == (rows < 4)
    assert _kinds(log)[-2:] == ["user", "assistant"]


async def _be_killed(moment: str, directory: str) -> None:
    async def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    async def die(messages):
        await kill()

    class Dies(AbstractCapability[object]):
        async def after_run(self, ctx, *, result):
            await kill()

    capabilities = [await _memory(a="tea"), SessionLogCapability(SessionLog("s1", directory))]
    if moment == "tool":
        capabilities.append(_Stops(kill))
    if moment == "summary":
        capabilities.append(Dies())
    first = die if moment == "model" else call("view", memory="user")
    second = die if moment == "second model" else "done"
    await plain(Script(first, second), capabilities, "do it")


# --- suspended threads and state ------------------------------------------------------------------------------------


async def test_a_thread_that_waits_for_approval_goes_on_in_another_process(log):
    script = Script(call("create", id="1", memory="user", path="a.md", content="x"), "Stored.")
    memory = await _memory()

    def executable():
        return HarnessBuilder().build(
            AgentSpec(),
            model=script.model,
            capabilities=[memory, SessionLogCapability(log)],
            permissions=ToolPermissions(rules={"memory.file.create": "ask"}),
        )

    first = await executable().run("remember this")
    assert first.status == "suspended"
    assert _kinds(log) == ["user", "assistant", "suspended"]
    state = session_state(log)
    assert state.pending == first.state.pending
    assert state.messages == first.state.messages
    assert state.thread_id == "s1"
    second = await executable().run(None, previous_state=state, approvals={"1": True})
    assert second.output == "Stored."
    assert _kinds(log) == ["user", "assistant", "suspended", "tool", "assistant"]
    assert session_state(log).pending == []


async def test_on_a_plain_agent_deferred_results_complete_the_session(log):
    script = Script(call("create", id="1", memory="user", path="a.md", content="x"), "Stored.")
    gate = ToolPermissions(rules={"memory.file.create": "ask"})
    from memshelf.agent.permissions import ToolPermissionCapability

    agent = Agent(
        script.model,
        output_type=[str, DeferredToolRequests],
        capabilities=[await _memory(), ToolPermissionCapability(gate), SessionLogCapability(log)],
    )
    assert isinstance((await agent.run("remember this")).output, DeferredToolRequests)
    result = await agent.run(deferred_tool_results=DeferredToolResults(approvals={"1": True}))
    assert result.output == "Stored."


async def test_a_new_question_gives_up_what_waits(log):
    script = Script(call("create", id="1", memory="user", path="a.md", content="x"), "Never mind.")
    from memshelf.agent.permissions import ToolPermissionCapability

    agent = Agent(
        script.model,
        output_type=[str, DeferredToolRequests],
        capabilities=[
            await _memory(),
            ToolPermissionCapability(ToolPermissions(rules={"memory.file.create": "ask"})),
            SessionLogCapability(log),
        ],
    )
    await agent.run("remember this")
    assert (await agent.run("forget it")).output == "Never mind."
    [result] = returns(script.requests[1])
    assert (result.tool_call_id, result.outcome) == ("1", "interrupted")


async def test_what_capabilities_keep_with_the_thread_is_in_the_session(log):
    from memshelf.agent.state import thread_state

    class Counts(AbstractCapability[object]):
        async def before_model_request(self, ctx, request_context):
            kept = thread_state(ctx)
            kept["count"] = kept.get("count", 0) + 1
            return request_context

    executable = HarnessBuilder().build(
        AgentSpec(), model=Script("one", "two").model, capabilities=[Counts(), SessionLogCapability(log)]
    )
    await executable.run("a")
    assert session_state(log).capability_state == {"count": 1}
    await executable.run("b", previous_state=session_state(log))
    assert session_state(log).capability_state == {"count": 2}


async def test_the_state_of_a_session_is_the_state_of_its_thread(log):
    executable = HarnessBuilder().build(
        AgentSpec(),
        model=Script(call("view", memory="user"), "one", "two").model,
        capabilities=[await _memory(a="x"), SessionLogCapability(log)],
    )
    result = await executable.run("hi")
    state = session_state(log)
    assert state.messages == result.state.messages
    assert HarnessState.model_validate_json(state.model_dump_json()) == state
    second = await executable.run("again", previous_state=state)
    assert session_state(log).messages == second.state.messages


async def test_metadata_that_is_no_json_is_named_in_the_log(log):
    script = Script(ToolCallPart("look", {}), "done")
    agent = Agent(script.model, capabilities=[SessionLogCapability(log)])
    agent.tool_plain(lambda: ToolReturn("seen", metadata={"handle": object()}), name="look")
    assert (await agent.run("hi")).output == "done"
    assert "<object object at" in Path(log.path).read_text()
    assert [part.content for part in returns(session_state(log).messages)] == ["seen"]


def test_calls_that_wait_and_cannot_be_read_are_closed_for_the_model(log):
    log.append("user", "do it")
    log.append("assistant", "", tool_calls=[{"id": "1", "name": "view", "args": {}}])
    log.append("event", event="suspended", pending=[{"what": 1}])
    state = session_state(log)
    assert state.pending == []
    assert [part.outcome for part in returns(state.messages)] == ["interrupted"]


def test_two_logs_on_one_agent_are_refused(log):
    with pytest.raises(ValueError, match="2 SessionLogCapability objects"):
        Agent("test", capabilities=[SessionLogCapability(log), SessionLogCapability(log)])


def test_a_session_without_messages_has_no_state(log):
    assert session_state(log) is None
    log.append("event", event="renamed", name="x")
    assert session_state(log) is None


def test_the_state_of_a_session_that_crashed_is_one_that_every_provider_takes(log):
    log.append("user", "do it")
    log.append("assistant", "", tool_calls=[{"id": "1", "name": "view", "args": {}}])
    state = session_state(log)
    assert [part.outcome for part in returns(state.messages)] == ["interrupted"]
    assert _kinds(log)[-2:] == ["tool", "interrupted"]


def test_a_call_taken_for_interrupted_that_has_a_result_after_all_has_that(log):
    log.append("user", "do it", run_id="r")
    log.append("assistant", "", tool_calls=[{"id": "1", "name": "view", "args": {}}], run_id="r")
    log.seal()
    log.append("tool", "result", tool_call_id="1", tool_name="view", run_id="r")
    log.append("assistant", "done", run_id="r")
    assert [(part.content, part.outcome) for part in returns(session_state(log).messages)] == [("result", "success")]


@pytest.mark.parametrize("runs", [("r1", "r2"), ("r", "r"), (None, None)])
async def test_a_call_that_was_cut_short_is_so_though_an_earlier_one_had_its_id(log, runs):
    for run, question in zip(runs, ("a", "b"), strict=True):
        said = {} if run is None else {"run_id": run}
        log.append("user", question, **said)
        log.append("assistant", "", tool_calls=[{"id": "call_0", "name": "view", "args": {}}], **said)
        if question == "a":
            log.append("tool", "result", tool_call_id="call_0", tool_name="view", **said)
    script = Script("Hello again.")
    await plain(script, [SessionLogCapability(log)], "hello?")
    outcomes = [part.outcome for part in returns(script.requests[0])]
    assert outcomes == ["success", "interrupted"]


async def _two_turns_with_calls(log, *ids):
    """The lines of a session with three calls in it."""
    calls = [call("list_files", id=each) for each in ids]
    script = Script(calls[:2], "first", calls[2], "second")

    def list_files() -> str:
        return "a.md"

    for question in ("one", "two"):
        await Agent(script.model, tools=[list_files], capabilities=[SessionLogCapability(log)]).run(question)
    return Path(log.path).read_bytes().splitlines(keepends=True)


async def _assert_it_goes_on(tmp_path, name, lines):
    """With two more turns, whose requests are such that every provider takes them."""
    log = SessionLog(name, tmp_path, durable=False)
    Path(log.path).write_bytes(b"".join(lines))
    script = Script("x", "x")
    for question in ("three", "four"):
        await plain(script, [SessionLogCapability(log)], question)
    for before, message in itertools.pairwise([None, *script.requests[-1]]):
        made = [part.tool_call_id for part in before.parts if isinstance(part, ToolCallPart)] if before else []
        assert sorted(part.tool_call_id for part in returns([message])) == made
    return script.requests[-1]


async def test_a_log_that_lost_any_one_row_still_has_each_result_behind_its_call(log, tmp_path):
    lines = await _two_turns_with_calls(log, "1", "2", "3")
    for lost in range(len(lines)):
        await _assert_it_goes_on(tmp_path, f"s{lost}-lost", [*lines[:lost], b"{\n", *lines[lost + 1 :]])


@pytest.mark.parametrize("ids", [("1", "2", "3"), ("0", "1", "0")], ids=["counted", "counted-anew"])
async def test_a_log_with_rows_twice_or_in_another_order_has_one_result_behind_each_call(log, tmp_path, ids):
    lines = await _two_turns_with_calls(log, *ids)
    await _assert_it_goes_on(tmp_path, "doubled", [*lines, *lines])
    for at, line in enumerate(lines):
        await _assert_it_goes_on(tmp_path, f"twice-{at}", [*lines[: at + 1], line, *lines[at + 1 :]])
        await _assert_it_goes_on(tmp_path, f"late-{at}", [*lines[:at], *lines[at + 1 :], line])


async def test_of_two_results_of_a_call_the_first_counts(log, tmp_path):
    lines = await _two_turns_with_calls(log, "1", "2", "3")
    [at] = [at for at, line in enumerate(lines) if b'"tool_call_id":"3"' in line]
    for other in (lines[at].replace(b"a.md", b"b.md"), lines[at].replace(b"success", b"interrupted")):
        request = await _assert_it_goes_on(tmp_path, str(len(other)), [*lines[: at + 1], other, *lines[at + 1 :]])
        assert [part.content for part in returns(request)] == ["a.md"] * 3


async def test_calls_that_another_program_logged_have_their_results_behind_them(log, tmp_path):
    called = b'{"type":"assistant","content":"","tool_calls":[{"id":"9","name":"look","args":{}}]}\n'
    answered = b'{"type":"tool","content":"seen","tool_call_id":"9","tool_name":"look"}\n'
    lines = await _two_turns_with_calls(log, "1", "2", "3")
    for at in range(len(lines)):
        logged = [called, *lines[: at + 1], answered, *lines[at + 1 :]]
        request = await _assert_it_goes_on(tmp_path, f"among-{at}", logged)
        assert "seen" in [part.content for part in returns(request)]


def test_usage_and_details_of_a_response_survive(log):
    from memshelf.agent.capabilities.session_rows import messages_of, rows_of

    response = ModelResponse(
        [
            TextPart("a", id="x"),
            ToolCallPart("t", '{"a": 1}', tool_call_id="1", provider_details={"k": None}),
            TextPart("b"),
        ],
        usage=RequestUsage(input_tokens=7, details={"x": 3}),
        provider_details={"seed": 1},
        metadata={"mine": [1, None]},
        run_id="r",
    )
    request = ModelRequest([ToolReturnPart("t", {"none": None}, tool_call_id="1", metadata={"z": None})], run_id="r")
    log.extend([row for message in (response, request) for row in rows_of(message)])
    assert [each.message for each in messages_of(log.load())] == [response, request]


if __name__ == "__main__":
    logging.disable()
    asyncio.run(_be_killed(*sys.argv[1:]))
