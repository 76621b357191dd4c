"""What memory says to a model among what the user says: the metadata of a text tells them apart."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeGuard

from pydantic_ai import ModelMessage, TextContent, UserContent, UserPromptPart

__all__ = ["SAID", "contents", "is_ours", "memory_text", "notes", "user_said"]

SAID = "memshelf"
"""The key of metadata that is memory's own."""


def memory_text(text: str, note: Mapping[str, object]) -> TextContent:
    """A text of memory's; `note` says what it is, and no model is sent that."""
    return TextContent(text, metadata={SAID: dict(note)})


def is_ours(item: UserContent) -> TypeGuard[TextContent]:
    """Whether memory said it, rather than the user."""
    return (
        isinstance(item, TextContent) and isinstance(item.metadata, dict) and isinstance(item.metadata.get(SAID), dict)
    )


def notes(messages: Iterable[ModelMessage]) -> Iterator[dict[str, Any]]:  # Any: metadata
    """The note of each text in the messages that memory said."""
    for message in messages:
        # By their kinds: `isinstance` costs several times as much, and there may be thousands of messages.
        for part in message.parts if message.kind == "request" else ():
            if part.part_kind == "user-prompt" and not isinstance(part.content, str):
                yield from (item.metadata[SAID] for item in part.content if is_ours(item))


def contents(part: UserPromptPart) -> list[UserContent]:
    """The content of a part as a list, which a lone text may stand for."""
    return [part.content] if isinstance(part.content, str) else list(part.content)


def user_said(part: UserPromptPart) -> list[UserContent]:
    """What of a part the user said."""
    return [item for item in contents(part) if not is_ours(item)] if part.content else []
