"""Python without docstrings and assertions (`-OO`): a model reads the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

from memshelf import (
    FileMemoryCapability,
    FileMount,
    InProcessFileStore,
    InProcessRecordStore,
    RecordMemoryCapability,
    RecordMount,
    Workspace,
    WorkspaceCapability,
    WorkspaceMemoryConfig,
)


async def read_by_a_model() -> str:
    """The tools and instructions of a request."""
    seen: list[object] = []

    def answer(messages, info):
        tools = [(tool.name, tool.description, tool.parameters_json_schema) for tool in info.function_tools]
        seen.extend([tools, messages[0].instructions])
        return ModelResponse(parts=[TextPart("ok")])

    workspace = Workspace.on(lambda _: InProcessFileStore(), embedder=None)
    capabilities = [
        FileMemoryCapability([FileMount("files", InProcessFileStore(), "write")]),
        RecordMemoryCapability([RecordMount("records", InProcessRecordStore(embedder=None), "write")]),
        WorkspaceCapability(workspace, WorkspaceMemoryConfig(), cwd=None),
    ]
    await Agent(FunctionModel(answer), capabilities=capabilities).run("Hello")
    return ascii(seen)


async def test_a_model_reads_the_same_without_docstrings():
    code = "import asyncio; from test_agent_optimised import read_by_a_model; print(asyncio.run(read_by_a_model()))"
    ran = subprocess.run(
        [sys.executable, "-OO", "-c", code],
        cwd=Path(__file__).parent,
        check=True,
        capture_output=True,
        text=True,
        timeout=100,
    )
    read = await read_by_a_model()
    assert read.count("('memory_file_") == 7
    assert ran.stdout.strip() == read
