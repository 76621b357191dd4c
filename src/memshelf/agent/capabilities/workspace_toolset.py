"""The tools of a workspace, bound to Pydantic AI."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias

from pydantic import Field
from pydantic_ai import FunctionToolset, RunContext, Tool

from memshelf.agent.capabilities.toolset import answered, made_by
from memshelf.agent.permissions import TOOL_ID
from memshelf.mounted import Json
from memshelf.origin import Origin
from memshelf.workspace.entries import MemoryType
from memshelf.workspace.tools import WORKSPACE_TOOLS, WorkspaceTools, failure
from memshelf.workspace.workspace import Workspace

__all__ = ["WorkspaceOf", "workspace_toolset"]

_Title = Annotated[str, Field(description="What the entry is called, in at most 200 characters.")]
_Content = Annotated[str, Field(description="The fact, in Markdown.")]
_Type = Annotated[MemoryType, Field(description="What kind of fact it is.")]
_Description = Annotated[
    str, Field(description="The words by which somebody would look for it, in at most 200 characters.")
]
_Query = Annotated[str, Field(description="What the entries are to be about.")]
_Limit = Annotated[int, Field(ge=1, le=20, description="How many entries at most.")]
_File = Annotated[str, Field(description="The file of the entry, such as user_role.md.")]
_Path = Annotated[str, Field(description="The path of the file in the workspace, such as AGENTS.md.")]
_Offset = Annotated[int, Field(ge=0, description="From which character on; next_offset of the part before.")]
_Old = Annotated[str, Field(description="The text to replace, which occurs once; empty to add a line at the end.")]
_New = Annotated[str, Field(description="What stands there instead; empty to remove the text.")]


WorkspaceOf: TypeAlias = Callable[[RunContext[object]], Workspace]
"""The workspace of a run."""


def workspace_toolset(workspace_of: WorkspaceOf, origin: Origin) -> FunctionToolset[object]:
    """The tools, each on the workspace of the run that calls it; `origin` says whom changes are made for."""
    calls = _Calls(workspace_of, origin)
    tools: list[Tool[object]] = [
        Tool(
            getattr(calls, tool.key),
            name=tool.name,
            description=tool.description,
            metadata={TOOL_ID: tool.id},
            # The calls of one response run in parallel, but its changes in the order that the model wrote them.
            sequential=tool.writes,
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
        self, ctx: RunContext[object], title: _Title, content: _Content, memory_type: _Type, description: _Description
    ) -> Json:
        origin = made_by(ctx, self._origin)
        return await answered(self._tools(ctx).save(title, content, memory_type, description, origin=origin), failure)

    async def search(self, ctx: RunContext[object], query: _Query, limit: _Limit = 5) -> Json:
        return await answered(self._tools(ctx).search(query, limit), failure)

    async def forget(self, ctx: RunContext[object], file: _File) -> Json:
        return await answered(self._tools(ctx).forget(file, origin=made_by(ctx, self._origin)), failure)

    async def read(self, ctx: RunContext[object], path: _Path, offset: _Offset = 0) -> Json:
        return await answered(self._tools(ctx).read(path, offset), failure)

    async def rules(self, ctx: RunContext[object], old_string: _Old, new_string: _New) -> Json:
        origin = made_by(ctx, self._origin)
        return await answered(self._tools(ctx).rules(old_string, new_string, origin=origin), failure)

    def _tools(self, ctx: RunContext[object]) -> WorkspaceTools:
        return WorkspaceTools(self._workspace_of(ctx))
