"""The tools of a workspace, bound to Pydantic AI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias

from pydantic import Field
from pydantic_ai import FunctionToolset, RunContext, Tool

from memshelf.agent.capabilities.toolset import NULL_IS_DEFAULT, answered, described, made_by
from memshelf.agent.permissions import TOOL_ID
from memshelf.mounted import Json
from memshelf.origin import Origin
from memshelf.workspace.entries import MemoryType
from memshelf.workspace.tools import MOST_ENTRIES, WORKSPACE_PARAMETERS, WORKSPACE_TOOLS, WorkspaceTools, failure
from memshelf.workspace.workspace import Workspace

__all__ = ["WorkspaceOf", "workspace_toolset"]

WorkspaceOf: TypeAlias = Callable[[RunContext[object]], Workspace]
"""The workspace of a run."""


def workspace_toolset(workspace_of: WorkspaceOf, origin: Origin) -> FunctionToolset[object]:
    """The tools, each on the workspace of the run that calls it; `origin` says whom changes are made for."""
    calls = _Calls(workspace_of, origin)
    tools: list[Tool[object]] = [
        described(
            Tool(
                getattr(calls, tool.key),
                name=tool.name,
                description=tool.description,
                metadata={TOOL_ID: tool.id},
                # The calls of one response run in parallel, but its changes in the order that the model wrote them.
                sequential=tool.writes,
            ),
            WORKSPACE_PARAMETERS[tool.key],
        )
        for tool in WORKSPACE_TOOLS.values()
    ]
    return FunctionToolset(tools, id="memshelf-workspace")


class _Calls:
    """What the model's calls do. The signatures are what arguments are checked against."""

    def __init__(self, workspace_of: WorkspaceOf, origin: Origin) -> None:
        self._workspace_of = workspace_of
        self._origin = origin

    async def save(
        self, ctx: RunContext[object], title: str, content: str, memory_type: MemoryType, description: str
    ) -> Json:
        origin = made_by(ctx, self._origin)
        return await answered(self._tools(ctx).save(title, content, memory_type, description, origin=origin), failure)

    async def search(
        self,
        ctx: RunContext[object],
        query: str,
        limit: Annotated[int, Field(ge=1, le=MOST_ENTRIES), NULL_IS_DEFAULT] = 5,
    ) -> Json:
        return await answered(self._tools(ctx).search(query, limit), failure)

    async def forget(self, ctx: RunContext[object], file: str) -> Json:
        return await answered(self._tools(ctx).forget(file, origin=made_by(ctx, self._origin)), failure)

    async def read(
        self, ctx: RunContext[object], path: str, offset: Annotated[int, Field(ge=0), NULL_IS_DEFAULT] = 0
    ) -> Json:
        return await answered(self._tools(ctx).read(path, offset), failure)

    async def rules(self, ctx: RunContext[object], old_string: str, new_string: str) -> Json:
        origin = made_by(ctx, self._origin)
        return await answered(self._tools(ctx).rules(old_string, new_string, origin=origin), failure)

    def _tools(self, ctx: RunContext[object]) -> WorkspaceTools:
        return WorkspaceTools(self._workspace_of(ctx))
