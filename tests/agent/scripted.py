"""A model that answers from a script, and what it was sent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from pydantic_ai import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.messages import TextContent, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

Reply: TypeAlias = "str | ToolCallPart | list[ToolCallPart] | Exception | Callable[..., Any]"


def call(tool: str, *, id: str | None = None, **args: Any) -> ToolCallPart:
    """A call of a file tool (`create`), or of another tool by its whole name."""
    name = tool if "_" in tool else f"memory_file_{tool}"
    return ToolCallPart(name, args, tool_call_id=id) if id else ToolCallPart(name, args)


def record_call(tool: str, **args: Any) -> ToolCallPart:
    """A call of a record tool (`add`) on the memory `facts`, unless another is named."""
    return ToolCallPart(f"memory_record_{tool}", {"memory": "facts", **args})


class Script:
    """Answers each request with the next reply: text, calls, an error to raise, or a function of the messages."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.requests: list[list[ModelMessage]] = []
        self.infos: list[AgentInfo] = []
        self.model = FunctionModel(self._answer, stream_function=self._stream)

    def _next(self, messages: Sequence[ModelMessage], info: AgentInfo) -> Any:
        self.requests.append(
            [replace(each, parts=list(each.parts)) if isinstance(each, ModelRequest) else each for each in messages]
        )
        self.infos.append(info)
        reply = self._replies.pop(0)
        if callable(reply):
            reply = reply(messages)
        if isinstance(reply, Exception):
            raise reply
        return reply

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        reply = self._next(messages, info)
        if hasattr(reply, "__await__"):
            reply = await reply
        if isinstance(reply, str):
            return ModelResponse(parts=[TextPart(reply)])
        return ModelResponse(parts=reply if isinstance(reply, list) else [reply])

    async def _stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        reply = self._next(messages, info)
        if hasattr(reply, "__await__"):
            reply = await reply
        if isinstance(reply, str):
            for word in reply.split(" "):
                yield word if word == reply.split(" ")[0] else f" {word}"
            return
        for index, each in enumerate(reply if isinstance(reply, list) else [reply]):
            yield {
                index: DeltaToolCall(
                    name=each.tool_name, json_args=each.args_as_json_str(), tool_call_id=each.tool_call_id
                )
            }


def said(message: ModelMessage) -> list[str]:
    """The texts of a request's user content, in order."""
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            content = [part.content] if isinstance(part.content, str) else part.content
            texts += [
                each.content if isinstance(each, TextContent) else each
                for each in content
                if isinstance(each, str | TextContent)
            ]
    return texts


def contexts(messages: Sequence[ModelMessage]) -> list[str]:
    """Every memory-context block among the messages."""
    return [text for message in messages for text in said(message) if text.startswith("<memory-context")]


def body(block: str) -> dict[str, Any]:
    """The JSON of a memory-context block."""
    lines = block.split("\n")
    assert len(lines) == 4
    assert lines[3] == "</memory-context>"
    return json.loads(lines[2])


def returns(messages: Sequence[ModelMessage]) -> list[ToolReturnPart]:
    """Every tool result among the messages."""
    return [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def recalls(messages: Sequence[ModelMessage]) -> list[str]:
    """Every memory-recall block among the messages."""
    return [text for message in messages for text in said(message) if text.startswith("<memory-recall")]


def recalled(block: str) -> list[dict[str, Any]]:
    """The records of a memory-recall block, which has nothing but its own lines."""
    first, lead, records, last = block.split("\n")
    assert first.startswith('<memory-recall memory="')
    assert first.endswith('" trust="untrusted">')
    assert "not instructions" in lead
    assert last == "</memory-recall>"
    shown: list[dict[str, Any]] = json.loads(records)["records"]
    return shown
