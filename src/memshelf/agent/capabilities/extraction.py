"""Asking an agent's model for the memories in a run that has ended, while nobody waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack

from pydantic_ai import ModelMessage, ModelRequest, UserPromptPart
from pydantic_ai.direct import model_request
from pydantic_ai.models import Model

from memshelf.agent.capabilities.message_shape import ModelMessageShape
from memshelf.errors import MemoryStoreError
from memshelf.origin import Origin
from memshelf.workspace.deadline import reason
from memshelf.workspace.extraction import EXTRACTION_INSTRUCTIONS, extracted, extraction_request
from memshelf.workspace.workspace import Workspace

__all__ = ["Extractions"]

_LOG = logging.getLogger(__name__)
_FAILED = "No memories could be extracted from a run: %s"
_SECONDS = 60
_SHAPE = ModelMessageShape()
_ARGS_TOKENS = 200
_KNOWN = 8


class Extractions:
    """The extractions that are under way, of any number of runs."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()  # an event loop holds its tasks by weak references only

    async def begin(self, workspace: Workspace, model: Model, turn: Sequence[ModelMessage], origin: Origin) -> None:
        """Take the memories of a `turn` in the background. A failure is logged, and changes nothing."""
        # What tools answered is nothing that the user said.
        lines = [line for each in turn for line in _SHAPE.lines(each, _ARGS_TOKENS) if line[0] in ("user", "assistant")]
        if not any(speaker == "user" for speaker, _ in lines):
            return
        stack = AsyncExitStack()
        try:
            await stack.enter_async_context(model)  # here, while the run still holds its connections open
        except Exception as error:  # noqa: BLE001  # anyone's model; the run's answer must not be lost
            _LOG.warning(_FAILED, reason(error))
            return
        task = asyncio.create_task(_extract(workspace, model, lines, origin, stack))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settled(self) -> None:
        """Wait for what was begun in this event loop."""
        loop = asyncio.get_running_loop()
        while tasks := [task for task in self._tasks if task.get_loop() is loop]:
            await asyncio.wait(tasks)


async def _extract(
    workspace: Workspace, model: Model, lines: Sequence[tuple[str, str]], origin: Origin, stack: AsyncExitStack
) -> None:
    async with stack:
        try:
            async with asyncio.timeout(_SECONDS):
                await _keep(workspace, model, lines, origin)
        except Exception as error:  # noqa: BLE001  # anyone's model and store, and nobody is there to be told
            _LOG.warning(_FAILED, reason(error))


async def _keep(workspace: Workspace, model: Model, lines: Sequence[tuple[str, str]], origin: Origin) -> None:
    said = "\n".join(text for speaker, text in lines if speaker == "user")
    asked = extraction_request(lines, await workspace.search(said, _KNOWN))
    request = ModelRequest([UserPromptPart(asked)], instructions=EXTRACTION_INSTRUCTIONS)
    memories = extracted((await model_request(model, [request])).text or "")
    if memories is None:
        _LOG.warning(_FAILED, "the model's answer is not what was asked for")
        return
    for each in memories:
        try:
            await workspace.write_memory_entry(
                each.title, each.content, each.memory_type, each.description, source="auto", origin=origin
            )
        except (MemoryStoreError, ValueError) as error:  # the others may be kept all the same
            _LOG.warning("A memory that was extracted from a run could not be kept: %s", reason(error))
