"""Running an agent on a thread: in one go, or as a stream of events."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

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
from pydantic_ai.models import Model

from memshelf.agent.model import usable_model
from memshelf.agent.result import HarnessResult, Status
from memshelf.agent.state import HarnessState
from memshelf.agent.turn import Approval, HarnessInput, Turn

__all__ = ["Executable", "HarnessStream"]

Output = TypeVar("Output")


class Executable(Generic[Output]):
    """An agent that can be run, on any number of threads, also at a time. From `HarnessBuilder.build`.

    Each run opens and closes the connections of a model that is given by its name. Within `async with executable`,
    runs share them, and those of the agent's toolsets.
    """

    def __init__(self, agent: Agent[Any, Any], model: Model | str | None) -> None:
        self._agent = agent
        self._model = model
        self._usable: Model | str | None = None

    async def __aenter__(self) -> Self:
        self._agent.model = self._usable_model()
        await self._agent.__aenter__()
        return self

    async def __aexit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._agent.__aexit__(type_, error, traceback)

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
        raised: `ModelConfigurationError`, or `ValueError` and `TypeError` for the arguments. When the task that runs
        it is cancelled, `asyncio.CancelledError` is raised, and `HarnessResult.from_cancellation` has the result.
        """
        turn: Turn[Output] = Turn(input, previous_state, approvals, results)
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
        turn: Turn[Output] = Turn(input, previous_state, approvals, results)
        events = self._agent.run_stream_events(
            **turn.arguments, model=self._usable_model(), deps=deps, usage_limits=usage_limits
        )
        return HarnessStream(turn, events)

    def _usable_model(self) -> Model | str | None:
        capabilities = self._agent.root_capability
        if capabilities.has_resolve_model_id or capabilities.get_model() is not None:
            return self._model  # a capability chooses the model, or knows what the name stands for
        if self._usable is None:
            self._usable = usable_model(self._model)
        return self._usable


class HarnessStream(Generic[Output]):
    """The events of one run, and then its result.

    Iterate it once. Used as `async with`, it cancels the run when the block is left early; `cancel` stops it from
    anywhere. Either way `result` is there afterwards.
    """

    def __init__(self, turn: Turn[Output], run: AbstractAsyncContextManager[AgentRunEvents[Any]]) -> None:
        self._turn = turn
        self._run = run
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

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, type_: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AgentStreamEvent:
        if self._result is None and self._cancelled and self._events is None:
            await self._end("cancelled")
        if self._result is not None:
            raise StopAsyncIteration
        if self._events is None:
            self._events = await self._run.__aenter__()
        try:
            event = await anext(self._events)
        except (asyncio.CancelledError, KeyboardInterrupt) as error:
            (await self._end("cancelled")).attach_to(error)
            raise
        except RunCancelled:
            await self._end("cancelled")
        except Exception as error:  # noqa: BLE001  # anyone's tools and models; the result carries what they raised
            await self._end("failed", error)
        else:
            if not isinstance(event, AgentRunResultEvent):
                return event
            self._result = self._turn.ended(event.result)
            await self._run.__aexit__(None, None, None)
        raise StopAsyncIteration

    async def _end(self, status: Status, failure: Exception | None = None) -> HarnessResult[Output]:
        events = self._events
        if events is not None:
            await self._run.__aexit__(None, None, None)
        self._result = _stopped(self._turn, status, events, failure)
        return self._result


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
