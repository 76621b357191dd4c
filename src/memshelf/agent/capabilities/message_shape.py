"""How Pydantic AI's messages are read by the rules of a thread."""

from __future__ import annotations

from dataclasses import replace

from pydantic_ai import (
    CachePoint,
    ModelMessage,
    ModelRequest,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.messages import BaseToolReturnPart, ModelRequestPart, RetryFeedbackPart

from memshelf.agent.capabilities.said import user_said
from memshelf.threads.shorten import shortened
from memshelf.threads.summary import Line
from memshelf.threads.tokens import TokenCounter, estimate_tokens

__all__ = ["ModelMessageShape", "shorten_results"]

_PART_TOKENS = 4
"""What a part takes besides its text: the role, the kind, an id."""

_MOST_BYTES = 4  # of a character

_FILE_TOKENS = 1_000
"""About what an image takes. How long a document or a recording is, only the provider knows."""


class ModelMessageShape:
    """`MessageShape` of Pydantic AI's messages. What memory said to a model is not what the user said."""

    def __init__(self, count: TokenCounter = estimate_tokens) -> None:
        self._count = count

    # Parts are told by their kinds where thousands of messages are looked at: `isinstance` costs several times as much.

    def starts_turn(self, message: ModelMessage) -> bool:
        if message.kind != "request":
            return False
        said = False
        for part in message.parts:
            if part.part_kind == "user-prompt":
                said = said or bool(user_said(part))
            elif part.part_kind == "tool-return":
                return False
        return said

    def starts_round(self, message: ModelMessage) -> bool:
        return message.kind == "response"

    def tokens(self, message: ModelMessage) -> int:
        total = 0
        for part in message.parts:
            total += _PART_TOKENS
            if isinstance(content := getattr(part, "content", None), str):  # most parts, so it is asked first
                total += self._count(content)
            elif part.part_kind == "tool-return" or part.part_kind == "builtin-tool-return":
                total += self._count(_result(part))
            elif part.part_kind == "tool-call":
                total += self._count(part.args_as_json_str()) + self._count(part.tool_name)
            elif part.part_kind == "user-prompt":
                total += sum(map(self._content_tokens, part.content))
        return total

    def over(self, message: ModelMessage, tool_result_tokens: int) -> int:
        if message.kind != "request":
            return 0
        over = 0
        for part in message.parts:
            if part.part_kind == "tool-return":
                result = _result(part)
                if len(result) * _MOST_BYTES > tool_result_tokens:  # no tokenizer makes more tokens than bytes
                    over += max(self._count(result) - tool_result_tokens, 0)
        return over

    def lines(self, message: ModelMessage, tool_result_tokens: int) -> list[Line]:
        lines: list[Line] = []
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                lines += [("user", text) for item in user_said(part) if (text := _told(item))]
            elif isinstance(part, BaseToolReturnPart):
                result = shortened(_result(part), tool_result_tokens, self._count)
                lines.append((f"result of {part.tool_name}", result))
            elif isinstance(part, ToolCallPart):
                args = shortened(part.args_as_json_str(), tool_result_tokens, self._count)
                lines.append(("assistant", f"calls {part.tool_name} with {args}"))
            elif isinstance(part, TextPart) and part.content:
                lines.append(("assistant", part.content))
            elif isinstance(part, RetryFeedbackPart):
                lines.append(("system", part.model_response()))
        return lines

    def _content_tokens(self, item: UserContent) -> int:
        text = _text(item)
        return _FILE_TOKENS if text is None else self._count(text)


def shorten_results(message: ModelMessage, max_tokens: int, count: TokenCounter) -> ModelMessage:
    """The message itself, or a copy whose over-long tool results are shortened."""
    if not isinstance(message, ModelRequest):
        return message
    parts = [_shortened(part, max_tokens, count) for part in message.parts]
    if all(now is before for now, before in zip(parts, message.parts, strict=True)):
        return message
    return replace(message, parts=parts)


def _shortened(part: ModelRequestPart, max_tokens: int, count: TokenCounter) -> ModelRequestPart:
    if type(part) is not ToolReturnPart:
        return part  # results of other kinds are the framework's, which reads them again
    result = _result(part)
    short = shortened(result, max_tokens, count)
    if short == result or part.files:
        return part
    return replace(part, content=short)  # type: ignore[arg-type]  # what subclasses narrow, this class leaves open


def _result(part: BaseToolReturnPart[object]) -> str:
    return part.content if isinstance(part.content, str) else part.model_response_str(wrap_if_error=False)


def _text(item: UserContent) -> str | None:
    """The text of a content item; `None` for a file."""
    if isinstance(item, str):
        return item
    if isinstance(item, CachePoint):
        return ""
    content = getattr(item, "content", None)
    return content if isinstance(content, str) else None


def _told(item: UserContent) -> str:
    text = _text(item)
    return f"[{type(item).__name__}]" if text is None else text
