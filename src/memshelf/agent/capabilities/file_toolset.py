"""The file tools, bound to Pydantic AI."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Annotated

from pydantic import Field
from pydantic_ai import FunctionToolset, ModelResponse, RunContext, Tool, ToolDefinition, ToolFailed

from memshelf.agent.permissions import TOOL_ID
from memshelf.errors import MemoryStoreError
from memshelf.files.instructions import FILE_PARAMETERS
from memshelf.files.mount import FileMount
from memshelf.files.tools import FileTool, FileTools, Json, failure
from memshelf.limits import FileMemoryLimits
from memshelf.origin import Origin

__all__ = ["file_toolset", "offered"]


def offered(mounts: Sequence[FileMount], tools: Sequence[FileTool]) -> dict[FileTool, list[str]]:
    """Each tool that some mount's access allows, with the names of those mounts."""
    names = {tool: [mount.name for mount in mounts if tool.access in ("read", mount.access)] for tool in tools}
    return {tool: allowed for tool, allowed in names.items() if allowed}


def file_toolset(
    mounts: Sequence[FileMount], tools: Mapping[FileTool, Sequence[str]], limits: FileMemoryLimits, origin: Origin
) -> FunctionToolset[object]:
    """The tools on offer. The toolset keeps no state, so that runs may share it."""
    calls = _Calls(FileTools(mounts, limits), limits, origin)
    return FunctionToolset([_tool(calls, tool, names) for tool, names in tools.items()], id="memshelf-files")


class _Calls:
    """What the model's calls do. The signatures are what arguments are checked against."""

    def __init__(self, tools: FileTools, limits: FileMemoryLimits, origin: Origin) -> None:
        self._tools = tools
        self._format = limits.format
        self._origin = origin

    async def view(self, memory: str, path: str = "") -> Json:
        return await self._answer(self._tools.view(memory, path))

    async def grep(
        self,
        memory: str,
        pattern: str,
        path: str = "",
        regex: bool = False,
        case_sensitive: bool = False,
        limit: Annotated[int, Field(ge=1, le=200)] = 50,
    ) -> Json:
        return await self._answer(
            self._tools.grep(memory, pattern, path, regex=regex, case_sensitive=case_sensitive, limit=limit)
        )

    async def create(self, ctx: RunContext[object], memory: str, path: str, content: str) -> Json:
        return await self._answer(self._tools.create(memory, path, content, origin=self._made_by(ctx)))

    async def edit(self, ctx: RunContext[object], memory: str, path: str, old_string: str, new_string: str) -> Json:
        return await self._answer(self._tools.edit(memory, path, old_string, new_string, origin=self._made_by(ctx)))

    async def append(self, ctx: RunContext[object], memory: str, path: str, content: str) -> Json:
        return await self._answer(self._tools.append(memory, path, content, origin=self._made_by(ctx)))

    async def move(self, ctx: RunContext[object], memory: str, source: str, destination: str) -> Json:
        return await self._answer(self._tools.move(memory, source, destination, origin=self._made_by(ctx)))

    async def delete(self, ctx: RunContext[object], memory: str, path: str, version: str) -> Json:
        return await self._answer(self._tools.delete(memory, path, version, origin=self._made_by(ctx)))

    def _made_by(self, ctx: RunContext[object]) -> Origin:
        run_id = ctx.run_id if self._origin.run_id is None else self._origin.run_id
        return replace(self._origin, run_id=run_id, tool_call_id=_call_id(ctx))

    async def _answer(self, call: Awaitable[Json]) -> Json:
        try:
            return await call
        except MemoryStoreError as error:
            # A refusal is an answer: it neither ends the run nor counts as a malformed call.
            shown = failure(error, self._format)
            raise ToolFailed(json.dumps(shown, ensure_ascii=False, separators=(",", ":"))) from error


def _call_id(ctx: RunContext[object]) -> str | None:
    """The call's ID, unlike that of any other call of the thread: some providers count anew in each response, and a
    store with history would take a second `call_0` for the first one made again."""
    responses = (message for message in ctx.messages if isinstance(message, ModelResponse))
    named = sum(any(call.tool_call_id == ctx.tool_call_id for call in each.tool_calls) for each in responses)
    return ctx.tool_call_id if named <= 1 else f"{ctx.tool_call_id}#{named}"


def _tool(calls: _Calls, tool: FileTool, memories: Sequence[str]) -> Tool[object]:
    bound: Tool[object] = Tool(
        getattr(calls, tool.key),
        name=tool.name,
        description=tool.description,
        metadata={TOOL_ID: tool.id},
        # The calls of one response run in parallel, but its changes in the order that the model wrote them.
        sequential=tool.access == "write",
    )
    schema = deepcopy(bound.function_schema.json_schema)
    for name, meaning in FILE_PARAMETERS[tool.key].items():
        schema["properties"][name]["description"] = meaning
    # Shown, not validated: a memory that is not there is answered by the tool, with those that are.
    schema["properties"]["memory"]["enum"] = list(memories)

    def described(_: RunContext[object], definition: ToolDefinition) -> ToolDefinition:
        return replace(definition, parameters_json_schema=schema)

    bound.prepare = described
    return bound
