"""Which part of a history a model is shown: whole turns, the newest first."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

from memshelf.threads.shape import MessageShape

__all__ = ["Window", "first_kept", "window"]

Message = TypeVar("Message")


@dataclass(frozen=True, slots=True)
class Window:
    """What is shown of a history: the messages from `start` on.

    The tool results of the turns before the message at `current` are shortened where `shorten_earlier`, those of the
    newest turn where `shorten_current`.
    """

    start: int
    current: int
    shorten_earlier: bool = False
    shorten_current: bool = False


def window(
    history: Sequence[Message],
    shape: MessageShape[Message],
    *,
    turns: int | None,
    tokens: int | None,
    tool_result_tokens: int,
) -> Window:
    """The newest turn, and before it at most `turns` whole turns, as many as `tokens` has room for.

    `None` is no limit. The newest turn is always shown. If not all has room, tool results longer than
    `tool_result_tokens` are shortened, and only then are turns left out: first those of the earlier turns, and those
    of the newest if it has no room by itself. The cost is that of what is shown.
    """
    current = next(_starts(history, shape))
    if tokens is None:
        start = 0 if turns is None else deque(islice(_starts(history, shape), turns + 1), maxlen=1)[0]
        return Window(start, current)
    newest = sum(map(shape.tokens, history[current:]))
    too_much = newest > tokens
    if too_much:
        newest -= sum(shape.over(each, tool_result_tokens) for each in history[current:])
    start, room = current, tokens - newest
    room_as_they_are = room
    size = over = earlier_turns = 0
    for index in range(current - 1, -1, -1):  # one pass without slices: a history may have thousands of messages
        if earlier_turns == turns:
            break
        message = history[index]
        size += shape.tokens(message)
        over += shape.over(message, tool_result_tokens)
        if index and not shape.starts_turn(message):
            continue
        room_as_they_are -= size
        room -= size - over
        if room < 0:
            break
        start, size, over = index, 0, 0
        earlier_turns += 1
    return Window(start, current, shorten_earlier=too_much or room_as_they_are < 0, shorten_current=too_much)


def first_kept(history: Sequence[Message], shape: MessageShape[Message], max_messages: int) -> int:
    """Where the newest whole turns begin that hold at most `max_messages` messages; the newest turn always counts."""
    over = len(history) - max_messages
    if over <= 0:
        return 0
    following = (index for index in range(over, len(history)) if shape.starts_turn(history[index]))
    return next(following, next(_starts(history, shape)))


def _starts(history: Sequence[Message], shape: MessageShape[Message]) -> Iterator[int]:
    """Where the turns begin, the newest first. The first one begins at 0, whatever stands there."""
    for index in range(len(history) - 1, 0, -1):
        if shape.starts_turn(history[index]):
            yield index
    yield 0
