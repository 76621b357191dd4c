"""File memory for an agent: instructions, tools, and context before a run's first input."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic_ai import AgentRunResult, ModelMessage, ModelResponse, RunContext, UserPromptPart
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.models import ModelRequestContext
from typing_extensions import override

from memshelf.agent.capabilities.file_toolset import FileCalls
from memshelf.agent.capabilities.first_input import answered, say_before_input
from memshelf.agent.capabilities.memory import MemoryCapability
from memshelf.agent.capabilities.said import memory_text
from memshelf.agent.capabilities.toolset import toolset
from memshelf.agent.events import ContextDelivery, MemoryContextEvent
from memshelf.arguments import checked_argument
from memshelf.errors import MemoryStoreError
from memshelf.files.context import deliver
from memshelf.files.format import validate_path
from memshelf.files.instructions import FILE_PARAMETERS, file_instructions
from memshelf.files.mount import FileMount, MemoryCursors
from memshelf.files.tools import FileToolKey, selected
from memshelf.limits import FileFormat, FileMemoryLimits
from memshelf.mounted import distinct, offered
from memshelf.origin import Origin

__all__ = ["FileMemoryCapability"]


class FileMemoryCapability(MemoryCapability):
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
        self._limits = checked_argument("limits", limits, FileMemoryLimits, None) or FileMemoryLimits()
        self._mounts = _validated(mounts, self._limits.format)
        self._cursors = cursors
        self._delivered: _Delivered | None = None
        checked_argument("origin", origin, Origin, None)
        on_offer = offered(self._mounts, selected(tools))
        calls = FileCalls(self._mounts, self._limits, origin or Origin())
        super().__init__(
            (mount.name for mount in self._mounts),
            file_instructions(self._mounts, on_offer),
            toolset(calls, on_offer, FILE_PARAMETERS, id="memshelf-files"),
        )

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
        run = await super().for_run(ctx)
        run.__dict__ |= {"_delivered": None}
        return run

    @override
    async def wrap_run(self, ctx: RunContext[object], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        try:
            return await super().wrap_run(ctx, handler=handler)
        finally:
            # An answer that was cut off shows that the request, and the context in it, had arrived.
            if self._delivered is not None and answered(self._delivered.history, self._delivered.said):
                self._advance()

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

    @override
    async def _say(self, ctx: RunContext[object], request_context: ModelRequestContext) -> None:
        since = self._cursors.snapshot() if self._cursors is not None else {}
        read_to = MemoryCursors(since)
        delivered = await deliver(self._mounts, read_to, self._limits)
        blocks = [
            memory_text(each.block, {"memory": each.memory, "context": each.outcome})
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
    checked: list[FileMount] = []
    for mount in distinct(mounts, FileMount, "FileMemoryCapability"):
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
