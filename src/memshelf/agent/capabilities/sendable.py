"""Messages as a request can carry them."""

from __future__ import annotations

from dataclasses import is_dataclass, replace
from datetime import datetime
from operator import is_
from typing import Any

from pydantic import BaseModel
from pydantic_ai import ModelMessage

from memshelf.untrusted import is_sound, sound

__all__ = ["sendable"]

_SENT = ("parts", "instructions")


def sendable(message: ModelMessage) -> ModelMessage:
    """The message with U+FFFD in the place of lone surrogates, as in the name of a file that is no UTF-8; the message
    itself if it has none.

    A provider fails on them, and would again with every later request of a session.
    """
    try:
        changed = {name: new for name in _SENT if (new := _sound(held := getattr(message, name, None))) is not held}
    except RecursionError:  # nested so deeply that no provider takes it either
        return message
    return replace(message, **changed) if changed else message


def _sound(value: Any) -> Any:  # Any: what tools return and are called with
    match value:
        case str():
            return value if value.isascii() or is_sound(value) else sound(value)
        case None | int() | float() | bytes() | datetime():
            return value  # said here, since these are what most of a message is
        case list() | tuple():
            items = [_sound(item) for item in value]
            return value if all(map(is_, items, value)) else items
        case dict():
            pairs = {_sound(key): _sound(item) for key, item in value.items()}
            unchanged = all(map(is_, pairs, value)) and all(map(is_, pairs.values(), value.values()))
            return value if unchanged else pairs
        case _ if is_dataclass(value) and not isinstance(value, type) and hasattr(value, "__dict__"):
            return replace(value, **changed) if (changed := _changed(value)) else value
        case BaseModel():
            return value.model_copy(update=changed) if (changed := _changed(value)) else value
        case _:
            return value


def _changed(value: Any) -> dict[str, Any]:
    return {name: new for name, held in vars(value).items() if (new := _sound(held)) is not held}
