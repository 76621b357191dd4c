"""SessionSummaryCapability: a summary after each run, at the end of the system prompt of later ones."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest
from pydantic_ai import Agent, ModelMessagesTypeAdapter, ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel
from runners import every_way, plain
from scripted import Script, call, said

from memshelf import (
    AgentSpec,
    FileMemoryCapability,
    FileMount,
    HarnessBuilder,
    HistoryWindowCapability,
    InProcessFileStore,
    SessionLog,
    SessionLogCapability,
    SessionSummaryCapability,
    ToolPermissions,
    WorkingMemory,
    session_state,
)
from memshelf.threads.summary import SUMMARY_INSTRUCTIONS, summary_block


def _summary(**options):
    return SessionSummaryCapability(WorkingMemory(create_session_summary=True, **options))


def _asked(script, at):
    """The text of a request for a summary."""
    [message] = script.requests[at]
    assert script.infos[at].instructions == SUMMARY_INSTRUCTIONS
    return message.parts[0].content


def _lines(script, at):
    return [json.loads(line) for line in _asked(script, at).split("a line:\n")[1].split("\n")]


@every_way
async def test_a_run_is_summed_up_and_the_next_one_reads_it_last_in_its_system_prompt(run):
    script = Script("Green tea.", "The user likes tea.", "Yes.", "The user likes green tea.")
    memory = FileMemoryCapability([FileMount("user", InProcessFileStore(), "read")])
    first = await run(script, [_summary(), memory], "What do I like?")
    assert first[-1].parts[0].content == "Green tea."
    assert "conversation-summary" not in script.infos[0].instructions
    assert "so far" not in _asked(script, 1)
    assert _lines(script, 1) == [{"user": "What do I like?"}, {"assistant": "Green tea."}]

    agent = Agent(script.model, instructions="Be kind.", capabilities=[_summary(), memory])

    @agent.instructions
    def weather():
        return "It rains."

    await agent.run("Sure?", message_history=first)
    instructions = script.infos[2].instructions
    assert instructions.endswith("\n\n" + summary_block("The user likes tea."))
    assert "Be kind." in instructions
    assert "It rains." in instructions


async def test_an_update_shows_the_summary_so_far_and_the_new_turn_only():
    script = Script("A", "sum 1", "B", "sum 2", "C", "sum 3")
    agent, history = Agent(script.model, capabilities=[_summary()]), None
    for question in ("a", "b", "c"):
        history = (await agent.run(question, message_history=history)).all_messages()
    assert 'The summary so far:\n"sum 2"\n' in _asked(script, 5)
    assert _lines(script, 5) == [{"user": "c"}, {"assistant": "C"}]
    assert len(_asked(script, 5)) == len(_asked(script, 3)), "its cost does not grow with the thread"


async def test_the_summary_is_stored_with_the_messages_and_never_sent_as_one():
    script = Script("A", "sum 1", "B", "sum 2")
    first = await Agent(script.model, capabilities=[_summary()]).run("a")
    stored = ModelMessagesTypeAdapter.validate_json(first.all_messages_json())
    await Agent(script.model, capabilities=[_summary()]).run("b", message_history=stored)
    assert "sum 1" in script.infos[2].instructions
    assert [text for message in script.requests[2] for text in said(message)] == ["a", "b"]


async def test_the_summary_survives_a_resume_from_the_log(tmp_path):
    script = Script("A", "sum 1", "B", "sum 2")

    def capabilities():
        return [SessionLogCapability(SessionLog("s1", tmp_path, durable=False)), _summary()]

    await plain(script, capabilities(), "a")
    await plain(script, capabilities(), "b")
    assert "sum 1" in script.infos[2].instructions
    assert 'The summary so far:\n"sum 1"\n' in _asked(script, 3)
    rows = SessionLog("s1", tmp_path).load()
    assert [row["content"] for row in rows if row.get("event") == "summary"] == ["sum 1", "sum 2"]
    from memshelf.agent.capabilities.summaries import latest

    assert latest(session_state(SessionLog("s1", tmp_path)).messages).summary == "sum 2"


async def test_within_a_run_the_system_prompt_stays_the_same():
    script = Script("A", "sum 1", call("view", memory="user"), call("view", memory="user"), "B", "sum 2")
    memory = FileMemoryCapability([FileMount("user", InProcessFileStore(), "read")])
    agent = Agent(script.model, capabilities=[memory, _summary()])
    first = await agent.run("a")
    await agent.run("b", message_history=first.all_messages())
    assert len({info.instructions for info in script.infos[2:5]}) == 1
    assert "sum 1" in script.infos[4].instructions


@pytest.mark.parametrize("failure", [RuntimeError("down"), "", "  \n ", "call"])
async def test_a_summary_that_fails_costs_neither_the_answer_nor_the_previous_summary(failure, caplog):
    failure = call("some_tool") if failure == "call" else failure
    script = Script("A", "sum 1", "B", failure, "C", "sum 3")
    agent, history = Agent(script.model, capabilities=[_summary()]), None
    with caplog.at_level(logging.WARNING):
        for question in ("a", "b", "c"):
            result = await agent.run(question, message_history=history)
            history = result.all_messages()
            assert result.output == question.upper()
    [record] = caplog.records
    assert "could not be updated" in record.message
    assert "sum 1" in script.infos[4].instructions, "the previous one is still there"
    assert 'The summary so far:\n"sum 1"\n' in _asked(script, 5)
    assert _lines(script, 5)[0] == {"user": "b"}, "the next update makes up for it"


async def test_a_summary_that_takes_too_long_is_given_up():
    async def hang(messages):
        await asyncio.Event().wait()

    script = Script("A", hang)
    result = await Agent(script.model, capabilities=[_summary(summary_seconds=0.01)]).run("a")
    assert result.output == "A"


async def test_a_summary_that_is_too_long_is_shortened():
    script = Script("A", "word " * 5_000, "B", "sum")
    agent = Agent(script.model, capabilities=[_summary(summary_tokens=50)])
    first = await agent.run("a")
    await agent.run("b", message_history=first.all_messages())
    assert len(script.infos[2].instructions) < 600
    assert "characters left out" in script.infos[2].instructions


async def test_another_model_may_be_named():
    script, other = Script("A"), Script("sum")
    result = await Agent(script.model, capabilities=[_summary(summary_model=other.model)]).run("a")
    assert len(script.requests) == len(other.requests) == 1
    assert result.usage.requests == 2


@pytest.mark.parametrize("named", ["nobody:nothing", 7])
async def test_a_model_that_cannot_be_asked_is_a_failed_summary(named):
    result = await Agent(Script("A").model, capabilities=[_summary(summary_model=named)]).run("a")
    assert result.output == "A"


@pytest.mark.parametrize("options", [{}, {"create_session_summary": True, "update_session_summary_after_run": False}])
async def test_without_being_asked_for_no_summary_is_made(options):
    script = Script("A")
    await Agent(script.model, capabilities=[SessionSummaryCapability(WorkingMemory(**options))]).run("a")
    assert len(script.requests) == 1


async def test_a_summary_that_is_only_kept_is_shown():
    script = Script("A", "sum 1", "B")
    first = await Agent(script.model, capabilities=[_summary()]).run("a")
    agent = Agent(script.model, capabilities=[_summary(update_session_summary_after_run=False)])
    await agent.run("b", message_history=first.all_messages())
    assert "sum 1" in script.infos[2].instructions


async def test_a_run_that_waits_for_approval_is_not_summed_up_until_it_ends():
    script = Script(call("create", id="1", memory="user", path="a.md", content="x"), "Stored.", "sum")
    memory = FileMemoryCapability([FileMount("user", InProcessFileStore(), "write")])
    executable = HarnessBuilder().build(
        AgentSpec(),
        model=script.model,
        capabilities=[memory, _summary()],
        permissions=ToolPermissions(rules={"memory.file.create": "ask"}),
    )
    first = await executable.run("store it")
    assert len(script.requests) == 1
    await executable.run(None, previous_state=first.state, approvals={"1": True})
    assert [list(line) for line in _lines(script, 2)] == [
        ["user"],
        ["assistant"],
        ["result of memory_file_create"],
        ["assistant"],
    ]


async def test_turns_that_left_the_window_are_still_known_by_the_summary():
    script = Script("A", "likes tea", "B", "likes tea, then b", "C", "sum")
    agent = Agent(script.model, capabilities=[_summary(), HistoryWindowCapability(num_history_turns=0)])
    history = None
    for question in ("I like tea", "b", "c"):
        history = (await agent.run(question, message_history=history)).all_messages()
    assert [text for message in script.requests[4] for text in said(message)] == ["c"]
    assert "likes tea, then b" in script.infos[4].instructions


async def test_the_summaries_of_threads_stay_apart():
    def answer(messages, info):
        text = messages[-1].parts[-1].content
        return ModelResponse(
            [TextPart(f"summary of {text[-9:-2]}" if info.instructions == SUMMARY_INSTRUCTIONS else text)]
        )

    agent = Agent(FunctionModel(answer), capabilities=[_summary()])
    firsts = await asyncio.gather(*(agent.run(f"thread{number}") for number in range(5)))
    seconds = await asyncio.gather(*(agent.run("again", message_history=each.all_messages()) for each in firsts))
    for number, second in enumerate(seconds):
        instructions = second.all_messages()[2].instructions
        assert f"thread{number}"[-7:] in instructions
        assert instructions.count("summary of thread") == 1
