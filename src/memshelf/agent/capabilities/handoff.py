"""Handoff: the model itself sums up where it is, and goes on with that instead of the history."""

from __future__ import annotations

import copy

from pydantic_ai import (
    FunctionToolset,
    ModelRequest,
    ModelRetry,
    RunContext,
    Tool,
    UserPromptPart,
)
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.models import ModelRequestContext
from typing_extensions import override

from memshelf.agent.capabilities.compaction import (
    CompactionCapability,
    checked_window,
    context_tokens,
    replace_history,
    window_of,
)
from memshelf.agent.capabilities.first_input import say_before_input
from memshelf.agent.capabilities.history import HistoryWindowCapability
from memshelf.agent.capabilities.message_shape import ModelMessageShape
from memshelf.agent.capabilities.said import memory_text, notes
from memshelf.agent.capabilities.single import SingleCapability
from memshelf.agent.permissions import TOOL_ID
from memshelf.arguments import checked_argument, checked_function
from memshelf.threads.compaction import cut
from memshelf.threads.tokens import TokenCounter, estimate_tokens

__all__ = ["HandoffCapability"]

_TOOL = "summarize"
_REMINDER_KEY = "reminder"
_DESCRIPTION = """\
Replace the conversation so far by your summary of it, and go on from there. Everything before the user's current \
request is then gone for you, and of a long request its earlier steps too. So write down all that is still needed: \
what the user wants, decisions and their reasons, exact names, numbers and paths, what is done and what is open."""
_ANSWER = "From your next step on, your summary stands in place of the conversation before the current request."
_REMINDER = (
    "A note by the system, not by the user: this conversation fills much of what you can see at once. At the next good "
    f"moment call `{_TOOL}` with a summary of all that is still needed, and then go on with what the user asked."
)
_UNKNOWN_WINDOW = 32_000


class HandoffCapability(SingleCapability):
    """Gives the model a `summarize` tool, and reminds it of it when the history takes `reminder` of its window.

    The tool replaces the history by the model's own summary and the current turn (of a long one, its input and newest
    tool rounds), as compaction does. The reminder comes once, as a part of the thread's messages;
    `context_window_tokens` is the window where the framework does not know the model's, and if nobody does, there is
    no reminder.
    """

    id: str | None = "memshelf-handoff"

    def __init__(
        self,
        reminder: float = 0.65,
        context_window_tokens: int | None = None,
        *,
        count_tokens: TokenCounter = estimate_tokens,
    ) -> None:
        if not 0 < checked_argument("reminder", reminder, float, int) <= 1:
            raise ValueError(f"The reminder of a handoff is at a share of the window, such as 0.65, not {reminder!r}.")
        self._reminder = reminder
        self._window = checked_window(context_window_tokens)
        self._count = checked_function("count_tokens", count_tokens)
        self._shape = ModelMessageShape(count_tokens)
        self._summary: str | None = None

    @override
    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost", wraps=[CompactionCapability, HistoryWindowCapability])

    @override
    async def for_run(self, ctx: RunContext[object]) -> AbstractCapability[object]:
        run = copy.copy(self)
        run.__dict__ |= {"_summary": None}
        return run

    @override
    def get_toolset(self) -> FunctionToolset[object]:
        async def summarize(summary: str) -> str:
            if not summary.strip():
                raise ModelRetry("The summary is empty, and would leave you with nothing. Write down what is needed.")
            self._summary = summary.strip()
            return _ANSWER

        tool: Tool[object] = Tool(
            summarize, name=_TOOL, description=_DESCRIPTION, metadata={TOOL_ID: "thread.summarize"}, sequential=True
        )
        return FunctionToolset([tool], id=self.id)

    @override
    async def before_model_request(
        self, ctx: RunContext[object], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        window = window_of(ctx, self._window)
        summary, self._summary = self._summary, None
        if summary is not None:
            kept = cut(ctx.messages, self._shape, budget=(window or _UNKNOWN_WINDOW) // 4)
            if kept is not None:
                await replace_history(ctx, request_context, summary, kept, "handoff")
        elif window is not None:
            limit = self._reminder * window
            used = context_tokens(ctx.messages, request_context, self._shape, self._count, limit=limit)
            if used >= limit and not any(_REMINDER_KEY in note for note in notes(ctx.messages)):
                _remind(ctx, request_context)
        return request_context


def _remind(ctx: RunContext[object], request_context: ModelRequestContext) -> None:
    note = memory_text(_REMINDER, {_REMINDER_KEY: True})
    request = ctx.messages[-1]
    if say_before_input(ctx, request_context, [note]) is None and isinstance(request, ModelRequest):
        request.parts = [*request.parts, UserPromptPart([note])]
        request_context.messages = [*request_context.messages[:-1], request]
