"""Going back: restore a version, undo what one actor wrote, and list a store as it was."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.sql.of_file import NEWEST_FIRST, newest, of_file
from memshelf.files.backends.sql.rows import BASIC_FIELDS, VERSION_FIELDS, version_of
from memshelf.files.decide import Delete, Write
from memshelf.files.model import Version
from memshelf.origin import Origin
from memshelf.storage.ids import askable, micros
from memshelf.storage.transaction import Row
from memshelf.stores.change import (
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

__all__ = ["Author", "History", "Outcome", "Undone", "earlier"]

_AT_ONCE = 100
_MOST_PLACES = 1_000

Outcome: TypeAlias = Literal["restored", "deleted", "kept"]


@dataclass(frozen=True, slots=True)
class Author:
    """Whose changes to undo: a session's, or what a key or a user wrote outside of any session."""

    kind: Literal["session", "api_key", "user"]
    id: str

    def wrote(self, origin: Origin) -> bool:
        if self.kind == "session":
            return origin.session_id == self.id
        if self.kind == "api_key":
            return (origin.session_id, origin.api_key_id) == (None, self.id)
        return (origin.session_id, origin.api_key_id, origin.principal_id) == (None, None, self.id)


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


def earlier(history: Iterable[Version], author: Author, since: datetime) -> Version | None:
    """What stood before the author's changes since a time, from one memory's history, newest first; `None` when there
    was no memory. A pure rule.

    `conflict` when others changed the memory afterwards, or when what stood before is redacted.
    """
    newest = True
    for version in history:
        if not _theirs(version, author, since):
            if newest:
                raise MemoryStoreError("conflict", "Others changed the memory afterwards.")
            if version.redacted_at is not None:
                raise MemoryStoreError("conflict", "The version to go back to is redacted.")
            return None if version.operation == "deleted" else version
        newest = False
    return None


def _theirs(version: Version, author: Author, since: datetime) -> bool:
    return author.wrote(version.origin) and version.created_at >= since


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
            undone: list[Undone] = []
            back: list[tuple[str, Version]] = []
            for memory_id in await _touched(opened, author, since):
                try:
                    target = earlier(await _history(opened, memory_id, author, since), author, since)
                except MemoryStoreError as refusal:
                    undone.append(Undone(memory_id, "kept", refusal.message))
                    continue
                if target is not None:
                    back.append((memory_id, await stored_version(opened, target.id)))
                    continue
                # What they created goes first, so that its path is free for what stood there before.
                current = await _current(opened, memory_id)
                if current is None:
                    undone.append(Undone(memory_id, "kept", "The memory is gone already."))
                    continue
                request = Delete(current.file.path, current.file.version)
                await changed(opened, request, current, origin, self.shelf)
                undone.append(Undone(memory_id, "deleted"))
            for memory_id, target in back:
                try:
                    memory = await self._back_to(opened, await _current(opened, memory_id), target, origin)
                except MemoryStoreError as refusal:
                    if refusal.code not in ("already_exists", "memory_full"):
                        raise
                    undone.append(Undone(memory_id, "kept", refusal.message))
                else:
                    undone.append(Undone(memory_id, "restored", memory=memory))
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


async def _touched(opened: Opened, author: Author, since: datetime) -> list[str]:
    """The memories that the author may have changed."""
    column = {"session": "session_id", "api_key": "api_key_id", "user": "principal_id"}[author.kind]
    rows = await opened.memory.all(
        f"SELECT file_id FROM file_versions WHERE memory_id = $1 AND {column} = $2 AND created_at >= $3",  # noqa: S608  # no value
        askable(author.id),
        micros(since),
    )
    # Not for the database to sort: it might walk the whole history file by file.
    return sorted({file_id for (file_id,) in rows})


async def _history(opened: Opened, memory_id: str, author: Author, since: datetime) -> list[Version]:
    """What `earlier` needs to know: the author's changes, and what stood before; newest first, without content."""
    found, before = list[Version](), opened.head.seq + 1
    while True:
        rows = await opened.memory.all(
            f"SELECT {BASIC_FIELDS} FROM file_versions WHERE memory_id = $1 AND {of_file('$2')} "  # noqa: S608  # no value
            f"AND (file_id, seq) < ($2, $3) ORDER BY {NEWEST_FIRST} LIMIT {_AT_ONCE}",
            memory_id,
            before,
        )
        found += map(version_of, rows)
        if len(rows) < _AT_ONCE or not all(_theirs(version, author, since) for version in found[-len(rows) :]):
            return found
        before = rows[-1][0]
