"""Tools that are free of any framework, bound to MCP: a schema from the signature, checked arguments, a JSON answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, get_type_hints

from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from memshelf.errors import MemoryStoreError
from memshelf.files.instructions import FILE_PARAMETERS
from memshelf.files.mount import FileMount
from memshelf.files.tools import FILE_TOOLS, MOST_LINES, FileTools, failure as file_failure
from memshelf.limits import FileMemoryLimits, RecordMemoryLimits
from memshelf.mounted import Json, MemoryTool, Mount, offered
from memshelf.origin import Origin
from memshelf.records.instructions import RECORD_PARAMETERS
from memshelf.records.mount import RecordMount
from memshelf.records.tools import MOST_FOUND, MOST_LISTED, RECORD_TOOLS, RecordTools, failure as record_failure
from memshelf.workspace.entries import MemoryType
from memshelf.workspace.tools import (
    MOST_ENTRIES,
    WORKSPACE_PARAMETERS,
    WORKSPACE_TOOLS,
    WorkspaceTool,
    WorkspaceTools,
    failure as workspace_failure,
)

if TYPE_CHECKING:
    from memshelf.workspace.workspace import Workspace

__all__ = ["BoundTool", "file_tools", "record_tools", "shown_tool", "workspace_tools"]

Failure: TypeAlias = Callable[[MemoryStoreError], Json]

_ADDING = ("create", "append", "add", "save")
_ONCE = ("create", "move", "update", "delete", "save", "forget")
"""What changes nothing more when it is done again."""
_UNASKED: Mapping[str, str] = {
    "memory_file_create": " Do so without being asked for what will matter in later conversations.",
    "memory_record_add": " Do so without being asked for what will matter in later conversations, after a search: "
    "update a record that holds it already.",
    "save_memory": " Do so without being asked for what will matter in them.",
}
"""For the models of clients that do not show them the server's instructions."""
_MOST_NAMED, _NAME_CHARS = 5, 60
_RESULT_CHARS = 150_000
"""More than a tool answers within the default limits."""
_BOUNDS: Mapping[tuple[str, str], tuple[int, int | None]] = {
    ("memory_file_grep", "limit"): (1, MOST_LINES),
    ("memory_record_search", "limit"): (1, MOST_FOUND),
    ("memory_record_list", "limit"): (1, MOST_LISTED),
    (WORKSPACE_TOOLS["search"].name, "limit"): (1, MOST_ENTRIES),
    (WORKSPACE_TOOLS["read"].name, "offset"): (0, None),
}


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A tool as a client sees it, and its call."""

    shown: Tool
    _arguments: type[BaseModel]
    _method: Callable[..., Awaitable[Json]]
    _takes_origin: bool
    _failure: Failure

    async def __call__(self, arguments: Mapping[str, Any], origin: Origin) -> tuple[Json, bool]:
        """The answer, and whether it is a refusal. Some models fill in null for what they leave out, and some clients
        add what is their own, such as the id of a call: that is no reason to refuse, but it is told."""
        known = self._arguments.model_fields
        given = {name: value for name, value in arguments.items() if name in known and value is not None}
        answer, wrong = await self._answer(given, origin)
        if ignored := [name for name in arguments if name not in known]:
            more = [f"{len(ignored) - _MOST_NAMED} more"] if len(ignored) > _MOST_NAMED else []
            answer = {**answer, "ignored": [*(name[:_NAME_CHARS] for name in ignored[:_MOST_NAMED]), *more]}
        return answer, wrong

    async def _answer(self, given: Mapping[str, Any], origin: Origin) -> tuple[Json, bool]:
        try:
            checked = self._arguments.model_validate(given)
            by = {"origin": origin} if self._takes_origin else {}
            return await self._method(**dict(checked), **by), False
        except ValidationError as error:
            return {"error": "invalid_value", "message": _said(error)}, True
        except MemoryStoreError as error:
            return self._failure(error), True


def file_tools(mounts: Sequence[FileMount], limits: FileMemoryLimits) -> list[BoundTool]:
    """Those that some mount's access allows."""

    def failure(error: MemoryStoreError) -> Json:
        return file_failure(error, limits.format)

    return _offered(FileTools(mounts, limits), mounts, FILE_TOOLS.values(), FILE_PARAMETERS, failure)


def record_tools(mounts: Sequence[RecordMount], limits: RecordMemoryLimits) -> list[BoundTool]:
    """Those that some mount's access allows."""
    return _offered(RecordTools(mounts, limits), mounts, RECORD_TOOLS.values(), RECORD_PARAMETERS, record_failure)


def workspace_tools(workspace: Workspace) -> list[BoundTool]:
    calls = WorkspaceTools(workspace)
    return [
        _bound(calls, tool, WORKSPACE_PARAMETERS[tool.key], workspace_failure, writes=tool.writes)
        for tool in WORKSPACE_TOOLS.values()
    ]


def _offered(
    calls: object,
    mounts: Sequence[Mount],
    tools: Collection[MemoryTool[Any]],  # Any: the keys of one kind of memory
    parameters: Mapping[Any, Mapping[str, str]],
    failure: Failure,
) -> list[BoundTool]:
    return [
        _bound(calls, tool, parameters[tool.key], failure, writes=tool.access == "write", memories=names)
        for tool, names in offered(mounts, tuple(tools)).items()
    ]


def _bound(
    calls: object,
    tool: MemoryTool[Any] | WorkspaceTool,
    parameters: Mapping[str, str],
    failure: Failure,
    *,
    writes: bool,
    memories: Sequence[str] | None = None,
) -> BoundTool:
    method, name = getattr(calls, tool.key), tool.name
    kinds = get_type_hints(method, localns={"MemoryType": MemoryType})
    signature = inspect.signature(method).parameters
    fields: dict[str, Any] = {
        each.name: (_annotated(kinds[each.name], name, each.name, parameters), _default(each))
        for each in signature.values()
        if each.name != "origin"
    }
    arguments = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
    schema = _untitled(arguments.model_json_schema())
    if memories is not None:
        # Shown, not validated: a memory that is not there is answered by the tool, with those that are.
        schema["properties"]["memory"]["enum"] = list(memories)
    # Nothing outside the memories is reached. What replaces or removes may be gone for good.
    annotations = ToolAnnotations(
        read_only_hint=not writes,
        destructive_hint=writes and tool.key not in _ADDING,
        idempotent_hint=not writes or tool.key in _ONCE,
        open_world_hint=False,
    )
    description = f"{tool.description}{_UNASKED.get(name, '')}"
    shown = shown_tool(name, description, schema, annotations, always=name in _UNASKED)
    return BoundTool(shown, arguments, method, "origin" in signature, failure)


def shown_tool(name: str, description: str, schema: Json, annotations: ToolAnnotations, *, always: bool) -> Tool:
    """A tool in a list. `always` if a model is to know it from the beginning, also where others are searched for."""
    meta: Json = {"anthropic/maxResultSizeChars": _RESULT_CHARS}  # Claude Code shows only the beginning of longer ones
    if always:
        meta["anthropic/alwaysLoad"] = True
    title = name.replace("_", " ").capitalize()
    return Tool(
        name=name, title=title, description=description, input_schema=schema, annotations=annotations, _meta=meta
    )


def _annotated(kind: Any, tool: str, name: str, parameters: Mapping[str, str]) -> Any:  # Any: types as values
    least, most = _BOUNDS.get((tool, name), (None, None))
    return Annotated[kind, Field(description=parameters[name], ge=least, le=most)]


def _default(parameter: inspect.Parameter) -> object:
    return ... if parameter.default is inspect.Parameter.empty else parameter.default


def _untitled(schema: Json) -> Json:
    """Without the titles that only repeat the names."""
    schema.pop("title", None)
    for each in schema.get("properties", {}).values():
        each.pop("title", None)
    return schema


def _said(error: ValidationError) -> str:
    wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors(include_url=False)]
    return f"{'; '.join(wrong)}. Nothing changed."
