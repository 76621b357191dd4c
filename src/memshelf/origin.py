"""Who made a change."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal, TypeAlias, get_args

__all__ = ["Origin", "OriginKind"]

OriginKind: TypeAlias = Literal["user", "agent", "tool", "import"]
"""Who words are from: a user, a model of its own accord, a tool's result, or another system."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Who a change is attributed to. Stores without history ignore it.

    `run_id` names one run of an agent, `principal_id` the user or service it acts for, `tool_call_id` the model's
    tool call. `session_id` and `api_key_id` are for a service: the session in which the change was made, and the key
    that it was made with; an id, never the key itself.

    `kind` says whose words they are. Record memories keep it, so that a mount can recall some kinds only; file memories
    do not.

    On a store with history, `run_id` and `tool_call_id` together also make a change idempotent: the same call, made
    again with the same arguments, answers with its first result.

    Each is a text that every database can hold, without NUL and lone surrogates: else `ValueError`, and `TypeError`
    for what is no text.
    """

    run_id: str | None = None
    principal_id: str | None = None
    tool_call_id: str | None = None
    session_id: str | None = None
    api_key_id: str | None = None
    kind: OriginKind | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if self.kind is not None and self.kind not in get_args(OriginKind):
            raise ValueError(f"Origin.kind is one of {', '.join(get_args(OriginKind))}, or None, not {self.kind!r}.")
        for name in _FIELDS:
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, str):
                raise TypeError(f"Origin.{name} is a str or None, not {type(value).__name__}.")
            if not value.isascii() or "\0" in value:
                _require_storable(name, value)


_FIELDS = tuple(each.name for each in fields(Origin) if each.name != "kind")


def _require_storable(name: str, value: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"Origin.{name} is valid Unicode, without lone surrogates.") from None
    if "\0" in value:
        raise ValueError(f"Origin.{name} has no NUL character.")
