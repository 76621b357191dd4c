"""The server: what clients list, call and read, answered from mounted memories."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias
from uuid import uuid4

from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    Prompt,
    PromptArgument,
    PromptMessage,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplateReference,
    TextContent,
    ToolAnnotations,
)

import memshelf
from memshelf.arguments import checked_argument
from memshelf.files.mount import FileMount
from memshelf.limits import FileMemoryLimits, RecordMemoryLimits
from memshelf.mcp.bound import BoundTool, file_tools, record_tools, shown_tool, workspace_tools
from memshelf.mcp.context import context
from memshelf.mcp.instructions import instructions
from memshelf.mcp.resources import FileResources
from memshelf.mounted import distinct
from memshelf.origin import Origin
from memshelf.records.mount import RecordMount
from memshelf.untrusted import is_sound, sound

if TYPE_CHECKING:
    from memshelf.workspace.workspace import Workspace

__all__ = ["mcp_server"]

_Asked: TypeAlias = ServerRequestContext[Any, Any]

_CONTEXT = "memory_context"
_ABOUT = "What the conversation is about: the user's first message, or the task."
_SHOWN = shown_tool(
    _CONTEXT,
    "Show what the memories hold: an index of their files, standing rules, and what is known about the subject at "
    "hand. Call it at the beginning of every conversation, before you answer, and when the subject changes.",
    {
        "type": "object",
        "properties": {"about": {"type": "string", "description": _ABOUT}},
        "required": ["about"],
        "additionalProperties": False,
    },
    ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False),
    always=True,
)
_PROMPT = Prompt(
    name=_CONTEXT,
    title="What the memories hold",
    description="Put what the memories hold into the conversation.",
    arguments=[PromptArgument(name="about", description=_ABOUT, required=False)],
)
_NAME_CHARS = 60
_FILE_LIMITS = FileMemoryLimits(write_retries=20)  # each client has a server, and they write at the same time
_WORKSPACE = "."  # as no mount is named

_log = logging.getLogger(__name__)


def mcp_server(
    files: Sequence[FileMount] = (),
    records: Sequence[RecordMount] = (),
    workspace: Workspace | None = None,
    *,
    file_limits: FileMemoryLimits | None = None,
    record_limits: RecordMemoryLimits | None = None,
    origin: Origin | None = None,
) -> Server[Any]:
    """An MCP server for the mounted memories: `mcp.server.Server` of the official SDK, which has every transport.

    Clients get the tools that some mount's access allows, the tool and the prompt `memory_context` (what an agent is
    given at the start of a run), and the files as resources, `memshelf://NAME/PATH`. A refusal is a tool result with
    `is_error` and the JSON that the tools give everywhere: code, message, and the file as it is now. Changes of one
    memory are made one after the other, in the order in which their calls came.

    `origin` says whom changes are made for; its kind is always `agent`. Without a `run_id` of its own, a history tells
    which client wrote, by the name that it gave itself, and a number for this server. Stores are not closed by it.

    Without `file_limits`, a change of a file that others keep changing is tried up to 20 times more.

    No memory, or two of one name, is a `ValueError`, and what is no mount a `TypeError`.
    """
    if not files and not records and workspace is None:
        raise ValueError("There is no memory: give at least one mount, or a workspace.")
    if workspace is not None:
        from memshelf.workspace.workspace import Workspace  # it loads NumPy, which other memories do not need

        checked_argument("workspace", workspace, Workspace)
    served = _Served(
        distinct(files, FileMount, "mcp_server") if files else (),
        distinct(records, RecordMount, "mcp_server") if records else (),
        workspace,
        checked_argument("file_limits", file_limits, FileMemoryLimits, None) or _FILE_LIMITS,
        checked_argument("record_limits", record_limits, RecordMemoryLimits, None) or RecordMemoryLimits(),
        checked_argument("origin", origin, Origin, None) or Origin(),
    )
    return Server(
        "memshelf",
        version=memshelf.__version__,
        title="memshelf",
        description="Memory that outlives the conversation.",
        instructions=instructions(files, records, workspace=workspace is not None),
        on_list_tools=served.list_tools,
        on_call_tool=served.call_tool,
        on_list_resources=served.list_resources if files else None,
        on_list_resource_templates=served.list_templates if files else None,
        on_read_resource=served.read_resource if files else None,
        on_list_prompts=served.list_prompts,
        on_get_prompt=served.get_prompt,
        on_completion=served.complete if files else None,
    )


class _Served:
    def __init__(
        self,
        files: Sequence[FileMount],
        records: Sequence[RecordMount],
        workspace: Workspace | None,
        file_limits: FileMemoryLimits,
        record_limits: RecordMemoryLimits,
        origin: Origin,
    ) -> None:
        self._files, self._records, self._workspace = files, records, workspace
        if twice := [name for name, count in Counter(self._names()).items() if count > 1]:
            raise ValueError(f"Two mounts are named {twice[0]}; each needs a name of its own.")
        self._file_limits, self._record_limits = file_limits, record_limits
        self._origin = replace(origin, kind="agent")
        self._number = uuid4().hex[:8]
        self._resources = FileResources(files)
        bound = [*file_tools(files, file_limits), *record_tools(records, record_limits)]
        bound += workspace_tools(workspace) if workspace is not None else []
        self._tools: dict[str, BoundTool] = {each.shown.name: each for each in bound}
        self._turns = {name: asyncio.Lock() for name in (*self._names(), _WORKSPACE)}

    def _names(self) -> list[str]:
        return [*(mount.name for mount in self._files), *(mount.name for mount in self._records)]

    async def list_tools(self, _: _Asked, params: PaginatedRequestParams | None) -> ListToolsResult:
        del params  # they fit on one page
        return ListToolsResult(tools=[_SHOWN, *(each.shown for each in self._tools.values())])

    async def call_tool(self, asked: _Asked, params: CallToolRequestParams) -> CallToolResult:
        arguments = params.arguments or {}
        if params.name == _CONTEXT:
            about = arguments.get("about") or ""
            if not isinstance(about, str):
                return _result({"error": "invalid_value", "message": "The one argument is about, a text."}, wrong=True)
            return CallToolResult(content=[TextContent(text=await self._context(about))])
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(INVALID_PARAMS, f"There is no tool {params.name[:_NAME_CHARS]}.")
        try:
            async with self._turn(tool, arguments):
                answer, wrong = await tool(arguments, self._made_by(asked))
        except Exception as error:  # noqa: BLE001  # stores are anyone's code, and clients show little of a failed request
            _log.exception("The tool %s failed.", params.name)
            answer, wrong = {"error": "unavailable", "message": f"The memory failed: {type(error).__name__}."}, True
        return _result(answer, wrong=wrong)

    async def list_resources(self, _: _Asked, params: PaginatedRequestParams | None) -> ListResourcesResult:
        return await self._resources.page(params.cursor if params is not None else None)

    async def list_templates(self, _: _Asked, params: PaginatedRequestParams | None) -> ListResourceTemplatesResult:
        del params
        return ListResourceTemplatesResult(resource_templates=[*self._resources.templates])

    async def read_resource(self, _: _Asked, params: ReadResourceRequestParams) -> ReadResourceResult:
        return await self._resources.read(str(params.uri))

    async def list_prompts(self, _: _Asked, params: PaginatedRequestParams | None) -> ListPromptsResult:
        del params
        return ListPromptsResult(prompts=[_PROMPT])

    async def get_prompt(self, _: _Asked, params: GetPromptRequestParams) -> GetPromptResult:
        if params.name != _CONTEXT:
            raise MCPError(INVALID_PARAMS, f"There is no prompt {params.name[:_NAME_CHARS]}.")
        text = await self._context((params.arguments or {}).get("about", ""))
        return GetPromptResult(messages=[PromptMessage(role="user", content=TextContent(text=text))])

    async def complete(self, _: _Asked, params: CompleteRequestParams) -> CompleteResult:
        if not isinstance(params.ref, ResourceTemplateReference):
            return CompleteResult(completion=Completion(values=[]))
        chosen = (params.context.arguments if params.context is not None else None) or {}
        argument = params.argument
        return CompleteResult(
            completion=await self._resources.completed(argument.name, argument.value, chosen.get("memory"))
        )

    async def _context(self, about: str) -> str:
        limits = self._file_limits, self._record_limits
        return sound(await context(self._files, self._records, self._workspace, about, *limits))

    def _turn(self, tool: BoundTool, arguments: Mapping[str, Any]) -> AbstractAsyncContextManager[None]:
        if tool.shown.annotations is not None and tool.shown.annotations.read_only_hint:
            return nullcontext()
        memory = arguments.get("memory", _WORKSPACE)
        known = isinstance(memory, str) and memory in self._turns
        return self._turns[memory] if known else nullcontext()  # a memory that is not there is refused

    def _made_by(self, asked: _Asked) -> Origin:
        if self._origin.run_id is not None:
            return self._origin
        client = asked.session.client_params
        name = client.client_info.name if client is not None else "mcp"
        name = "".join(character for character in name if character.isprintable())[:_NAME_CHARS]
        return replace(self._origin, run_id=f"{name} {self._number}")


def _result(answer: dict[str, Any], *, wrong: bool) -> CallToolResult:
    text = json.dumps(answer, ensure_ascii=False, separators=(",", ":"))
    if not is_sound(text):  # a client's arguments and a store's texts may not be, and no message can carry that
        text = sound(text)
        answer = json.loads(text)
    return CallToolResult(content=[TextContent(text=text)], structured_content=answer, is_error=wrong)
