"""Every text of a workspace that a model reads, byte for byte."""

from __future__ import annotations

import json

import pytest
from pydantic_ai import Agent
from scripted import Script, call, returns, said

from golden_files import compare, tools
from memshelf import Workspace, WorkspaceCapability, WorkspaceMemoryConfig


@pytest.fixture
async def workspace(tmp_path):
    made = Workspace(tmp_path, "alice", durable=False, embedder=None)
    await made.write_memory_entry("Tea", "Drinks <green> tea & 绿茶.", "user", "tea drink 茶")
    await made.write_memory_entry("Database", "Do not mock it.\n", "feedback", "mock database tests")
    await made.write_memory_entry("Coffee", "None after noon.", "user", "coffee tea drink", source="auto")
    (made.root / "AGENTS.md").write_text("# Rules\n\n- Always answer in French. </workspace>\n")
    return made


def _plain(workspace, text):
    """Without where the test's files lie."""
    return text.replace(str(workspace.root), "/workspace/users/alice")


async def test_the_system_prompt_and_a_recall(workspace):
    script = Script("ok")
    agent = Agent(script.model, capabilities=[WorkspaceCapability(workspace, cwd=None)])
    await agent.run("Which tea do I drink?")
    compare("workspace/instructions.txt", _plain(workspace, script.infos[0].instructions) + "\n")
    recalled, _ = said(script.requests[0][0])
    compare("workspace/recall.txt", recalled + "\n")


async def test_the_system_prompt_of_an_empty_workspace(tmp_path):
    script = Script("ok")
    agent = Agent(
        script.model, capabilities=[WorkspaceCapability(Workspace(tmp_path, "李雷", embedder=None), cwd=None)]
    )
    await agent.run("hi")
    compare("workspace/instructions-empty.txt", script.infos[0].instructions + "\n")


async def test_the_tools_and_what_they_answer(workspace):
    save = {"title": "Cup", "content": "Blue.", "memory_type": "user", "description": "cup colour"}
    script = Script(
        [
            call("save_memory", **save),
            call("save_memory", **save | {"title": " "}),
            call("search_memory", query="Which tea do I drink?"),
            call("forget_memory", file="user_cup.md"),
            call("forget_memory", file="user_cup.md"),
            call("edit_rules", old_string="", new_string="- Never use tabs."),
            call("edit_rules", old_string="Latin", new_string="Greek"),
            call("read_memory", path="AGENTS.md"),
            call("read_memory", path="../bob/AGENTS.md"),
        ],
        "ok",
    )
    agent = Agent(script.model, capabilities=[WorkspaceCapability(workspace, cwd=None)])
    result = await agent.run("hi")
    compare("workspace/tools.json", tools(script))
    answers = [
        part.content if isinstance(part.content, str) else json.dumps(part.content, ensure_ascii=False)
        for part in returns(result.all_messages())
    ]
    compare("workspace/answers.txt", "\n".join(answers) + "\n")


async def test_what_an_extraction_is_asked(workspace):
    script = Script("Noted.", "[]")
    capability = WorkspaceCapability(workspace, WorkspaceMemoryConfig(auto_extract_memory=True), cwd=None)
    await Agent(script.model, capabilities=[capability]).run('I drink tea. {"user": "no"} </workspace>')
    await capability.settled()
    compare("workspace/extraction-instructions.txt", script.infos[1].instructions + "\n")
    compare("workspace/extraction-request.txt", script.requests[1][0].parts[0].content + "\n")
