"""Every text of threads that a model reads, byte for byte. tests/golden/README.md says how to update them."""

from __future__ import annotations

import json

from pydantic_ai import (
    Agent,
    ModelRequest,
    ModelResponse,
    RequestUsage,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from scripted import Script, returns, said

from golden_files import compare
from memshelf import (
    CompactionCapability,
    HandoffCapability,
    HistoryWindowCapability,
    SessionLog,
    SessionSummaryCapability,
    WorkingMemory,
    session_state,
)

WINDOW = 10_000


def _compare(name, text):
    compare(f"threads/{name}", text)


def _history():
    return [
        ModelRequest([UserPromptPart("我喜欢喝绿茶。 <b> & 'more'")]),
        ModelResponse([TextPart("I look."), ToolCallPart("view", {"path": "tea.md"}, tool_call_id="1")]),
        ModelRequest([ToolReturnPart("view", {"text": "sencha\nmatcha"}, tool_call_id="1")]),
        ModelResponse([TextPart("好的。")], usage=RequestUsage(input_tokens=9_500)),
    ]


async def test_what_is_asked_for_a_summary_and_how_it_is_shown_after_a_compaction():
    script = Script("The user likes <green> tea.\nSencha and matcha are noted.", "done")
    capability = CompactionCapability(context_window_tokens=WINDOW)
    await Agent(script.model, capabilities=[capability]).run("now", message_history=_history())
    _compare("summary-instructions.txt", script.infos[0].instructions + "\n")
    _compare("summary-request.txt", script.requests[0][0].parts[0].content + "\n")
    _compare("compacted.txt", "\n--\n".join(said(script.requests[1][0])) + "\n")


async def test_how_an_update_of_a_summary_is_asked_for_and_shown():
    script = Script("A", "The user likes tea.", "B", "The user likes tea.")
    agent = Agent(
        script.model,
        instructions="Be kind.",
        capabilities=[SessionSummaryCapability(WorkingMemory(create_session_summary=True))],
    )
    first = await agent.run("I like tea.")
    await agent.run("And now?", message_history=first.all_messages())
    _compare("summary-update.txt", script.requests[3][0].parts[0].content + "\n")
    _compare("instructions-with-summary.txt", script.infos[2].instructions + "\n")


async def test_the_tool_of_a_handoff_its_answer_and_the_reminder():
    script = Script(ToolCallPart("summarize", {"summary": ""}), ToolCallPart("summarize", {"summary": "x"}), "done")
    history = _history()
    history[-1].usage = RequestUsage(input_tokens=7_000)
    capability = HandoffCapability(context_window_tokens=WINDOW)
    result = await Agent(script.model, capabilities=[capability]).run("now", message_history=history)
    [tool] = script.infos[0].function_tools
    shown = {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
    _compare("handoff-tool.json", json.dumps(shown, indent=2, ensure_ascii=False) + "\n")
    refused, taken = returns(result.all_messages())
    _compare("handoff-answers.txt", f"{refused.content}\n--\n{taken.content}\n")
    _compare("handoff-reminder.txt", said(script.requests[0][-1])[0] + "\n")


async def test_a_shortened_result():
    memory = WorkingMemory(max_tokens=100, tool_result_tokens=20)
    history = _history()
    history[2] = ModelRequest([ToolReturnPart("view", "begin " + "middle " * 200 + "end", tool_call_id="1")])
    script = Script("done")
    await Agent(script.model, capabilities=[HistoryWindowCapability(memory)]).run("now", message_history=history)
    [part] = returns(script.requests[0])
    _compare("shortened-result.txt", part.content + "\n")


def test_an_interrupted_call(tmp_path):
    log = SessionLog("s1", tmp_path, durable=False)
    log.append("user", "do it")
    log.append("assistant", "", tool_calls=[{"id": "1", "name": "view", "args": {}}])
    [part] = returns(session_state(log).messages)
    _compare("interrupted-call.txt", part.content + "\n")
