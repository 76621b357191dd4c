"""The conversation of `memshelf chat`: turns on one thread, on a terminal or once."""

from __future__ import annotations

import asyncio
import json
import secrets
import sys
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import click
from pydantic_ai import (
    AgentStreamEvent,
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    RetryPromptPart,
    TextPart,
    TextPartDelta,
    ToolCallPart,
    ToolDenied,
    ToolReturnPart,
)
from pydantic_ai.capabilities import AbstractCapability

from memshelf.agent.builder import HarnessBuilder
from memshelf.agent.capabilities.compaction import CompactionCapability
from memshelf.agent.capabilities.files import FileMemoryCapability
from memshelf.agent.capabilities.session import SessionLogCapability, session_state
from memshelf.agent.capabilities.workspace import WorkspaceCapability
from memshelf.agent.model import ModelConfigurationError, usable_model
from memshelf.agent.permissions import Permission, ToolPermissions, require_memory_tool
from memshelf.agent.result import HarnessResult
from memshelf.agent.run import Executable
from memshelf.agent.spec import AgentSpec
from memshelf.agent.state import PendingCall
from memshelf.agent.turn import Approval
from memshelf.cli import render
from memshelf.cli.command import Unavailable, agrees
from memshelf.cli.memory import Mounted, Store, exists, origin
from memshelf.cli.mounts import say_what_is_new
from memshelf.cli.thread import held, opened
from memshelf.cli.workspace_place import say_if_new
from memshelf.errors import MemoryStoreError
from memshelf.files.mount import MemoryCursors
from memshelf.threads.log import SessionLog
from memshelf.workspace.workspace import Workspace

__all__ = ["Party", "hold"]

_CURSORS = "cursors"
"""The event that says what the thread has seen of each memory. It belongs to the messages before it."""

_FAREWELLS = ("exit", "quit", "退出")
_HELP = (
    "Every line goes to the model as a question, but for /help. Ctrl-C stops an answer. To leave: Ctrl-D, or a line "
    "that is only exit, quit or 退出."
)
_UNANSWERED = ToolDenied("The user did not approve this call. Go on without it.")


@dataclass(frozen=True, slots=True)
class Party:
    """Who talks: the model, the memories that it has, and what it may do with them."""

    model: str
    memories: Sequence[Mounted]
    workspace: Workspace | None
    rules: Mapping[str, Permission]

    def executable(self, cursors: MemoryCursors, log: SessionLog, *, may_ask: bool) -> Executable[str]:
        mounts = [each.mount for each in self.memories]
        rules = {rule: "deny" if each == "ask" and not may_ask else each for rule, each in self.rules.items()}
        try:
            for rule in rules:  # a chat has no other tools: what names none of them would be ignored
                require_memory_tool(rule)
            capabilities: list[AbstractCapability[object]] = [SessionLogCapability(log), CompactionCapability()]
            if self.workspace is not None:
                capabilities.append(WorkspaceCapability(self.workspace, origin=origin()))
            if mounts:
                capabilities.append(FileMemoryCapability(mounts, cursors=cursors, origin=origin()))
            return HarnessBuilder().build(
                AgentSpec(model=self.model), capabilities=capabilities, permissions=ToolPermissions(rules=rules)
            )
        except ValueError as error:
            raise click.UsageError(str(error)) from None


def hold(party: Party, *, directory: Path, thread: str | None, new: bool, question: str | None) -> None:
    """Hold the thread and talk: once with a `question`, else until the user leaves."""
    unnamed = f"{datetime.now().astimezone():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"
    log = opened(directory, thread if thread is not None else unnamed, "--thread")
    # Mounts and rules that cannot be are refused before anything else.
    party.executable(MemoryCursors(), log, may_ask=True)
    try:
        usable_model(party.model)  # else a person would learn only after the first question that no key is set
    except ModelConfigurationError as error:
        raise Unavailable(str(error)) from None
    with held(log), asyncio.Runner() as runner:
        conversation = _Conversation(runner, party, log)
        if new and not conversation.is_new:
            raise click.UsageError(f"Thread {log.session_id} exists already. Leave out --new to go on with it.")
        if thread is None or sys.stderr.isatty():  # without a name nobody could find it out later
            leave = " For help: /help. To leave: Ctrl-D, or exit." if question is None else ""
            render.note(f"Thread {log.session_id}.{leave} To go on with it later: --thread {log.session_id}")
        try:
            if party.workspace is not None:
                runner.run(say_if_new(party.workspace))
            if question is not None:
                say_what_is_new(party.memories)
            if question is None:
                runner.run(_introduce(party))
                _until_left(conversation)
            elif not question.strip():
                raise click.UsageError("The question is empty.")
            elif (failure := conversation.say(question)) is not None:
                raise Unavailable(failure)
        finally:
            runner.run(_close(party.memories))


async def _introduce(party: Party) -> None:
    """Say which memories are mounted, where, and what is in them."""
    if (workspace := party.workspace) is not None:
        try:
            entries = len(await workspace.list_entries())
        except MemoryStoreError as error:
            held = render.visible_line(f"{error.code}: {error.message}")
        else:
            held = "1 entry" if entries == 1 else f"{entries} entries"
        where = render.visible_line(str(workspace.path))
        render.note(f"Workspace {where}: {render.visible_line(workspace.user_id)} ({held})")
    for each in party.memories:
        held = "new"
        if exists(each.place):
            try:
                files = len(await each.mount.store.list())
            except MemoryStoreError as error:  # the conversation goes on without it, as the model is told
                held = render.visible_line(f"{error.code}: {error.message}")
            else:
                held = render.counted(files, "file")
        render.note(f"Memory {each.mount.name}: {render.visible_line(each.place.text)} ({each.mount.access}, {held})")


def _until_left(conversation: _Conversation) -> None:
    turn = conversation.settle
    while True:
        try:
            failure = turn()
        except (KeyboardInterrupt, click.Abort):
            render.note("\nStopped.")
        else:
            if failure is not None:
                render.note(f"error: {render.visible_line(failure)}")
        try:
            while (line := _line()).strip().lower() in ("/help", "/帮助"):
                render.note(_HELP)
        except (KeyboardInterrupt, EOFError):
            render.note("")
            return
        if line.strip().lower().removeprefix("/") in _FAREWELLS:
            return
        turn = partial(conversation.say, line)


def _line() -> str:
    """The next line that says something. On a terminal it can be edited, and earlier ones come back with the arrows."""
    with suppress(ImportError):
        import readline  # noqa: F401  # importing it is what changes `input`, and nothing but a prompt wants that
    while True:
        if render.on_terminal():
            text = input("> ")
        else:
            click.echo("> ", nl=False, err=True)
            text = input()
        if text.strip():
            return text


class _Conversation:
    """The turns of one thread. Whatever ends a turn, what was said is kept, and the next turn can follow."""

    def __init__(self, runner: asyncio.Runner, party: Party, log: SessionLog) -> None:
        self._runner = runner
        self._party = party
        self._log = log
        self._state = session_state(log)
        rows = log.load()
        events = [row.get("content") for row in rows if row["type"] == "event" and row.get("event") == _CURSORS]
        # One that was edited by hand may be of any shape; without it, the memories are shown as they are.
        seen = [each for each in events if isinstance(each, dict) and all(isinstance(at, str) for at in each.values())]
        self._cursors: dict[str, str] = seen[-1] if seen else {}
        self._last_row = rows[-1].get("id") if rows else None
        self._may_ask = sys.stdin.isatty()
        self._asked: set[str] = set()

    @property
    def is_new(self) -> bool:
        return self._state is None

    def say(self, text: str) -> str | None:
        """One turn, printed as it comes. Returns why it failed. Ctrl-C stops it, with `KeyboardInterrupt`.

        What an earlier turn still waits for is not approved.
        """
        waiting: dict[str, Approval] = {call.tool_call_id: _UNANSWERED for call in self._pending()}
        return self._turn(text, waiting) or self.settle()

    def settle(self) -> str | None:
        """Ask about the calls that wait for approval, until there are none."""
        while pending := self._pending():
            answers = {call.tool_call_id: self._approval(call) if self._may_ask else _UNANSWERED for call in pending}
            if (failure := self._turn(None, answers)) is not None:
                return failure
        return None

    def _approval(self, call: PendingCall) -> Approval:
        self._asked.add(call.tool_call_id)
        arguments = render.visible_line(json.dumps(call.args, ensure_ascii=False))
        if agrees(f"{render.visible_line(call.name)} {arguments}\nAllow this call?"):
            return True
        render.note("Refused.")
        return _UNANSWERED

    def _pending(self) -> Sequence[PendingCall]:
        return self._state.pending if self._state is not None else ()

    def _turn(self, text: str | None, approvals: Mapping[str, Approval]) -> str | None:
        try:
            failure = self._runner.run(self._run(text, approvals))
        except ModelConfigurationError as error:
            raise Unavailable(str(error)) from None
        return f"{type(failure).__name__}: {failure}" if failure is not None else None

    async def _run(self, text: str | None, approvals: Mapping[str, Approval]) -> Exception | None:
        cursors = MemoryCursors(self._cursors)
        executable = self._party.executable(cursors, self._log, may_ask=self._may_ask)
        printer = _Printer(self._asked)
        try:
            async with executable.stream(text, previous_state=self._state, approvals=approvals) as stream:
                async for event in stream:
                    printer.show(event)
        except asyncio.CancelledError as error:
            cancelled: HarnessResult[str] | None = HarnessResult.from_cancellation(error)
            if cancelled is not None:
                self._keep(cancelled, cursors)
            raise
        finally:
            printer.end()
        self._keep(stream.result, cursors)
        return stream.result.failure

    def _keep(self, result: HarnessResult[str], cursors: MemoryCursors) -> None:
        """Go on with the thread as it is now, unless the model never answered: then the turn is taken back."""
        before = {message.run_id for message in self._state.messages} if self._state is not None else set()
        answers = [each for each in result.state.messages if isinstance(each, ModelResponse) and each.parts]
        if all(each.run_id in before for each in answers):
            self._take_back()
            return
        self._state, self._cursors = result.state, cursors.snapshot()
        self._last_row = self._log.append("event", self._cursors, event=_CURSORS)["id"]

    def _take_back(self) -> None:
        if self._state is None:
            self._log.delete()
            return
        rows = [row.get("id") for row in self._log.rows()]
        last = max((at for at, row in enumerate(rows) if row == self._last_row), default=-1)
        self._last_row = self._log.retract([row for row in rows[last + 1 :] if row is not None])["id"]


async def _close(memories: Sequence[Mounted]) -> None:
    for each in memories:
        if isinstance(each.mount.store, Store):
            await each.mount.store.aclose()


class _Printer:
    """Prints an answer as it comes; what the model does meanwhile goes to standard error, for who looks at it.

    A call is printed with its outcome, unless it is one of those `asked` about: the question has shown it.
    """

    def __init__(self, asked: Collection[str]) -> None:
        self._asked = asked
        self._calls: dict[str, ToolCallPart] = {}
        self._open = False

    def show(self, event: AgentStreamEvent) -> None:
        match event:
            case PartStartEvent(part=TextPart(content=text)):
                self.end()
                self._print(text)
            case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                self._print(text)
            case FunctionToolCallEvent(part=call):
                self._calls[call.tool_call_id] = call
            case FunctionToolResultEvent(part=result) if sys.stderr.isatty() and result.tool_call_id in self._calls:
                self._note(self._calls[result.tool_call_id], result)

    def _note(self, call: ToolCallPart, result: ToolReturnPart | RetryPromptPart) -> None:
        if call.tool_call_id in self._asked:
            return
        self.end()
        outcome = result.outcome if isinstance(result, ToolReturnPart) else "failed"
        ending = "" if outcome == "success" else f": {outcome}"
        text = f"{call.tool_name} {call.args_as_json_str()}"
        render.note(f"· {render.visible_line(text)}{ending}")

    def end(self) -> None:
        """Close the line that is being written."""
        if self._open:
            click.echo()
        self._open = False

    def _print(self, text: str) -> None:
        if text:
            click.echo(render.visible(text) if render.on_terminal() else text, nl=False)
            self._open = not text.endswith("\n")
