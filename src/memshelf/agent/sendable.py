"""Messages as a request can carry them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import is_dataclass, replace
from datetime import datetime
from operator import is_
from typing import Any

from pydantic import BaseModel
from pydantic_ai import ModelMessage

from memshelf.untrusted import is_sound, sound

__all__ = ["Sendable", "sendable", "sound_value"]

_SENT = ("parts", "instructions")


class Sendable:
    """What requests carry of the messages of a run, each of which is looked through once."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ModelMessage, ModelMessage]] = {}  # by the identity of the message, which it keeps

    def of(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        return [*map(self._of, messages[:-1]), *map(sendable, messages[-1:])]  # the last one may still change

    def _of(self, message: ModelMessage) -> ModelMessage:
        known = self._known.get(id(message))
        if known is None:
            known = self._known[id(message)] = (message, sendable(message))
        return known[1]


def sendable(message: ModelMessage) -> ModelMessage:
    """The message with U+FFFD in the place of lone surrogates, as in the name of a file that is no UTF-8; the message
    itself if it has none.

    A provider fails on them, and would again with every later request of a session.
    """
    try:
        changed = {
            name: new for name in _SENT if (new := sound_value(held := getattr(message, name, None))) is not held
        }
    except RecursionError:  # nested so deeply that no provider takes it either
        return message
    return replace(message, **changed) if changed else message


def sound_value(value: Any) -> Any:  # Any: what tools return and are called with
    """The value with U+FFFD in the place of lone surrogates; the value itself if it has none."""
    match value:
        case str():
            return value if value.isascii() or is_sound(value) else sound(value)
        case None | int() | float() | bytes() | datetime():
            return value  # said here, since these are what most of a message is
        case list() | tuple():
            items = [sound_value(item) for item in value]
            return value if all(map(is_, items, value)) else items
        case dict():
            pairs = {sound_value(key): sound_value(item) for key, item in value.items()}
            unchanged = all(map(is_, pairs, value)) and all(map(is_, pairs.values(), value.values()))
            return value if unchanged else pairs
        case _ if is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__dict__"):
            return replace(value, **changed) if (changed := _changed(value)) else value
        case BaseModel():
            return value.model_copy(update=changed) if (changed := _changed(value)) else value
        case _:
            return value


def _changed(value: Any) -> dict[str, Any]:
    return {name: new for name, held in vars(value).items() if (new := sound_value(held)) is not held}
