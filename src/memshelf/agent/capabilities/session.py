"""The log of a session on an agent: every message is on the disk, and a later run goes on from there."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import Lock
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_ai import (
    AgentRunResult,
    DeferredToolRequests,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RunContext,
    ToolCallPart,
    ToolDefinition,
)
from pydantic_ai.capabilities import (
    AbstractCapability,
    AgentNode,
    CapabilityOrdering,
    ValidatedToolArgs,
    WrapRunHandler,
)
from pydantic_ai.messages import repair_messages
from pydantic_ai.models import ModelRequestContext
from typing_extensions import override

from memshelf.agent.capabilities.session_rows import Replayed, is_system_prompt, messages_of, rows_of
from memshelf.agent.capabilities.single import SingleCapability
from memshelf.agent.capabilities.summaries import made_after, resumed
from memshelf.agent.sendable import Sendable
from memshelf.agent.state import HarnessState, PendingCall, pending_calls, thread_state
from memshelf.arguments import checked_argument
from memshelf.errors import MemoryStoreError
from memshelf.threads.log import SessionLog
from memshelf.threads.rows import Row, strings, texts

__all__ = ["HAS_ATTEMPTS", "SessionLogCapability", "session_state"]

HAS_ATTEMPTS = hasattr(AbstractCapability, "prepare_model_request")  # the oldest supported Pydantic AI has not

_LOG = logging.getLogger(__name__)
_PENDING = TypeAdapter(list[PendingCall])


class SessionLogCapability(SingleCapability):
    """Writes every message of a session to `log`, and goes on with what is there.

    What a model is asked is in the log before it is asked, its response before the calls in it are made, and their
    results before it is asked again. So a crash loses only what was under way: the next run closes that turn, and
    tells the model which calls were interrupted. What cannot be logged is not asked: the run fails.

    A run that is given no history goes on with the session's. One that is given a history goes on with that, and what
    is new is logged. Runs of one session at the same time do not see each other; later ones see them one after the
    other. In what a model is sent, U+FFFD stands in the place of lone surrogates, which the log keeps: no request can
    carry them, and one in a tool's result would be the session's end.
    """

    id: str | None = "memshelf-session-log"

    def __init__(self, log: SessionLog) -> None:
        self.log = checked_argument("log", log, SessionLog)
        self._rows: dict[int, tuple[ModelMessage, list[Row]]] = {}  # by the identity of the message, which it keeps
        self._sent = Sendable()
        self._history: Sequence[ModelMessage] = ()
        self._instructions: str | None = None
        self._all_is_new = False
        self._state_is_new = False
        self._is_over = False
        self._writing = Lock()  # a request that is cancelled may still be logged while its run is closed already

    @override
    def get_ordering(self) -> CapabilityOrdering:
        return CapabilityOrdering(position="innermost")  # it logs what all the others have made of a request

    @override
    def get_default_conversation_id(self, run_id: str) -> str | None:
        return self.log.session_id

    @override
    async def for_run(self, ctx: RunContext[object]) -> AbstractCapability[object]:
        run = copy.copy(self)
        run.__dict__ |= {"_rows": {}, "_sent": Sendable(), "_history": (), "_instructions": None, "_writing": Lock()}
        return run

    @override
    async def wrap_run(self, ctx: RunContext[object], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        await _finished(lambda: self._open(ctx))
        state_before = copy.deepcopy(thread_state(ctx))
        try:
            result = await handler()
            await _finished(lambda: self._close(ctx, result, state_before))
        except (Exception, asyncio.CancelledError):
            self._is_over = True
            await _finished(lambda: self._cut_short(ctx))
            raise
        return result

    @override
    async def before_node_run(self, ctx: RunContext[object], *, node: AgentNode[object]) -> AgentNode[object]:
        await self._log(ctx)  # the response, before the calls in it are made
        return node

    @override
    async def before_model_request(
        self, ctx: RunContext[object], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        if HAS_ATTEMPTS:
            return request_context
        asked = ctx.messages[-1]
        asked.run_id = asked.run_id or ctx.run_id  # as the framework does next
        return await self.prepare_model_request(ctx, request_context)

    @override
    async def prepare_model_request(
        self, ctx: RunContext[object], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        await self._log(ctx)  # the request as all capabilities have left it
        return replace(request_context, messages=self._sent.of(request_context.messages))

    @override
    async def before_tool_execute(
        self, ctx: RunContext[object], *, call: ToolCallPart, tool_def: ToolDefinition, args: ValidatedToolArgs
    ) -> ValidatedToolArgs:
        self._require_that_it_goes_on()
        return args

    async def write_boundary(
        self, ctx: RunContext[object], summary: str, gone: Sequence[ModelMessage], kept: Sequence[ModelMessage]
    ) -> None:
        """Log that `summary` takes the place of `gone`. Of the messages that stay, those that were logged are named."""

        def write() -> None:
            self._find([*gone, *kept], ctx.run_id)
            rows = [row for message in kept for row in self._rows_of(message)]
            # A first message that is yet to be logged brings the system prompt itself.
            began = gone if self._rows_of(kept[0]) else ()
            prompts = [row for message in began for row in self._rows_of(message) if is_system_prompt(row)]
            self.log.boundary(summary, keep=[row["id"] for row in [*prompts, *rows]])

        await _finished(write)
        self._state_is_new = True

    def moved(self, before: Sequence[ModelMessage], after: Sequence[ModelMessage]) -> None:
        """The messages of a history were replaced by others that mean the same."""
        for old, new in zip(before, after, strict=True):
            if id(old) in self._rows:
                self._rows[id(new)] = (new, self._rows_of(old))

    def _open(self, ctx: RunContext[object]) -> None:
        if ctx.messages:
            self._all_is_new = not self.log.exists()
            return
        self.log.seal(suspended=ctx.prompt is not None)
        history, replayed = _replayed(self.log.load())
        for message, each in zip(history[len(history) - len(replayed) :], replayed, strict=True):
            self._rows[id(message)] = (message, each.rows)
        ctx.messages[:] = history

    async def _log(self, ctx: RunContext[object]) -> None:
        self._history = ctx.messages
        if self._new(ctx):
            await _finished(lambda: self._log_new(ctx))
        self._require_that_it_goes_on()

    def _require_that_it_goes_on(self) -> None:
        if self._is_over:  # the framework cancels what is under way in a run only after the run itself
            raise asyncio.CancelledError

    def _new(self, ctx: RunContext[object]) -> list[ModelMessage]:
        new: list[ModelMessage] = []
        for message in reversed(self._history):  # what is new is at the end
            if id(message) in self._rows or not (message.run_id == ctx.run_id or self._all_is_new):
                break
            new.append(message)
        return new[::-1]

    def _log_new(self, ctx: RunContext[object]) -> None:
        with self._writing:
            self._write_new(ctx)

    def _write_new(self, ctx: RunContext[object]) -> None:
        new = self._new(ctx)
        found: list[list[Row]] = []
        for message in new:
            found.append(rows_of(message, self._instructions))
            if isinstance(message, ModelRequest):
                self._instructions = message.instructions
        logged = iter(self.log.extend([row for rows in found for row in rows]) if any(found) else ())
        for message, rows in zip(new, found, strict=True):
            self._rows[id(message)] = (message, [next(logged) for _ in rows])
        self._all_is_new = False

    def _close(self, ctx: RunContext[object], result: AgentRunResult[Any], state_before: object) -> None:
        self._log_new(ctx)
        events: list[Row] = []
        last = next((each for each in reversed(self._history) if isinstance(each, ModelResponse)), None)
        if last is not None and last.run_id == ctx.run_id and (summary := made_after(last)) is not None:
            events.append({"event": "summary", "content": summary})
        if isinstance(result.output, DeferredToolRequests):
            pending = [call.model_dump(mode="json") for call in pending_calls(result.output)]
            events.append({"event": "suspended", "pending": pending})
        elif self._history and self._history[-1] is not last:
            events.append({"event": "completed"})  # with the results of calls, and no word of the model's after them
        state = thread_state(ctx)
        if state is not None and (state != state_before or (state and self._state_is_new)):
            events.append({"event": "state", "content": state})
        if events:
            self.log.extend([{"type": "event", **event} for event in events])

    def _cut_short(self, ctx: RunContext[object]) -> None:
        try:
            self._log_new(ctx)
            if any(message.run_id == ctx.run_id for message, _ in self._rows.values()):
                self.log.seal(suspended=True)
        except MemoryStoreError as error:  # why the run ended is what its caller has to know
            _LOG.warning("The end of a run could not be logged: %s", error.code)

    def _rows_of(self, message: ModelMessage) -> list[Row]:
        return self._rows[id(message)][1] if id(message) in self._rows else []

    def _find(self, messages: Sequence[ModelMessage], run_id: str | None) -> None:
        """Learn which rows the messages came from that a caller handed over as history."""
        unknown = [each for each in messages if id(each) not in self._rows and each.run_id not in (run_id, None)]
        if unknown:
            known = {_mark(each.message): each.rows for each in messages_of(self.log.load())}
            for message in unknown:
                if _mark(message) in known:
                    self._rows[id(message)] = (message, known[_mark(message)])


def session_state(log: SessionLog) -> HarnessState | None:
    """The thread of a session, to go on with as `previous_state`; `None` for a session without messages.

    A turn that was cut short is closed first, in the log too. It reads the disk: call it in a thread where that
    matters. `unavailable`, `write_unconfirmed`.
    """
    checked_argument("log", log, SessionLog).seal()
    rows = log.load()
    history, _ = _replayed(rows)
    if not history:
        return None
    state: dict[str, Any] = {}  # Any: JSON
    pending: list[PendingCall] = []
    for row in rows:
        if row["type"] != "event":
            pending = []
        elif row.get("event") == "suspended":
            pending = _pending(row)
        elif row.get("event") == "state" and isinstance(row.get("content"), dict):
            state = row["content"]
    history = repair_messages(history, repair_last_response=not pending)
    return HarnessState(thread_id=log.session_id, messages=history, capability_state=state, pending=pending)


def _replayed(rows: Sequence[Row]) -> tuple[list[ModelMessage], list[Replayed]]:
    replayed = messages_of(rows)
    history = [each.message for each in replayed]
    boundary = next((row for row in rows if row["type"] == "compact_boundary"), None)
    summary = "\n".join(texts(boundary.get("content"))) if boundary is not None else ""
    if boundary is None or not summary.strip():  # another program's may say nothing
        return history, replayed
    keep = set(strings(boundary.get("keep")))
    kept = sum(each.rows[0].get("id") in keep and each.rows[0]["type"] != "system" for each in replayed)
    return resumed(history, summary, max(kept, 1)), replayed


def _pending(row: Row) -> list[PendingCall]:
    try:
        return _PENDING.validate_python(row.get("pending"))
    except ValidationError:  # edited by hand, or by a newer version
        return []


def _mark(message: ModelMessage) -> object:
    return message.kind, message.run_id, message.timestamp


async def _finished(write: Callable[[], None]) -> None:
    """Do it in a thread, and to its end: what follows a cancellation must not overtake it.

    A task may be cancelled again while it waits, as frameworks and impatient users do.
    """
    task = asyncio.ensure_future(asyncio.to_thread(write))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as again:
            cancelled = again
    error = task.exception()
    if cancelled is not None:
        raise cancelled from error
    if error is not None:
        raise error
