"""How much of a thread's history a model is shown, and how much of it is kept."""

from __future__ import annotations

import copy
from collections.abc import Sequence

from pydantic_ai import ModelMessage, RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.models import ModelRequestContext
from typing_extensions import override

from memshelf.agent.capabilities.first_input import history_replaced
from memshelf.agent.capabilities.message_shape import ModelMessageShape, shorten_results
from memshelf.agent.capabilities.said import notes
from memshelf.agent.capabilities.single import SingleCapability
from memshelf.agent.capabilities.summaries import kept_from, rewrite
from memshelf.arguments import checked_argument
from memshelf.threads.memory import WorkingMemory
from memshelf.threads.window import Window, first_kept, window

__all__ = ["HistoryWindowCapability"]


class HistoryWindowCapability(SingleCapability):
    """Shows a model the newest turns of a thread, and keeps no more messages than `memory.max_messages`.

    At most `num_history_turns` turns before the current one (`None`: all, 0: none), as many as `memory.max_tokens` has
    room for, each whole; over-long tool results are shortened before a turn is left out. The current turn, the system
    prompt, and the summary of what was compacted are always shown. What is only not shown stays in the history; what
    is over `memory.max_messages` leaves it.

    A memory whose context was said in a turn that is left out says it in full again. Numbers out of range are a
    `ValueError`.
    """

    id: str | None = "memshelf-history-window"

    def __init__(self, memory: WorkingMemory | None = None, *, num_history_turns: int | None = 5) -> None:
        checked_argument("num_history_turns", num_history_turns, int, None)
        if num_history_turns is not None and num_history_turns < 0:
            raise ValueError(f"num_history_turns is None or at least 0, not {num_history_turns!r}.")
        self._memory = checked_argument("memory", memory, WorkingMemory, None) or WorkingMemory()
        self._turns = num_history_turns
        self._shape = ModelMessageShape(self._memory.count_tokens)
        self._begun = False

    @override
    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost")  # before memory decides what it still has to say

    @override
    async def for_run(self, ctx: RunContext[object]) -> AbstractCapability[object]:
        run = copy.copy(self)
        run.__dict__ |= {"_begun": False}
        return run

    @override
    async def before_model_request(
        self, ctx: RunContext[object], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if not self._begun:
            self._begun = True
            if self._loses_context(ctx.messages):
                history_replaced(ctx)
            self._drop_oldest(ctx.messages, request_context)
        shown = self._window(request_context.messages)
        request_context.messages = self._shown(request_context.messages, shown)
        return request_context

    def _drop_oldest(self, history: list[ModelMessage], request_context: ModelRequestContext) -> None:
        if self._memory.max_messages is None:
            return
        start = first_kept(history, self._shape, self._memory.max_messages)
        if start:
            rewrite(history, kept_from(history, start))
            request_context.messages = list(history)

    def _window(self, history: Sequence[ModelMessage]) -> Window:
        memory = self._memory
        return window(
            history,
            self._shape,
            turns=self._turns,
            tokens=memory.max_tokens,
            tool_result_tokens=memory.tool_result_tokens,
        )

    def _shown(self, history: Sequence[ModelMessage], shown: Window) -> list[ModelMessage]:
        kept = kept_from(history, shown.start) if shown.start else list(history)
        for index in range(len(kept)):
            current = index + shown.start >= shown.current
            if shown.shorten_current if current else shown.shorten_earlier:
                kept[index] = shorten_results(kept[index], self._memory.tool_result_tokens, self._memory.count_tokens)
        return kept

    def _loses_context(self, history: Sequence[ModelMessage]) -> bool:
        """Whether this turn is the first that is not shown the full context of some memory."""
        shown = self._window(history)
        start = max(shown.start, first_kept(history, self._shape, self._memory.max_messages or len(history)))
        before = next((i for i in reversed(range(shown.current)) if self._shape.starts_turn(history[i])), 0)
        start_before = self._window(history[: before + 1]).start
        left_out = _told_in_full(history[start_before:start])
        return bool(left_out and left_out - _told_in_full(history[start:]))


def _told_in_full(messages: Sequence[ModelMessage]) -> set[str]:
    """The memories whose full context stands in the messages."""
    return {str(note.get("memory")) for note in notes(messages) if note.get("context") == "full"}
