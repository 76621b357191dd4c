"""The file tools as a model calls them."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Annotated

from pydantic import Field
from pydantic_ai import RunContext

from memshelf.agent.capabilities.toolset import NULL_IS_DEFAULT, answered, made_by
from memshelf.files.mount import FileMount
from memshelf.files.tools import MOST_LINES, FileTools, failure
from memshelf.limits import FileMemoryLimits
from memshelf.mounted import Json
from memshelf.origin import Origin

__all__ = ["FileCalls"]


class FileCalls:
    """What the model's calls do. The signatures are what arguments are checked against."""

    def __init__(self, mounts: Sequence[FileMount], limits: FileMemoryLimits, origin: Origin) -> None:
        self._tools = FileTools(mounts, limits)
        self._format = limits.format
        self._origin = origin

    async def view(self, memory: str, path: Annotated[str, NULL_IS_DEFAULT] = "") -> Json:
        return await self._answer(self._tools.view(memory, path))

    async def grep(
        self,
        memory: str,
        pattern: str,
        path: Annotated[str, NULL_IS_DEFAULT] = "",
        regex: Annotated[bool, NULL_IS_DEFAULT] = False,
        case_sensitive: Annotated[bool, NULL_IS_DEFAULT] = False,
        limit: Annotated[int, Field(ge=1, le=MOST_LINES), NULL_IS_DEFAULT] = 50,
    ) -> Json:
        return await self._answer(
            self._tools.grep(memory, pattern, path, regex=regex, case_sensitive=case_sensitive, limit=limit)
        )

    async def create(self, ctx: RunContext[object], memory: str, path: str, content: str) -> Json:
        return await self._answer(self._tools.create(memory, path, content, origin=made_by(ctx, self._origin)))

    async def edit(self, ctx: RunContext[object], memory: str, path: str, old_string: str, new_string: str) -> Json:
        origin = made_by(ctx, self._origin)
        return await self._answer(self._tools.edit(memory, path, old_string, new_string, origin=origin))

    async def append(self, ctx: RunContext[object], memory: str, path: str, content: str) -> Json:
        return await self._answer(self._tools.append(memory, path, content, origin=made_by(ctx, self._origin)))

    async def move(self, ctx: RunContext[object], memory: str, source: str, destination: str) -> Json:
        return await self._answer(self._tools.move(memory, source, destination, origin=made_by(ctx, self._origin)))

    async def delete(self, ctx: RunContext[object], memory: str, path: str, version: str) -> Json:
        return await self._answer(self._tools.delete(memory, path, version, origin=made_by(ctx, self._origin)))

    async def _answer(self, call: Awaitable[Json]) -> Json:
        return await answered(call, lambda error: failure(error, self._format))
