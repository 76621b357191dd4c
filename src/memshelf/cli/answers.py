"""What a server answered, checked: it may be none of a memory store, and may lack anything."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from memshelf.errors import MemoryStoreError
from memshelf.untrusted import is_sound

__all__ = ["Answer"]

_TEXTS = (
    "content", "content_sha256", "description", "diff", "epoch", "excerpt", "from_version_id", "head", "id",
    "memory_id", "memory_version_id", "name", "next_page", "operation", "outcome", "path", "reason", "to_version_id",
    "type",
)  # fmt: skip
_NUMBERS = ("content_size_bytes", "head_seq", "line", "seq", "versions")
_TIMES = ("archived_at", "created_at", "redacted_at", "updated_at")
_TYPES: Mapping[str, type] = {
    **dict.fromkeys((*_TEXTS, *_TIMES), str),
    **dict.fromkeys(_NUMBERS, int),
    **dict.fromkeys(("created_by", "memory", "metadata"), dict),
    **dict.fromkeys(("data", "problems"), list),
    "intact": bool,
}
_TYPES_IN_A_HISTORY = {**_TYPES, **dict.fromkeys(_TIMES, int)}
_INSIDE: Mapping[str, type] = {"data": dict, "metadata": str, "problems": str}
"""What is in a list or, by its names, in an object."""
_MAYBE = frozenset(
    ("archived_at", "content", "created_by", "description", "excerpt", "from_version_id", "line", "memory", "next_page",
     "reason", "redacted_at")
)  # fmt: skip
_MAYBE_IN_A_VERSION = _MAYBE | {"content_sha256", "content_size_bytes", "path"}


def _time(text: str) -> None:
    if datetime.fromisoformat(text).tzinfo is None:
        raise ValueError("no time zone")


_FORMS: Mapping[str, Callable[[str], object]] = {**dict.fromkeys(_TIMES, _time), "head": bytes.fromhex}


class Answer(dict[str, Any]):  # JSON has many types
    """An object of an answer. `unavailable` for a field that is asked for and is not there."""

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> Answer:
        """The answer, in which every field that a command looks at is what a memory store gives. `unavailable`."""
        kind = value.get("type")
        types = _TYPES_IN_A_HISTORY if kind in ("memshelf_history", "version") else _TYPES
        maybe = _MAYBE_IN_A_VERSION if kind in ("memory_version", "version") else _MAYBE
        return cls({name: _checked(name, each, types.get(name), name in maybe) for name, each in value.items()})

    def __missing__(self, name: str) -> Any:
        raise MemoryStoreError("unavailable", f"The server's answer has no {name}: it is no memory store's.")


def _checked(name: str, value: Any, expected: type | None, maybe: bool) -> Any:
    if expected is not None and not (value is None and maybe):
        inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if not _is(value, expected) or not all(_is(each, _INSIDE.get(name, object)) for each in inside):
            raise _no_store(name)
        if isinstance(value, str) and (form := _FORMS.get(name)) is not None:
            try:
                form(value)
            except ValueError:
                raise _no_store(name) from None
    if isinstance(value, list):
        return [Answer.of(each) if isinstance(each, dict) else each for each in value]
    return Answer.of(value) if isinstance(value, dict) and name != "metadata" else value


def _is(value: Any, expected: type) -> bool:
    if isinstance(value, str) and not is_sound(value):
        return False
    return isinstance(value, expected) and (expected in (bool, object) or not isinstance(value, bool))


def _no_store(name: str) -> MemoryStoreError:
    return MemoryStoreError("unavailable", f"The server's answer has another {name} than a memory store gives.")
