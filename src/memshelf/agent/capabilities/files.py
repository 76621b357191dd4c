"""File memory for an agent: instructions, tools, and context before a run's first input."""

from __future__ import annotations

import copy
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import (
    AgentRunResult,
    FunctionToolset,
    ModelMessage,
    ModelResponse,
    RunContext,
    TextContent,
    UserPromptPart,
)
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.models import ModelRequestContext
from typing_extensions import override

from memshelf.agent.capabilities.file_toolset import file_toolset, offered
from memshelf.agent.capabilities.first_input import SAID, answered, brings_input, enclosing, say_before_input
from memshelf.agent.events import ContextDelivery, MemoryContextEvent
from memshelf.errors import MemoryStoreError
from memshelf.files.context import deliver
from memshelf.files.format import validate_path
from memshelf.files.instructions import file_instructions
from memshelf.files.mount import FileMount, MemoryCursors
from memshelf.files.tools import FileToolKey, selected
from memshelf.limits import FileFormat, FileMemoryLimits
from memshelf.origin import Origin

__all__ = ["FileMemoryCapability"]


class FileMemoryCapability(AbstractCapability[object]):
    """Mounts file memories on an agent: `Agent(..., capabilities=[FileMemoryCapability([...])])`.

    The model is told of each mount, gets the tools that some mount's access allows (`tools` narrows them), and sees at
    the first input of a run what the memories hold, or with `cursors` what changed since the thread last saw them.
    That context stands in the run's messages, as user content of its own before the user's; `origin` says whom the
    changes are made for. No mounts, bad mounts, two mounts of one name or cursor, a bad `always_load` path and an
    unknown tool raise `ValueError` or `TypeError` here.

    One object serves any number of runs, also at a time; only `cursors` belongs to one thread. A cursor moves on when
    the model has answered the request that carried the context, if only in part; a request that failed is told again.
    """

    id: str | None = "memshelf-files"

    def __init__(
        self,
        mounts: Sequence[FileMount],
        *,
        limits: FileMemoryLimits | None = None,
        cursors: MemoryCursors | None = None,
        origin: Origin | None = None,
        tools: Collection[FileToolKey] | None = None,
    ) -> None:
        if cursors is not None and not isinstance(cursors, MemoryCursors):
            raise TypeError(
                f"cursors is a MemoryCursors, such as MemoryCursors(saved), not a {type(cursors).__name__}."
            )
        self._limits = limits or FileMemoryLimits()
        self._mounts = _validated(mounts, self._limits.format)
        self._cursors = cursors
        on_offer = offered(self._mounts, selected(tools))
        self._instructions = file_instructions(self._mounts, on_offer)
        self._toolset = file_toolset(self._mounts, on_offer, self._limits, origin or Origin()) if on_offer else None
        self._awaits_input = False
        self._delivered: _Delivered | None = None

    @classmethod
    @override
    def get_serialization_name(cls) -> str | None:
        return None  # a store is an object, so that a specification in JSON cannot name one

    @classmethod
    @override
    def combine(cls, capabilities: Sequence[AbstractCapability[object]]) -> AbstractCapability[object]:
        raise ValueError(f"An agent has {len(capabilities)} FileMemoryCapability objects; put all mounts into one.")

    @override
    def get_instructions(self) -> str | None:
        return self._instructions

    @override
    def get_toolset(self) -> FunctionToolset[object] | None:
        return self._toolset

    def history_replaced(self) -> None:
        """Forget what this thread was told, so that its next run gets full context.

        For whoever replaces a thread's history by a summary; inside a run, `first_input.history_replaced(ctx)` does
        it for every capability.
        """
        self._delivered = None
        if self._cursors is not None:
            for mount in self._mounts:
                self._cursors.clear(mount.key)

    @override
    async def for_run(self, ctx: RunContext[object]) -> AbstractCapability[object]:
        # The framework's way to keep runs apart: each works on a copy, with state of its own.
        run = copy.copy(self)
        run.__dict__ |= {"_awaits_input": brings_input(ctx), "_delivered": None}
        return run

    @override
    async def wrap_run(self, ctx: RunContext[object], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        with enclosing():
            try:
                return await handler()
            finally:
                # An answer that was cut off shows that the request, and the context in it, had arrived.
                if self._delivered is not None and answered(self._delivered.history, self._delivered.said):
                    self._advance()

    @override
    async def before_model_request(
        self, ctx: RunContext[object], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if self._awaits_input:
            self._awaits_input = False
            await self._deliver(ctx, request_context)
        return request_context

    @override
    async def after_model_request(
        self, ctx: RunContext[object], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        self._advance()
        return response

    def _advance(self) -> None:
        delivered, self._delivered = self._delivered, None
        if delivered is not None and self._cursors is not None:
            for key, (since, cursor) in delivered.cursors.items():
                if self._cursors.get(key) == since:  # else it was cleared, or moved on, while the model was answering
                    self._cursors.advance(key, cursor)

    async def _deliver(self, ctx: RunContext[object], request_context: ModelRequestContext) -> None:
        since = self._cursors.snapshot() if self._cursors is not None else {}
        read_to = MemoryCursors(since)
        delivered = await deliver(self._mounts, read_to, self._limits)
        blocks = [
            TextContent(each.block, metadata={SAID: {"memory": each.memory, "context": each.outcome}})
            for each in delivered
            if each.block
        ]
        said = say_before_input(ctx, request_context, blocks)
        if said is None:
            return
        moved = {key: (since.get(key), cursor) for key, cursor in read_to.snapshot().items()}
        self._delivered = _Delivered(ctx.messages, said, moved)
        await ctx.emit(
            MemoryContextEvent(
                memories=[
                    ContextDelivery(memory=each.memory, outcome=each.outcome, bytes=each.bytes) for each in delivered
                ]
            )
        )


@dataclass(frozen=True, slots=True)
class _Delivered:
    """What a run was told, and where each cursor was and will be."""

    history: Sequence[ModelMessage]
    said: UserPromptPart
    cursors: Mapping[str, tuple[str | None, str]]


def _validated(mounts: Sequence[FileMount], format: FileFormat) -> tuple[FileMount, ...]:
    if isinstance(mounts, FileMount) or not isinstance(mounts, Sequence):
        raise TypeError(f"Mounts are a sequence, also of one: [FileMount(...)], not a {type(mounts).__name__}.")
    if not mounts:
        raise ValueError("There is no mount: FileMemoryCapability([FileMount(...)]) needs at least one.")
    checked: list[FileMount] = []
    for mount in mounts:
        if not isinstance(mount, FileMount):
            raise TypeError(f"Mounts are FileMount objects, not {type(mount).__name__}.")
        if any(mount.name == other.name for other in checked):
            raise ValueError(f"Two mounts are named {mount.name}; each needs a name of its own.")
        if any(mount.key == other.key for other in checked):
            raise ValueError(f"Mount {mount.name}: another mount keeps its cursor under {mount.key!r} too.")
        checked.append(replace(mount, always_load=_paths(mount, format)))
    return tuple(checked)


def _paths(mount: FileMount, format: FileFormat) -> tuple[str, ...]:
    """`always_load` in canonical form, as stores list their files."""
    try:
        return tuple(dict.fromkeys(validate_path(path, format) for path in mount.always_load))
    except MemoryStoreError as error:
        raise ValueError(f"Mount {mount.name}: a path of always_load is not one of a file. {error.message}") from error
