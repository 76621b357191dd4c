"""Requests that every provider can carry."""

from __future__ import annotations

import copy
from dataclasses import replace

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.models import ModelRequestContext
from typing_extensions import override

from memshelf.agent.capabilities.session import HAS_ATTEMPTS, SessionLogCapability
from memshelf.agent.sendable import Sendable

__all__ = ["SendableRequests"]


class SendableRequests(AbstractCapability[object]):
    """Sends U+FFFD in the place of lone surrogates, as a session log does. The run goes on with what was said."""

    def __init__(self) -> None:
        self._sent = Sendable()

    @classmethod
    @override
    def get_serialization_name(cls) -> str | None:
        return None

    @override
    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")  # whatever the others put into a request

    @override
    async def for_run(self, ctx: RunContext[object]) -> AbstractCapability[object]:
        run = copy.copy(self)
        run.__dict__ |= {"_sent": Sendable()}
        return run

    @override
    async def before_model_request(
        self, ctx: RunContext[object], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        return request_context if HAS_ATTEMPTS else await self.prepare_model_request(ctx, request_context)

    @override
    async def prepare_model_request(
        self, ctx: RunContext[object], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if any(isinstance(each, SessionLogCapability) for each in ctx.capabilities.values()):
            return request_context  # it has done so, or will
        if not HAS_ATTEMPTS:
            asked = ctx.messages[-1]
            asked.run_id = asked.run_id or ctx.run_id  # as the framework does next
        return replace(request_context, messages=self._sent.of(request_context.messages))
