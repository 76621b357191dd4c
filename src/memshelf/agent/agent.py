"""An agent with all that memshelf has for it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from pydantic_ai import Tool
from pydantic_ai.capabilities import AbstractCapability, AgentCapability
from pydantic_ai.models import Model
from pydantic_ai.output import OutputSpec
from pydantic_ai.tools import ToolFuncEither
from typing_extensions import TypeVar

from memshelf.agent.builder import checked_capabilities, pydantic_agent
from memshelf.agent.capabilities.compaction import CompactionCapability
from memshelf.agent.capabilities.history import HistoryWindowCapability
from memshelf.agent.capabilities.session import SessionLogCapability
from memshelf.agent.capabilities.summary import SessionSummaryCapability
from memshelf.agent.capabilities.workspace import WorkspaceCapability
from memshelf.agent.conversation import Conversation, KeptConversation, LoggedConversation
from memshelf.agent.permissions import ToolPermissions
from memshelf.agent.run import Executable
from memshelf.agent.spec import AgentSpec
from memshelf.arguments import checked_argument
from memshelf.threads.log import SessionLog
from memshelf.threads.memory import WorkingMemory
from memshelf.workspace.config import WorkspaceMemoryConfig
from memshelf.workspace.workspace import Workspace

__all__ = ["Agent"]

Output = TypeVar("Output", default=str)


class Agent(Executable[Output]):
    """An agent that remembers: an executable with threads, and with a model, tools and capabilities of yours.

    `model` is a name or a Pydantic AI model; without one the environment variable `MEMSHELF_MODEL` names it, and with
    neither the first run is a `ModelConfigurationError`. `instructions`, `tools` and `output_type` are Pydantic AI's.

    With `add_history_to_context`, a run goes on where the last one ended, and the model is shown at most
    `num_history_turns` turns before the current one (`None`: all). With a `session_id`, every message is in
    `<session_directory>/<session_id>.jsonl`, by default in `.sessions`, an agent with the same id goes on from there,
    in this process or a later one, and history is shown unless `add_history_to_context` is false. Without either, each
    run is a thread of its own.

    With a `workspace`, the agent has the long-term memory of the user whom that is set to when a run begins, as far as
    `long_term_memory_config` says. History that is kept in the object is kept for each user; a session is one user's.

    `working_memory` says how history is kept and summed up. Where the model's window is known, history is compacted
    before it outgrows that. One of the `capabilities` takes the place of the agent's own of the same kind.
    """

    def __init__(
        self,
        model: Model | str | None = None,
        *,
        instructions: Any = None,  # Any: the framework's union of what instructions may be
        tools: Sequence[Tool[Any] | ToolFuncEither[Any, ...]] = (),
        output_type: OutputSpec[Output] = str,  # type: ignore[assignment]  # the default of `Output`
        workspace: Workspace | None = None,
        long_term_memory_config: WorkspaceMemoryConfig | None = None,
        working_memory: WorkingMemory | None = None,
        session_id: str | None = None,
        session_directory: str | os.PathLike[str] | None = None,
        add_history_to_context: bool | None = None,
        num_history_turns: int | None = None,
        capabilities: Sequence[AgentCapability[Any]] = (),
        permissions: ToolPermissions | None = None,
    ) -> None:
        checked_capabilities(capabilities)
        for tool in checked_argument("tools", tools, Sequence):
            if not isinstance(tool, Tool) and not callable(tool):
                raise TypeError(f"`tools` are functions and Tool objects, not {type(tool).__name__}.")
        checked_argument("add_history_to_context", add_history_to_context, bool, None)
        memory = checked_argument("working_memory", working_memory, WorkingMemory, None) or WorkingMemory()
        if session_directory is not None and session_id is None:
            raise ValueError("session_directory says where a session is kept, and there is no session_id.")
        directory = session_directory if session_directory is not None else ".sessions"
        self.session = SessionLog(session_id, directory) if session_id is not None else None
        shown = self.session is not None if add_history_to_context is None else add_history_to_context
        conversation = _conversation(self.session, workspace, kept=shown or memory.create_session_summary)
        hidden = not shown and type(conversation) is not Conversation
        own: list[AbstractCapability[Any]] = [
            HistoryWindowCapability(memory, num_history_turns=0 if hidden else num_history_turns),
            SessionSummaryCapability(memory),
        ]
        if not hidden:
            own.append(CompactionCapability(memory=memory))
        if self.session is not None:
            own.append(SessionLogCapability(self.session))
        if workspace is not None:
            own.append(WorkspaceCapability(workspace, long_term_memory_config))
        elif long_term_memory_config is not None:
            raise ValueError("long_term_memory_config says what to do with a workspace, and there is none.")
        given = {type(each) for each in capabilities}
        agent = pydantic_agent(
            AgentSpec(),
            output_type,
            [*capabilities, *(each for each in own if type(each) not in given)],
            permissions,
            instructions=instructions,
            tools=tools,
        )
        super().__init__(agent, model, conversation)


def _conversation(session: SessionLog | None, workspace: Workspace | None, *, kept: bool) -> Conversation:
    if session is not None:
        return LoggedConversation(session)
    if not kept:
        return Conversation()
    return KeptConversation() if workspace is None else KeptConversation(lambda: workspace.user_id)
