"""The demo's model: a small program that decides from what the agent shows it.

It is asked once a turn of the loop and sees what a real model would see, the messages: what the user said, the memory
context, and what its own calls brought.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_ai import (
    ModelMessage,
    ModelResponse,
    TextContent,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

__all__ = ["Decide", "Seen", "changes_lines", "remembers", "result_text", "scripted", "tells"]

ABOUT = "Who the user is, and how to answer"


@dataclass(frozen=True, slots=True)
class Seen:
    """What one request shows the model of the run that it belongs to."""

    wish: str
    """What the user said."""
    context: tuple[str, ...]
    """The memory context, block by block."""
    results: tuple[ToolReturnPart, ...]
    """What the calls brought, oldest first."""

    @classmethod
    def of(cls, messages: Sequence[ModelMessage]) -> Seen:
        start, prompt = [
            (at, part) for at, each in enumerate(messages) for part in each.parts if isinstance(part, UserPromptPart)
        ][-1]
        contents = [prompt.content] if isinstance(prompt.content, str) else list(prompt.content)
        return cls(
            wish=" ".join(each for each in contents if isinstance(each, str)),
            context=tuple(each.content for each in contents if isinstance(each, TextContent)),
            results=tuple(part for each in messages[start:] for part in each.parts if isinstance(part, ToolReturnPart)),
        )

    def about(self) -> str | None:
        """The path of the file about the user, if the memory context lists one."""
        bodies = [json.loads(block.split("\n")[2]) for block in self.context]
        listed = [line for body in bodies for line in (*body.get("index", ()), *body.get("changed", ()))]
        return next((line.partition(": ")[0] for line in listed if line.endswith(ABOUT)), None)


Turn = Sequence[TextPart | ToolCallPart]
Decide = Callable[[Seen], Awaitable[Turn]]


def scripted(decide: Decide) -> FunctionModel:
    """A model for the agent loop that answers with `decide`."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        return ModelResponse(parts=list(await decide(Seen.of(messages))))

    return FunctionModel(answer, model_name="scripted")


async def remembers(seen: Seen) -> Turn:
    """Stores what the user said of themselves and of their project."""
    if not seen.results:
        lines = "".join(f"{line}\n" for line in _wanted(seen.wish).values())
        calls = [_call("create", path="prefs/me.md", content=f"---\ndescription: {ABOUT}\n---\n{lines}")]
        if project := re.search(r"I am building (.+?)\.", seen.wish):
            calls.append(_call("create", path="projects/current.md", content=f"The user is building {project[1]}.\n"))
        return calls
    paths = [_result(each)["path"] for each in seen.results if each.outcome == "success"]
    return [TextPart(f"I will remember that. It is in {' and '.join(paths)}.")]


async def tells(seen: Seen) -> Turn:
    """Answers what it knows of the user, from the file that the memory context lists."""
    if seen.results:
        facts = ", ".join(line.removeprefix("- ") for line in _lines(_result(seen.results[-1])["content"]))
        return [TextPart(f"My memory of you: {facts}.")]
    path = seen.about()
    if path is None:
        return [TextPart("I know nothing new about you.")]
    return [_call("view", path=path)]


def changes_lines(others: Callable[[], Awaitable[None]]) -> Decide:
    """Reads the file about the user, waits for the `others`, and edits the lines that it read to what the user said."""

    async def decide(seen: Seen) -> Turn:
        path = seen.about()
        if path is None:
            return [TextPart("There is nothing to change.")]
        if not seen.results:
            return [_call("view", path=path)]
        read, *edited = seen.results
        if not edited:
            await others()
        wanted = _wanted(seen.wish)
        edits = [(line, wanted[key]) for line in _lines(_result(read)["content"]) if (key := _key(line)) in wanted]
        if len(edited) < len(edits):
            old, new = edits[len(edited)]
            return [_call("edit", path=path, old_string=old, new_string=new)]
        return [TextPart(" ".join(_outcome(*each) for each in zip(edits, edited, strict=True)))]

    return decide


def _outcome(edit: tuple[str, str], result: ToolReturnPart) -> str:
    old, new = edit
    if result.outcome == "success":
        return f'Noted: "{new[2:]}".'
    now = next((line for line in _lines(_result(result)["current"]["content"]) if _key(line) == _key(old)), "gone")
    return f'Not changed: another conversation made "{old[2:]}" into "{now[2:]}" since I read it. Which is right?'


def _wanted(wish: str) -> dict[str, str]:
    """The lines that the user's words ask for, by what they are about."""
    lines = []
    if drink := re.search(r"I like (\w+)", wish):
        lines.append(f"- likes {drink[1]}")
    if language := re.search(r"answer in (\w+)", wish, re.IGNORECASE):
        lines.append(f"- reply in {language[1]}{', briefly' if 'briefly' in wish else ''}")
    return {_key(line): line for line in lines}


def _key(line: str) -> str:
    return line.split(" ")[1]


def _lines(content: str) -> list[str]:
    return [line for line in content.split("\n") if line.startswith("- ")]


def _call(tool: str, **arguments: str) -> ToolCallPart:
    return ToolCallPart(f"memory_file_{tool}", {"memory": "user", **arguments})


def result_text(result: ToolReturnPart) -> str:
    """A tool's result as the model reads it."""
    return result.content if isinstance(result.content, str) else result.model_response_str()


def _result(result: ToolReturnPart) -> Any:  # Any: the JSON of a tool's result
    return json.loads(result_text(result))
