"""Arguments, checked where they are given: a wrong one would fail much later, and far from who gave it."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["checked_argument"]

T = TypeVar("T")


def checked_argument(name: str, value: T, *kinds: type | None) -> T:
    """The value, if it is of one of these types, else `TypeError`; `None` among them stands for itself."""
    if not any(value is None if kind is None else isinstance(value, kind) for kind in kinds):
        *others, last = ["None" if kind is None else kind.__name__ for kind in kinds]
        wanted = f"{', '.join(others)} or {last}" if others else last
        raise TypeError(f"`{name}` is of type {wanted}, not {type(value).__name__}.")
    return value
