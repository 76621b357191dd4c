"""What a run sees of a store: a mount, and where its context stands."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from memshelf.arguments import checked_argument
from memshelf.files.protocol import FileStore
from memshelf.mounted import Access, check_mount

__all__ = ["DEFAULT_FILE_GUIDE", "FileMount", "MemoryCursors"]

DEFAULT_FILE_GUIDE = (
    "Keep what will still matter in other conversations: preferences, decisions and their reasons, conventions, facts "
    "to look up. Do not keep secrets, or the state of the task at hand. One topic, one Markdown file; its first line, "
    "or a frontmatter description, says what it holds. Change the file that covers a topic instead of adding a second "
    "one, and put related files into one directory."
)


@dataclass(frozen=True, slots=True)
class FileMount:
    """One memory, mounted under a name.

    `name` is how the model addresses it: `^[a-z][a-z0-9-]{0,62}$`. `access` is `"read"` or `"write"`. `guide` tells
    the model what belongs in it (`None`: `DEFAULT_FILE_GUIDE`; `""`: nothing). The files of `always_load` lead its
    context with their whole content. `cursor_key` names it in `MemoryCursors`, by default by its mount name.
    """

    name: str
    store: FileStore
    access: Access
    guide: str | None = None
    always_load: tuple[str, ...] = ()
    cursor_key: str | None = None

    def __post_init__(self) -> None:
        check_mount(self)
        if not isinstance(self.store, FileStore) or isinstance(self.store, type):
            given = type(self.store).__name__
            raise TypeError(f"Mount {self.name}: {given} is not a FileStore, such as SqliteFileStore('user.db') is.")
        object.__setattr__(self, "always_load", tuple(checked_argument("always_load", self.always_load, Collection)))
        checked_argument("cursor_key", self.cursor_key, str, None)

    @property
    def key(self) -> str:
        """The name under which `MemoryCursors` keeps this memory's cursor."""
        return self.cursor_key if self.cursor_key is not None else self.name


class MemoryCursors:
    """For each memory, the store's cursor of the context last delivered to one thread.

    Keep one per thread. Persist `snapshot()` next to the thread's state, and pass it back as `positions`. A memory
    without a cursor gets full context.
    """

    def __init__(self, positions: Mapping[str, str | None] | None = None) -> None:
        known = checked_argument("positions", positions, Mapping, None) or {}
        self._positions = {key: cursor for key, cursor in known.items() if cursor is not None}

    def get(self, key: str) -> str | None:
        """The cursor of one memory, or `None`."""
        return self._positions.get(key)

    def snapshot(self) -> dict[str, str]:
        """A copy of all cursors, ready for JSON."""
        return dict(self._positions)

    def advance(self, key: str, cursor: str) -> None:
        """Record what was delivered."""
        self._positions[key] = cursor

    def clear(self, key: str) -> None:
        """Forget what was delivered, so that the next run gets full context."""
        self._positions.pop(key, None)
