"""The harness: results, threads, streams, cancellation, and models."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pickle
import re
import signal
import subprocess
import sys
import textwrap

import anyio
import pytest
from pydantic import BaseModel
from pydantic_ai import (
    AgentSpec as UpstreamSpec,
    BinaryContent,
    FunctionToolset,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RunContext,
    RunUsage,
    SystemPromptPart,
    TextPart,
    Tool,
    ToolCallPart,
    ToolReturn,
    ToolReturnPart,
    UsageLimits,
    UserPromptPart,
)
from pydantic_ai.capabilities import AbstractCapability, Thinking, Toolset
from pydantic_ai.messages import PartDeltaEvent, TextPartDelta
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.test import TestModel
from scripted import Script, call, contexts, returns, said

from memshelf import (
    Agent,
    AgentSpec,
    FileMemoryCapability,
    FileMount,
    HarnessBuilder,
    HarnessResult,
    HarnessState,
    InProcessFileStore,
    MemoryContextEvent,
    MemoryCursors,
    ModelConfigurationError,
    Origin,
    RunIncompleteError,
)
from memshelf.agent.state import thread_state


def _build(script, *capabilities, **options):
    return HarnessBuilder().build(AgentSpec(), model=script.model, capabilities=capabilities, **options)


def _memory(store=None, **options):
    return FileMemoryCapability([FileMount("user", store or InProcessFileStore(), "write")], **options)


def _tool(name, function):
    toolset = FunctionToolset()
    toolset.add_function(function, name=name)
    return Toolset(toolset)


def _assert_every_call_is_answered(messages):
    answered = {part.tool_call_id for part in returns(messages)}
    calls = {each.tool_call_id for m in messages if isinstance(m, ModelResponse) for each in m.tool_calls}
    assert calls <= answered


# --- results and threads ----------------------------------------------------------------------------------------------


async def test_a_thread_goes_on_from_its_state():
    script = Script("hello", "you said hi")
    executable = _build(script)
    first = await executable.run("hi")
    assert first.status == "completed"
    assert first.output_or_raise() == first.output == "hello"
    assert first.usage.requests == 1
    second = await executable.run("what did I say?", previous_state=first.state)
    assert [text for message in script.requests[1] for text in said(message)] == ["hi", "what did I say?"]
    assert second.state.thread_id == first.state.thread_id
    assert len(first.state.messages) == 2  # a state does not change under its holder
    assert len(second.state.messages) == 4


async def test_two_threads_have_different_ids_unless_one_is_given():
    script = Script("a", "b", "c")
    executable = _build(script)
    one, two = await executable.run("hi"), await executable.run("hi")
    assert one.state.thread_id != two.state.thread_id
    mine = await executable.run("hi", previous_state=HarnessState(thread_id="mine"))
    assert mine.state.thread_id == "mine"


async def test_a_stored_thread_goes_on_elsewhere():
    script = Script(call("create", memory="user", path="a.md", content="x"), "saved", "bye")
    executable = _build(script, _memory())
    image = BinaryContent(b"\x00\xff\xfe", media_type="image/png")
    first = await executable.run(["look", image])
    stored = HarnessState.model_validate_json(first.state.model_dump_json())
    assert stored.model_dump_json() == first.state.model_dump_json()
    second = await executable.run("bye", previous_state=stored)
    assert second.output_or_raise() == "bye"
    assert script.requests[-1][0].parts[-1].content[2].data == image.data


async def test_input_may_be_a_message():
    script = Script("hello", "both")
    executable = _build(script)
    await executable.run(ModelRequest.user_text_prompt("hi"))
    await executable.run(ModelRequest(parts=[UserPromptPart("one"), UserPromptPart(["two", "three"])]))
    assert said(script.requests[0][0]) == ["hi"]
    assert said(script.requests[1][0]) == ["one", "two", "three"]


@pytest.mark.parametrize("input", ["", [], ModelRequest(parts=[])])
async def test_an_empty_input_is_refused(input):
    with pytest.raises(ValueError, match="The input is empty"):
        await _build(Script()).run(input)


async def test_what_is_no_input_is_refused():
    with pytest.raises(TypeError, match="text, a list of content parts, or a message, not bytes"):
        await _build(Script()).run(b"hi")
    with pytest.raises(ValueError, match="user content only"):
        await _build(Script()).run(ModelRequest(parts=[SystemPromptPart("obey")]))
    with pytest.raises(ValueError, match="A new thread needs an input"):
        await _build(Script()).run(None)


async def test_an_output_type_and_a_specifications_schema_give_structured_output():
    class Drink(BaseModel):
        name: str

    built = HarnessBuilder().build(AgentSpec(), output_type=Drink, model=TestModel(custom_output_args={"name": "tea"}))
    assert (await built.run("hi")).output_or_raise() == Drink(name="tea")
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    built = HarnessBuilder().build(AgentSpec(output_schema=schema), model=TestModel(custom_output_args={"name": "tea"}))
    assert (await built.run("hi")).output_or_raise() == {"name": "tea"}


@pytest.mark.parametrize("specification", [AgentSpec, UpstreamSpec])
async def test_a_specification_is_pydantic_ais_own(specification):
    assert issubclass(AgentSpec, UpstreamSpec)
    script = Script("hello")
    spec = specification(model="nonsense", instructions="Be brief.")
    await HarnessBuilder().build(spec, model=script.model).run("hi")  # the model of build() wins
    assert script.infos[0].instructions == "Be brief."


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"modle": "test"}, "AgentSpec has no field 'modle'. Did you mean 'model'?"),
        ({"model": "test", "instruction": "x"}, "AgentSpec has no field 'instruction'. Did you mean 'instructions'?"),
        ({"weather": 1}, "AgentSpec has no field 'weather'. [type="),
        ({"json_schema_path": "x"}, "AgentSpec has no field 'json_schema_path'."),
    ],
)
def test_a_field_that_a_specification_does_not_have_is_refused_with_the_closest_one(fields, says):
    with pytest.raises(ValueError, match=re.escape(says)):
        AgentSpec(**fields)
    with pytest.raises(ValueError, match=re.escape(says)):
        AgentSpec.from_text(json.dumps(fields), "json")


def test_a_specification_has_every_field_of_pydantic_ais():
    spec = AgentSpec.from_text('{"$schema": "./agent_schema.json", "model": "test", "retries": 2}', "json")
    assert (type(spec), spec.json_schema_path, spec.retries) == (AgentSpec, "./agent_schema.json", 2)
    assert AgentSpec.model_validate(spec.model_dump(by_alias=True)) == spec
    assert pickle.loads(pickle.dumps(spec)) == spec


async def test_tools_get_the_dependencies_of_the_run():
    def who(ctx: RunContext[str]) -> str:
        return ctx.deps

    script = Script(call("who_am_i"), "done")
    result = await _build(script, _tool("who_am_i", who)).run("hi", deps="alice")
    assert returns(result.state.messages)[0].content == "alice"


async def test_capability_state_stays_with_the_thread():
    class Counts(AbstractCapability[object]):
        async def before_run(self, ctx):
            kept = thread_state(ctx)
            kept["runs"] = kept.get("runs", 0) + 1

    script = Script("one", "two", ConnectionError("down"))
    executable = _build(script, Counts())
    first = await executable.run("hi")
    second = await executable.run("hi", previous_state=HarnessState.model_validate_json(first.state.model_dump_json()))
    third = await executable.run("hi", previous_state=second.state)
    assert [each.state.capability_state for each in (first, second, third)] == [{"runs": 1}, {"runs": 2}, {"runs": 3}]


# --- memory through the harness ---------------------------------------------------------------------------------------


async def test_a_new_conversation_knows_what_another_stored():
    store = InProcessFileStore()
    script = Script(
        call("create", memory="user", path="prefs.md", content="Reply in Chinese."), "saved", "You prefer Chinese."
    )
    executable = _build(script, _memory(store))
    await executable.run("I prefer answers in Chinese. Remember that.")
    await executable.run("What do you know about me?")
    [block] = contexts(script.requests[2])
    assert "prefs.md: Reply in Chinese." in block


async def test_a_third_run_of_a_thread_gets_only_what_changed():
    store, cursors = InProcessFileStore(), MemoryCursors()
    await store.write("a.md", "x", expected=None, origin=Origin())
    script = Script("one", "two", "three")
    executable = _build(script, _memory(store, cursors=cursors))
    first = await executable.run("1")
    second = await executable.run("2", previous_state=first.state)
    await store.write("b.md", "y", expected=None, origin=Origin())
    await executable.run("3", previous_state=second.state)
    kinds = [[block.split('"')[5] for block in contexts(request)] for request in script.requests]
    assert kinds == [["full"], ["full"], ["full", "changes"]]


async def test_going_on_without_input_delivers_no_context():
    store = InProcessFileStore()
    await store.write("a.md", "x", expected=None, origin=Origin())
    script = Script(ConnectionError("down"), "hello")
    executable = _build(script, _memory(store, cursors=MemoryCursors()))
    failed = await executable.run("hi")
    resumed = await executable.run(None, previous_state=failed.state)
    assert resumed.output_or_raise() == "hello"
    assert len(contexts(resumed.state.messages)) == 1


# --- failures ---------------------------------------------------------------------------------------------------------


async def test_a_model_that_fails_gives_a_failed_result_with_the_input_kept():
    script = Script(ConnectionError("down"), "hello")
    executable = _build(script)
    failed = await executable.run("hi")
    assert failed.status == "failed"
    assert failed.output is None
    with pytest.raises(ConnectionError, match="down"):
        failed.output_or_raise()
    again = await executable.run("are you there?", previous_state=failed.state)
    assert [text for m in again.state.messages for text in said(m)] == ["hi", "are you there?"]


async def test_a_tool_that_raises_leaves_no_open_call_and_keeps_what_was_done():
    store = InProcessFileStore()

    def explode() -> str:
        raise ZeroDivisionError("boom")

    script = Script([call("create", memory="user", path="a.md", content="x"), call("blow_up")], "I see.")
    executable = _build(script, _memory(store), _tool("blow_up", explode))
    failed = await executable.run("hi")
    assert isinstance(failed.failure, ZeroDivisionError)
    _assert_every_call_is_answered(failed.state.messages)
    done = {part.tool_name: part for part in returns(failed.state.messages)}
    assert done["memory_file_create"].outcome == "success"
    assert done["blow_up"].outcome == "interrupted"
    state = HarnessState.model_validate_json(failed.state.model_dump_json())
    assert (await executable.run("go on", previous_state=state)).output_or_raise() == "I see."


def _nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


class _Packed(BaseModel):
    raw: bytes = b"\xff"


def _read(messages):
    """Answer as a provider does, which makes a text of each result first."""
    for part in returns(messages):
        part.model_response_str()
    return "I see."


@pytest.mark.parametrize(
    "value", [object(), [ValueError("x")], _Packed(), _nested(400)], ids=["object", "error", "bytes", "depth"]
)
async def test_what_a_tool_returns_that_is_no_json_costs_its_own_run_only(value):
    # The framework of today fails before it asks the model, that of yesterday does not.
    script = Script([call("view", memory="user"), call("look_up")], _read, _read)
    executable = _build(script, _memory(), _tool("look_up", lambda: value))
    failed = await executable.run("hi")
    assert failed.status == "failed"
    state = HarnessState.model_validate_json(failed.state.model_dump_json())
    assert state.messages == failed.state.messages
    assert (await executable.run("go on", previous_state=state)).output_or_raise() == "I see."
    viewed, lost = returns(state.messages)
    assert (viewed.outcome, lost.outcome) == ("success", "failed")
    assert lost.content == f"The call was made. What it returned cannot be shown: {type(value).__name__} is no JSON."


async def test_metadata_that_is_no_json_is_named_in_a_stored_thread():
    script = Script(call("look_up"), "found")
    found = ToolReturn("green", metadata={"row": object(), "raw": b"\xff"})
    result = await _build(script, _tool("look_up", lambda: found)).run("hi")
    state = HarnessState.model_validate_json(result.state.model_dump_json())
    [part] = returns(state.messages)
    assert (part.content, part.outcome, part.metadata["raw"]) == ("green", "success", "_w==")
    assert "object" in part.metadata["row"]


async def test_a_usage_limit_leaves_no_open_call():
    script = Script(call("view", memory="user"), call("view", memory="user"), "done")
    executable = _build(script, _memory())
    failed = await executable.run("hi", usage_limits=UsageLimits(tool_calls_limit=1))
    assert failed.status == "failed"
    _assert_every_call_is_answered(failed.state.messages)
    assert (await executable.run("go on", previous_state=failed.state)).status == "completed"


# --- streams ----------------------------------------------------------------------------------------------------------


async def test_a_stream_yields_events_and_ends_with_the_result():
    store = InProcessFileStore()
    await store.write("a.md", "x", expected=None, origin=Origin())
    script = Script(call("view", memory="user", path="a.md"), "It says x.")
    stream = _build(script, _memory(store)).stream("hi")
    with pytest.raises(RuntimeError, match="has not ended"):
        _ = stream.result
    events = [event async for event in stream]
    text = "".join(
        event.delta.content_delta
        for event in events
        if isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta)
    )
    assert text.endswith("says x.")
    assert isinstance(events[0], MemoryContextEvent)
    assert stream.result.output_or_raise() == "It says x."
    assert [each async for each in stream] == []


async def test_a_stream_that_is_left_stops_the_run_and_keeps_the_thread():
    script = Script("a very long answer", "ok")
    executable = _build(script)
    async with executable.stream("hi") as stream:
        async for event in stream:
            if isinstance(event, PartDeltaEvent):
                break
    assert stream.result.status == "cancelled"
    again = await executable.run("go on", previous_state=stream.result.state)
    assert again.output_or_raise() == "ok"
    assert [text for m in again.state.messages for text in said(m)] == ["hi", "go on"]


async def test_a_stream_can_be_cancelled_before_and_while_it_runs():
    script = Script("a very long answer")
    stream = _build(script).stream("hi")
    stream.cancel()
    assert [each async for each in stream] == []
    assert stream.result.status == "cancelled"
    assert script.requests == []
    stream = _build(script).stream("hi")
    async for event in stream:
        if isinstance(event, PartDeltaEvent):
            stream.cancel()
    assert stream.result.status == "cancelled"
    assert said(stream.result.state.messages[0]) == ["hi"]


async def test_a_stream_that_fails_ends_with_the_failure():
    script = Script(call("view", memory="user"), ConnectionError("down"))
    stream = _build(script, _memory()).stream("hi")
    assert [type(event).__name__ async for event in stream]
    assert stream.result.status == "failed"
    _assert_every_call_is_answered(stream.result.state.messages)


# --- cancellation -----------------------------------------------------------------------------------------------------


async def _cancelled_in_a_tool(start):
    """Cancels a run while its second tool call of a response waits; what came of it, and a way to go on."""
    waiting, store = asyncio.Event(), InProcessFileStore()

    async def wait() -> str:
        waiting.set()
        await asyncio.Event().wait()
        return "never"

    script = Script([call("create", memory="user", path="a.md", content="x"), call("wait_long")], "I see.")
    executable = _build(script, _memory(store), _tool("wait_long", wait))
    task = asyncio.ensure_future(start(executable))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    result = HarnessResult.from_cancellation(caught.value)
    assert result.status == "cancelled"
    _assert_every_call_is_answered(result.state.messages)
    done = {part.tool_name: part.outcome for part in returns(result.state.messages)}
    assert done == {"memory_file_create": "success", "wait_long": "interrupted"}
    assert (await store.read("a.md")).text == "x"
    state = HarnessState.model_validate_json(result.state.model_dump_json())
    again = await executable.run("go on", previous_state=state)
    assert again.output_or_raise() == "I see."
    with pytest.raises(RunIncompleteError, match="cancelled"):
        result.output_or_raise()


async def test_a_cancelled_task_gives_a_usable_thread():
    await _cancelled_in_a_tool(lambda executable: executable.run("hi"))


async def test_a_cancelled_stream_gives_a_usable_thread():
    async def consume(executable):
        async with executable.stream("hi") as stream:
            async for _ in stream:
                pass

    await _cancelled_in_a_tool(consume)


@pytest.mark.parametrize("left", [True, False])
async def test_a_stream_that_is_cancelled_again_while_it_ends_still_has_its_result(left):
    begun, ending, end = asyncio.Event(), asyncio.Event(), asyncio.Event()

    class TakesItsTime(AbstractCapability[object]):
        async def wrap_run(self, ctx, *, handler):
            try:
                return await handler()
            finally:
                ending.set()
                while not end.is_set():
                    with contextlib.suppress(asyncio.CancelledError):
                        await end.wait()

    async def wait():
        begun.set()
        await asyncio.Event().wait()

    stream = _build(Script(call("wait_here")), TakesItsTime(), _tool("wait_here", wait)).stream("hi")

    async def consume():
        async with stream if left else contextlib.nullcontext():
            async for _ in stream:
                pass

    task = asyncio.ensure_future(consume())
    await begun.wait()
    task.cancel()
    await ending.wait()
    task.cancel()
    await asyncio.sleep(0)  # it hears of it
    end.set()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert HarnessResult.from_cancellation(caught.value) is stream.result
    assert stream.result.status == "cancelled"
    _assert_every_call_is_answered(stream.result.state.messages)


async def test_a_stream_in_a_scope_that_is_cancelled_keeps_what_was_done():
    async def answer(messages, info):
        try:
            yield "a very"
            yield " long answer"
        finally:
            for _ in range(20):
                await asyncio.sleep(0)  # closing takes its time

    executable = HarnessBuilder().build(AgentSpec(), model=FunctionModel(stream_function=answer))
    with anyio.CancelScope() as scope:
        async with executable.stream("hi") as stream:
            async for event in stream:
                if isinstance(event, PartDeltaEvent):
                    scope.cancel()
    assert stream.result.status == "cancelled"
    assert [message.kind for message in stream.result.state.messages] == ["request", "response"]


async def test_a_tool_may_cancel_its_run():
    def stop(ctx: RunContext[object]) -> str:
        ctx.cancel()
        return "x"

    script = Script(call("stop_now"), "ok")
    executable = _build(script, _tool("stop_now", stop))
    result = await executable.run("hi")
    assert result.status == "cancelled"
    _assert_every_call_is_answered(result.state.messages)
    assert (await executable.run("go on", previous_state=result.state)).output_or_raise() == "ok"


async def test_a_timeout_around_a_run_still_has_its_result():
    async def forever():
        limit.reschedule(asyncio.get_running_loop().time())
        await asyncio.Event().wait()

    executable = _build(Script(lambda _: forever()))
    with pytest.raises(TimeoutError) as caught:
        async with asyncio.timeout(None) as limit:
            await executable.run("hi")
    result = HarnessResult.from_cancellation(caught.value)
    assert result.status == "cancelled"
    assert said(result.state.messages[0]) == ["hi"]
    assert HarnessResult.from_cancellation(ValueError()) is None


def _heeds_ctrl_c():
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # whoever runs the tests in the background has it ignored


async def test_toolsets_are_closed_though_nobody_waits_for_what_runs_left_to_be_done():
    waiting, opened = asyncio.Event(), []

    class Connected(FunctionToolset):
        async def __aenter__(self):
            opened.append(self)
            return await super().__aenter__()

        async def __aexit__(self, *error):
            opened.remove(self)
            return await super().__aexit__(*error)

    class Busy(AbstractCapability[object]):
        async def settled(self):
            waiting.set()
            await asyncio.Event().wait()

    async def use():
        async with _build(Script("one"), Busy(), Toolset(Connected())) as executable:
            await executable.run("hi")

    task = asyncio.ensure_future(use())
    await waiting.wait()
    assert opened
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert opened == []


def test_ctrl_c_gives_a_usable_thread():
    program = textwrap.dedent(
        """
        import asyncio
        from pydantic_ai.models.function import FunctionModel
        from memshelf import AgentSpec, HarnessBuilder, HarnessResult

        async def answer(messages, info):
            print("asked", flush=True)
            await asyncio.Event().wait()

        executable = HarnessBuilder().build(AgentSpec(), model=FunctionModel(answer))
        try:
            asyncio.run(executable.run("hi"))
        except KeyboardInterrupt as error:
            result = HarnessResult.from_cancellation(error)
            print(result.status, result.state.messages[0].parts[0].content, flush=True)
        """
    )
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=_heeds_ctrl_c) as child:
        try:
            assert child.stdout.readline() == "asked\n"
            os.kill(child.pid, signal.SIGINT)
            assert child.stdout.read() == "cancelled hi\n"
        finally:
            child.kill()  # does nothing to one that has ended
    assert child.returncode == 0


# --- models -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def _no_keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MEMSHELF_MODEL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("_no_keys")
async def test_without_a_model_the_first_run_says_what_to_set():
    executable = HarnessBuilder().build(AgentSpec())
    with pytest.raises(ModelConfigurationError, match=r"AgentSpec.model=.*MEMSHELF_MODEL"):
        await executable.run("hi")
    with pytest.raises(ModelConfigurationError, match="MEMSHELF_MODEL"):
        executable.stream("hi")


@pytest.mark.usefixtures("_no_keys")
async def test_a_missing_key_is_an_error_of_the_first_run_that_names_it():
    executable = HarnessBuilder().build(AgentSpec(model="openai-responses:gpt-5"))
    with pytest.raises(ModelConfigurationError, match=r"openai-responses:gpt-5 cannot be used.*OPENAI_API_KEY"):
        await executable.run("hi")


@pytest.mark.usefixtures("_no_keys")
@pytest.mark.parametrize("name", ["nonsense", "nonsense:gpt-5"])
async def test_an_unknown_model_is_an_error_of_the_first_run(name):
    executable = HarnessBuilder().build(AgentSpec(model=name))
    with pytest.raises(ModelConfigurationError, match=f"The model {name} cannot be used"):
        await executable.run("hi")


async def test_the_environment_names_a_model_only_when_none_is_given(monkeypatch):
    monkeypatch.setenv("MEMSHELF_MODEL", "test")
    assert (await HarnessBuilder().build(AgentSpec()).run("hi")).status == "completed"
    monkeypatch.setenv("MEMSHELF_MODEL", "nonsense")
    script = Script("hello")
    assert (await _build(script).run("hi")).output == "hello"
    assert (await HarnessBuilder().build(AgentSpec(model="test")).run("hi")).status == "completed"


async def test_a_capability_may_choose_the_model(monkeypatch):
    monkeypatch.delenv("MEMSHELF_MODEL", raising=False)
    script = Script("chosen")

    class Chooses(AbstractCapability[object]):
        def get_model(self):
            return script.model

    executable = HarnessBuilder().build(AgentSpec(), capabilities=[Chooses()])
    assert (await executable.run("hi")).output == "chosen"


def test_messages_of_a_newer_format_are_refused_by_name():
    state = HarnessState(thread_id="t", messages=[ModelResponse(parts=[TextPart("x")])])
    newer = state.model_dump_json().replace('"format_version":1', '"format_version":2')
    with pytest.raises(ValueError, match=r"format 2 by a newer memshelf.*Upgrade memshelf"):
        HarnessState.model_validate_json(newer)


@pytest.mark.parametrize("listed", [["a\udcff.txt", "🍵"], {"names\ud800": ["a\udcff.txt"]}, "a\udcff.txt"])
async def test_a_lone_surrogate_is_no_end_of_a_thread_and_of_no_result(listed):
    script = Script(ToolCallPart("ls", {}), "one \ud800", "two")
    agent = Agent(script.model, tools=[Tool(lambda: listed, name="ls")], add_history_to_context=True)
    first = await agent.run("list \ud800")
    stored = HarnessState.model_validate_json(first.state.model_dump_json())
    second = await agent.run("go on", previous_state=stored)
    assert (first.output, second.output) == ("one \ud800", "two")
    for request in script.requests:
        assert "list \ufffd" in ModelMessagesTypeAdapter.dump_json(request).decode()
    for message in stored.messages:
        assert all(part.outcome == "success" for part in message.parts if isinstance(part, ToolReturnPart))
    assert "\ufffd.txt" in second.state.model_dump_json()


def test_a_thread_of_another_program_does_not_pass_for_an_empty_one_and_is_not_repeated():
    stored = '{"schema_version":"1","thread_id":"t","history":[{"content":"my secret"}]}'
    with pytest.raises(ValueError, match=r"(?s)schema_version\n.*history\n") as refused:
        HarnessState.model_validate_json(stored)
    assert "secret" not in str(refused.value)


def test_a_tool_result_keeps_its_outcome_in_the_stored_thread():
    part = ToolReturnPart("memory_file_edit", '{"error":"no_match"}', tool_call_id="1", outcome="failed")
    state = HarnessState(thread_id="t", messages=[ModelRequest(parts=[part])])
    assert HarnessState.model_validate_json(state.model_dump_json()) == state


# --- arguments of a wrong kind ----------------------------------------------------------------------------------------


async def test_a_result_in_place_of_its_state_is_refused():
    executable = HarnessBuilder().build(AgentSpec(), model=FunctionModel(lambda messages, info: None))
    result = HarnessResult(status="cancelled", state=HarnessState(thread_id="t"), usage=RunUsage())
    for run in (executable.run, executable.stream):
        with pytest.raises(TypeError, match="the state of a result, not a HarnessResult"):
            await run("hi", previous_state=result)


def test_what_build_cannot_take_is_refused():
    with pytest.raises(TypeError, match=r"an AgentSpec, such as AgentSpec\(model=...\), not 'openai:gpt-5'"):
        HarnessBuilder().build("openai:gpt-5")
    with pytest.raises(TypeError, match=r"a sequence, also of one: \[...\], not a Thinking"):
        HarnessBuilder().build(AgentSpec(), capabilities=Thinking())
