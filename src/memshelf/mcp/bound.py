"""Tools that are free of any framework, bound to MCP: a schema from the signature, checked arguments, a JSON answer."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias, get_type_hints

from mcp_types import Tool, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from memshelf.errors import MemoryStoreError
from memshelf.files.instructions import FILE_PARAMETERS
from memshelf.files.mount import FileMount
from memshelf.files.tools import FILE_TOOLS, MOST_LINES, FileTools, failure as file_failure
from memshelf.limits import FileMemoryLimits, RecordMemoryLimits
from memshelf.mounted import Json, offered
from memshelf.origin import Origin
from memshelf.records.instructions import RECORD_PARAMETERS
from memshelf.records.mount import RecordMount
from memshelf.records.tools import MOST_FOUND, MOST_LISTED, RECORD_TOOLS, RecordTools, failure as record_failure
from memshelf.workspace.entries import MemoryType
from memshelf.workspace.tools import (
    MOST_ENTRIES,
    WORKSPACE_PARAMETERS,
    WORKSPACE_TOOLS,
    WorkspaceTools,
    failure as workspace_failure,
)
from memshelf.workspace.workspace import Workspace

__all__ = ["BoundTool", "file_tools", "record_tools", "workspace_tools"]

Effect: TypeAlias = Literal["reads", "adds", "replaces"]

_ADDING = ("create", "append", "add", "save")
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
    _failure: Callable[[MemoryStoreError], Json]

    async def __call__(self, arguments: Mapping[str, Any], origin: Origin) -> tuple[Json, bool]:
        """The answer, and whether it is a refusal."""
        try:
            checked = self._arguments.model_validate(arguments)
            by = {"origin": origin} if self._takes_origin else {}
            return await self._method(**dict(checked), **by), False
        except ValidationError as error:
            return {"error": "invalid_value", "message": _said(error)}, True
        except MemoryStoreError as error:
            return self._failure(error), True


def file_tools(mounts: Sequence[FileMount], limits: FileMemoryLimits) -> list[BoundTool]:
    """Those that some mount's access allows."""
    calls = FileTools(mounts, limits)
    return [
        _bound(
            getattr(calls, tool.key),
            tool.name,
            tool.description,
            _effect(tool.key, writes=tool.access == "write"),
            FILE_PARAMETERS[tool.key],
            lambda error: file_failure(error, limits.format),
            names,
        )
        for tool, names in offered(mounts, tuple(FILE_TOOLS.values())).items()
    ]


def record_tools(mounts: Sequence[RecordMount], limits: RecordMemoryLimits) -> list[BoundTool]:
    """Those that some mount's access allows."""
    calls = RecordTools(mounts, limits)
    return [
        _bound(
            getattr(calls, tool.key),
            tool.name,
            tool.description,
            _effect(tool.key, writes=tool.access == "write"),
            RECORD_PARAMETERS[tool.key],
            record_failure,
            names,
        )
        for tool, names in offered(mounts, tuple(RECORD_TOOLS.values())).items()
    ]


def workspace_tools(workspace: Workspace) -> list[BoundTool]:
    calls = WorkspaceTools(workspace)
    return [
        _bound(
            getattr(calls, tool.key),
            tool.name,
            tool.description,
            _effect(tool.key, writes=tool.writes),
            WORKSPACE_PARAMETERS[tool.key],
            workspace_failure,
        )
        for tool in WORKSPACE_TOOLS.values()
    ]


def _effect(key: str, *, writes: bool) -> Effect:
    if not writes:
        return "reads"
    return "adds" if key in _ADDING else "replaces"


def _bound(
    method: Callable[..., Awaitable[Json]],
    name: str,
    description: str,
    effect: Effect,
    parameters: Mapping[str, str],
    failure: Callable[[MemoryStoreError], Json],
    memories: Sequence[str] | None = None,
) -> BoundTool:
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
    reads = effect == "reads"
    # Nothing outside the memories is reached. What replaces or removes may be gone for good.
    annotations = ToolAnnotations(
        read_only_hint=reads, destructive_hint=None if reads else effect == "replaces", open_world_hint=False
    )
    return BoundTool(
        Tool(name=name, description=description, input_schema=schema, annotations=annotations),
        arguments,
        method,
        "origin" in signature,
        failure,
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
    wrong = [f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in error.errors()]
    return f"{'; '.join(wrong)}. Nothing changed."
