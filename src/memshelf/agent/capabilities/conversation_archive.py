"""The conversation archive of a workspace, on any agent."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from pydantic_ai import AgentRunResult, DeferredToolRequests, ModelMessage, RunContext
from pydantic_ai.capabilities import AbstractCapability, WrapRunHandler
from pydantic_ai.models import ModelRequestContext
from typing_extensions import override

from memshelf.agent.capabilities.archiving import archive_turn, newest_turns
from memshelf.agent.capabilities.first_input import enclosing, nested
from memshelf.agent.capabilities.single import SingleCapability
from memshelf.workspace.workspace import Workspace

__all__ = ["ConversationArchiveHooks"]


class ConversationArchiveHooks(SingleCapability):
    """Appends what users and assistants say to the archive of a workspace, and does nothing else with it.

    A run's turn is archived when the run ends, also when it fails; one that waits for approvals, when it is resumed and
    done. The run belongs to the user whom the workspace is set to when it begins. A failure of the archive is logged,
    and the answer stands. `WorkspaceCapability` does the same with `auto_archive`: use one of the two.
    """

    id: str | None = "memshelf-conversation-archive"

    def __init__(self, workspace: Workspace) -> None:
        if not isinstance(workspace, Workspace):
            raise TypeError(f"workspace is a Workspace, such as Workspace('./workspace'), not {workspace!r}.")
        self.workspace = workspace
        self._history: Sequence[ModelMessage] = ()
        self._nested = False

    @override
    async def for_run(self, ctx: RunContext[object]) -> AbstractCapability[object]:
        run = copy.copy(self)
        # A copy of the workspace stays with the user that it has.
        run.__dict__ |= {"workspace": copy.copy(self.workspace), "_history": (), "_nested": nested()}
        return run

    @override
    async def before_model_request(
        self, ctx: RunContext[object], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        self._history = ctx.messages
        return request_context

    @override
    async def wrap_run(self, ctx: RunContext[object], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        with enclosing():
            try:
                result = await handler()
            except Exception:  # however the run failed, what was said is archived, and the failure goes on
                await self._archive(ctx, self._history)
                raise
        if not isinstance(result.output, DeferredToolRequests):
            await self._archive(ctx, result.all_messages())
        return result

    async def _archive(self, ctx: RunContext[object], history: Sequence[ModelMessage]) -> None:
        if not self._nested:
            await archive_turn(self.workspace, newest_turns(history), ctx.conversation_id)
