"""A server on the standard streams of this process, which a client has started."""

from __future__ import annotations

import json
from collections.abc import AsyncIterable
from typing import Any

from anyio import create_memory_object_stream, create_task_group
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError
from pydantic import ValidationError

from memshelf.untrusted import is_sound

__all__ = ["serve"]

_Read = SessionMessage | Exception


async def serve(server: Server[Any]) -> None:
    """Answer until the client hangs up."""
    async with stdio_server() as (read, write), create_task_group() as tasks:
        sender, receiver = create_memory_object_stream[_Read]()
        tasks.start_soon(_relay, read, sender, write)
        await server.run(receiver, write, server.create_initialization_options())
        tasks.cancel_scope.cancel()


async def _relay(
    read: AsyncIterable[_Read], sender: MemoryObjectSendStream[_Read], write: Any
) -> None:  # Any: SDK's own
    """Refuse what the SDK drops without a word, which would leave the client waiting for an answer."""
    async with sender:
        async for item in read:
            if isinstance(item, ValidationError) and (refusal := _refusal(item)) is not None:
                await write.send(SessionMessage(refusal))
            else:
                await sender.send(item)


def _refusal(unread: ValidationError) -> JSONRPCError | None:
    """The answer to a request that is none, if it has an id. JSON may well hold half of an emoji that was cut in two,
    which the SDK does not read."""
    for each in unread.errors(include_url=False):
        request = _loaded(each["input"]) if each["type"] == "json_invalid" else each["input"]
        if not isinstance(request, dict) or "method" not in request:
            continue
        id_ = request.get("id")
        if type(id_) is int or (isinstance(id_, str) and is_sound(id_)):
            said = f"This is no valid request, and was not carried out. {each['msg']}. An emoji cut in two is no text."
            return JSONRPCError(jsonrpc="2.0", id=id_, error=ErrorData(code=INVALID_REQUEST, message=said))
    return None


def _loaded(line: str) -> object:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
