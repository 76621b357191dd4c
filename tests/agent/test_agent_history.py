"""HistoryWindowCapability: what of a history a model is shown, and what is kept."""

from __future__ import annotations

import pytest
from pydantic_ai import (
    Agent,
    ImageUrl,
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
from runners import every_way, harness
from scripted import Script, call, contexts, returns, said

from memshelf import (
    AgentSpec,
    FileMemoryCapability,
    FileMount,
    HarnessBuilder,
    HistoryWindowCapability,
    InProcessFileStore,
    MemoryCursors,
    Origin,
    WorkingMemory,
)
from memshelf.agent.capabilities.message_shape import ModelMessageShape


def _turn(number, *rounds, text="answer"):
    """A turn of the user's, with a tool round for each result in `rounds`."""
    messages = [ModelRequest([UserPromptPart(f"question {number}")])]
    for at, result in enumerate(rounds):
        messages.append(ModelResponse([ToolCallPart("view", {}, tool_call_id=f"{number}-{at}")]))
        messages.append(ModelRequest([ToolReturnPart("view", result, tool_call_id=f"{number}-{at}")]))
    return [*messages, ModelResponse([TextPart(f"{text} {number}")])]


def _turns(count, *rounds):
    return [message for number in range(count) for message in _turn(number, *rounds)]


def _shown(request):
    return [text for message in request for text in said(message) if not text.startswith("<memory-context")]


async def _request(capability, history, prompt="now", **options):
    script = Script("done")
    agent = Agent(script.model, capabilities=[capability], **options)
    result = await agent.run(prompt, message_history=history)
    return script.requests[0], result.all_messages()


@pytest.mark.parametrize(("turns", "first"), [(None, 0), (5, 5), (1, 9), (0, None)])
async def test_so_many_turns_before_the_current_one_are_shown_and_all_are_kept(turns, first):
    request, kept = await _request(HistoryWindowCapability(num_history_turns=turns), _turns(10, "x"))
    earlier = [] if first is None else [f"question {number}" for number in range(first, 10)]
    assert _shown(request) == [*earlier, "now"]
    assert len(kept) == 42


async def test_five_turns_are_shown_unless_another_number_is_given():
    request, _ = await _request(HistoryWindowCapability(), _turns(9))
    assert len(_shown(request)) == 6


@every_way
async def test_it_works_however_the_agent_is_run(run):
    script = Script(call("view", memory="user"), "done")
    memory = FileMemoryCapability([FileMount("user", InProcessFileStore(), "write")])

    class Begins(AbstractCapability[object]):
        async def wrap_run(self, ctx, *, handler):
            ctx.messages[:] = _turns(5)
            return await handler()

    await run(script, [memory, Begins(), HistoryWindowCapability(num_history_turns=2)], "now")
    assert [_shown(request) for request in script.requests] == [["question 3", "question 4", "now"]] * 2


async def test_the_system_prompt_is_always_shown():
    history = _turns(4)
    history[0] = ModelRequest([SystemPromptPart("Be kind."), *history[0].parts])
    request, kept = await _request(HistoryWindowCapability(num_history_turns=0), history)
    assert [part.part_kind for part in request[0].parts] == ["system-prompt", "user-prompt"]
    assert len(request) == 1
    assert not any(isinstance(part, SystemPromptPart) for part in kept[-2].parts), "only what is shown has it"


async def test_a_result_never_loses_its_call():
    for turns in range(4):
        request, _ = await _request(HistoryWindowCapability(num_history_turns=turns), _turns(4, "a", "b"))
        calls = [part.tool_call_id for message in request for part in message.parts if isinstance(part, ToolCallPart)]
        assert [part.tool_call_id for part in returns(request)] == calls


async def test_turns_without_room_are_left_out_whole():
    memory = WorkingMemory(max_tokens=58, count_tokens=len)
    request, kept = await _request(HistoryWindowCapability(memory, num_history_turns=None), _turns(10))
    assert _shown(request) == ["question 9", "now"]
    assert len(kept) == 22


async def test_over_long_results_are_shortened_first_and_stay_whole_in_the_history():
    long = "begin " + "middle " * 2_000 + "end"
    memory = WorkingMemory(max_tokens=1_000, tool_result_tokens=100)
    request, kept = await _request(HistoryWindowCapability(memory), _turns(3, long))
    assert len(_shown(request)) == 4
    for part in returns(request):
        assert part.content.startswith("begin middle")
        assert part.content.endswith("middle end")
        assert "characters left out" in part.content
    assert [part.content for part in returns(kept)] == [long] * 3


async def test_a_result_that_is_no_text_is_shortened_as_the_model_would_read_it():
    memory = WorkingMemory(max_tokens=300, tool_result_tokens=50)
    request, _ = await _request(HistoryWindowCapability(memory), _turns(1, {"rows": ["x" * 100] * 100}))
    [part] = returns(request)
    assert part.content.startswith('{"rows":["xxx')
    assert "characters left out" in part.content


async def test_results_of_the_current_turn_are_left_alone_while_it_has_room():
    memory = WorkingMemory(max_tokens=1_000, tool_result_tokens=100)
    history = [*_turn(1, "long " * 500), *_turn(2, "long " * 500)[:-1]]
    script = Script("done")
    await Agent(script.model, capabilities=[HistoryWindowCapability(memory)]).run(message_history=history)
    earlier, current = returns(script.requests[0])
    assert "characters left out" in earlier.content
    assert current.content == "long " * 500


async def test_what_is_over_the_cap_leaves_the_history_and_the_system_prompt_stays():
    script = Script(*["answer"] * 30)
    memory = WorkingMemory(max_messages=6)
    agent = Agent(
        script.model, system_prompt="Be kind.", capabilities=[HistoryWindowCapability(memory, num_history_turns=None)]
    )
    history = None
    for number in range(30):
        history = (await agent.run(f"question {number}", message_history=history)).all_messages()
        assert len(history) <= 7
        assert [part.content for part in history[0].parts if isinstance(part, SystemPromptPart)] == ["Be kind."]
    assert _shown(history) == [f"question {number}" for number in (27, 28, 29)]
    stored = ModelMessagesTypeAdapter.validate_json(ModelMessagesTypeAdapter.dump_json(history))
    assert _shown(stored) == _shown(history)


async def test_the_cap_holds_in_the_harness():
    executable = HarnessBuilder().build(
        AgentSpec(),
        model=Script(*["answer"] * 10).model,
        capabilities=[HistoryWindowCapability(WorkingMemory(max_messages=4))],
    )
    state = None
    for number in range(10):
        state = (await executable.run(f"question {number}", previous_state=state)).state
    assert _shown(state.messages) == ["question 8", "question 9"]


async def test_a_turn_that_is_over_the_cap_stays_whole():
    _, kept = await _request(HistoryWindowCapability(WorkingMemory(max_messages=2)), _turn(1, "a", "b", "c"))
    assert _shown(kept) == ["now"]
    script = Script("done")
    result = await Agent(script.model, capabilities=[HistoryWindowCapability(WorkingMemory(max_messages=2))]).run(
        message_history=_turn(1, "a", "b", "c")[:-1]
    )
    assert len(result.all_messages()) == 8


async def test_the_new_messages_of_a_run_are_its_own_also_when_the_history_was_cut():
    script = Script("done")
    agent = Agent(script.model, capabilities=[HistoryWindowCapability(WorkingMemory(max_messages=3))])
    result = await agent.run("now", message_history=_turns(10))
    assert [message.kind for message in result.new_messages()] == ["request", "response"]


# --- memories -------------------------------------------------------------------------------------------------------


async def _cursors_agent(script, turns, **options):
    store = InProcessFileStore()
    await store.write("a.md", "tea", expected=None, origin=Origin())
    memory = FileMemoryCapability([FileMount("user", store, "write")], cursors=MemoryCursors())
    window = HistoryWindowCapability(WorkingMemory(**options), num_history_turns=turns)
    # In either order: the window comes first by itself.
    return store, Agent(script.model, capabilities=[memory, window])


@pytest.mark.parametrize(("turns", "options"), [(2, {}), (0, {}), (None, {"max_messages": 4})])
async def test_a_model_is_shown_each_memory_in_full_however_far_the_window_moves(turns, options):
    script = Script(*["answer"] * 12)
    store, agent = await _cursors_agent(script, turns, **options)
    history, told = None, 0
    for number in range(12):
        if number % 3 == 1:
            await store.write(f"n{number}.md", "new", expected=None, origin=Origin())
        history = (await agent.run("hi", message_history=history)).all_messages()
        blocks = contexts(script.requests[-1])
        full = [block for block in blocks if 'kind="full"' in block]
        assert len(full) == 1, "once, and not again while it can be seen"
        told += blocks[-1] == full[0] and number > 0
        changes = "".join(blocks)
        assert all(f"n{each}.md" in changes for each in range(number + 1) if each % 3 == 1)
    assert told < 12 if turns != 0 else told == 11


async def test_a_memory_that_is_no_longer_mounted_is_not_told_for_ever():
    script = Script(*["answer"] * 8)
    _, agent = await _cursors_agent(script, 1)
    history = (await agent.run("hi", message_history=None)).all_messages()
    store, cursors = InProcessFileStore(), MemoryCursors()
    await store.write("b.md", "coffee", expected=None, origin=Origin())
    other = FileMemoryCapability([FileMount("team", store, "read")], cursors=cursors)
    agent = Agent(script.model, capabilities=[other, HistoryWindowCapability(num_history_turns=3)])
    for _ in range(7):
        history = (await agent.run("hi", message_history=history)).all_messages()
    full = [block for message in history for block in contexts([message]) if 'memory="team"' in block]
    assert len(full) <= 3


# --- how messages are read --------------------------------------------------------------------------------------------


def test_files_count_and_cache_points_do_not():
    shape = ModelMessageShape()
    text = ModelRequest([UserPromptPart(["look"])])
    image = ModelRequest([UserPromptPart(["look", ImageUrl("https://example.com/x.png")])])
    assert shape.tokens(image) > shape.tokens(text) + 500
    assert shape.lines(image, 100) == [("user", "look"), ("user", "[ImageUrl]")]


def test_calls_results_and_answers_are_told_and_thoughts_are_not():
    from pydantic_ai import ThinkingPart

    response = ModelResponse(
        [ThinkingPart("hm"), TextPart("I look."), ToolCallPart("view", {"path": "a"}, tool_call_id="1")],
        usage=RequestUsage(),
    )
    result = ModelRequest([ToolReturnPart("view", "x" * 1_000, tool_call_id="1")])
    shape = ModelMessageShape()
    assert shape.lines(response, 100) == [("assistant", "I look."), ("assistant", 'calls view with {"path":"a"}')]
    [(speaker, text)] = shape.lines(result, 50)
    assert speaker == "result of view"
    assert "characters left out" in text


@pytest.mark.parametrize("turns", [-1])
def test_a_window_out_of_range_is_refused(turns):
    with pytest.raises(ValueError, match="num_history_turns"):
        HistoryWindowCapability(num_history_turns=turns)


async def test_in_the_harness_the_state_has_what_is_not_shown():
    messages = await harness(Script("done"), [HistoryWindowCapability(num_history_turns=0)], "hi")
    assert len(messages) == 2
