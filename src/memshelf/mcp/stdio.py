"""A server on the standard streams of this process, which a client has started."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterable
from contextlib import suppress
from typing import Any, Self

from anyio import create_memory_object_stream, create_task_group
from anyio.streams.memory import MemoryObjectSendStream
from mcp.server import Server
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp_types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)
from pydantic import ValidationError

from memshelf.untrusted import is_sound

__all__ = ["serve"]

_Read = SessionMessage | Exception

_SECONDS = 10


async def serve(server: Server[Any]) -> None:
    """Answer until the client hangs up, and then what it had asked before: the SDK would drop that, half done."""
    async with stdio_server() as (read, write), create_task_group() as tasks:
        sender, receiver = create_memory_object_stream[_Read]()
        answers = _Answers(write)
        tasks.start_soon(_relay, read, sender, answers)
        await server.run(receiver, answers, server.create_initialization_options())
        tasks.cancel_scope.cancel()


class _Answers:
    """The stream of what is written, which knows what is still to be answered."""

    def __init__(self, write: Any) -> None:  # Any: a stream of the SDK's own
        self._write = write
        self._asked: set[int | str] = set()
        self._changed = asyncio.Condition()

    def expect(self, message: object) -> None:
        if isinstance(message, JSONRPCRequest):
            self._asked.add(message.id)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._asked.discard((message.params or {}).get("requestId", ""))

    async def all(self) -> None:
        """Wait until nothing is left to be answered, as long as somebody may be expected to wait for it."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS), self._changed:
                await self._changed.wait_for(lambda: not self._asked)

    async def send(self, item: SessionMessage) -> None:
        await self._write.send(item)
        if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id is not None:
            self._asked.discard(item.message.id)
            async with self._changed:
                self._changed.notify_all()

    async def aclose(self) -> None:
        await self._write.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def _relay(read: AsyncIterable[_Read], sender: MemoryObjectSendStream[_Read], answers: _Answers) -> None:
    """Refuse what the SDK drops without a word, which would leave the client waiting for an answer."""
    async with sender:
        async for item in read:
            if isinstance(item, ValidationError) and (refusal := _refusal(item)) is not None:
                await answers.send(SessionMessage(refusal))
            else:
                answers.expect(item.message if isinstance(item, SessionMessage) else None)
                await sender.send(item)
        await answers.all()


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
