"""A user's workspace for an agent: a frozen system prompt, recall with each input, tools, what runs leave behind."""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_ai import (
    AgentRunResult,
    DeferredToolRequests,
    FunctionToolset,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RunContext,
    ToolReturnPart,
)
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.models import Model, ModelRequestContext
from typing_extensions import override

from memshelf.agent.capabilities.archiving import archive_turn, learn_from, newest_turns
from memshelf.agent.capabilities.extraction import Extractions
from memshelf.agent.capabilities.first_input import brings_input, enclosing, input_text, nested, say_before_input
from memshelf.agent.capabilities.said import memory_text, notes
from memshelf.agent.capabilities.single import SingleCapability
from memshelf.agent.capabilities.workspace_toolset import workspace_toolset
from memshelf.agent.events import MemoryRecallEvent, RecallDelivery
from memshelf.arguments import checked_argument
from memshelf.origin import Origin
from memshelf.threads.rows import strings
from memshelf.untrusted import size
from memshelf.workspace.config import WorkspaceMemoryConfig
from memshelf.workspace.deadline import before_deadline
from memshelf.workspace.instructions import frozen_block, frozen_in, recall_block, workspace_guide
from memshelf.workspace.tools import WORKSPACE_TOOLS
from memshelf.workspace.workspace import Workspace

__all__ = ["WorkspaceCapability"]

_COLD = timedelta(hours=1)
"""After such a rest no provider has the prompt in its cache any more."""

_SURFACED = "surfaced"
_SAVE, _SEARCH = WORKSPACE_TOOLS["save"].name, WORKSPACE_TOOLS["search"].name


class WorkspaceCapability(SingleCapability):
    """The long-term memory of a user on an agent: `Agent(..., capabilities=[WorkspaceCapability(workspace)])`.

    The system prompt has the standing rules (the user's and, with `cwd`, those of its repository), the index and the
    experiences as they were at the session's first run; it stays the same to the byte, whatever is written meanwhile,
    until the history is replaced by a summary or the session has rested for an hour. Entries that fit an input stand
    before the user's own words, each at most once as long as the model sees it. What the model was shown is kept in the
    thread's messages and nowhere else: sessions and users share nothing.

    A run belongs to the user whom the workspace is set to when it begins; a history with the memory of another is a
    `ValueError`. A workspace that cannot be read is logged, and the run goes on without.

    Memories are extracted from a run while nobody waits for it; `settled` does. Runs inside another run that has memory
    are told nothing, and nothing is taken from them.
    """

    id: str | None = "memshelf-workspace"

    def __init__(
        self,
        workspace: Workspace,
        config: WorkspaceMemoryConfig | None = None,
        *,
        cwd: str | os.PathLike[str] | None = ".",
        origin: Origin | None = None,
    ) -> None:
        if not isinstance(workspace, Workspace):
            raise TypeError(f"workspace is a Workspace, such as Workspace('./workspace'), not {workspace!r}.")
        self.workspace = workspace
        self._config = checked_argument("config", config, WorkspaceMemoryConfig, None) or WorkspaceMemoryConfig()
        self._cwd = checked_argument("cwd", cwd, str, os.PathLike, None)
        self._recalls = self._config.load_workspace_memory and self._config.max_memory_entries > 0
        self._origin = checked_argument("origin", origin, Origin, None) or Origin()
        self._toolset = workspace_toolset(_workspace_of, self._origin)
        self._extractions = Extractions()
        self._frozen: str | None = None
        self._awaits_input = False
        self._replaced = False
        self._nested = False
        self._history: Sequence[ModelMessage] = ()

    @override
    def get_instructions(self) -> Any:  # Any: the framework's union of what instructions may be
        return [workspace_guide(recalls=self._recalls), self._system_prompt]

    @override
    def get_toolset(self) -> FunctionToolset[object]:
        return self._toolset

    @override
    async def for_run(self, ctx: RunContext[object]) -> AbstractCapability[object]:
        run = copy.copy(self)
        run.__dict__ |= {
            "workspace": copy.copy(self.workspace),  # a copy stays with the user that it has
            "_frozen": None,
            "_awaits_input": brings_input(ctx),
            "_replaced": False,
            "_nested": nested(),
            "_history": (),
        }
        return run

    @override
    async def wrap_run(self, ctx: RunContext[object], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        with enclosing():
            try:
                result = await handler()
            except Exception:  # however the run failed, what was said is archived, and the failure goes on
                await self._archive(ctx, newest_turns(self._history))
                raise
        if not isinstance(result.output, DeferredToolRequests):
            history = result.all_messages()
            await self._archive(ctx, newest_turns(history))
            await self._learn(ctx, history)
        return result

    @override
    async def before_model_request(
        self, ctx: RunContext[object], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        self._history = ctx.messages
        if self._replaced:
            self._replaced = False
            await self._freeze_again(request_context, input_text(ctx))
        if self._awaits_input:
            self._awaits_input = False
            await self._recall(ctx, request_context)
        return request_context

    async def _archive(self, ctx: RunContext[object], turn: Sequence[ModelMessage]) -> None:
        if self._config.auto_archive and not self._nested:
            await archive_turn(self.workspace, turn, ctx.conversation_id)

    async def _learn(self, ctx: RunContext[object], history: Sequence[ModelMessage]) -> None:
        if self._nested:
            return
        origin = replace(self._origin, run_id=self._origin.run_id or ctx.run_id)
        if self._config.learn_from_corrections:
            await learn_from(self.workspace, newest_turns(history, 2), origin)
        if self._config.auto_extract_memory and isinstance(ctx.model, Model):
            await self._extractions.begin(self.workspace, ctx.model, newest_turns(history), origin)

    async def settled(self) -> None:
        """Wait for the extractions that runs in this event loop have left."""
        await self._extractions.settled()

    def history_replaced(self) -> None:
        """The history was replaced by a summary: its prompt is in no cache, and may say what is true now."""
        self._replaced = True

    async def _system_prompt(self, ctx: RunContext[object]) -> str:
        if self._frozen is None:
            still = _still_frozen(ctx.messages, self.workspace.user_id)
            self._frozen = still or await self._freeze(input_text(ctx))
        return self._frozen or ""

    async def _freeze(self, about: str) -> str | None:
        config = self._config
        _, snapshot = await before_deadline(self.workspace.freeze_snapshots(cwd=self._cwd, query=about))
        if snapshot is None:
            return None
        shown = snapshot.text(
            context=config.load_workspace_context,
            memory=config.load_workspace_memory,
            experiences=config.load_workspace_memory or config.learn_from_corrections,
        )
        return frozen_block(self.workspace.user_id, shown)

    async def _freeze_again(self, request_context: ModelRequestContext, about: str) -> None:
        before, now = self._frozen, await self._freeze(about)
        if before is None or now is None:
            return
        parameters = request_context.model_request_parameters
        parts = [
            replace(part, content=now) if part.content == before else part
            for part in parameters.instruction_parts or ()
        ]
        request_context.model_request_parameters = replace(parameters, instruction_parts=parts)
        self._frozen = now

    async def _recall(self, ctx: RunContext[object], request_context: ModelRequestContext) -> None:
        query, limit = input_text(ctx), self._config.max_memory_entries
        if not (self._recalls and query.strip()):
            return
        before = _surfaced(request_context.messages)
        surfaced = set(before)
        outcome, recalled = await before_deadline(self.workspace.get_relevant_memories(query, limit, surfaced))
        files = sorted(surfaced - before)
        block = recall_block(recalled) if recalled else ""
        if recalled:
            said = memory_text(block, {"workspace": self.workspace.user_id, _SURFACED: files})
            if say_before_input(ctx, request_context, [said]) is None:
                return
        delivery = RecallDelivery(
            memory="workspace",
            outcome=outcome if outcome != "recalled" or recalled else "nothing",
            records=len(files),
            bytes=size(block),
        )
        await ctx.emit(MemoryRecallEvent(memories=[delivery]))


def _workspace_of(ctx: RunContext[object]) -> Workspace:
    return next(each.workspace for each in ctx.capabilities.values() if isinstance(each, WorkspaceCapability))


def _still_frozen(history: Sequence[ModelMessage], user_id: str) -> str | None:
    """The block that the newest request had, unless the session has rested since. `ValueError` if it is another's."""
    requests = (message for message in reversed(history) if isinstance(message, ModelRequest))
    found = [block for each in requests if (block := frozen_in(each.instructions or "")) is not None]
    if any(user != user_id for user, _ in found):
        raise ValueError("This thread holds memories of another user; each user needs threads of their own.")
    answers = (message for message in reversed(history) if isinstance(message, ModelResponse))
    last = next(answers, None)
    rested = last is not None and datetime.now(UTC) - last.timestamp.astimezone(UTC) > _COLD
    return found[0][1] if found and not rested else None


def _surfaced(shown: Sequence[ModelMessage]) -> set[str]:
    """The files of the entries that a model sees in these messages."""
    files = {file for note in notes(shown) for file in strings(note.get(_SURFACED))}
    for message in shown:
        for part in message.parts if isinstance(message, ModelRequest) else ():
            if isinstance(part, ToolReturnPart) and isinstance(part.content, dict):
                files.update(_files_in(part.tool_name, {**part.content}))
    return files


def _files_in(tool: str, result: dict[str, Any]) -> Iterator[str]:
    """The files of the entries in a tool's result."""
    if tool == _SAVE:
        yield from strings([result.get("saved")])
    elif tool == _SEARCH and isinstance(found := result.get("entries"), list):
        yield from strings([each.get("file") for each in found if isinstance(each, dict)])
