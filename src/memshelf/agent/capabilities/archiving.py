"""What users and assistants said, for the archive of a workspace and for what it learns."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Iterator, Sequence
from itertools import islice

from pydantic_ai import ModelMessage, TextContent, TextPart, UserPromptPart

from memshelf.agent.capabilities.message_shape import ModelMessageShape
from memshelf.agent.capabilities.said import user_said
from memshelf.origin import Origin
from memshelf.workspace.deadline import reason
from memshelf.workspace.workspace import Workspace

__all__ = ["archive_turn", "learn_from", "newest_turns", "spoken"]

_LOG = logging.getLogger(__name__)
_SHAPE = ModelMessageShape()


def newest_turns(history: Sequence[ModelMessage], count: int = 1) -> Sequence[ModelMessage]:
    """The newest turns, each from what the user said on; all there is, if it has fewer."""
    starts = (at for at in reversed(range(len(history))) if _SHAPE.starts_turn(history[at]))
    return history[next(islice(starts, count - 1, None), 0) :]


async def archive_turn(workspace: Workspace, turn: Sequence[ModelMessage], session_id: str | None) -> None:
    """Archive what the user and the assistant said in a turn. A failure is logged: the answer stands."""
    await _done("archived", workspace.archive_conversation(spoken(turn), session_id))


async def learn_from(workspace: Workspace, turns: Sequence[ModelMessage], origin: Origin) -> None:
    """Keep what the user's last words correct in what the assistant said before. A failure is logged."""
    await _done("learned from", workspace.experiences.learn_from(spoken(turns), origin=origin))


def spoken(messages: Sequence[ModelMessage]) -> Iterator[dict[str, str]]:
    """What users and assistants said in messages, each with a `role` and a `content`."""
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                for item in user_said(part):
                    text = item.content if isinstance(item, TextContent) else item
                    yield {"role": "user", "content": text if isinstance(text, str) else f"[{type(item).__name__}]"}
            elif isinstance(part, TextPart):
                yield {"role": "assistant", "content": part.content}


async def _done(what: str, call: Awaitable[object]) -> None:
    try:
        await call
    except Exception as error:  # noqa: BLE001  # stores are anyone's code; the run's answer must not be lost
        _LOG.warning("A conversation could not be %s: %s", what, reason(error))
