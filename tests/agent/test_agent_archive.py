"""ConversationArchiveHooks: what runs of any agent leave in the archive."""

from __future__ import annotations

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults
from runners import every_way
from scripted import Script, call

from memshelf import Workspace, WorkspaceCapability, WorkspaceMemoryConfig
from memshelf.agent.capabilities.conversation_archive import ConversationArchiveHooks


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path / "workspace", "alice", durable=False, embedder=None)


async def _archived(workspace):
    return [(turn.messages, turn.session_id) for turn in await workspace.search_conversations("tea", 100)][::-1]


@every_way
async def test_what_the_user_and_the_assistant_say_is_archived_and_nothing_else_changes(workspace, run):
    script = Script("Green tea it is.")
    await run(script, [ConversationArchiveHooks(workspace)], "I drink tea.")
    [(messages, session_id)] = await _archived(workspace)
    assert messages == (("user", "I drink tea."), ("assistant", "Green tea it is."))
    assert session_id
    [info] = script.infos
    assert info.function_tools == []
    assert not info.instructions


async def test_each_run_of_a_conversation_is_archived_once_with_its_thread(workspace):
    agent = Agent(Script("One tea.", "Two teas.").model, capabilities=[ConversationArchiveHooks(workspace)])
    first = await agent.run("a tea")
    await agent.run("another tea", message_history=first.all_messages())
    archived = await _archived(workspace)
    assert sorted(messages[0][1] for messages, _ in archived) == ["a tea", "another tea"]
    assert len({session_id for _, session_id in archived}) == 1


async def test_tools_are_left_out_and_a_failed_run_is_archived_as_far_as_it_went(workspace):
    async def look_up(what: str) -> str:
        return f"{what}: the secret of tea"

    script = Script(call("look_up", what="tea"), RuntimeError("down"))
    agent = Agent(script.model, tools=[look_up], capabilities=[ConversationArchiveHooks(workspace)])
    with pytest.raises(RuntimeError, match="down"):
        await agent.run("which tea?")
    assert [messages for messages, _ in await _archived(workspace)] == [(("user", "which tea?"),)]


async def test_a_run_that_waits_for_approval_is_archived_when_it_is_done(workspace):
    agent = Agent(
        Script(call("brew_tea", id="1"), "The tea is ready.").model,
        capabilities=[ConversationArchiveHooks(workspace)],
        output_type=[str, DeferredToolRequests],
    )

    @agent.tool_plain(requires_approval=True)
    def brew_tea() -> str:
        return "brewed"

    waiting = await agent.run("make tea")
    assert await _archived(workspace) == []
    await agent.run(
        message_history=waiting.all_messages(), deferred_tool_results=DeferredToolResults(approvals={"1": True})
    )
    [(messages, _)] = await _archived(workspace)
    assert messages == (("user", "make tea"), ("assistant", "The tea is ready."))


async def test_a_run_inside_another_is_not_the_users_conversation(workspace):
    inner = Agent(Script("inner tea").model, capabilities=[ConversationArchiveHooks(workspace)])

    async def ask_tea() -> str:
        return (await inner.run("tell me of tea")).output

    agent = Agent(
        Script(call("ask_tea"), "outer tea").model, tools=[ask_tea], capabilities=[ConversationArchiveHooks(workspace)]
    )
    await agent.run("tea?")
    assert [messages for messages, _ in await _archived(workspace)] == [(("user", "tea?"), ("assistant", "outer tea"))]


async def test_a_run_belongs_to_the_user_with_whom_it_began(workspace):
    def switch(messages):
        workspace.set_user("bob")
        return "Green tea."

    agent = Agent(Script(switch).model, capabilities=[ConversationArchiveHooks(workspace)])
    await agent.run("I drink tea.")
    assert await _archived(workspace) == []
    workspace.set_user("alice")
    assert len(await _archived(workspace)) == 1


async def test_an_archive_that_fails_costs_no_answer(workspace, caplog):
    workspace.root.mkdir(parents=True)
    (workspace.root / "conversations").write_text("in the way")
    result = await Agent(Script("tea").model, capabilities=[ConversationArchiveHooks(workspace)]).run("hi")
    assert result.output == "tea"
    assert "could not be archived: unavailable" in caplog.text


def test_hooks_need_a_workspace_and_an_agent_has_one_of_them(workspace):
    with pytest.raises(TypeError, match="Workspace"):
        ConversationArchiveHooks("./workspace")
    with pytest.raises(ValueError, match="can have one"):
        Agent("test", capabilities=[ConversationArchiveHooks(workspace), ConversationArchiveHooks(workspace)])


async def test_learning_from_corrections_alone_keeps_them_and_shows_them_in_later_sessions(workspace):
    await workspace.write_memory_entry("Tea", "Drinks sencha.", "user")
    config = WorkspaceMemoryConfig(
        load_workspace_context=False, load_workspace_memory=False, learn_from_corrections=True
    )
    script = Script("Done, with npm.", "Now with pnpm.", "ok")
    memory = WorkspaceCapability(workspace, config, cwd=None)
    agent = Agent(script.model, capabilities=[memory])
    first = await agent.run("Add the lint step to CI.")
    await agent.run("No, use pnpm instead of npm.", message_history=first.all_messages())
    await Agent(script.model, capabilities=[memory]).run("Add another lint step to CI.")
    shown = script.infos[-1].instructions
    assert "- No, use pnpm instead of npm." in shown
    assert "sencha" not in shown
    assert "user_tea.md" not in shown
    assert "pnpm" not in script.infos[1].instructions
