"""Users, and the one directory that each of them has."""

from __future__ import annotations

import unicodedata
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol, runtime_checkable
from urllib.parse import unquote

from memshelf.arguments import checked_argument, checked_function
from memshelf.errors import MemoryStoreError
from memshelf.files.protocol import FileStore

__all__ = ["DEFAULT_USER", "OpenedUsers", "UserStores", "checked_user", "directory_name", "user_of"]

DEFAULT_USER = "default"

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")
_LONGEST_ID, _LONGEST_NAME = 128, 255


@runtime_checkable
class UserStores(Protocol):
    """Where the files of each user are. Two users never share a store."""

    def open(self, user_id: str) -> FileStore:
        """The user's files; the same store whenever it is asked for the same user."""
        ...

    def root(self, user_id: str) -> Path | None:
        """The directory of the user's files; `None` when they are not in one."""
        ...

    def prepare(self, user_id: str) -> None:
        """Make what is needed for a person to look at it. Does nothing the second time."""
        ...

    async def users(self) -> list[str]:
        """The ids of all users that have files, sorted."""
        ...

    async def delete(self, user_id: str) -> bool:
        """Remove all that the user has, and say whether there was anything."""
        ...

    async def aclose(self) -> None:
        """Close what was opened here. It opens again when used."""
        ...


class OpenedUsers:
    """Stores that somebody else opens, one a user."""

    def __init__(
        self, open_store: Callable[[str], FileStore], users: Callable[[], Awaitable[list[str]]] | None
    ) -> None:
        self._open_store = checked_function("open_store", open_store)
        self._list = checked_function("users", users) if users is not None else None
        self._stores: dict[str, FileStore] = {}

    def open(self, user_id: str) -> FileStore:
        if user_id not in self._stores:
            self._stores[user_id] = checked_argument("open_store(user_id)", self._open_store(user_id), FileStore)
        return self._stores[user_id]

    def root(self, user_id: str) -> None:
        del user_id

    def prepare(self, user_id: str) -> None:
        del user_id

    async def users(self) -> list[str]:
        if self._list is None:
            raise MemoryStoreError("unavailable", "This workspace was not told how to list its users.")
        return sorted(await self._list())

    async def delete(self, user_id: str) -> bool:
        store = self.open(user_id)
        there = bool(await store.list())
        await store.purge()
        return there

    async def aclose(self) -> None:
        """The stores are closed by whoever opened them."""


def checked_user(user_id: str | None) -> str:
    """The id of a user; `None` and `""` are the default one.

    1 to 128 printable characters without white space around them, whose directory has a name that disks can hold,
    else `ValueError`.
    """
    if user_id is None or user_id == "":
        return DEFAULT_USER
    if not isinstance(user_id, str):
        raise TypeError(f"A user id is a str or None, not {type(user_id).__name__}.")
    if not user_id.isprintable() or user_id != user_id.strip() or len(user_id) > _LONGEST_ID:
        raise ValueError(
            f"A user id has 1 to {_LONGEST_ID} printable characters and no white space around them; this one does not."
        )
    if len(directory_name(user_id).encode()) > _LONGEST_NAME:
        raise ValueError("This user id is too long for the name of a directory.")
    return user_id


def directory_name(user_id: str) -> str:
    """The directory of a user: percent-encoded but for `A-Z a-z 0-9 _ -` and letters beyond ASCII.

    Different ids have different directories, also on disks that make no difference between Unicode forms.
    """
    composed = unicodedata.is_normalized("NFC", user_id)
    return "".join(
        character if character in _PLAIN or (composed and _is_foreign_letter(character)) else _encoded(character)
        for character in user_id
    )


def user_of(directory: str) -> str | None:
    """The user whom a directory belongs to; `None` for a directory that is no user's."""
    user_id = unquote(directory, errors="replace")
    try:
        same = checked_user(user_id) == user_id and directory_name(user_id) == directory
    except ValueError:
        return None
    return user_id if same else None


def _is_foreign_letter(character: str) -> bool:
    return not character.isascii() and unicodedata.category(character).startswith("L")


def _encoded(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode())
