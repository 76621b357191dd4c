"""One memory as it was read for a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from memshelf.files.edits import find_text
from memshelf.files.model import Changes, FileEntry, in_order
from memshelf.files.mount import FileMount
from memshelf.files.protocol import ListsWithChanges

__all__ = ["Snapshot", "read"]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What there is to show of one memory.

    `changed` holds the paths changed since the last delivery, or `None` when everything is to be shown. `loaded` holds
    the content of the `always_load` files that exist. `cursor` was taken before anything else was read.
    """

    name: str
    cursor: str
    changed: tuple[str, ...] | None
    entries: tuple[FileEntry, ...] = ()
    always_load: tuple[str, ...] = ()
    loaded: Mapping[str, str] = field(default_factory=dict)

    @property
    def unchanged(self) -> bool:
        return self.changed == ()


async def read(mount: FileMount, since: str | None) -> Snapshot:
    """Read one memory. An unchanged one is neither listed nor read, whatever its size."""
    listed: Sequence[FileEntry] | None = None
    if isinstance(mount.store, ListsWithChanges):
        feed, listed = await mount.store.changes_and_list(since)
    else:
        feed = await mount.store.changes(since)
    changed = feed.paths if since is not None and isinstance(feed, Changes) else None
    if changed == ():
        return Snapshot(mount.name, feed.cursor, changed)
    entries = tuple(listed if listed is not None else in_order(await mount.store.list()))
    existing = {entry.path for entry in entries}
    loaded: dict[str, str] = {}
    for path in mount.always_load:
        # All of them, also for a change list: it may still turn into full context.
        if path in existing and (file := await find_text(mount.store, path)) is not None:
            loaded[path] = file.text
    return Snapshot(mount.name, feed.cursor, changed, entries, mount.always_load, loaded)
