"""Messages as a stored thread can hold them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_ai import ModelMessage, ModelMessagesTypeAdapter, ModelRequest, ToolReturnPart
from pydantic_ai.messages import ModelRequestPart
from pydantic_core import to_jsonable_python

from memshelf.agent.sendable import sendable, sound_value

__all__ = ["storable"]


def storable(message: ModelMessage) -> ModelMessage:
    """The message itself, or, where it holds what is no JSON, a copy in which a text stands for that, and U+FFFD for
    each lone surrogate.

    A tool may return anything. What no model can be sent fails the run in which it was returned; left in the thread, it
    would fail every later one too, and keep the thread from being stored. A model learns of the copy that the call was
    made, and that its result is lost.
    """
    if _is_json(message) or _is_json(message := sendable(message)):
        return message
    if isinstance(message, ModelRequest):
        message = replace(message, parts=[_part(part) for part in message.parts])
    return message if _is_json(message) else replace(message, metadata=sound_value(_named(message.metadata)))


def _part(part: ModelRequestPart) -> ModelRequestPart:
    if type(part) is not ToolReturnPart or _is_json(ModelRequest([part])):
        return part  # results of other kinds are the framework's own
    part = replace(part, metadata=_named(part.metadata))
    if _is_json(ModelRequest([part])):
        return part
    lost = f"The call was made. What it returned cannot be shown: {type(part.content).__name__} is no JSON."
    return replace(part, content=lost, outcome="failed")  # type: ignore[arg-type]  # what subclasses narrow


def _is_json(message: ModelMessage) -> bool:
    try:
        ModelMessagesTypeAdapter.dump_json([message], warnings=False)
    except (ValueError, RecursionError):  # which Pydantic's own error is, too
        return False
    return True


def _named(metadata: Any) -> Any:  # Any: an application's own
    try:
        return to_jsonable_python(metadata, fallback=repr, bytes_mode="base64", inf_nan_mode="constants")
    except (ValueError, RecursionError):
        return {"type": type(metadata).__name__}
