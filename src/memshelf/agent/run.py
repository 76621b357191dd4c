"""Running an agent on a thread: in one go, or as a stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

from pydantic_ai import (
    Agent,
    AgentRun,
    AgentRunEvents,
    AgentRunResultEvent,
    AgentStreamEvent,
    ModelMessage,
    RunCancelled,
    RunUsage,
    UsageLimits,
    UserError,
)
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.models import Model

from memshelf.agent.conversation import Conversation
from memshelf.agent.loop import run_sync
from memshelf.agent.model import usable_model
from memshelf.agent.result import HarnessResult, Status
from memshelf.agent.state import HarnessState
from memshelf.agent.turn import Approval, HarnessInput, Turn
from memshelf.arguments import checked_argument
from memshelf.closing import Closes

__all__ = ["Executable", "HarnessStream"]

Output = TypeVar("Output")
Started: TypeAlias = tuple[Turn[Output], AbstractAsyncContextManager[AgentRunEvents[Any]]]
"""A run that is set up, and has yet to begin."""


@runtime_checkable
class LeavesWork(Protocol):
    """A capability that goes on with something when a run has its answer."""

    async def settled(self) -> None:
        """Wait for what was begun in this event loop."""
        ...


class Executable(Generic[Output]):
    """An agent that can be run, on any number of threads, also at a time. From `HarnessBuilder.build`.

    Each run opens and closes the connections of a model that is given by its name. Within `async with executable`,
    runs share them, and those of the agent's toolsets, and its end waits until all has `settled`. A run that is given
    no state goes on from the `conversation`; by default each is a thread of its own.
    """

    def __init__(
        self, agent: Agent[Any, Any], model: Model | str | None, conversation: Conversation | None = None
    ) -> None:
        self._agent = agent
        self._model = checked_argument("model", model, str, Model, None)
        self._conversation = conversation or Conversation()
        self._usable: Model | str | None = None

    async def __aenter__(self) -> Self:
        self._agent.model = self._usable_model()
        await self._agent.__aenter__()
        return self

    async def __aexit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self.settled()
        finally:  # whoever is tired of waiting still has connections to close
            await self._agent.__aexit__(type_, error, traceback)

    async def settled(self) -> None:
        """Wait for what runs in this event loop left to be done in the background, such as extracting memories."""
        capabilities: list[AbstractCapability[Any]] = []
        self._agent.root_capability.apply(capabilities.append)
        for each in capabilities:
            if isinstance(each, LeavesWork):
                await each.settled()

    async def run(
        self,
        input: HarnessInput | None,
        *,
        previous_state: HarnessState | None = None,
        approvals: Mapping[str, Approval] | None = None,
        results: Mapping[str, object] | None = None,
        deps: object = None,
        usage_limits: UsageLimits | None = None,
    ) -> HarnessResult[Output]:
        """Run until the agent answers, waits, fails or is cancelled.

        `input` is text, a list of content parts, or a message with user content; `None` goes on with a thread that
        was suspended or stopped. A suspended thread needs an answer to every pending call, by its `tool_call_id`:
        `approvals` for those to approve, `results` for those whose result comes from outside. `deps` are what the
        agent's tools get.

        Whatever goes wrong in the run is in the result, with the thread as it is then. What cannot be run at all is
        raised: `ModelConfigurationError`, `ValueError` and `TypeError` for the arguments, `MemoryStoreError` for a
        session that cannot be read. When the task that runs it is cancelled, `asyncio.CancelledError` is raised, and
        `HarnessResult.from_cancellation` has the result.
        """
        checked_argument("usage_limits", usage_limits, UsageLimits, None)
        kept = await self._kept() if previous_state is None else None
        turn = self._turn(input, previous_state, kept, approvals, results)
        started: AgentRun[Any, Any] | None = None
        model = self._usable_model()
        try:
            async with self._agent.iter(**turn.arguments, model=model, deps=deps, usage_limits=usage_limits) as started:
                async for _ in started:
                    pass
        except (asyncio.CancelledError, KeyboardInterrupt) as error:
            _stopped(turn, "cancelled", started).attach_to(error)
            raise
        except RunCancelled:
            return _stopped(turn, "cancelled", started)
        except Exception as error:  # noqa: BLE001  # anyone's tools and models; the result carries what they raised
            return _stopped(turn, "failed", started, error)
        if started.result is None:
            raise RuntimeError("The run ended without a result.")
        return turn.ended(started.result)

    def run_sync(
        self,
        input: HarnessInput | None,
        *,
        previous_state: HarnessState | None = None,
        approvals: Mapping[str, Approval] | None = None,
        results: Mapping[str, object] | None = None,
        deps: object = None,
        usage_limits: UsageLimits | None = None,
    ) -> HarnessResult[Output]:
        """`run` for code without an event loop, and then `settled`. `RuntimeError` where one is running."""

        async def run() -> HarnessResult[Output]:
            result = await self.run(
                input,
                previous_state=previous_state,
                approvals=approvals,
                results=results,
                deps=deps,
                usage_limits=usage_limits,
            )
            await self.settled()
            return result

        return run_sync(run())

    def stream(
        self,
        input: HarnessInput | None,
        *,
        previous_state: HarnessState | None = None,
        approvals: Mapping[str, Approval] | None = None,
        results: Mapping[str, object] | None = None,
        deps: object = None,
        usage_limits: UsageLimits | None = None,
    ) -> HarnessStream[Output]:
        """Run like `run`, and see what happens while it does.

        `async for event in stream` yields Pydantic AI's events: parts of the answer as they come, tool calls and their
        results, and the events of capabilities. `stream.result` is there when it ends.
        """
        checked_argument("usage_limits", usage_limits, UsageLimits, None)
        model = self._usable_model()
        # What cannot be run is raised here, unless the thread has to be read first.
        reads = previous_state is None and self._conversation.on_disk
        known = None if reads else self._turn(input, previous_state, self._conversation.state(), approvals, results)

        async def start() -> Started[Output]:
            turn = known or self._turn(input, None, await self._kept(), approvals, results)
            events = self._agent.run_stream_events(**turn.arguments, model=model, deps=deps, usage_limits=usage_limits)
            return turn, events

        return HarnessStream(start)

    async def _kept(self) -> HarnessState | None:
        if self._conversation.on_disk:
            return await asyncio.to_thread(self._conversation.state)
        return self._conversation.state()

    def _turn(
        self,
        input: HarnessInput | None,
        given: HarnessState | None,
        kept: HarnessState | None,
        approvals: Mapping[str, Approval] | None,
        results: Mapping[str, object] | None,
    ) -> Turn[Output]:
        ended = self._conversation.begun(kept if given is None else None)
        return Turn(input, kept if given is None else given, approvals, results, ended)

    def _usable_model(self) -> Model | str | None:
        capabilities = self._agent.root_capability
        if capabilities.has_resolve_model_id or capabilities.get_model() is not None:
            return self._model  # a capability chooses the model, or knows what the name stands for
        if self._usable is None:
            self._usable = usable_model(self._model)
        return self._usable


class HarnessStream(Closes, Generic[Output]):
    """The events of one run, and then its result.

    Iterate it once. Used as `async with`, it cancels the run when the block is left early; `cancel` stops it from
    anywhere. Either way `result` is there afterwards.
    """

    def __init__(self, start: Callable[[], Awaitable[Started[Output]]]) -> None:
        self._start = start
        self._started: Started[Output] | None = None
        self._events: AgentRunEvents[Any] | None = None
        self._cancelled = False
        self._result: HarnessResult[Output] | None = None

    @property
    def result(self) -> HarnessResult[Output]:
        """How the run ended. `RuntimeError` while it has not."""
        if self._result is None:
            raise RuntimeError("The run has not ended; its result is there when the iteration is over.")
        return self._result

    def cancel(self) -> None:
        """Stop the run; the iteration then ends. From any task or thread."""
        self._cancelled = True
        if self._events is not None:
            self._events.cancel()

    async def aclose(self) -> None:
        """Stop the run if it has not ended."""
        if self._result is None:
            await self._end("cancelled")

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentStreamEvent:
        if self._result is not None:
            raise StopAsyncIteration
        turn, run = await self._begun()
        if self._events is None:
            self._events = await run.__aenter__()
            if self._cancelled:
                self._events.cancel()
        try:
            event = await anext(self._events)
        except (asyncio.CancelledError, KeyboardInterrupt) as error:
            await self._end("cancelled")
            self.result.attach_to(error)
            raise
        except RunCancelled:
            await self._end("cancelled")
        except Exception as error:  # noqa: BLE001  # anyone's tools and models; the result carries what they raised
            await self._end("failed", error)
        else:
            if not isinstance(event, AgentRunResultEvent):
                return event
            self._result = turn.ended(event.result)
            await run.__aexit__(None, None, None)
        raise StopAsyncIteration

    async def _end(self, status: Status, failure: Exception | None = None) -> None:
        turn, run = await self._begun()
        try:
            if self._events is not None:
                await run.__aexit__(None, None, None)
        except asyncio.CancelledError as again:  # by somebody who does not wait for the end
            self._result = _stopped(turn, status, self._events, failure)
            self._result.attach_to(again)
            raise
        self._result = _stopped(turn, status, self._events, failure)

    async def _begun(self) -> Started[Output]:
        if self._started is None:
            self._started = await self._start()
        return self._started


def _stopped(
    turn: Turn[Output],
    status: Status,
    run: AgentRun[Any, Any] | AgentRunEvents[Any] | None,
    failure: Exception | None = None,
) -> HarnessResult[Output]:
    messages, usage = _reached(run)
    return turn.stopped(status, messages, usage, failure)


def _reached(run: AgentRun[Any, Any] | AgentRunEvents[Any] | None) -> tuple[Sequence[ModelMessage] | None, RunUsage]:
    if run is None:
        return None, RunUsage()
    try:
        return run.all_messages(), run.usage
    except UserError:  # a stream whose run never began
        return None, RunUsage()
