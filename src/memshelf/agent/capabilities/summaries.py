"""Where the summary of a thread stands in its messages.

A summary that took the place of a part of the history stands before the user's text in the first message that stayed.
One that was made after a run stands in the metadata of the run's last response, which no model is sent, and of the
request before it: to who streams a response, the framework hands a copy of it. So the messages carry their summary,
wherever they are stored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

from pydantic_ai import ModelMessage, ModelRequest, ModelResponse, TextContent, UserContent, UserPromptPart
from pydantic_ai.messages import ModelRequestPart

from memshelf.agent.capabilities.said import SAID, contents, is_ours, memory_text, notes
from memshelf.threads.compaction import Cut
from memshelf.threads.summary import summary_block

__all__ = [
    "Told",
    "attach",
    "is_summary",
    "kept_from",
    "latest",
    "made_after",
    "replaced",
    "resumed",
    "rewrite",
    "seen_since",
]

_SUMMARY = "summary"
_KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Told:
    """A summary of what was before the messages, and of the first `messages` of them; `shown` if they show it."""

    summary: str
    messages: int
    shown: bool


def latest(history: Sequence[ModelMessage]) -> Told | None:
    """The newest summary in a history."""
    for index in reversed(range(len(history))):
        message = history[index]
        if message.metadata is not None and (made := made_after(message)) is not None:
            told = index + 1 if isinstance(message, ModelResponse) else index + 2
            return Told(made, min(told, len(history)), shown=False)
        if (stands := _standing(message)) is not None:
            return Told(stands[_SUMMARY], index, shown=True)
    return None


def made_after(message: ModelMessage) -> str | None:
    """The summary that was made when the run had ended that this message is of."""
    said = (message.metadata or {}).get(SAID)
    summary = said.get(_SUMMARY) if isinstance(said, dict) else None
    return summary if isinstance(summary, str) else None


def attach(history: Sequence[ModelMessage], summary: str) -> None:
    """Keep the summary of a history with its last response, and the request before that."""
    last = next(index for index in reversed(range(len(history))) if isinstance(history[index], ModelResponse))
    for message in history[max(last - 1, 0) : last + 1]:
        message.metadata = {**(message.metadata or {}), SAID: {_SUMMARY: summary}}


def replaced(history: Sequence[ModelMessage], cut: Cut, summary: str) -> list[ModelMessage]:
    """What stays of a history by `cut`, behind a summary of the rest."""
    kept = [history[cut.input], *history[cut.tail :]]
    return _behind(kept, history[: cut.input], _content(summary, max(len(kept) - 1, 1)))


def kept_from(history: Sequence[ModelMessage], start: int) -> list[ModelMessage]:
    """The messages from `start` on, with the system prompt and the summary of those before it."""
    gone = history[:start]
    told = next((told for message in reversed(gone) if (told := _standing(message))), None)
    return _behind(history[start:], gone, _content(told[_SUMMARY], 1) if told else None)


def resumed(history: Sequence[ModelMessage], summary: str, kept: int) -> list[ModelMessage]:
    """A stored history whose first `kept` messages were kept in a compaction, behind its summary."""
    content = _content(summary, kept)
    for index, message in enumerate(history):
        if isinstance(message, ModelRequest) and any(isinstance(part, UserPromptPart) for part in message.parts):
            return [*history[:index], replace(message, parts=_with(message.parts, content)), *history[index + 1 :]]
    return [ModelRequest([UserPromptPart([content])]), *history]


def is_summary(item: UserContent) -> TypeGuard[TextContent]:
    """Whether a content item is the summary of what was before it."""
    return is_ours(item) and isinstance(item.metadata[SAID].get(_SUMMARY), str)


def rewrite(history: list[ModelMessage], kept: Sequence[ModelMessage]) -> None:
    """Make `kept` the history of a run. Its last message stays the same object: the run holds on to that."""
    now, last = list(kept), history[-1]
    if isinstance(last, ModelRequest) and isinstance(now[-1], ModelRequest):
        last.parts = now[-1].parts  # another list: parts may be shared, and must not change in place
        now[-1] = last
    history[:] = now


def seen_since(history: Sequence[ModelMessage]) -> int:
    """From where on responses were made by a model that saw the history as it is now, behind its summary."""
    for index, message in enumerate(history):
        if (stands := _standing(message)) is not None:
            kept = stands.get(_KEPT)
            return index + (kept if isinstance(kept, int) else 1)
    return 0


def _behind(
    kept: Sequence[ModelMessage], gone: Sequence[ModelMessage], summary: TextContent | None
) -> list[ModelMessage]:
    system = [
        part
        for message in gone
        if message.kind == "request"
        for part in message.parts
        if part.part_kind == "system-prompt"
    ]
    first = kept[0]
    if not isinstance(first, ModelRequest) or not (system or summary):
        return list(kept)
    parts = [*system, *(_with(first.parts, summary) if summary else first.parts)]
    return [replace(first, parts=parts), *kept[1:]]


def _content(summary: str, kept: int) -> TextContent:
    return memory_text(summary_block(summary), {_SUMMARY: summary, _KEPT: kept})


def _with(parts: Sequence[ModelRequestPart], summary: TextContent) -> list[ModelRequestPart]:
    """The parts with `summary` before all else in the user's, in place of one that stands there."""
    for at, part in enumerate(parts):
        if isinstance(part, UserPromptPart):
            rest = [item for item in contents(part) if not is_summary(item)]
            return [*parts[:at], replace(part, content=[summary, *rest]), *parts[at + 1 :]]
    return [*parts, UserPromptPart([summary])]


def _standing(message: ModelMessage) -> dict[str, Any] | None:  # Any: metadata
    """The note of the summary that stands in a message."""
    said = notes([message]) if message.kind == "request" else ()
    return next((note for note in said if isinstance(note.get(_SUMMARY), str)), None)
