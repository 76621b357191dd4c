"""What the demo shows: five conversations and one memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from pydantic_ai import ModelMessage, TextContent, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

from memshelf.agent.builder import HarnessBuilder
from memshelf.agent.capabilities.files import FileMemoryCapability
from memshelf.agent.spec import AgentSpec
from memshelf.agent.state import HarnessState
from memshelf.cli import render
from memshelf.cli.demo import STORYTELLER
from memshelf.cli.scripted import Decide, changes_lines, remembers, result_text, scripted, tells
from memshelf.files.backends.sqlite import SqliteFileStore
from memshelf.files.mount import FileMount, MemoryCursors
from memshelf.files.protocol import FileStore
from memshelf.origin import Origin

__all__ = ["tell"]

_LEAD = """\
The agent loop, the tools and the store are the real ones. The model is scripted: a small program that decides
from what it is shown. No key, no network. Behind each | stands what the model saw or said.
The memory is kept in {database}, with SQLite."""

_FACTS = "I like tea. Please answer in English. I am building an oak bookshelf."

_SECONDS = 60.0  # far more than it takes; two conversations that wait for each other must not wait for ever


async def tell(database: Path) -> None:
    """Run the story on a new database, and print it."""
    render.line(_LEAD.format(database=render.visible_line(str(database))))
    async with SqliteFileStore(database) as store, asyncio.timeout(_SECONDS):
        first = _Conversation(1, store)
        _chapter("1. A conversation stores what will matter later")
        first.show(await first.hears(f"{_FACTS} Remember that.", remembers))
        _chapter("2. A new conversation knows it")
        second = _Conversation(2, store)
        second.show(await second.hears("What do you know about me?", tells))
        await _meanwhile(store)
        _chapter("5. The second conversation goes on, and is told only what changed since")
        second.show(await second.hears("What do you know about me now?", tells))
        await _history(store)


async def _meanwhile(store: FileStore) -> None:
    third, fourth = _Conversation(3, store), _Conversation(4, store)
    read, changed = asyncio.Event(), asyncio.Event()

    async def once_the_fourth_has_read() -> None:
        await read.wait()

    async def until_the_third_has_changed() -> None:
        read.set()
        await changed.wait()

    async def third_hears() -> Sequence[ModelMessage]:
        messages = await third.hears("From now on, answer in Chinese.", changes_lines(once_the_fourth_has_read))
        changed.set()
        return messages

    in_third, in_fourth = await asyncio.gather(
        third_hears(),
        fourth.hears("I like coffee now. And answer in English, briefly.", changes_lines(until_the_third_has_changed)),
    )
    _chapter("3. Two conversations at a time: both have read the file, and this one changes a line of it first")
    third.show(in_third)
    _chapter("4. The other changes another line, and both changes remain; its change of the same line is refused")
    fourth.show(in_fourth)


class _Conversation:
    """A thread with the memory mounted: the public harness, as any program uses it."""

    def __init__(self, number: int, store: FileStore) -> None:
        self._number = number
        self._cursors = MemoryCursors()
        self._memory = FileMemoryCapability(
            [FileMount("user", store, "write", always_load=("README.md",))],
            cursors=self._cursors,
            origin=Origin(principal_id=f"{STORYTELLER}{number}"),
        )
        self._state: HarnessState | None = None

    async def hears(self, said: str, decide: Decide) -> Sequence[ModelMessage]:
        """One run; returns the messages that it added to the thread."""
        executable = HarnessBuilder().build(AgentSpec(), model=scripted(decide), capabilities=[self._memory])
        before = len(self._state.messages) if self._state is not None else 0
        result = await executable.run(said, previous_state=self._state)
        result.output_or_raise()
        self._state = result.state
        return result.state.messages[before:]

    def show(self, messages: Sequence[ModelMessage]) -> None:
        """Print what the user said, what the model was shown, and what it did."""
        for part in (part for message in messages for part in message.parts):
            match part:
                case UserPromptPart(content=content):
                    contents = [content] if isinstance(content, str) else content
                    blocks = [each.content for each in contents if isinstance(each, TextContent)]
                    self._say("user says", *(each for each in contents if isinstance(each, str)))
                    self._say("model sees", *(blocks or ["(no memory context: nothing changed)"]))
                case ToolCallPart():
                    self._say("model calls", f"{part.tool_name} {part.args_as_json_str()}")
                case ToolReturnPart():
                    self._say("refused" if part.outcome == "failed" else "result", result_text(part))
                case TextPart(content=text):
                    self._say("model says", text)

    def _say(self, label: str, *texts: str) -> None:
        for text in texts:
            for line in text.split("\n"):
                shown = "red" if label == "refused" else "bright_black"
                render.line(f"{render.paint(f'{label:>11} |', shown)} {render.visible_line(line)}")
                label = ""


async def _history(store: SqliteFileStore) -> None:
    page = await store.versions()
    _chapter("What the store kept, newest first")
    render.table(
        [
            [version.operation, version.path or "", version.id, version.origin.principal_id or ""]
            for version in page.versions
        ],
        header=("OPERATION", "PATH", "VERSION", "BY"),
    )
    render.line("")


def _chapter(title: str) -> None:
    render.line(f"\n{render.paint(title, 'cyan')}")
