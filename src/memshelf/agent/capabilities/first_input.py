"""The first input of a run, and what may be said before it.

Context belongs to what a user said, so it is delivered once, with the request that carries a run's own input. A run
that brings none (approvals that resume one, a retry of a history that was already sent) is a continuation, and a run
started inside another run that has memory is nested; neither is given any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from pydantic_ai import ModelMessage, ModelRequest, ModelResponse, RunContext, TextContent, UserPromptPart
from pydantic_ai.messages import ModelRequestPart
from pydantic_ai.models import ModelRequestContext

from memshelf.agent.capabilities.said import contents, is_ours, user_said

__all__ = [
    "DeliversContext",
    "answered",
    "brings_input",
    "enclosing",
    "history_replaced",
    "input_text",
    "nested",
    "say_before_input",
]

AnyContext: TypeAlias = RunContext[Any]  # context does not depend on an agent's own dependencies

_ENCLOSED: ContextVar[bool] = ContextVar("memshelf_run_with_memory", default=False)


@runtime_checkable
class DeliversContext(Protocol):
    """A capability that remembers what it has told a thread."""

    def history_replaced(self) -> None:
        """What was told is no longer in the history; tell everything again."""
        ...


def history_replaced(ctx: AnyContext) -> None:
    """Tell every capability of a run that its thread's history was replaced by a summary."""
    for capability in ctx.capabilities.values():
        if isinstance(capability, DeliversContext):
            capability.history_replaced()


@contextmanager
def enclosing() -> Iterator[None]:
    """Runs started within are nested."""
    token = _ENCLOSED.set(True)
    try:
        yield
    finally:
        _ENCLOSED.reset(token)


def nested() -> bool:
    """Whether a run is started inside another run that has memory. What it is told is not the user's."""
    return _ENCLOSED.get()


def brings_input(ctx: AnyContext) -> bool:
    """Whether a run that is being set up has input of its own, and is not nested. To be asked in `for_run`.

    The input is the prompt, or else a request at the end of the history that no run has sent yet: that is how front
    ends that keep the conversation themselves hand over what the user just said.
    """
    if nested():
        return False
    if ctx.prompt is not None:
        return True
    last = ctx.messages[-1] if ctx.messages else None
    return isinstance(last, ModelRequest) and last.run_id is None and _input(last.parts) is not None


def input_text(ctx: AnyContext) -> str:
    """What the user said in the request being prepared, without what memory said before it."""
    request = ctx.messages[-1] if ctx.messages else None
    if not isinstance(request, ModelRequest):
        return ""
    items = [item for part in request.parts if isinstance(part, UserPromptPart) for item in user_said(part)]
    texts = [item.content if isinstance(item, TextContent) else item for item in items]
    return "\n".join(text for text in texts if isinstance(text, str))


def say_before_input(
    ctx: AnyContext, request_context: ModelRequestContext, texts: Sequence[TextContent]
) -> UserPromptPart | None:
    """Put `texts` before the user's own in the request being prepared, and in the history that is kept.

    To be called from `before_model_request`. Once there, they are part of the thread: a later attempt, request or run
    sends the same bytes. They share the user's message, because some models refuse two in a row; what was said
    earlier stays in front. Returns the part that holds them now, or `None` when the request carries no input.
    """
    request = ctx.messages[-1] if ctx.messages else None
    shown = request_context.messages[-1]  # the same message, unless another capability prepared a view of its own
    if not isinstance(request, ModelRequest) or not isinstance(shown, ModelRequest):
        return None
    kept, sent = _input(request.parts), _input(shown.parts)
    if kept is None or sent is None:
        return None
    said = _saying(kept, texts)
    # New lists of parts: messages may be shared, and their parts must not change in place.
    request.parts = [said if part is kept else part for part in request.parts]
    if shown is not request:
        parts = [_saying(sent, texts) if part is sent else part for part in shown.parts]
        request_context.messages = [*request_context.messages[:-1], replace(shown, parts=parts)]
    return said


def answered(history: Sequence[ModelMessage], said: UserPromptPart) -> bool:
    """Whether a response, whole or cut off, follows what was said."""
    requests = (index for index, each in enumerate(history) if any(part is said for part in each.parts))
    at = next(requests, len(history))
    return any(isinstance(each, ModelResponse) for each in history[at:])


def _saying(part: UserPromptPart, texts: Sequence[TextContent]) -> UserPromptPart:
    content = contents(part)
    at = next((index for index, item in enumerate(content) if not is_ours(item)), len(content))
    return replace(part, content=[*content[:at], *texts, *content[at:]])


def _input(parts: Sequence[ModelRequestPart]) -> UserPromptPart | None:
    return next((part for part in parts if isinstance(part, UserPromptPart)), None)
