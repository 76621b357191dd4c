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

from pydantic_ai import ModelMessage, ModelRequest, ModelResponse, RunContext, UserPromptPart
from pydantic_ai.messages import ModelRequestPart
from pydantic_ai.models import ModelRequestContext

__all__ = ["DeliversContext", "answered", "brings_input", "enclosing", "history_replaced", "say_before_input"]

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


def brings_input(ctx: AnyContext) -> bool:
    """Whether a run that is being set up has input of its own, and is not nested. To be asked in `for_run`.

    The input is the prompt, or else a request at the end of the history that no run has sent yet: that is how front
    ends that keep the conversation themselves hand over what the user just said.
    """
    if _ENCLOSED.get():
        return False
    if ctx.prompt is not None:
        return True
    last = ctx.messages[-1] if ctx.messages else None
    return isinstance(last, ModelRequest) and last.run_id is None and _input_at(last.parts) is not None


def say_before_input(ctx: AnyContext, request_context: ModelRequestContext, said: UserPromptPart) -> bool:
    """Put `said` before the user's input in the request being prepared, and in the history that is kept.

    To be called from `before_model_request`. Once there, it is part of the thread: a later attempt, request or run
    sends the same bytes. `False` when the request carries no input.
    """
    request = ctx.messages[-1] if ctx.messages else None
    if not isinstance(request, ModelRequest) or _input_at(request.parts) is None:
        return False
    # A new list of parts: messages may be shared, and their parts must not change in place.
    request.parts = _inserted(request.parts, said)
    shown = request_context.messages[-1]
    if shown is not request and isinstance(shown, ModelRequest):  # another capability prepared its own view
        request_context.messages = [
            *request_context.messages[:-1],
            replace(shown, parts=_inserted(shown.parts, said)),
        ]
    return True


def answered(history: Sequence[ModelMessage], said: UserPromptPart) -> bool:
    """Whether a response, whole or cut off, follows what was said."""
    requests = (index for index, each in enumerate(history) if any(part is said for part in each.parts))
    at = next(requests, len(history))
    return any(isinstance(each, ModelResponse) for each in history[at:])


def _inserted(parts: Sequence[ModelRequestPart], said: UserPromptPart) -> list[ModelRequestPart]:
    at = _input_at(parts)
    at = len(parts) if at is None else at
    return [*parts[:at], said, *parts[at:]]


def _input_at(parts: Sequence[ModelRequestPart]) -> int | None:
    return next((index for index, part in enumerate(parts) if isinstance(part, UserPromptPart)), None)
