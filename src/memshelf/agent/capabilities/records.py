"""Record memory for an agent: instructions, tools, and recall before a run's first input."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from pydantic_ai import RunContext
from pydantic_ai.models import ModelRequestContext
from typing_extensions import override

from memshelf.agent.capabilities.first_input import input_text, say_before_input
from memshelf.agent.capabilities.memory import MemoryCapability
from memshelf.agent.capabilities.record_toolset import RecordCalls
from memshelf.agent.capabilities.said import memory_text
from memshelf.agent.capabilities.toolset import toolset
from memshelf.agent.events import MemoryRecallEvent, RecallDelivery
from memshelf.arguments import checked_argument
from memshelf.limits import RecordMemoryLimits
from memshelf.mounted import distinct, offered
from memshelf.origin import Origin
from memshelf.records.context import recall
from memshelf.records.instructions import RECORD_PARAMETERS, record_instructions
from memshelf.records.mount import RecordMount
from memshelf.records.tools import RecordToolKey, selected

__all__ = ["RecordMemoryCapability"]


class RecordMemoryCapability(MemoryCapability):
    """Mounts record memories on an agent: `Agent(..., capabilities=[RecordMemoryCapability([...])])`.

    The model is told of each mount, gets the tools that some mount's access allows (`tools` narrows them), and sees at
    the first input of a run the records that are closest to it. They stand in the run's messages, as user content of
    its own before the user's. `origin` says whom the changes are made for; its kind is always `agent`. No mounts, bad
    mounts, two mounts of one name and an unknown tool raise `ValueError` or `TypeError` here.

    Recall delays a run by no more than `limits.recall_seconds`; a store that fails, or takes longer, is left out, and
    the run goes on. Only a store that blocks the event loop itself can hold it up. One object serves any number of
    runs, also at a time.
    """

    id: str | None = "memshelf-records"

    def __init__(
        self,
        mounts: Sequence[RecordMount],
        *,
        limits: RecordMemoryLimits | None = None,
        origin: Origin | None = None,
        tools: Collection[RecordToolKey] | None = None,
    ) -> None:
        self._limits = checked_argument("limits", limits, RecordMemoryLimits, None) or RecordMemoryLimits()
        self._mounts = distinct(mounts, RecordMount, "RecordMemoryCapability")
        checked_argument("origin", origin, Origin, None)
        on_offer = offered(self._mounts, selected(tools))
        calls = RecordCalls(self._mounts, self._limits, origin or Origin())
        super().__init__(
            (mount.name for mount in self._mounts),
            record_instructions(self._mounts, on_offer),
            toolset(calls, on_offer, RECORD_PARAMETERS, id="memshelf-records"),
        )

    @override
    async def _say(self, ctx: RunContext[object], request_context: ModelRequestContext) -> None:
        recalled = await recall(self._mounts, input_text(ctx), self._limits)
        if not recalled:
            return
        blocks = [
            memory_text(each.block, {"memory": each.memory, "recall": each.outcome}) for each in recalled if each.block
        ]
        if blocks and say_before_input(ctx, request_context, blocks) is None:
            return
        await ctx.emit(
            MemoryRecallEvent(
                memories=[
                    RecallDelivery(memory=each.memory, outcome=each.outcome, records=each.records, bytes=each.bytes)
                    for each in recalled
                ]
            )
        )
