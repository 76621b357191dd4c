"""A conversation as Markdown that a person reads, and back. Pure functions.

A block begins with `## 14:03:22 UTC · thread`. What was said is quoted line by line, so no text can begin a block, or
speak for somebody else.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, TypeAlias

from memshelf.arguments import checked_argument

__all__ = ["ArchivedTurn", "Said", "Speaker", "block", "said_in", "thread_name", "turns"]

Speaker: TypeAlias = Literal["user", "assistant"]
Said: TypeAlias = tuple[Speaker, str]
"""Who spoke, and what they said."""

_THREAD_CHARS = 200
_SPEAKERS: dict[Speaker, str] = {"user": "**User**", "assistant": "**Assistant**"}
_MARKS = {mark: speaker for speaker, mark in _SPEAKERS.items()}
_HEADING = re.compile(r"## (\d\d:\d\d:\d\d) UTC(?: · (.*))?")
_BREAK = re.compile(r"\r\n?|\n")  # what Markdown takes for the end of a line
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedTurn:
    """What was said in one go, in a file of the archive. `at` is in UTC; `session_id` is `None` if none was given."""

    file: str
    at: datetime
    session_id: str | None
    messages: tuple[Said, ...]

    @property
    def text(self) -> str:
        return "\n\n".join(text for _, text in self.messages)


def said_in(messages: Iterable[Mapping[str, object]]) -> list[Said]:
    """What users and assistants said in messages with `role` and `content`; the rest, such as tools, is left out.

    A content is a text, or a list of texts and of parts with a `text`. `TypeError` for a message without a role or
    with another content.
    """
    said: list[Said] = []
    for message in checked_argument("messages", messages, Iterable):
        role = message.get("role") if isinstance(message, Mapping) else None
        if not isinstance(role, str):
            raise TypeError("A message is a mapping with a role, such as 'user', and a content.")
        if role in ("user", "assistant") and (text := _text(message.get("content"))).strip():
            said.append(("user" if role == "user" else "assistant", text))
    return said


def _text(content: object) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list | tuple):
        raise TypeError(f"A message's content is a text or a list of parts, not {type(content).__name__}.")
    texts = (each.get("text") if isinstance(each, Mapping) else each for each in content)
    return "\n\n".join(each for each in texts if isinstance(each, str))


def thread_name(session_id: str | None) -> str | None:
    """A thread's id on one line, of characters that can be seen, cut to 200."""
    if session_id is None:
        return None
    seen = "".join(each if each.isprintable() else "\ufffd" for each in " ".join(session_id.split()))
    return seen[:_THREAD_CHARS] or None


def block(at: datetime, thread: str | None, said: Iterable[Said]) -> str:
    """The block of what was said, beginning with an empty line. What cannot be seen in a text is replaced."""
    heading = f"## {at.astimezone(UTC):%H:%M:%S} UTC" + (f" · {thread}" if thread else "")
    return "\n".join(["", heading, *(line for speaker, text in said for line in _quoted(speaker, text)), ""])


def _quoted(speaker: Speaker, text: str) -> Iterator[str]:
    yield from ("", _SPEAKERS[speaker], "")
    for line in _BREAK.split(_UNSEEN.sub("\ufffd", text)):
        yield f"> {line}" if line else ">"


def turns(file: str, day: str, text: str) -> Iterator[ArchivedTurn]:
    """The blocks of a file of the archive, in order, whoever edited it: a line that is not quoted belongs to the text
    before it. What stands before the first block, or behind another heading, belongs to none."""
    begun: tuple[str, str | None] | None = None
    said: list[tuple[Speaker, list[str]]] = []
    for line in text.split("\n"):
        heading = _HEADING.fullmatch(line)
        if heading is not None:
            yield from _turn(file, day, begun, said)
            begun, said = (heading[1], heading[2]), []
        elif line.startswith("#"):  # a person's, or torn by a crash
            yield from _turn(file, day, begun, said)
            begun, said = None, []
        elif (speaker := _MARKS.get(line)) is not None:
            said.append((speaker, []))
        elif said:
            said[-1][1].append(line[1:].removeprefix(" ") if line.startswith(">") else line)
    yield from _turn(file, day, begun, said)


def _turn(
    file: str, day: str, begun: tuple[str, str | None] | None, said: list[tuple[Speaker, list[str]]]
) -> Iterator[ArchivedTurn]:
    if begun is None:
        return
    time, thread = begun
    try:
        at = datetime.fromisoformat(f"{day}T{time}+00:00")
    except ValueError:  # edited by hand
        return
    messages = tuple((speaker, "\n".join(lines).strip("\n")) for speaker, lines in said)
    yield ArchivedTurn(file=file, at=at, session_id=thread, messages=messages)
