"""What a run is asked, and what becomes of the thread, however it ends."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

from pydantic import JsonValue
from pydantic_ai import (
    AgentRunResult,
    DeferredToolRequests,
    DeferredToolResults,
    ModelMessage,
    ModelRequest,
    RunUsage,
    ToolApproved,
    ToolDenied,
    UserContent,
    UserPromptPart,
)
from pydantic_ai.messages import repair_messages

from memshelf.agent.capabilities.said import contents
from memshelf.agent.result import HarnessResult, Status
from memshelf.agent.state import HarnessState, PendingCall, ThreadCapability
from memshelf.arguments import checked_argument

__all__ = ["Approval", "HarnessInput", "Turn"]

HarnessInput: TypeAlias = str | Sequence[UserContent] | ModelRequest
Approval: TypeAlias = bool | ToolApproved | ToolDenied
Output = TypeVar("Output")


class Turn(Generic[Output]):
    """One run on one thread.

    `arguments` are what the run is started with, and `ended` is told how the thread is then. `ValueError` and
    `TypeError` for input that cannot be run: nothing to say, or answers that do not fit the calls that the thread waits
    for.
    """

    def __init__(
        self,
        input: HarnessInput | None,
        previous: HarnessState | None,
        approvals: Mapping[str, Approval] | None,
        results: Mapping[str, object] | None,
        ended: Callable[[HarnessState], None] = lambda _: None,
    ) -> None:
        if previous is not None and not isinstance(previous, HarnessState):
            given = type(previous).__name__
            raise TypeError(f"previous_state is a HarnessState, such as the state of a result, not a {given}.")
        if input is None and (previous is None or not previous.messages):
            raise ValueError("A new thread needs an input.")
        checked_argument("approvals", approvals, Mapping, None)
        checked_argument("results", results, Mapping, None)
        self._before = previous if previous is not None else HarnessState(thread_id=str(uuid.uuid4()))
        self._ended = ended
        self._kept: dict[str, JsonValue] = copy.deepcopy(self._before.capability_state)
        self.arguments: dict[str, Any] = {  # Any: the parameters of the framework's runs
            "user_prompt": _prompt(input),
            "message_history": self._before.messages,
            "deferred_tool_results": _answers(self._before.pending, approvals or {}, results or {}),
            "conversation_id": self._before.thread_id,
            "capabilities": [ThreadCapability(self._kept)],
        }

    def ended(self, result: AgentRunResult[Any]) -> HarnessResult[Output]:
        """The run came to an end of its own."""
        requests = result.output if isinstance(result.output, DeferredToolRequests) else None
        state = self._before.following(list(result.all_messages()), self._kept, requests)
        self._ended(state)
        if requests is not None:
            return HarnessResult(status="suspended", state=state, usage=result.usage, run_id=result.run_id)
        return HarnessResult(
            status="completed", state=state, usage=result.usage, run_id=result.run_id, output=result.output
        )

    def stopped(
        self,
        status: Status,
        messages: Sequence[ModelMessage] | None,
        usage: RunUsage | None,
        failure: Exception | None = None,
    ) -> HarnessResult[Output]:
        """The run failed or was cancelled, with these messages, or before it began (`None`)."""
        state = self._before
        if messages is not None and list(messages) != state.messages:
            # Calls that got no result are answered as interrupted: no provider accepts an open one. A run that did
            # nothing leaves the thread as it was, with the calls that it waits for.
            state = state.following(repair_messages(messages), self._kept)
        self._ended(state)
        return HarnessResult(status=status, state=state, usage=usage or RunUsage(), failure=failure)


def _prompt(input: HarnessInput | None) -> str | Sequence[UserContent] | None:
    if isinstance(input, ModelRequest):
        parts = [part for part in input.parts if isinstance(part, UserPromptPart)]
        if len(parts) != len(input.parts):
            raise ValueError("A message that is given as input holds user content only.")
        input = parts[0].content if len(parts) == 1 else [each for part in parts for each in contents(part)]
    if input is None:
        return None
    if not isinstance(input, str | list | tuple):
        raise TypeError(f"An input is text, a list of content parts, or a message, not {type(input).__name__}.")
    if not input:
        raise ValueError("The input is empty.")
    return input


def _answers(
    pending: Sequence[PendingCall], approvals: Mapping[str, Approval], results: Mapping[str, object]
) -> DeferredToolResults | None:
    asked = {call.tool_call_id for call in pending if call.kind == "approval"}
    outside = {call.tool_call_id for call in pending if call.kind == "external"}
    if unknown := sorted((approvals.keys() - asked) | (results.keys() - outside)):
        raise ValueError(f"This thread does not wait for an answer of that kind to {', '.join(unknown)}.")
    if open_ := [call for call in pending if call.tool_call_id not in approvals.keys() | results.keys()]:
        calls = ", ".join(
            f"{call.name} ({'approvals' if call.kind == 'approval' else 'results'}={{{call.tool_call_id!r}: ...}})"
            for call in open_
        )
        raise ValueError(f"This thread is suspended, and goes on when every call is answered: {calls}.")
    for call, answer in approvals.items():
        if not isinstance(answer, bool | ToolApproved | ToolDenied):
            raise TypeError(f"The approval of {call} is True, False, ToolApproved or ToolDenied, not {answer!r}.")
    if not pending:
        return None
    return DeferredToolResults(approvals=dict(approvals), calls=dict(results))
