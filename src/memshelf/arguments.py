"""Arguments, checked where they are given: a wrong one would fail much later, and far from who gave it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection
from typing import TypeVar

__all__ = [
    "address_in",
    "checked_argument",
    "checked_dsn",
    "checked_function",
    "checked_id",
    "checked_number",
    "checked_path",
]

F = TypeVar("F", bound=Callable[..., object])
T = TypeVar("T")

_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+:)/", re.IGNORECASE)


def checked_argument(name: str, value: T, *kinds: type | None) -> T:
    """The value, if it is of one of these types, else `TypeError`; `None` among them stands for itself.

    A truth value is no number here, a text no sequence, and a class no object that has its methods.
    """
    if type(value) in kinds or (value is None and None in kinds):  # nearly always, and quick where it is a write's
        return value
    if not any(kind is not None and _is_a(kind, value) for kind in kinds):
        *others, last = names = ["None" if kind is None else kind.__name__ for kind in kinds]
        wanted = f"{', '.join(others)} or {last}" if others else last
        given = f"the class {value.__name__}" if isinstance(value, type) else type(value).__name__
        if given in names:  # another library's, such as the client of an older one
            given = f"{type(value).__module__}.{given}"
        alone = " Put a single one into a list." if type(value) is str and Collection in kinds else ""
        raise TypeError(f"`{name}` is of type {wanted}, not {given}.{alone}")
    return value


def _is_a(kind: type, value: object) -> bool:
    own = next((each for each in (bool, str, type) if isinstance(value, each)), kind)
    return own is kind and isinstance(value, kind)


def checked_number(name: str, value: int) -> int:
    """The value, if it is a whole number from 1 on, else `TypeError` or `ValueError`."""
    if checked_argument(name, value, int) < 1:
        raise ValueError(f"`{name}` is a whole number of at least 1, not {value}.")
    return value


def checked_id(name: str, value: str) -> str:
    """The value, if it is a text, and not that of a variable that was never set. Else `TypeError` or `ValueError`."""
    if not checked_argument(name, value, str):
        raise ValueError(f"`{name}` is empty.")
    return value


def checked_function(name: str, value: F) -> F:
    """The value, if it can be called, else `TypeError`."""
    if not callable(value):
        raise TypeError(f"`{name}` is a function, not {type(value).__name__}.")
    return value


def checked_path(name: str, value: str | os.PathLike[str]) -> str:
    """The path, with the user's home for a `~` at its beginning. `TypeError` for what is no path, `ValueError` for an
    empty one, one that no system takes, or the address of a server, which is not repeated: it may have a password."""
    path = checked_argument(name, os.fspath(checked_argument(name, value, str, os.PathLike)), str)
    if not path:
        raise ValueError(f"`{name}` is empty. For the current directory, give '.'.")
    if "\0" in path:
        raise ValueError(f"`{name}` is a path, and has no NUL in it.")
    if address := address_in(path):
        raise ValueError(f"`{name}` is a path on this machine; {address} is the address of a server.")
    return os.path.expanduser(path)


def address_in(path: str) -> str | None:
    """How an address begins that was given for a path, such as `https://...`; the rest of it may be a secret."""
    found = _ADDRESS.match(path)  # a `Path` has made one slash of two
    return f"{found[1]}//..." if found is not None else None


def checked_dsn(dsn: str) -> str:
    """The address of a PostgreSQL database. `ValueError` for what does not begin like one; it is not repeated."""
    if not checked_argument("dsn", dsn, str).startswith(("postgresql://", "postgres://")):
        raise ValueError('The DSN of a PostgreSQL database begins with "postgresql://".')
    return dsn
