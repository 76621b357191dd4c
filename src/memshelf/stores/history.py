"""Going back: restore a version, undo what one actor wrote, and list a store as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias, TypeVar

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.sql.of_file import newest
from memshelf.files.backends.sql.paths import obstacles
from memshelf.files.backends.sql.rows import BASIC_FIELDS, VERSION_FIELDS, version_of
from memshelf.files.decide import Delete, Write
from memshelf.files.model import Version
from memshelf.origin import Origin
from memshelf.storage.ids import askable, micros
from memshelf.storage.transaction import Row
from memshelf.stores.change import (
    CURRENT_MEMORY,
    Current,
    changed,
    current_memory,
    described,
    requested,
    require_content,
    stored_version,
)
from memshelf.stores.cursors import decoded, encoded
from memshelf.stores.lifecycle import require_writable
from memshelf.stores.listing import after_directory, after_file
from memshelf.stores.model import Memory, Page
from memshelf.stores.rules import checked_prefix
from memshelf.stores.shelf import Opened, StoreAccess

__all__ = ["Author", "History", "Outcome", "Undone", "Written", "earlier"]

_AT_ONCE = 100
_MOST_PLACES = 1_000

_NEWEST = "SELECT file_id, version_id FROM files WHERE memory_id = $1 AND file_id {key}"
_VERSION = f"SELECT id, {VERSION_FIELDS} FROM file_versions WHERE +memory_id = $1 AND id {{key}}"  # noqa: S608  # no value

_T = TypeVar("_T")

Outcome: TypeAlias = Literal["restored", "deleted", "kept"]


@dataclass(frozen=True, slots=True)
class Author:
    """Whose changes to undo: a session's, or what a key or a user wrote outside of any session."""

    kind: Literal["session", "api_key", "user"]
    id: str


_WROTE = {
    "session": "session_id = $2",
    "api_key": "session_id IS NULL AND api_key_id = $2",
    "user": "session_id IS NULL AND api_key_id IS NULL AND principal_id = $2",
}
"""The versions that an author wrote, by their kind."""


class Written(NamedTuple):
    """A version that the author wrote, and the one that it replaced."""

    id: str
    parent_id: str | None
    deletes: bool


@dataclass(frozen=True, slots=True)
class Undone:
    """What undoing came to for one memory. A memory that is `kept` stays as it is, for `reason`.

    `memory_id` is the memory that the author changed; `memory` the one that stands now, with another id if it had been
    deleted.
    """

    memory_id: str
    outcome: Outcome
    reason: str | None = None
    memory: Memory | None = None


def earlier(changes: Sequence[Written], current: str | None) -> str | None:
    """The version that stood before the newest run of an author's changes; `None` when there was no memory. A pure rule
    over all their changes of one memory since a time, newest first, and the version at which it stands, if it does.

    `conflict` when others changed the memory afterwards.
    """
    if changes[0].id != current and (current is not None or not changes[0].deletes):
        raise MemoryStoreError("conflict", "Others changed the memory afterwards.")
    before: str | None = changes[0].id
    for change in changes:
        if change.id != before:
            break
        before = change.parent_id
    return before


class History(StoreAccess):
    """The past of one store."""

    async def restore(self, version_id: str, *, expected_sha256: str | None = None, origin: Origin) -> Memory:
        """Make a memory what it was at a version, content and path, as a new version. When it is so already, nothing
        is written. A memory that was deleted comes back under a new id.

        `conflict` for a version without content, deleted or redacted; else as `Memories.update`.
        """

        async def restore(opened: Opened) -> Memory:
            version = await stored_version(opened, version_id)
            require_writable(opened.archived_at)
            if version.path is None or version.text is None:
                raise MemoryStoreError("conflict", f"Version {version_id} has no content to restore; nothing changed.")
            current = await _current(opened, version.file_id)
            if current is not None and not _stands(current, version):
                require_content(current, expected_sha256)
            return await self._back_to(opened, current, version, origin)

        return await self.write(restore)

    async def undo(self, author: Author, since: datetime, *, origin: Origin) -> list[Undone]:
        """Take back what an author wrote since a time, all in one transaction.

        Each memory that they changed goes back to what stood before the newest run of their changes; one that they
        created is deleted, one that they deleted comes back under a new id. A memory is kept as it is when others
        changed it afterwards, when its earlier path is taken by now, when what stood before is redacted, or when the
        store is full. `store_archived`.
        """

        async def undo(opened: Opened) -> list[Undone]:
            require_writable(opened.archived_at)
            undone, created, back = await _ways_back(opened, await _written(opened, author, since))
            # What they created goes first, so that its path is free for what stood there before.
            for ids in _batches(created):
                opened.transaction.announce((CURRENT_MEMORY, (id,)) for id in ids)
                for memory_id in ids:
                    current = await current_memory(opened, memory_id)
                    request = Delete(current.file.path, current.file.version)
                    await changed(opened, request, current, origin, self.shelf)
                    undone.append(Undone(memory_id, "deleted"))
            for ways in _batches(back):
                undone += await self._all_back(opened, ways, origin)
            return undone

        return await self.write(undo)

    async def at(
        self, moment: datetime, *, limit: int, prefix: str = "/", page: str | None = None, content: bool = False
    ) -> Page[Version]:
        """The store as it was at a moment: the version at which each memory stood, in byte-wise path order. Versions
        that were redacted since have no path to stand at, and are left out."""
        directory = checked_prefix(prefix, self.shelf.limits)
        listing = ("at", self.store_id, str(moment), directory)
        start, until = directory, None
        if page is not None:
            last, until = decoded(listing, page, str, int)
            start = after_file(str(last))
        fields = (VERSION_FIELDS if content else BASIC_FIELDS).split(", ")
        columns = ", ".join(name if name == "NULL" else f"v.{name}" for name in fields)
        end = (after_directory(directory),) if directory else ()
        # What stood at a place is looked up for a few places at a time: an engine that joined all places with all
        # versions would read the whole history for each page.
        query = (
            f"SELECT placed.path, placed.file_id, {columns} FROM (SELECT p.memory_id, p.path, p.file_id, "  # noqa: S608  # no value
            f"{newest('p', before='$3', where=' AND +n.created_at <= $2')} AS seq FROM file_places p "
            f"WHERE p.memory_id = $1 AND (p.path, p.file_id) > ($4, $5){' AND p.path < $6' if end else ''} "
            "ORDER BY p.path, p.file_id "
            "LIMIT {most}) placed LEFT JOIN file_versions v ON v.memory_id = placed.memory_id AND v.seq = placed.seq "
            "AND v.path = placed.path AND v.operation <> 'deleted' ORDER BY placed.path, placed.file_id"
        )

        async def walk(opened: Opened) -> tuple[int | str, list[Row]]:
            last = until if until is not None else await _last_at(opened, moment)
            rows, after, most = list[Row](), (start, ""), limit + 1
            while last:
                placed = await opened.memory.all(query.format(most=most), micros(moment), int(last) + 1, *after, *end)
                rows += (row[2:] for row in placed if row[2] is not None)
                if len(rows) > limit or len(placed) < most:
                    break
                after, most = (placed[-1][0], placed[-1][1]), min(2 * most, _MOST_PLACES)
            return last, rows

        last, rows = await self.read(walk)
        found = tuple(version_of(row) for row in rows[:limit])
        return Page(found, encoded(listing, (found[-1].path or "", last)) if len(rows) > limit else None)

    async def _all_back(self, opened: Opened, ways: Sequence[tuple[str, str]], origin: Origin) -> list[Undone]:
        """Take memories back to versions of theirs; what they need is looked up at once."""
        undone, transaction = list[Undone](), opened.transaction
        transaction.announce((CURRENT_MEMORY, (memory_id,)) for memory_id, _ in ways)
        transaction.announce((_VERSION, (target_id,)) for _, target_id in ways)
        targets = [await _version(opened, target_id) for _, target_id in ways]
        transaction.announce(keyed for target in targets if target.path for keyed in obstacles(target.path))
        for (memory_id, target_id), target in zip(ways, targets, strict=True):
            transaction.forget(target_id)  # so that not all contents are kept
            if target.redacted_at is not None:
                undone.append(Undone(memory_id, "kept", "The version to go back to is redacted."))
                continue
            try:
                memory = await self._back_to(opened, await _current(opened, memory_id), target, origin)
            except MemoryStoreError as refusal:
                if refusal.code not in ("already_exists", "memory_full"):
                    raise
                undone.append(Undone(memory_id, "kept", refusal.message))
            else:
                undone.append(Undone(memory_id, "restored", memory=memory))
        return undone

    async def _back_to(self, opened: Opened, current: Current | None, target: Version, origin: Origin) -> Memory:
        assert target.path is not None  # noqa: S101  # it is not redacted
        assert target.text is not None  # noqa: S101  # nor deleted
        description = described(target.text, self.shelf.limits)
        if current is None:
            request = Write(target.path, target.text, None, description)
            return await changed(opened, request, None, origin, self.shelf)
        change = requested(current, target.path, target.text, description, None)
        return current.memory if change is None else await changed(opened, change, current, origin, self.shelf)


def _stands(current: Current, version: Version) -> bool:
    return (current.file.path, current.file.text) == (version.path, version.text)


async def _current(opened: Opened, memory_id: str) -> Current | None:
    try:
        return await current_memory(opened, memory_id)
    except MemoryStoreError as error:
        if error.code != "not_found":
            raise
        return None


async def _last_at(opened: Opened, moment: datetime) -> int:
    """The greatest number of a version that was there; 0 if there was none. What is later need not be looked at."""
    row = await opened.memory.one(
        "SELECT seq FROM file_versions WHERE memory_id = $1 AND created_at <= $2 ORDER BY seq DESC LIMIT 1",
        micros(moment),
    )
    return int(row[0]) if row is not None else 0


async def _ways_back(
    opened: Opened, written: Mapping[str, Sequence[Written]]
) -> tuple[list[Undone], list[str], list[tuple[str, str]]]:
    """The memories that stay as they are, those that the author created, and those that go back to a version."""
    kept, created, back = list[Undone](), list[str](), list[tuple[str, str]]()
    for ids in _batches(sorted(written)):
        opened.transaction.announce((_NEWEST, (id,)) for id in ids)
        for memory_id in ids:
            row = await opened.transaction.fetch_keyed(_NEWEST, opened.memory.id, memory_id)
            try:
                target_id = earlier(written[memory_id], row[1] if row is not None else None)
            except MemoryStoreError as refusal:
                kept.append(Undone(memory_id, "kept", refusal.message))
                continue
            if target_id is not None:
                back.append((memory_id, target_id))
            elif row is not None:
                created.append(memory_id)
            else:
                kept.append(Undone(memory_id, "kept", "The memory is gone already."))
    return kept, created, back


async def _written(opened: Opened, author: Author, since: datetime) -> dict[str, list[Written]]:
    """What the author wrote, by memory; newest first."""
    rows = await opened.memory.all(
        "SELECT seq, file_id, id, parent_id, operation FROM file_versions "  # noqa: S608  # no value
        f"WHERE memory_id = $1 AND {_WROTE[author.kind]} AND created_at >= $3",
        askable(author.id),
        micros(since),
    )
    written: dict[str, list[Written]] = {}
    # Not for the database to sort: it might walk the whole history file by file.
    for _, file_id, id, parent_id, operation in sorted(rows, key=lambda row: -row[0]):
        written.setdefault(file_id, []).append(Written(id, parent_id, operation == "deleted"))
    return written


async def _version(opened: Opened, version_id: str) -> Version:
    row = await opened.transaction.fetch_keyed(_VERSION, opened.memory.id, version_id)
    assert row is not None  # noqa: S101  # another version follows it
    return version_of(row[1:])


def _batches(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    return (items[start : start + _AT_ONCE] for start in range(0, len(items), _AT_ONCE))
