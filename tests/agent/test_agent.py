"""Agent: history in the object or in a session, and the same results as the harness."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import warnings
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest
from pydantic_ai import FunctionToolset, RunContext, Tool
from pydantic_ai.capabilities import Toolset
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from responses_api import ResponsesApi, message
from scripted import Script, call, returns, said

from memshelf import (
    Agent,
    AgentSpec,
    CompactionCapability,
    FileMemoryCapability,
    FileMount,
    HarnessBuilder,
    HarnessResult,
    InProcessFileStore,
    ModelConfigurationError,
    SessionLog,
    ToolPermissions,
    WorkingMemory,
)


def _asked(request):
    return [text for message in request for text in said(message)]


async def _all(stream):
    return [event async for event in stream]


def _kinds(log):
    return [row["event"] if row["type"] == "event" else row["type"] for row in log.rows()]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# --- history ----------------------------------------------------------------------------------------------------------


async def test_without_history_each_run_is_a_thread_of_its_own():
    script = Script("one", "two")
    agent = Agent(script.model)
    first, second = await agent.run("a"), await agent.run("b")
    assert [_asked(request) for request in script.requests] == [["a"], ["b"]]
    assert first.state.thread_id != second.state.thread_id
    assert os.listdir() == []


async def test_a_state_that_is_given_is_gone_on_with_and_shown():
    script = Script("one", "two")
    agent = Agent(script.model)
    first = await agent.run("a")
    await agent.run("b", previous_state=first.state)
    assert _asked(script.requests[1]) == ["a", "b"]


async def test_history_is_kept_in_the_object_and_shown_as_far_as_asked():
    script = Script(*map(str, range(10)))
    agent = Agent(script.model, add_history_to_context=True, num_history_turns=2)
    for number in range(5):
        result = await agent.run(f"q{number}")
    assert _asked(script.requests[4]) == ["q2", "q3", "q4"]
    assert len(result.state.messages) == 10
    all_of_it = Agent(script.model, add_history_to_context=True)
    for number in range(5):
        await all_of_it.run(f"q{number}")
    assert _asked(script.requests[9]) == ["q0", "q1", "q2", "q3", "q4"]


async def test_two_agents_do_not_share_a_history():
    script = Script("one", "two")
    await Agent(script.model, add_history_to_context=True).run("mine")
    await Agent(script.model, add_history_to_context=True).run("yours")
    assert _asked(script.requests[1]) == ["yours"]


async def test_a_state_that_is_given_takes_the_place_of_the_history():
    script = Script("one", "two", "three", "four")
    agent = Agent(script.model, add_history_to_context=True)
    first = await agent.run("a")
    await agent.run("b")
    await agent.run("c", previous_state=first.state)
    await agent.run("d")
    assert _asked(script.requests[3]) == ["a", "c", "d"]


async def test_runs_at_the_same_time_are_all_in_the_history():
    both, arrived = asyncio.Event(), []

    async def wait(answer):
        arrived.append(1)
        if len(arrived) == 2:
            both.set()
        await both.wait()
        return answer

    script = Script("zero", lambda _: wait("A"), lambda _: wait("B"), "done")
    agent = Agent(script.model, add_history_to_context=True)
    await agent.run("before")
    await asyncio.gather(agent.run("a"), agent.run("b"))
    await agent.run("c")
    assert _asked(script.requests[3]) in (["before", "a", "b", "c"], ["before", "b", "a", "c"])
    assert [m.kind for m in script.requests[3]] == ["request", "response"] * 3 + ["request"]


async def test_a_suspended_run_and_one_at_the_same_time_leave_a_history_that_can_be_gone_on_with():
    entered, proceed = asyncio.Event(), asyncio.Event()

    async def wait(_):
        entered.set()
        await proceed.wait()
        return "late"

    script = Script(wait, call("ask_me"), "done")
    agent = Agent(
        script.model,
        add_history_to_context=True,
        tools=[Tool(lambda: "yes", name="ask_me")],
        permissions=ToolPermissions(rules={"ask_me": "ask"}),
    )
    slow = asyncio.ensure_future(agent.run("slow"))
    await entered.wait()
    assert (await agent.run("quick")).status == "suspended"
    proceed.set()
    await slow
    assert (await agent.run("on")).status == "completed"
    assert _asked(script.requests[2]) == ["quick", "slow", "on"]
    assert len(returns(script.requests[2])) == 1


async def test_a_failed_and_a_cancelled_run_are_part_of_the_history():
    hang = asyncio.Event()

    async def wait(_):
        hang.set()
        await asyncio.Event().wait()

    script = Script(RuntimeError("down"), wait, "done", "done")
    agent = Agent(script.model, add_history_to_context=True)
    failed = await agent.run("a")
    assert (failed.status, str(failed.failure)) == ("failed", "down")
    task = asyncio.ensure_future(agent.run("b"))
    await hang.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError) as caught:
        await task
    assert HarnessResult.from_cancellation(caught.value).status == "cancelled"
    await agent.run("c")
    assert _asked(script.requests[2]) == ["a", "b", "c"]


async def test_a_stream_that_is_left_early_is_part_of_the_history():
    script = Script("one two three", "done")
    agent = Agent(script.model, add_history_to_context=True)
    async with agent.stream("a") as stream:
        async for _ in stream:
            break
    assert stream.result.status == "cancelled"
    await agent.run("b")
    assert _asked(script.requests[1]) == ["a", "b"]


async def test_a_summary_is_shown_in_later_runs_even_if_the_history_is_not():
    script = Script("one", "The user likes tea.", "two", "The user likes tea.", "three", "x")
    agent = Agent(script.model, working_memory=WorkingMemory(create_session_summary=True))
    await agent.run("a")
    await agent.run("b")
    assert _asked(script.requests[2]) == ["b"]
    assert "The user likes tea." in script.infos[2].instructions


# --- sessions ---------------------------------------------------------------------------------------------------------


async def test_a_stream_that_is_cancelled_while_its_session_is_read_asks_no_model(monkeypatch):
    reading, proceed = threading.Event(), threading.Event()
    load = SessionLog.load

    def slow(log):
        reading.set()
        assert proceed.wait(20)
        return load(log)

    monkeypatch.setattr(SessionLog, "load", slow)
    script = Script("one")
    stream = Agent(script.model, session_id="s1").stream("a")
    events = asyncio.ensure_future(_all(stream))
    await asyncio.to_thread(reading.wait)
    stream.cancel()
    proceed.set()
    assert await events == []
    assert stream.result.status == "cancelled"
    assert script.requests == []


async def test_a_later_agent_with_the_same_session_goes_on():
    first, second = Script("one"), Script("two")
    await Agent(first.model, session_id="my-session-001").run("a")
    assert Path(".sessions/my-session-001.jsonl").exists()
    result = await Agent(second.model, session_id="my-session-001").run("b")
    assert _asked(second.requests[0]) == ["a", "b"]
    assert result.state.thread_id == "my-session-001"
    assert _kinds(SessionLog("my-session-001")) == ["user", "assistant"] * 2


def test_a_directory_for_sessions_without_a_session_is_refused_instead_of_ignored(tmp_path):
    with pytest.raises(ValueError, match="session_directory says where a session is kept, and there is no session_id"):
        Agent(session_directory=tmp_path)


async def test_the_first_run_of_a_session_is_its_thread_and_needs_an_input(tmp_path):
    agent = Agent(Script("one").model, session_id="s1", session_directory=tmp_path / "logs")
    with pytest.raises(ValueError, match="A new thread needs an input"):
        await agent.run(None)
    assert (await agent.run("a")).state.thread_id == "s1"
    assert (tmp_path / "logs" / "s1.jsonl").exists()


async def test_a_session_may_be_logged_and_not_shown():
    script = Script("one", "two")
    agent = Agent(script.model, session_id="s1", add_history_to_context=False)
    await agent.run("a")
    await agent.run("b")
    assert _asked(script.requests[1]) == ["b"]
    assert [row["content"] for row in SessionLog("s1").rows()] == ["a", "one", "b", "two"]


async def test_two_sessions_do_not_see_each_other():
    script = Script("one", "two")
    await Agent(script.model, session_id="s1").run("a")
    await Agent(script.model, session_id="s2").run("b")
    assert _asked(script.requests[1]) == ["b"]


async def test_a_suspended_session_goes_on_with_the_answers_in_a_later_agent():
    script = Script(call("pour_tea", id="1"), "Poured.")

    def agent():
        return Agent(
            script.model,
            session_id="s1",
            tools=[Tool(lambda: "tea", name="pour_tea")],
            permissions=ToolPermissions(rules={"pour_tea": "ask"}),
        )

    first = await agent().run("tea, please")
    assert first.status == "suspended"
    with pytest.raises(ValueError, match="suspended"):
        await agent().run("hello?")
    with pytest.raises(ValueError, match="suspended"):
        async with agent().stream("hello?") as stream:
            await anext(stream)
    second = await agent().run(None, approvals={"1": True})
    assert second.output_or_raise() == "Poured."
    assert [part.content for part in returns(script.requests[1])] == ["tea"]


def test_a_session_id_that_is_no_file_name_is_refused_at_once():
    with pytest.raises(Exception, match="is no session id"):
        Agent("test", session_id="../x")


@pytest.mark.parametrize("moment", ["model", "tool"])
def test_a_session_goes_on_after_its_process_was_killed_in_the_middle_of_a_turn(moment):
    done = subprocess.run([sys.executable, __file__, moment], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGKILL, done.stderr
    script = Script("Where were we?")
    result = Agent(script.model, session_id="s1").run_sync("go on")
    assert result.output_or_raise() == "Where were we?"
    assert _asked(script.requests[0]) == ["hello", "do it", "go on"]
    assert [part.outcome for part in returns(script.requests[0])] == (["interrupted"] if moment == "tool" else [])


def _be_killed(moment: str) -> None:
    def kill() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    script = Script("hi", call("do_it") if moment == "tool" else lambda _: kill())
    agent = Agent(script.model, session_id="s1", tools=[Tool(kill, name="do_it")])
    agent.run_sync("hello")
    agent.run_sync("do it")


# --- the same as the harness ------------------------------------------------------------------------------------------


async def test_run_run_sync_and_stream_give_what_the_harness_gives():
    def essence(result):
        parts = [part for message in result.state.messages for part in message.parts]
        said = [(type(part).__name__, getattr(part, "content", None)) for part in parts]
        return result.status, result.output, result.usage.requests, result.pending, said

    def script():
        return Script(call("pour_tea", id="1"), "Poured it.")

    def pour_tea() -> str:
        """Pour tea."""
        return "tea"

    harness = HarnessBuilder().build(
        AgentSpec(), model=script().model, capabilities=[Toolset(FunctionToolset([pour_tea]))]
    )
    expected = essence(await harness.run("tea"))
    assert essence(await Agent(script().model, tools=[pour_tea]).run("tea")) == expected
    in_a_thread = await asyncio.to_thread(lambda: Agent(script().model, tools=[pour_tea]).run_sync("tea"))
    assert essence(in_a_thread) == expected
    async with Agent(script().model, tools=[pour_tea]).stream("tea") as stream:
        events = [event async for event in stream]
    assert essence(stream.result) == expected
    assert events


async def test_instructions_tools_dependencies_and_output_type_are_pydantic_ais():
    def whose(ctx: RunContext[str]) -> str:
        """Whose tea it is."""
        return ctx.deps

    script = Script(call("whose_tea"), call("final_result", response="7"))
    agent = Agent(
        script.model,
        instructions=["Be {{kind}}.", lambda ctx: f"You serve {ctx.deps}."],
        tools=[Tool(whose, name="whose_tea")],
        output_type=int,
    )
    result = await agent.run("how many?", deps="Ann")
    assert result.output_or_raise() == 7
    assert script.infos[0].instructions == "Be {{kind}}.\n\nYou serve Ann."
    assert [part.content for part in returns(script.requests[1])] == ["Ann"]


async def test_own_instructions_come_before_those_of_capabilities():
    script = Script("one")
    memory = FileMemoryCapability([FileMount("user", InProcessFileStore(), "write")])
    await Agent(script.model, instructions="Be kind.", capabilities=[memory]).run("hi")
    assert script.infos[0].instructions.startswith("Be kind.\n")


async def test_without_a_model_the_first_run_says_what_to_set(monkeypatch):
    monkeypatch.delenv("MEMSHELF_MODEL", raising=False)
    agent = Agent()
    with pytest.raises(ModelConfigurationError, match=r"Agent\(model=.*MEMSHELF_MODEL"):
        await agent.run("hi")
    with pytest.raises(ModelConfigurationError):
        agent.stream("hi")
    monkeypatch.setenv("MEMSHELF_MODEL", "test")
    assert (await agent.run("hi")).status == "completed"


async def test_history_is_compacted_where_the_models_window_is_known():
    def model(script, window):
        return FunctionModel(script._answer, profile={"context_window": window} if window else None)

    for window, compacted in ((200, True), (None, False)):
        script = Script("one", "tea " * 200, "A summary.", "two", "two")
        agent = Agent(model(script, window), add_history_to_context=True)
        await agent.run("a")
        await agent.run("b")
        await agent.run("c")
        assert ("A summary." in str(script.requests[-1])) == compacted


async def test_a_capability_that_is_given_takes_the_place_of_the_agents_own():
    script = Script("one", "tea " * 200, "A summary.", "two")
    own = CompactionCapability(context_window_tokens=200)
    agent = Agent(script.model, add_history_to_context=True, capabilities=[own])
    for question in "abc":
        await agent.run(question)
    assert len(script.requests) == 4


# --- without an event loop --------------------------------------------------------------------------------------------


async def test_run_sync_is_refused_where_an_event_loop_runs():
    script = Script("one")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeError, match=r"await agent.run"):
            Agent(script.model).run_sync("a")
    assert script.requests == []


async def test_connections_of_a_model_serve_one_run_sync_after_another():
    api = ResponsesApi([message("one")], [message("two")], [message("three")])
    async with api.serving() as url:
        # The connection is the model's, and stays open until its owner closes it.
        warned = ["-W", "error", "-W", "ignore:unclosed transport", "-W", "ignore:unclosed <socket"]
        program = await asyncio.create_subprocess_exec(
            sys.executable, *warned, "-c", PROGRAM.format(url=url), stdout=PIPE, stderr=PIPE
        )
        printed, errors = await asyncio.wait_for(program.communicate(), 60)
    assert (printed.decode(), errors.decode(), program.returncode) == ("one two three\n", "", 0)
    assert api.connections == 1


PROGRAM = """
from pydantic_ai.models.openai import OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from memshelf import Agent
model = OpenAIResponsesModel("gpt-5", provider=OpenAIProvider(base_url="{url}", api_key="k"))
agent = Agent(model, add_history_to_context=True)
print(*(agent.run_sync(each).output for each in "abc"))
"""


def test_run_sync_works_in_several_threads():
    def answers(messages, info):
        return ModelResponse([TextPart("yes")])

    agent = Agent(FunctionModel(answers))
    outputs = []
    threads = [threading.Thread(target=lambda: outputs.append(agent.run_sync("a").output)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outputs == ["yes"] * 3


def test_run_sync_works_in_a_process_that_was_forked_after_it():
    from forked import finish, fork  # not known to the process that this module is run in to be killed

    script = Script("one", "two")
    agent = Agent(script.model, add_history_to_context=True)
    agent.run_sync("a")

    def work(report):
        report(agent.run_sync("b").output)

    assert finish([fork(work)]) == ["two"]
    assert agent.run_sync("b").output == "two"


INTERRUPTED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests in the background ignores it
sys.path.insert(0, {tests!r})
from scripted import Script, call
from memshelf import Agent, HarnessResult
async def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)
    import asyncio
    await asyncio.Event().wait()
script = Script(call("press_ctrl_c", id="1"), "Where were we?")
agent = Agent(script.model, add_history_to_context=True, tools=[press_ctrl_c])
try:
    agent.run_sync("a")
except KeyboardInterrupt as error:
    print(HarnessResult.from_cancellation(error).status)
print(agent.run_sync("b").output, len(script.requests[1]))
"""


def test_ctrl_c_stops_a_run_and_leaves_its_history():
    program = INTERRUPTED.format(tests=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr, done.returncode) == ("cancelled\nWhere were we? 3\n", "", 0)


if __name__ == "__main__":
    _be_killed(sys.argv[1])
