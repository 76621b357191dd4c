"""Automatic compaction: a summary in place of a history that would soon not fit into the model's window."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal

from pydantic_ai import ModelMessage, ModelResponse, RunContext
from pydantic_ai.capabilities import CapabilityOrdering
from pydantic_ai.models import ModelRequestContext
from typing_extensions import override

from memshelf.agent.capabilities.first_input import history_replaced
from memshelf.agent.capabilities.history import HistoryWindowCapability
from memshelf.agent.capabilities.message_shape import ModelMessageShape
from memshelf.agent.capabilities.session import SessionLogCapability
from memshelf.agent.capabilities.single import SingleCapability
from memshelf.agent.capabilities.summaries import latest, replaced, rewrite, seen_since
from memshelf.agent.capabilities.summarise import ask_for_summary
from memshelf.agent.events import HistoryReplacedEvent
from memshelf.arguments import checked_argument
from memshelf.threads.compaction import CompressionManager, Cut
from memshelf.threads.memory import WorkingMemory
from memshelf.threads.summary import Line
from memshelf.threads.tokens import TokenCounter

__all__ = ["CompactionCapability", "checked_window", "context_tokens", "replace_history", "window_of"]

_SUMMARY_TOKENS = 2_000
"""It stands for a whole history, where that of a session is a reminder beside the newest turns."""


class CompactionCapability(SingleCapability):
    """Replaces the history by a summary and the current turn when it takes `threshold` of the model's window.

    `context_window_tokens` is the window where the framework does not know the model's; if nobody does, nothing is
    compacted. A session summary that `memory` keeps is used as it is; otherwise a model is asked: `memory`'s
    `summary_model`, or else the agent's own. Of a current turn that is itself too long, its input and newest tool
    rounds stay. A failure leaves the history as it was; after three in a row on a thread it stops trying there.

    The session log gets a `compact_boundary`, and memories tell what they hold in full again.
    """

    id: str | None = "memshelf-compaction"

    def __init__(
        self,
        threshold: float = 0.9,
        context_window_tokens: int | None = None,
        *,
        memory: WorkingMemory | None = None,
    ) -> None:
        self._memory = checked_argument("memory", memory, WorkingMemory, None) or WorkingMemory()
        self._threshold = checked_argument("threshold", threshold, float, int)
        self._window = checked_window(context_window_tokens)
        self._shape = ModelMessageShape(self._memory.count_tokens)
        self._manager = CompressionManager(
            self._shape, threshold=threshold, summary_tokens=_SUMMARY_TOKENS, count_tokens=self._memory.count_tokens
        )

    @override
    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="outermost", wraps=[HistoryWindowCapability])

    @override
    async def before_model_request(
        self, ctx: RunContext[object], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        memory, window = self._memory, window_of(ctx, self._window)
        if window is None:
            return request_context
        limit = self._threshold * window
        used = context_tokens(ctx.messages, request_context, self._shape, memory.count_tokens, limit=limit)
        if used < limit:
            return request_context

        async def summarise(previous: str | None, lines: list[Line]) -> str:
            return await ask_for_summary(
                ctx,
                memory.summary_model,
                previous,
                lines,
                summary_tokens=_SUMMARY_TOKENS,
                max_tokens=window // 2,
                seconds=memory.summary_seconds,
                count=memory.count_tokens,
            )

        told = latest(ctx.messages)
        compaction = await self._manager.auto_compact(
            ctx.messages,
            summarise,
            thread=ctx.conversation_id or "",
            used=used,
            window=window,
            summary=told.summary if told else None,
            summarised=told.messages if told else 0,
        )
        if compaction is not None:
            await replace_history(ctx, request_context, compaction.summary, compaction.cut, "compaction")
        return request_context


def checked_window(tokens: int | None) -> int | None:
    """The window that was given, or else `ValueError`."""
    checked_argument("context_window_tokens", tokens, int, None)
    if tokens is not None and tokens < 1:
        raise ValueError(f"context_window_tokens is None or at least 1, not {tokens!r}.")
    return tokens


def window_of(ctx: RunContext[object], given: int | None) -> int | None:
    """The window of the model that a run asks, in tokens, if anybody knows it."""
    return given if given is not None else ctx.model.context_window


def context_tokens(
    history: Sequence[ModelMessage],
    request_context: ModelRequestContext,
    shape: ModelMessageShape,
    count: TokenCounter,
    *,
    limit: float,
) -> int:
    """What the next request takes: what the model counted last, and an estimate of what came since.

    Where no model has counted, or none since the history was replaced, all of it is estimated. What is over `limit` is
    exact enough to act on; what is below may be too high.
    """
    for at in reversed(range(len(history))):
        message = history[at]
        if isinstance(message, ModelResponse) and message.usage.input_tokens:
            counted = message.usage.input_tokens + message.usage.output_tokens
            counted += sum(shape.tokens(each) for each in history[at + 1 :])
            if counted < limit or at >= seen_since(history):
                return counted
            break
    parameters = request_context.model_request_parameters
    instructions = sum(count(part.content) for part in parameters.instruction_parts or ())
    tools = sum(
        count(tool.name + (tool.description or "") + json.dumps(tool.parameters_json_schema, ensure_ascii=False))
        for tool in parameters.function_tools
    )
    return instructions + tools + sum(shape.tokens(each) for each in history)


async def replace_history(
    ctx: RunContext[object],
    request_context: ModelRequestContext,
    summary: str,
    cut: Cut,
    cause: Literal["compaction", "handoff"],
) -> None:
    """Put `summary` in place of what `cut` lets go, in the history, in the request being prepared, and in the log."""
    before = list(ctx.messages)
    kept = [before[cut.input], *before[cut.tail :]]
    gone = [*before[: cut.input], *before[cut.input + 1 : cut.tail]]
    logs = [each for each in ctx.capabilities.values() if isinstance(each, SessionLogCapability)]
    for log in logs:
        await log.write_boundary(ctx, summary, gone, kept)
    rewrite(ctx.messages, replaced(before, cut, summary))
    for log in logs:
        log.moved(kept, ctx.messages)
    request_context.messages = list(ctx.messages)
    history_replaced(ctx)
    await ctx.emit(HistoryReplacedEvent(cause=cause, before=len(before), after=len(ctx.messages)))
