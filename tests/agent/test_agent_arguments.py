"""What the tools of every kind accept as arguments."""

from __future__ import annotations

import pytest
from pydantic_ai import Agent, ToolCallPart
from pydantic_ai.models.test import TestModel
from scripted import Script, returns

from memshelf import (
    FileMemoryCapability,
    FileMount,
    InProcessFileStore,
    RecordMemoryCapability,
    RecordMount,
    Workspace,
    WorkspaceCapability,
)
from memshelf.records.backends.in_process import InProcessRecordStore

REQUIRED = {"memory": "m", "path": "AGENTS.md", "pattern": "a", "query": "a"}


def _capability(kind, place):
    if kind == "file":
        return FileMemoryCapability([FileMount("m", InProcessFileStore(), "read")])
    if kind == "record":
        return RecordMemoryCapability([RecordMount("m", InProcessRecordStore(embedder=None), "read")])
    return WorkspaceCapability(Workspace(place), cwd=None)


async def _optional(capability):
    """Each tool with its parameters that may be left out."""
    model = TestModel(call_tools=[])
    await Agent(model, capabilities=[capability]).run("hi")
    schemas = {tool.name: tool.parameters_json_schema for tool in model.last_model_request_parameters.function_tools}
    optional = {name: set(schema["properties"]) - set(schema["required"]) for name, schema in schemas.items()}
    return {name: (schemas[name]["required"], names) for name, names in optional.items() if names}


@pytest.mark.parametrize(("kind", "tools"), [("file", 2), ("record", 2), ("workspace", 2)])
async def test_null_counts_as_left_out_wherever_an_argument_may_be_left_out(kind, tools, tmp_path):
    capability = _capability(kind, tmp_path)
    optional = await _optional(capability)
    assert len(optional) == tools
    calls = []
    for name, (required, left_out) in optional.items():
        given = {each: REQUIRED[each] for each in required}
        calls += [ToolCallPart(name, given), ToolCallPart(name, {**given, **dict.fromkeys(left_out)})]
    script = Script(calls, "done")
    result = await Agent(script.model, capabilities=[capability], retries=0).run("hi")
    answers = [part.content for part in returns(result.all_messages())]
    assert answers[::2] == answers[1::2]
    assert len(answers) == 2 * tools
