"""The record tools as a model calls them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from pydantic import Field
from pydantic_ai import RunContext

from memshelf.agent.capabilities.toolset import NULL_IS_DEFAULT, answered, made_by
from memshelf.limits import RecordMemoryLimits
from memshelf.mounted import Json
from memshelf.origin import Origin
from memshelf.records.mount import RecordMount
from memshelf.records.tools import MOST_FOUND, MOST_LISTED, RecordTools, failure

__all__ = ["RecordCalls"]


class RecordCalls:
    """What the model's calls do. The signatures are what arguments are checked against."""

    def __init__(self, mounts: Sequence[RecordMount], limits: RecordMemoryLimits, origin: Origin) -> None:
        self._tools = RecordTools(mounts, limits)
        self._origin = replace(origin, kind="agent")

    async def search(
        self, memory: str, query: str, limit: Annotated[int, Field(ge=1, le=MOST_FOUND), NULL_IS_DEFAULT] = 5
    ) -> Json:
        return await answered(self._tools.search(memory, query, limit=limit), failure)

    async def list(
        self,
        memory: str,
        limit: Annotated[int, Field(ge=1, le=MOST_LISTED), NULL_IS_DEFAULT] = 20,
        cursor: Annotated[str, NULL_IS_DEFAULT] = "",
    ) -> Json:
        return await answered(self._tools.list(memory, limit=limit, cursor=cursor), failure)

    async def add(self, ctx: RunContext[object], memory: str, text: str) -> Json:
        return await answered(self._tools.add(memory, text, origin=made_by(ctx, self._origin)), failure)

    async def update(self, ctx: RunContext[object], memory: str, id: str, text: str) -> Json:
        return await answered(self._tools.update(memory, id, text, origin=made_by(ctx, self._origin)), failure)

    async def delete(self, memory: str, id: str) -> Json:
        return await answered(self._tools.delete(memory, id), failure)
