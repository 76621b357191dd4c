"""The tools of memories, bound to Pydantic AI."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Any, TypeAlias, TypeVar

from pydantic import BeforeValidator
from pydantic_ai import FunctionToolset, ModelResponse, RunContext, Tool, ToolDefinition, ToolFailed
from pydantic_core import PydanticUseDefault

from memshelf.agent.permissions import TOOL_ID
from memshelf.errors import MemoryStoreError
from memshelf.mounted import Json, MemoryTool
from memshelf.origin import Origin

__all__ = ["NULL_IS_DEFAULT", "Parameters", "answered", "described", "made_by", "toolset"]

Key = TypeVar("Key", bound=str)


def _given(value: object) -> object:
    if value is None:
        raise PydanticUseDefault
    return value


NULL_IS_DEFAULT = BeforeValidator(_given)
"""For every argument with a default: some models fill in null for what they leave out."""

Parameters: TypeAlias = Mapping[Key, Mapping[str, str]]
"""What each parameter of each tool means."""


def toolset(
    calls: object, tools: Mapping[MemoryTool[Key], Sequence[str]], parameters: Parameters[Key], *, id: str
) -> FunctionToolset[object] | None:
    """The tools on offer, each a method of `calls` of its key; `None` if there are none. Its runs may share it."""
    bound = [_tool(getattr(calls, tool.key), tool, names, parameters[tool.key]) for tool, names in tools.items()]
    return FunctionToolset(bound, id=id) if bound else None


async def answered(call: Awaitable[Json], failure: Callable[[MemoryStoreError], Json]) -> Json:
    """What a call answers. A refusal is an answer too: it neither ends the run nor counts as a malformed call."""
    try:
        return await call
    except MemoryStoreError as error:
        raise ToolFailed(json.dumps(failure(error), ensure_ascii=False, separators=(",", ":"))) from error


def made_by(ctx: RunContext[object], origin: Origin) -> Origin:
    """The origin of a change that the model's call makes."""
    run_id = ctx.run_id if origin.run_id is None else origin.run_id
    return replace(origin, run_id=run_id, tool_call_id=_call_id(ctx))


def _call_id(ctx: RunContext[object]) -> str | None:
    """The call's ID, unlike that of any other call of the thread: some providers count anew in each response, and a
    store with history would take a second `call_0` for the first one made again."""
    responses = (message for message in ctx.messages if isinstance(message, ModelResponse))
    named = sum(any(call.tool_call_id == ctx.tool_call_id for call in each.tool_calls) for each in responses)
    return ctx.tool_call_id if named <= 1 else f"{ctx.tool_call_id}#{named}"


def _tool(
    call: Callable[..., Any],  # Any: each tool has its own parameters
    tool: MemoryTool[Key],
    memories: Sequence[str],
    parameters: Mapping[str, str],
) -> Tool[object]:
    bound: Tool[object] = Tool(
        call,
        name=tool.name,
        description=tool.description,
        metadata={TOOL_ID: tool.id},
        # The calls of one response run in parallel, but its changes in the order that the model wrote them.
        sequential=tool.access == "write",
    )
    return described(bound, parameters, memories)


def described(tool: Tool[object], parameters: Mapping[str, str], memories: Sequence[str] = ()) -> Tool[object]:
    """The tool, with what its parameters mean, and the memories that it reaches."""
    schema = deepcopy(tool.function_schema.json_schema)
    for name, meaning in parameters.items():
        schema["properties"][name]["description"] = meaning
    if memories:  # shown, not validated: a memory that is not there is answered by the tool, with those that are
        schema["properties"]["memory"]["enum"] = list(memories)

    def prepared(_: RunContext[object], definition: ToolDefinition) -> ToolDefinition:
        return replace(definition, parameters_json_schema=schema)

    tool.prepare = prepared
    return tool
