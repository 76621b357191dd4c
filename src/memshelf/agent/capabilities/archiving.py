"""A turn of Pydantic AI's messages in the conversation archive."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from pydantic_ai import ModelMessage, TextContent, TextPart, UserPromptPart

from memshelf.agent.capabilities.message_shape import user_said
from memshelf.errors import MemoryStoreError
from memshelf.workspace.workspace import Workspace

__all__ = ["archive_turn"]

_LOG = logging.getLogger(__name__)


async def archive_turn(workspace: Workspace, turn: Sequence[ModelMessage], session_id: str | None) -> None:
    """Archive what the user and the assistant said in a turn. A failure is logged: the answer stands."""
    try:
        await workspace.archive_conversation(_said(turn), session_id)
    except MemoryStoreError as error:
        _LOG.warning("A conversation could not be archived: %s", error.code)


def _said(turn: Sequence[ModelMessage]) -> Iterator[dict[str, str]]:
    for message in turn:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                for item in user_said(part):
                    text = item.content if isinstance(item, TextContent) else item
                    yield {"role": "user", "content": text if isinstance(text, str) else f"[{type(item).__name__}]"}
            elif isinstance(part, TextPart):
                yield {"role": "assistant", "content": part.content}
