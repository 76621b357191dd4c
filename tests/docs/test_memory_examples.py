"""The examples of memory that agents are usually introduced with, each as it stands."""

from __future__ import annotations

import ast
import asyncio
import os
from pathlib import Path

import example_model
import pytest

HISTORY = """
from memshelf import Agent

agent = Agent(
    add_history_to_context=True,
    num_history_turns=5,
)
"""
SUMMARY = """
from memshelf import Agent
from memshelf import WorkingMemory

agent = Agent(
    working_memory=WorkingMemory(
        create_session_summary=True,
        update_session_summary_after_run=True,
        max_messages=200,
    ),
)
"""
WORKSPACE = """
from memshelf import Agent, Workspace

agent = Agent(
    workspace=Workspace(path="./my_workspace", user_id="alice"),
)
"""
ENTRIES = """
from memshelf import Workspace

workspace = Workspace("./workspace")
workspace.initialize()

await workspace.write_memory_entry(
    title="Python Style",
    content="User prefers concise, typed Python. Avoid unnecessary comments.",
    memory_type="feedback",
    description="python coding style typed concise",
)

await workspace.write_memory_entry(
    title="Release Deadline",
    content="v2.0 release is due end of April 2026.",
    memory_type="project",
    description="v2 release deadline april 2026",
)
"""
RECALL = """
memory = await workspace.get_relevant_memories(
    query="how should I write python code",
    limit=5,
    already_surfaced=set(),
)
"""
RECALLING = """
from memshelf import Agent, Workspace
from memshelf import WorkspaceMemoryConfig

agent = Agent(
    workspace=Workspace("./workspace"),
    long_term_memory_config=WorkspaceMemoryConfig(
        load_workspace_memory=True,
        max_memory_entries=5,
    ),
)
"""
ARCHIVE = """
from memshelf import Agent, Workspace
from memshelf import WorkspaceMemoryConfig

agent = Agent(
    workspace=Workspace("./workspace"),
    long_term_memory_config=WorkspaceMemoryConfig(auto_archive=True),
)
"""
SESSION = """
from memshelf import Agent

agent = Agent(session_id="my-session-001")
"""
LAYOUT = """
from memshelf import Workspace, WorkspaceConfig

config = WorkspaceConfig(
    agent_md="AGENTS.md",
    memory_md="MEMORY.md",
    memory_dir="memory",
    users_dir="users",
    conversations_dir="conversations",
)

workspace = Workspace(path="./workspace", config=config)
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMSHELF_MODEL", "openai-responses:gpt-5")
    with example_model.serving() as (model, environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield model


async def _run(example, names=None):
    """The names that an example makes."""
    names = {} if names is None else names
    code = compile(example, "<example>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    made = eval(code, names)
    if asyncio.iscoroutine(made):
        await made
    return names


async def _ask(agent, text):
    return (await agent.run(text)).output_or_raise()


async def test_history_of_so_many_turns(model):
    agent = (await _run(HISTORY))["agent"]
    for number in range(8):
        assert await _ask(agent, f"Question {number}") == "Noted."
    shown = str(model.requests[-1]["input"])
    assert [f"Question {number}" in shown for number in range(8)] == [False] * 2 + [True] * 6


async def test_a_summary_in_the_system_prompt(model):
    agent = (await _run(SUMMARY))["agent"]
    await _ask(agent, "I like tea.")
    await _ask(agent, "What do I like?")
    asked = [request for request in model.requests if "What do I like?" in str(request["input"])]
    assert "<conversation-summary" in asked[0]["instructions"]


async def test_a_workspace(model):
    agent = (await _run(WORKSPACE))["agent"]
    assert await _ask(agent, "Hello.") == "Noted."
    assert "save_memory" in [tool["name"] for tool in model.requests[0]["tools"]]


@pytest.mark.usefixtures("model")
async def test_entries_and_recall():
    names = await _run(ENTRIES)
    folder = Path("workspace/users/default")
    assert sorted(os.listdir(folder / "memory")) == ["feedback_python_style.md", "project_release_deadline.md"]
    assert (folder / "memory" / "feedback_python_style.md").read_text() == (
        "---\nname: Python Style\ndescription: python coding style typed concise\ntype: feedback\n---\n\n"
        "User prefers concise, typed Python. Avoid unnecessary comments."
    )
    assert (folder / "MEMORY.md").read_text().count("- [") == 2
    await _run(RECALL, names)
    assert "typed Python" in names["memory"]
    assert "verify it still exists before recommending it" in names["memory"]


async def test_an_agent_that_recalls(model):
    await _run(ENTRIES)
    agent = (await _run(RECALLING))["agent"]
    await _ask(agent, "how should I write python code")
    asked = str(model.requests[0]["input"])
    assert "User prefers concise, typed Python." in asked
    assert "User prefers concise" not in model.requests[0]["instructions"]
    assert "[Python Style](memory/feedback_python_style.md)" in model.requests[0]["instructions"]


@pytest.mark.usefixtures("model")
async def test_an_archive():
    agent = (await _run(ARCHIVE))["agent"]
    await _ask(agent, "I like tea.")
    [day] = Path("workspace/users/default/conversations").glob("*.md")
    assert "> I like tea." in day.read_text()
    assert "> Noted." in day.read_text()


async def test_a_session(model):
    await _ask((await _run(SESSION))["agent"], "I like tea.")
    await _ask((await _run(SESSION))["agent"], "What do I like?")
    assert Path(".sessions/my-session-001.jsonl").exists()
    assert "I like tea." in str(model.requests[-1]["input"])


@pytest.mark.usefixtures("model")
async def test_a_layout():
    workspace = (await _run(LAYOUT))["workspace"]
    workspace.initialize()
    assert Path("workspace/users/default/AGENTS.md").exists()
