"""Permission rules over the tools of a run."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
from pydantic import BaseModel
from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    ExternalToolset,
    FunctionToolset,
    ToolApproved,
    ToolDefinition,
    ToolDenied,
)
from pydantic_ai.capabilities import AbstractCapability, Toolset
from pydantic_ai.models.test import TestModel
from scripted import Script, call, returns, said

from memshelf import (
    AgentSpec,
    FileMemoryCapability,
    FileMount,
    HarnessBuilder,
    HarnessState,
    InProcessFileStore,
    Origin,
    RunIncompleteError,
    ToolPermissions,
)
from memshelf.agent.permissions import ToolPermissionCapability
from memshelf.agent.state import PendingCall

CREATE = call("create", memory="user", path="a.md", content="x", id="call-1")


def _built(script, store=None, permissions=None, *capabilities):
    memory = FileMemoryCapability([FileMount("user", store or InProcessFileStore(), "write")])
    return HarnessBuilder().build(
        AgentSpec(), model=script.model, capabilities=(memory, *capabilities), permissions=permissions
    )


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rules", "tool", "expected"),
    [
        ({}, "memory.file.view", "allow"),
        ({"memory.file.*": "ask"}, "memory.file.view", "ask"),
        ({"memory.file.*": "ask"}, "memory.record.view", "allow"),
        ({"*": "deny"}, "anything", "deny"),
        # An ID before any pattern, in whatever order they are written.
        ({"memory.file.view": "allow", "memory.file.*": "deny"}, "memory.file.view", "allow"),
        ({"memory.file.*": "deny", "memory.file.view": "allow"}, "memory.file.view", "allow"),
        ({"memory.file.view": "allow", "memory.file.view*": "deny"}, "memory.file.view", "allow"),
        # The longer pattern before the shorter.
        ({"memory.file.*": "allow", "memory.*": "deny"}, "memory.file.view", "allow"),
        ({"*.delete": "deny", "memory.file.*": "allow"}, "memory.file.delete", "allow"),
        # Among equals the strictest.
        ({"ab*": "ask", "*bc": "deny", "a*c": "allow"}, "abc", "deny"),
        # Everything but the star is literal.
        ({"a.c": "deny"}, "abc", "allow"),
        ({"[ab]*": "deny"}, "abc", "allow"),
    ],
)
def test_the_most_specific_rule_wins(rules, tool, expected):
    assert ToolPermissions(rules=rules).of(tool) == expected


def test_what_no_rule_matches_follows_the_default():
    permissions = ToolPermissions(default="deny", rules={"memory.file.view": "allow"})
    assert permissions.of("memory.file.view") == "allow"
    assert permissions.of("memory.file.grep") == "deny"


@pytest.mark.parametrize(
    ("default", "rules", "reason"),
    [
        ("maybe", {}, "default: one of allow, ask, deny, not 'maybe'"),
        ("allow", {"memory.file.*": "yes"}, "one of allow, ask, deny, not 'yes'"),
        ("allow", {"": "deny"}, "tool ID or a pattern"),
        ("allow", {"memory file": "deny"}, "tool ID or a pattern"),
        ("allow", {3: "deny"}, "tool ID or a pattern"),
        ("allow", {"memory.file.delte": "deny"}, "no file tool has that ID"),
        ("allow", {"memory.file.x*": "deny"}, "no file tool has that ID"),
        ("allow", {"memory.recrod.*": "ask"}, r"no tool has that ID\. There are memory\.file"),
        ("allow", {"memory_file_delete": "deny"}, "goes by its ID, memory.file.delete"),
    ],
)
def test_a_rule_that_could_not_work_is_refused(default, rules, reason):
    with pytest.raises(ValueError, match=reason):
        ToolPermissions(default=default, rules=rules)


def test_rules_do_not_change_under_a_run():
    rules = {"memory.file.*": "deny"}
    permissions = ToolPermissions(rules=rules)
    rules.clear()
    assert permissions.of("memory.file.view") == "deny"
    with pytest.raises(TypeError):
        permissions.rules["memory.file.*"] = "allow"


def test_permissions_can_be_copied_and_pickled():
    permissions = ToolPermissions(default="ask", rules={"memory.file.*": "deny"})
    for other in (copy.copy(permissions), copy.deepcopy(permissions), pickle.loads(pickle.dumps(permissions))):
        assert other == permissions
        assert other.of("memory.file.view") == "deny"


# --- allow and deny ---------------------------------------------------------------------------------------------------


async def test_a_denied_call_changes_nothing_and_the_model_can_go_on():
    store = InProcessFileStore()
    script = Script(CREATE, call("view", memory="user"), "I may not write.")
    result = await _built(script, store, ToolPermissions(rules={"memory.file.create": "deny"})).run("hi")
    assert result.output_or_raise() == "I may not write."
    refused, viewed = returns(result.state.messages)
    assert refused.outcome == "failed"
    assert json.loads(refused.content)["error"] == "permission_denied"
    assert viewed.outcome == "success"
    assert await store.list() == []


async def test_tools_of_any_kind_are_held_to_the_rules_by_their_name():
    ran = []
    toolset = FunctionToolset()
    toolset.add_function(lambda: ran.append(1), name="send_mail")
    script = Script(call("send_mail"), "done")
    permissions = ToolPermissions(rules={"send_mail": "deny"})
    result = await _built(script, None, permissions, Toolset(toolset)).run("hi")
    assert result.status == "completed"
    assert ran == []


# --- ask --------------------------------------------------------------------------------------------------------------


async def _suspended(script, store, permissions=None):
    executable = _built(script, store, permissions or ToolPermissions(rules={"memory.file.create": "ask"}))
    return executable, await executable.run("hi")


async def test_a_call_to_ask_about_suspends_the_run_before_it_happens():
    store = InProcessFileStore()
    _, result = await _suspended(Script(CREATE), store)
    assert result.status == "suspended"
    assert result.pending == (
        PendingCall(
            tool_call_id="call-1",
            tool_id="memory.file.create",
            name="memory_file_create",
            args={"memory": "user", "path": "a.md", "content": "x"},
        ),
    )
    assert await store.list() == []
    with pytest.raises(RunIncompleteError, match=r"suspended. It waits for memory_file_create \(call-1\)"):
        result.output_or_raise()


@pytest.mark.parametrize("approved", [True, ToolApproved()])
async def test_an_approved_call_happens_when_the_stored_thread_resumes(approved):
    store = InProcessFileStore()
    executable, first = await _suspended(Script(CREATE, "saved"), store)
    stored = HarnessState.model_validate_json(first.state.model_dump_json())
    assert stored.pending == first.state.pending
    second = await executable.run(None, previous_state=stored, approvals={"call-1": approved})
    assert second.output_or_raise() == "saved"
    assert second.pending == ()
    assert (await store.read("a.md")).text == "x"


async def test_approved_arguments_may_be_replaced():
    store = InProcessFileStore()
    executable, first = await _suspended(Script(CREATE, "saved"), store)
    other = ToolApproved(override_args={"memory": "user", "path": "b.md", "content": "y"})
    await executable.run(None, previous_state=first.state, approvals={"call-1": other})
    assert [entry.path for entry in await store.list()] == ["b.md"]


@pytest.mark.parametrize(("answer", "told"), [(False, "denied"), (ToolDenied("Not today."), "Not today.")])
async def test_a_refused_call_does_not_happen_and_the_model_is_told(answer, told):
    store = InProcessFileStore()
    executable, first = await _suspended(Script(CREATE, "as you wish"), store)
    second = await executable.run(None, previous_state=first.state, approvals={"call-1": answer})
    assert second.output_or_raise() == "as you wish"
    [part] = returns(second.state.messages)
    assert part.outcome == "denied"
    assert told in part.content
    assert await store.list() == []


async def test_a_suspended_thread_resumes_in_a_stream():
    store = InProcessFileStore()
    executable, first = await _suspended(Script(CREATE, "saved"), store)
    stream = executable.stream(None, previous_state=first.state, approvals={"call-1": True})
    assert [event async for event in stream]
    assert stream.result.output_or_raise() == "saved"


async def test_a_stream_may_end_suspended():
    executable = _built(Script(CREATE), None, ToolPermissions(default="ask"))
    stream = executable.stream("hi")
    assert [event async for event in stream]
    assert stream.result.status == "suspended"
    assert stream.result.pending[0].tool_id == "memory.file.create"


async def test_calls_beside_one_that_waits_happen_once():
    store = InProcessFileStore()
    await store.write("log.md", "start\n", expected=None, origin=Origin())
    script = Script([call("append", memory="user", path="log.md", content="once\n"), CREATE], "done")
    executable, first = await _suspended(script, store)
    assert [pending.tool_call_id for pending in first.pending] == ["call-1"]
    second = await executable.run(None, previous_state=first.state, approvals={"call-1": True})
    assert second.status == "completed"
    assert (await store.read("log.md")).text == "start\nonce\n"


async def test_every_pending_call_needs_an_answer_and_no_other_call_may_have_one():
    executable, first = await _suspended(Script(CREATE, "saved"), InProcessFileStore())
    with pytest.raises(ValueError, match=r"memory_file_create \(approvals=\{'call-1': ...\}\)"):
        await executable.run(None, previous_state=first.state)
    with pytest.raises(ValueError, match="memory_file_create"):
        await executable.run("something else", previous_state=first.state)
    with pytest.raises(ValueError, match="does not wait for an answer of that kind to call-2"):
        await executable.run(None, previous_state=first.state, approvals={"call-1": True, "call-2": True})
    with pytest.raises(ValueError, match="does not wait"):
        await executable.run(None, previous_state=first.state, results={"call-1": "x"})
    with pytest.raises(TypeError, match="approval of call-1"):
        await executable.run(None, previous_state=first.state, approvals={"call-1": "yes"})


async def test_an_answer_with_new_text_goes_on_with_both():
    store = InProcessFileStore()
    script = Script(CREATE, "both done")
    executable, first = await _suspended(script, store)
    second = await executable.run("and thanks", previous_state=first.state, approvals={"call-1": True})
    assert second.output_or_raise() == "both done"
    assert said(script.requests[-1][-1])[-1] == "and thanks"


async def test_a_rule_that_became_stricter_holds_for_an_approved_call_too():
    store = InProcessFileStore()
    script = Script(CREATE, "oh")
    _, first = await _suspended(script, store)
    strict = _built(script, store, ToolPermissions(rules={"memory.file.create": "deny"}))
    second = await strict.run(None, previous_state=first.state, approvals={"call-1": True})
    assert second.output_or_raise() == "oh"
    assert await store.list() == []


async def test_a_call_whose_result_comes_from_outside_suspends_and_resumes():
    toolset = FunctionToolset()

    def pay_bill() -> str:
        from pydantic_ai import CallDeferred

        raise CallDeferred

    toolset.add_function(pay_bill, name="pay_bill")
    script = Script(call("pay_bill", id="call-9"), "paid")
    executable = _built(script, None, None, Toolset(toolset))
    first = await executable.run("pay")
    [pending] = first.pending
    assert (pending.kind, pending.tool_id) == ("external", "pay_bill")
    second = await executable.run(None, previous_state=first.state, results={"call-9": {"receipt": 7}})
    assert second.output_or_raise() == "paid"
    assert returns(second.state.messages)[-1].content == {"receipt": 7}


async def test_a_denied_call_that_the_host_would_make_is_never_handed_to_it():
    external = ExternalToolset([ToolDefinition(name=name) for name in ("pay_bill", "look_up")])
    script = Script(call("pay_bill"), call("look_up", id="call-9"), "done")
    executable = _built(script, None, ToolPermissions(rules={"pay_*": "deny"}), Toolset(external))
    first = await executable.run("pay")
    assert [pending.name for pending in first.pending] == ["look_up"]
    assert "pay_bill" not in {tool.name for tool in script.infos[0].function_tools}
    second = await executable.run(None, previous_state=first.state, results={"call-9": "it is 7"})
    assert second.output_or_raise() == "done"


async def test_an_approved_call_is_not_repeated_when_the_model_fails_after_it():
    store = InProcessFileStore()
    script = Script(CREATE, ConnectionError("down"), "saved")
    executable, first = await _suspended(script, store)
    failed = await executable.run(None, previous_state=first.state, approvals={"call-1": True})
    assert failed.status == "failed"
    assert failed.pending == ()  # the call happened before the model failed
    again = await executable.run(None, previous_state=failed.state)
    assert again.output_or_raise() == "saved"
    assert [part.outcome for part in returns(again.state.messages)] == ["success"]


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_run_that_could_not_begin_leaves_the_thread_waiting(streamed):
    class Refuses(AbstractCapability[object]):
        async def before_run(self, ctx):
            raise PermissionError("not now")

    store = InProcessFileStore()
    script = Script(CREATE, "saved")
    permissions = ToolPermissions(rules={"memory.file.create": "ask"})
    executable, first = await _suspended(script, store, permissions)
    refusing = _built(script, store, permissions, Refuses())
    if streamed:
        stream = refusing.stream(None, previous_state=first.state, approvals={"call-1": True})
        assert [event async for event in stream] == []
        failed = stream.result
    else:
        failed = await refusing.run(None, previous_state=first.state, approvals={"call-1": True})
    assert isinstance(failed.failure, PermissionError)
    assert failed.state == first.state
    again = await executable.run(None, previous_state=failed.state, approvals={"call-1": True})
    assert again.output_or_raise() == "saved"


async def test_the_gate_works_on_a_plain_agent():
    store = InProcessFileStore()
    memory = FileMemoryCapability([FileMount("user", store, "write")])
    gate = ToolPermissionCapability(ToolPermissions(rules={"memory.file.*": "ask"}))
    agent = Agent(Script(CREATE).model, output_type=[str, DeferredToolRequests], capabilities=[memory, gate])
    result = await agent.run("hi")
    assert [each.tool_call_id for each in result.output.approvals] == ["call-1"]


async def test_rules_are_for_tools_not_for_the_answer():
    class Drink(BaseModel):
        name: str

    model = TestModel(call_tools=[], custom_output_args={"name": "tea"})
    executable = HarnessBuilder().build(
        AgentSpec(), output_type=Drink, model=model, permissions=ToolPermissions(default="deny")
    )
    assert (await executable.run("hi")).output_or_raise() == Drink(name="tea")
