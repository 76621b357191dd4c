"""The summary of a thread, kept up to date after its runs and shown at the end of the system prompt."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import Any

from pydantic_ai import AgentRunResult, DeferredToolRequests, ModelMessage, ModelResponse, RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from typing_extensions import override

from memshelf.agent.capabilities.message_shape import ModelMessageShape
from memshelf.agent.capabilities.single import SingleCapability
from memshelf.agent.capabilities.summaries import attach, latest
from memshelf.agent.capabilities.summarise import ask_for_summary
from memshelf.arguments import checked_argument
from memshelf.threads.memory import WorkingMemory
from memshelf.threads.summary import summary_block, usable_summary

__all__ = ["SessionSummaryCapability"]

_LOG = logging.getLogger(__name__)
_REQUEST_TOKENS = 24_000
"""What one update may show the model. A turn is seldom a tenth of it."""


class SessionSummaryCapability(SingleCapability):
    """Shows the model the thread's summary at the end of its system prompt, and brings it up to date after each run.

    An update shows a model the summary so far and what was said since, so its cost does not grow with the thread. A
    failure is logged and changes nothing: the answer stands, and the next update makes up for it. The summary is kept
    in the messages of the thread (in the metadata of a response), wherever these are stored. Within a run the system
    prompt stays the same bytes.

    It does nothing unless `memory.create_session_summary` is set.
    """

    id: str | None = "memshelf-session-summary"

    def __init__(self, memory: WorkingMemory) -> None:
        self._memory = checked_argument("memory", memory, WorkingMemory)
        self._shape = ModelMessageShape(memory.count_tokens)
        self._shown: str | None = None

    @override
    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")  # what changes comes last, so that the rest stays cached

    @override
    async def for_run(self, ctx: RunContext[object]) -> AbstractCapability[object]:
        run = copy.copy(self)
        run.__dict__ |= {"_shown": None}
        return run

    @override
    def get_instructions(self) -> Any:  # Any: the framework's union of what instructions may be
        return self._instructions if self._memory.create_session_summary else None

    async def _instructions(self, ctx: RunContext[object]) -> str:
        if self._shown is None:
            told = latest(ctx.messages)
            self._shown = summary_block(told.summary) if told is not None and not told.shown else ""
        return self._shown

    @override
    async def after_run(self, ctx: RunContext[object], *, result: AgentRunResult[Any]) -> AgentRunResult[Any]:
        memory = self._memory
        if memory.create_session_summary and memory.update_session_summary_after_run:
            history = result.all_messages()
            if not isinstance(result.output, DeferredToolRequests):
                await self._update(ctx, history)
        return result

    async def _update(self, ctx: RunContext[object], history: Sequence[ModelMessage]) -> None:
        last = next((each for each in reversed(history) if isinstance(each, ModelResponse)), None)
        if last is None or last.run_id != ctx.run_id:
            return
        memory, told = self._memory, latest(history)
        lines = [
            line
            for message in history[told.messages if told else 0 :]
            for line in self._shape.lines(message, memory.tool_result_tokens)
        ]
        try:
            answer = await ask_for_summary(
                ctx,
                memory.summary_model,
                told.summary if told else None,
                lines,
                summary_tokens=memory.summary_tokens,
                max_tokens=_REQUEST_TOKENS,
                seconds=memory.summary_seconds,
                count=memory.count_tokens,
            )
        except Exception as error:  # noqa: BLE001  # anyone's model; the run's answer must not be lost
            _LOG.warning("The summary of a thread could not be updated: %s", type(error).__name__)
            return
        summary = usable_summary(answer, max_tokens=memory.summary_tokens, count=memory.count_tokens)
        if summary is None:
            _LOG.warning("The summary of a thread could not be updated: the model's answer has no text")
            return
        attach(history, summary)
