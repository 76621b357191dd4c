"""What capabilities that mount memories have in common, whatever the kind of memory."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic_ai import AgentRunResult, FunctionToolset, RunContext
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.models import ModelRequestContext
from typing_extensions import override

from memshelf.agent.capabilities.first_input import brings_input, enclosing

__all__ = ["MemoryCapability"]


class MemoryCapability(AbstractCapability[object]):
    """Memories of one kind on an agent: instructions, tools, and what is said before a run's first input.

    An agent has one capability of each kind, and no two of its memories have one name, whatever their kinds: that is
    a `ValueError` when the agent is made, or when a run that brings capabilities of its own begins.
    """

    def __init__(self, memories: Iterable[str], instructions: str, toolset: FunctionToolset[object] | None) -> None:
        self.memories = tuple(memories)
        self._instructions = instructions
        self._toolset = toolset
        self._awaits_input = False

    @abstractmethod
    async def _say(self, ctx: RunContext[object], request_context: ModelRequestContext) -> None:
        """Put what the memories have to say before the input in the request being prepared."""

    @classmethod
    @override
    def get_serialization_name(cls) -> str | None:
        return None  # a store is an object, so that a specification in JSON cannot name one

    @classmethod
    @override
    def combine(cls, capabilities: Sequence[AbstractCapability[object]]) -> AbstractCapability[object]:
        raise ValueError(f"An agent has {len(capabilities)} {cls.__name__} objects; put all mounts into one.")

    @override
    def get_instructions(self) -> str | None:
        return self._instructions

    @override
    def get_toolset(self) -> FunctionToolset[object] | None:
        return self._toolset

    @override
    def for_agent(self, agent: AbstractAgent[object, Any]) -> AbstractCapability[object]:
        capabilities: list[AbstractCapability[object]] = []
        agent.root_capability.apply(capabilities.append)
        if any(each is self for each in capabilities):  # else a run brings it, perhaps in the place of one of these
            self._require_names_of_their_own(capabilities)
        return self

    @override
    async def for_run(self, ctx: RunContext[object]) -> AbstractCapability[object]:
        # The framework's way to keep runs apart: each works on a copy, with state of its own.
        run = copy.copy(self)
        run.__dict__ |= {"_awaits_input": brings_input(ctx)}
        return run

    @override
    async def wrap_run(self, ctx: RunContext[object], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        self._require_names_of_their_own(ctx.capabilities.values())
        with enclosing():
            return await handler()

    @override
    async def before_model_request(
        self, ctx: RunContext[object], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if self._awaits_input:
            self._awaits_input = False
            await self._say(ctx, request_context)
        return request_context

    def _require_names_of_their_own(self, capabilities: Iterable[AbstractCapability[object]]) -> None:
        for other in capabilities:
            if not isinstance(other, MemoryCapability) or other.id == self.id:
                continue
            if shared := sorted(set(self.memories) & set(other.memories)):
                raise ValueError(
                    f"A file memory and a record memory are both named {', '.join(shared)}; each needs a name of its "
                    "own."
                )
