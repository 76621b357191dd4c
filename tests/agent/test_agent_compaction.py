"""CompactionCapability and HandoffCapability: a summary in place of the history."""

from __future__ import annotations

import json
import logging

import pytest
from pydantic_ai import (
    Agent,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RequestUsage,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models.function import FunctionModel
from runners import every_way, plain
from scripted import Script, call, contexts, returns, said

from memshelf import (
    AgentSpec,
    CompactionCapability,
    FileMemoryCapability,
    FileMount,
    HandoffCapability,
    HarnessBuilder,
    HistoryReplacedEvent,
    HistoryWindowCapability,
    InProcessFileStore,
    MemoryCursors,
    MemoryStoreError,
    Origin,
    SessionLog,
    SessionLogCapability,
    SessionSummaryCapability,
    ToolPermissions,
    WorkingMemory,
)
from memshelf.threads.summary import SUMMARY_INSTRUCTIONS, summary_block

WINDOW = 10_000


@pytest.fixture
def log(tmp_path):
    return SessionLog("s1", tmp_path, durable=False)


def _history(tokens=9_500, turns=3):
    """Turns of which the model said, after the last one, that they take so many tokens."""
    messages = []
    for number in range(turns):
        messages += [
            ModelRequest([UserPromptPart(f"question {number}")]),
            ModelResponse([ToolCallPart("view", {}, tool_call_id=f"old-{number}")]),
            ModelRequest([ToolReturnPart("view", "result", tool_call_id=f"old-{number}")]),
            ModelResponse([TextPart(f"answer {number}")], usage=RequestUsage(input_tokens=tokens, output_tokens=10)),
        ]
    messages[0].parts = [SystemPromptPart("Be kind."), *messages[0].parts]
    return messages


class _Begins(AbstractCapability[object]):
    """Gives a run a history, however it is run."""

    def __init__(self, history):
        self._history = history

    async def wrap_run(self, ctx, *, handler):
        ctx.messages[:] = self._history
        return await handler()


def _compaction(**options):
    return CompactionCapability(context_window_tokens=WINDOW, **options)


def _texts(request):
    return [text for message in request for text in said(message)]


async def _memory(cursors=None, **files):
    store = InProcessFileStore()
    for name, text in files.items():
        await store.write(f"{name}.md", text, expected=None, origin=Origin())
    return FileMemoryCapability([FileMount("user", store, "write")], cursors=cursors)


# --- compaction -------------------------------------------------------------------------------------------------------


@every_way
async def test_a_history_that_fills_the_window_is_replaced_by_a_summary_and_the_current_turn(run):
    script = Script("They spoke of tea.", call("view", memory="user"), "done")
    history = _history()
    kept = await run(script, [await _memory(), _Begins(history), _compaction()], "now")
    asked, first, second = script.requests
    assert script.infos[0].instructions == SUMMARY_INSTRUCTIONS
    assert '{"user":"question 2"}' in asked[0].parts[0].content
    assert '{"assistant":"answer 2"}' in asked[0].parts[0].content
    assert '{"user":"now"}' not in asked[0].parts[0].content
    [request] = first
    assert [part.part_kind for part in request.parts] == ["system-prompt", "user-prompt"]
    summary, now = [text for text in said(request) if not text.startswith("<memory-context")]
    assert (summary, now) == (summary_block("They spoke of tea."), "now")
    assert len(second) == 3
    assert said(second[0]) == said(request), "the same bytes in later requests"
    assert [message.kind for message in kept] == ["request", "response", "request", "response"]


@pytest.mark.parametrize(
    ("tokens", "threshold", "compacted"), [(8_900, 0.9, False), (9_000, 0.9, True), (5_000, 0.5, True)]
)
async def test_a_compaction_is_due_when_the_model_counted_so_much(tokens, threshold, compacted):
    script = Script(*(["summary"] if compacted else []), "done")
    agent = Agent(script.model, capabilities=[_compaction(threshold=threshold)])
    await agent.run("now", message_history=_history(tokens))
    assert len(script.requests[-1]) == (1 if compacted else 13)


async def test_what_came_since_the_model_counted_is_estimated():
    script = Script("summary", "done")
    await Agent(script.model, capabilities=[_compaction()]).run("word " * 2_000, message_history=_history(8_000))
    assert len(script.requests[-1]) == 1


async def test_where_no_model_has_counted_all_is_estimated():
    history = [
        message
        for _ in range(20)
        for message in (ModelRequest([UserPromptPart("word " * 500)]), ModelResponse([TextPart("ok")]))
    ]
    script = Script("summary", "done")
    await Agent(script.model, capabilities=[_compaction()]).run("now", message_history=history)
    assert len(script.requests[-1]) == 1


async def test_the_window_of_a_model_that_is_known_needs_no_number():
    def answer(messages, info):
        return ModelResponse([TextPart("summary" if info.instructions == SUMMARY_INSTRUCTIONS else "done")])

    model = FunctionModel(answer, profile={"context_window": WINDOW})
    result = await Agent(model, capabilities=[CompactionCapability()]).run("now", message_history=_history())
    assert len(result.all_messages()) == 2


async def test_where_nobody_knows_the_window_nothing_is_compacted():
    script = Script("done")
    await Agent(script.model, capabilities=[CompactionCapability()]).run("now", message_history=_history(10**9))
    assert len(script.requests[0]) == 13


async def test_a_session_summary_is_used_without_asking_a_model_again():
    memory = WorkingMemory(create_session_summary=True)
    script = Script("answer 0", "Known already.", "answer 1", "Newer.")
    agent = Agent(script.model, capabilities=[SessionSummaryCapability(memory)])
    first = await agent.run("question 0")
    history = first.all_messages()
    history[-1].usage = RequestUsage(input_tokens=9_500, output_tokens=10)
    agent = Agent(script.model, capabilities=[SessionSummaryCapability(memory), _compaction(memory=memory)])
    second = await agent.run("question 1", message_history=history)
    assert _texts(script.requests[2]) == [summary_block("Known already."), "question 1"]
    assert "so far" in script.requests[3][0].parts[0].content
    assert second.output == "answer 1"


async def test_a_compaction_in_the_middle_of_a_turn_keeps_what_the_turn_has_done():
    usage = RequestUsage(input_tokens=9_500, output_tokens=10)

    def model(messages, info):
        if info.instructions == SUMMARY_INSTRUCTIONS:
            return ModelResponse([TextPart("summary")])
        return ModelResponse([script.pop(0)], usage=usage if len(script) == 1 else RequestUsage(input_tokens=10))

    script = [ToolCallPart("memory_file_view", {"memory": "user"}, tool_call_id="1"), TextPart("done")]
    agent = Agent(FunctionModel(model), capabilities=[await _memory(), _compaction()])
    result = await agent.run("now", message_history=_history(10))
    first, asked, results, answer = result.all_messages()
    assert said(first)[0] == summary_block("summary")
    assert said(first)[-1] == "now"
    assert asked.parts[0].tool_call_id == results.parts[0].tool_call_id == "1"
    assert result.new_messages() == [first, asked, results, answer]


async def test_of_a_turn_that_fills_the_window_itself_its_input_and_newest_rounds_stay():
    requests = []

    def model(messages, info):
        requests.append(list(messages))
        if info.instructions == SUMMARY_INSTRUCTIONS:
            return ModelResponse([TextPart(f"summary {len(requests)}")])
        if len(requests) > 30:
            return ModelResponse([TextPart("done")])
        return ModelResponse([ToolCallPart("big", {})])

    agent = Agent(FunctionModel(model), capabilities=[_compaction()])
    agent.tool_plain(lambda: "word " * 700, name="big")
    result = await agent.run("read all of it")
    assert result.output == "done"
    summaries = [messages for messages in requests if "What was said" in str(messages[0].parts[0])]
    assert 2 < len(summaries) < 12
    assert all('"read all of it"' not in str(messages[0].parts[0].content) for messages in summaries)
    for messages in requests:
        assert "read all of it" in _texts(messages) or messages in summaries
        calls = [part.tool_call_id for message in messages for part in message.parts if isinstance(part, ToolCallPart)]
        assert [part.tool_call_id for part in returns(messages)] == calls
    assert "so far" in summaries[1][0].parts[0].content, "each summary goes on from the one before"


async def test_a_failed_compaction_leaves_the_history_as_it_was_and_after_three_it_stops_trying(caplog):
    failing = RuntimeError("down")
    script = Script(failing, "a", failing, "b", "  ", "c", "d", "e")
    agent = Agent(script.model, capabilities=[_compaction()])
    history = _history()
    with caplog.at_level(logging.WARNING):
        for answer in "abcde":
            result = await agent.run("now", message_history=history, conversation_id="thread")
            assert result.output == answer
            assert result.all_messages()[:-2] == history
    assert len(script.requests) == 8
    assert len(caplog.records) == 2


async def test_another_thread_is_still_compacted():
    script = Script(RuntimeError("down"), "a", RuntimeError("down"), "b", RuntimeError("down"), "c", "summary", "d")
    agent = Agent(script.model, capabilities=[_compaction()])
    for thread in ("one", "one", "one", "other"):
        result = await agent.run("now", message_history=_history(), conversation_id=thread)
    assert len(result.all_messages()) == 2


async def test_a_history_that_was_just_compacted_is_not_compacted_again():
    script = Script("summary 1", call("view", memory="user"), call("view", memory="user"), "done", "again")
    agent = Agent(script.model, capabilities=[await _memory(), _compaction()])
    first = await agent.run("now", message_history=_history())
    second = await agent.run("next", message_history=first.all_messages())
    assert second.output == "again"
    assert len(second.all_messages()) == 8


async def test_memories_tell_what_they_hold_in_full_again():
    cursors = MemoryCursors()
    memory = await _memory(cursors, a="tea")
    script = Script("one", "two", "summary", "three", "four")
    agent = Agent(script.model, capabilities=[memory, _compaction()])
    history = (await agent.run("first")).all_messages()
    history = (await agent.run("second", message_history=history)).all_messages()
    assert len(contexts(history)) == 1
    history[-1].usage = RequestUsage(input_tokens=9_500)
    history = (await agent.run("third", message_history=history)).all_messages()
    assert [each.split("\n")[0] for each in said(history[0])] == [
        '<conversation-summary trust="untrusted">',
        '<memory-context memory="user" trust="untrusted" kind="full">',
        "third",
    ]
    history = (await agent.run("fourth", message_history=history)).all_messages()
    assert len(contexts(history)) == 1


async def test_the_summary_stays_when_the_turn_that_has_it_leaves_the_window():
    script = Script("summary", *"abcd")
    agent = Agent(script.model, capabilities=[HistoryWindowCapability(num_history_turns=1), _compaction()])
    history = _history()
    for number in range(4):
        history = (await agent.run(f"next {number}", message_history=history)).all_messages()
    assert _texts(script.requests[-1]) == [summary_block("summary"), "next 2", "next 3"]
    assert [part.part_kind for part in script.requests[-1][0].parts] == ["system-prompt", "user-prompt"]
    assert len(history) == 8


async def test_the_summary_stays_when_the_turn_that_has_it_leaves_the_history():
    script = Script("summary", *"abcd")
    window = HistoryWindowCapability(WorkingMemory(max_messages=3), num_history_turns=None)
    agent = Agent(script.model, capabilities=[window, _compaction()])
    history = _history()
    for number in range(4):
        history = (await agent.run(f"next {number}", message_history=history)).all_messages()
    assert _texts(history) == [summary_block("summary"), "next 2", "next 3"]


async def test_a_compaction_is_an_event_of_the_run():
    script = Script("summary", "done")
    agent = Agent(script.model, capabilities=[_compaction()])
    async with agent.run_stream_events("now", message_history=_history()) as events:
        replaced = [event async for event in events if isinstance(event, HistoryReplacedEvent)]
    assert [(event.cause, event.before, event.after) for event in replaced] == [("compaction", 13, 1)]


async def test_what_a_summary_takes_is_usage_of_the_run():
    result = await Agent(Script("summary", "done").model, capabilities=[_compaction()]).run(
        "now", message_history=_history()
    )
    assert result.usage.requests == 2


async def test_many_threads_are_compacted_at_a_time():
    import asyncio

    def answer(messages, info):
        text = str(messages[-1].parts[-1].content)
        return ModelResponse([TextPart(f"about {text.split('secret ')[1][:2]}" if "secret" in text else "done")])

    agent = Agent(FunctionModel(answer), capabilities=[_compaction()])

    def history(number):
        return [
            ModelRequest([UserPromptPart(f"secret {number:02}")]),
            ModelResponse([TextPart("ok")], usage=RequestUsage(input_tokens=9_900)),
        ]

    results = await asyncio.gather(*(agent.run("now", message_history=history(number)) for number in range(10)))
    for number, result in enumerate(results):
        assert said(result.all_messages()[0])[0] == summary_block(f"about {number:02}")


@pytest.mark.parametrize(
    "make",
    [
        lambda: CompactionCapability(threshold=0),
        lambda: CompactionCapability(threshold=90),
        lambda: CompactionCapability(context_window_tokens=0),
        lambda: HandoffCapability(reminder=0),
        lambda: HandoffCapability(reminder=65),
        lambda: HandoffCapability(context_window_tokens=-1),
    ],
)
def test_numbers_out_of_range_are_refused(make):
    with pytest.raises(ValueError, match=r"threshold|reminder|context_window_tokens"):
        make()


# --- the session log --------------------------------------------------------------------------------------------------


async def test_a_compaction_writes_a_boundary_and_a_resume_goes_on_behind_it(log):
    script = Script("a", "b", "summary", "c", "d")
    capabilities = [SessionLogCapability(log), _compaction()]
    agent = Agent(script.model, system_prompt="Be kind.", capabilities=capabilities)
    await agent.run("first")
    result = await agent.run("second")
    history = result.all_messages()
    history[-1].usage = RequestUsage(input_tokens=9_500)
    third = await agent.run("third", message_history=history)
    assert [row["type"] for row in log.rows()] == [
        "system", "user", "assistant", "user", "assistant", "compact_boundary", "system", "user", "assistant",
    ]  # fmt: skip
    assert [row["content"] for row in log.load()] == ["summary", "Be kind.", "third", "c"]
    await agent.run("fourth")
    [first, *rest] = script.requests[-1]
    assert [part.part_kind for part in first.parts] == ["system-prompt", "user-prompt"]
    assert said(first) == said(third.all_messages()[0]) == [summary_block("summary"), "third"]
    assert [text for message in rest for text in said(message)] == ["fourth"]


async def test_a_compaction_in_the_middle_of_a_turn_keeps_the_turns_rows(log):
    usage = RequestUsage(input_tokens=9_500, output_tokens=10)

    def model(messages, info):
        if info.instructions == SUMMARY_INSTRUCTIONS:
            return ModelResponse([TextPart("summary")])
        return ModelResponse([answers.pop(0)], usage=usage if len(answers) == 2 else RequestUsage(input_tokens=10))

    answers = [
        TextPart("hello"),
        ToolCallPart("memory_file_view", {"memory": "user"}, tool_call_id="1"),
        TextPart("done"),
        TextPart("bye"),
    ]
    agent = Agent(FunctionModel(model), capabilities=[await _memory(a="x"), SessionLogCapability(log), _compaction()])
    await agent.run("hi")
    result = await agent.run("now")
    assert [row["type"] for row in log.load()] == ["compact_boundary", "user", "assistant", "tool", "assistant"]
    last = await agent.run("next")
    assert last.all_messages()[:4] == result.all_messages()


async def test_rows_that_an_earlier_run_wrote_are_kept_when_the_turn_went_on(log):
    script = Script("a", call("create", id="1", memory="user", path="a.md", content="x"), "summary", "Stored.", "next")
    executable = HarnessBuilder().build(
        AgentSpec(),
        model=script.model,
        capabilities=[await _memory(), SessionLogCapability(log), _compaction()],
        permissions=ToolPermissions(rules={"memory.file.create": "ask"}),
    )
    first = await executable.run("first")
    second = await executable.run("store it", previous_state=first.state)
    state = type(second.state).model_validate_json(second.state.model_dump_json())
    state.messages[-1].usage = RequestUsage(input_tokens=9_900)
    third = await executable.run(None, previous_state=state, approvals={"1": True})
    assert third.output == "Stored."
    third.state.messages[1].usage = second.state.messages[-1].usage
    assert [row["type"] for row in log.load()] == ["compact_boundary", "user", "assistant", "tool", "assistant"]
    await plain(script, [SessionLogCapability(log)], "again")
    dumped = ModelMessagesTypeAdapter.dump_python(script.requests[-1][:-1], mode="json")
    assert dumped == ModelMessagesTypeAdapter.dump_python(third.state.messages, mode="json")


async def test_a_boundary_that_cannot_be_written_fails_the_run_before_anything_is_replaced(log, monkeypatch):
    def refuse(*args, **kwargs):
        raise MemoryStoreError("unavailable", "full")

    monkeypatch.setattr(SessionLog, "boundary", refuse)
    history = _history()
    script = Script("summary")
    agent = Agent(script.model, capabilities=[SessionLogCapability(log), _compaction()])
    with pytest.raises(MemoryStoreError):
        await agent.run("now", message_history=history)
    assert len(history) == 12


# --- handoff ----------------------------------------------------------------------------------------------------------


@every_way
async def test_the_model_hands_off_to_itself(run, tmp_path):
    log = SessionLog("s1", tmp_path, durable=False)
    script = Script(_summarize("Tea, and what is open."), "done", "again")
    capabilities = [_Begins(_history(10)), SessionLogCapability(log), HandoffCapability()]
    kept = await run(script, capabilities, "now")
    first, asked, result, answer = kept
    assert said(first) == [summary_block("Tea, and what is open."), "now"]
    assert [part.part_kind for part in first.parts] == ["system-prompt", "user-prompt"]
    assert asked.parts[0].tool_name == "summarize"
    assert "your summary stands in place" in result.parts[0].content
    assert answer.parts[0].content == "done"
    assert script.requests[1] == [first, asked, result]
    await plain(script, [SessionLogCapability(log)], "next")
    assert said(script.requests[2][0])[-2:] == [summary_block("Tea, and what is open."), "now"]


def _summarize(summary, **options):
    return ToolCallPart("summarize", {"summary": summary}, **options)


async def test_a_handoff_clears_the_cursors():
    cursors = MemoryCursors()
    script = Script("a", _summarize("sum"), "b", "c")
    agent = Agent(script.model, capabilities=[await _memory(cursors, a="tea"), HandoffCapability()])
    first = await agent.run("first")
    second = await agent.run("second", message_history=first.all_messages())
    assert contexts(second.all_messages()) == []
    third = await agent.run("third", message_history=second.all_messages())
    assert len(contexts(third.all_messages())) == 1


async def test_of_a_long_turn_only_its_newest_rounds_stay():
    script = Script(*[ToolCallPart("big", {})] * 6, _summarize("Read six."), "done")
    agent = Agent(script.model, capabilities=[HandoffCapability(context_window_tokens=WINDOW)])
    agent.tool_plain(lambda: "word " * 700, name="big")
    result = await agent.run("read")
    assert result.output == "done"
    shown = script.requests[-1]
    assert said(shown[0]) == [summary_block("Read six."), "read"]
    assert len(shown) < 12
    assert shown[-2].parts[0].tool_name == "summarize"


@pytest.mark.parametrize("blank", ["", " \n"])
async def test_a_blank_summary_is_refused_and_changes_nothing(blank):
    script = Script(_summarize(blank), _summarize("real"), "done")
    result = await Agent(script.model, capabilities=[HandoffCapability()]).run("now", message_history=_history(10))
    assert "The summary is empty" in str(script.requests[1][-1].parts[0].content)
    assert len(script.requests[1]) == 15
    assert said(result.all_messages()[0])[0] == summary_block("real")


async def test_a_handoff_with_nothing_before_it_is_harmless():
    script = Script(_summarize("nothing yet"), "done")
    result = await Agent(script.model, capabilities=[HandoffCapability()]).run("now")
    assert result.output == "done"
    assert len(result.all_messages()) == 4


@every_way
async def test_a_reminder_comes_once_when_the_history_takes_so_much(run):
    script = Script(call("view", memory="user"), "done")
    capabilities = [await _memory(), _Begins(_history(7_000)), HandoffCapability(context_window_tokens=WINDOW)]
    kept = await run(script, capabilities, "now")
    reminders = [text for text in _texts(kept) if "A note by the system" in text]
    assert len(reminders) == 1
    assert "`summarize`" in reminders[0]
    assert script.requests[0] == script.requests[1][:-2], "it stands in the history, so requests repeat its bytes"


async def test_a_reminder_in_the_middle_of_a_turn_comes_behind_the_results(log):
    script = Script(ToolCallPart("big", {}), "done", "again")
    capabilities = [SessionLogCapability(log), HandoffCapability(context_window_tokens=WINDOW)]
    agent = Agent(script.model, capabilities=capabilities)
    agent.tool_plain(lambda: "word " * 7_000, name="big")
    first = await agent.run("now")
    assert [part.part_kind for part in script.requests[1][-1].parts] == ["tool-return", "user-prompt"]
    assert [row["type"] for row in log.rows()] == ["user", "assistant", "tool", "system", "assistant"]
    second = await agent.run("next")
    assert second.all_messages()[:4] == first.all_messages()
    assert len([text for text in _texts(second.all_messages()) if "A note by the system" in text]) == 1


@pytest.mark.parametrize(("tokens", "window"), [(6_000, WINDOW), (10**9, None)])
async def test_there_is_no_reminder_before_that_and_none_where_nobody_knows_the_window(tokens, window):
    script = Script("done")
    agent = Agent(script.model, capabilities=[HandoffCapability(context_window_tokens=window)])
    await agent.run("now", message_history=_history(tokens))
    assert not [text for text in _texts(script.requests[0]) if "A note by the system" in text]


async def test_the_tool_has_an_id_for_permission_rules():
    script = Script(_summarize("x"), "done")
    executable = HarnessBuilder().build(
        AgentSpec(),
        model=script.model,
        capabilities=[HandoffCapability()],
        permissions=ToolPermissions(rules={"thread.summarize": "deny"}),
    )
    result = await executable.run("now")
    [part] = returns(result.state.messages)
    assert json.loads(part.content)["error"] == "permission_denied"


async def test_handoff_and_compaction_go_together():
    script = Script(_summarize("by hand"), "done")
    capabilities = [_compaction(), HandoffCapability(context_window_tokens=WINDOW)]
    result = await Agent(script.model, capabilities=capabilities).run("now", message_history=_history(7_000))
    assert said(result.all_messages()[0])[0] == summary_block("by hand")
    assert len(script.requests) == 2
