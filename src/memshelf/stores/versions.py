"""The versions of a store: page, retrieve, redact, compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.sql import changes
from memshelf.files.backends.sql.of_file import NEWEST_FIRST, of_file
from memshelf.files.backends.sql.rows import BASIC_FIELDS, VERSION_FIELDS, version_of
from memshelf.files.model import Operation, Version
from memshelf.storage.ids import askable, micros
from memshelf.storage.transaction import Row
from memshelf.stores.catalogue import Period
from memshelf.stores.change import stored_version
from memshelf.stores.cursors import decoded, encoded
from memshelf.stores.model import Page
from memshelf.stores.shelf import Opened, StoreAccess

__all__ = ["VersionFilter", "Versions"]

_LOOKED_AT = 20_000
_NO_NUMBER = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionFilter:
    """Which versions to list: those that match everything that is not `None`."""

    memory_id: str | None = None
    operation: Operation | None = None
    session_id: str | None = None
    api_key_id: str | None = None
    period: Period = field(default_factory=Period)


class Versions(StoreAccess):
    """The versions of one store, also of memories that are deleted. `Version.path` is the path of the file."""

    async def page(
        self,
        *,
        limit: int,
        where: VersionFilter = VersionFilter(),  # frozen
        page: str | None = None,
        content: bool = False,
    ) -> Page[Version]:
        """The newest first. Without `content`, `Version.text` is `None`. `invalid_cursor`."""
        period = where.period
        listing = ("versions", self.store_id, str(where))
        clauses, values = ["memory_id = $1"], list[object]()

        def mark(value: object) -> str:
            values.append(value)
            return f"${len(values) + 1}"

        order, before, time = "seq DESC", "seq < {}", "created_at"
        if where.memory_id is not None:
            memory_id = mark(askable(where.memory_id))
            clauses.append(of_file(memory_id))
            order, before = NEWEST_FIRST, f"(file_id, seq) < ({memory_id}, {{}})"
            time = "+created_at"  # so that an engine sees no other way than that of the memory
        for column, wanted in (
            ("operation", where.operation),
            ("session_id", where.session_id),
            ("api_key_id", where.api_key_id),
        ):
            if wanted is not None:
                clauses.append(f"{column} = {mark(askable(wanted))}")
        if period.since is not None:
            clauses.append(f"{time} >= {mark(micros(period.since))}")
        if period.until is not None:
            clauses.append(f"{time} <= {mark(micros(period.until))}")
        if page is not None:
            clauses.append(before.format(mark(*decoded(listing, page, int))))
        fields = VERSION_FIELDS if content else BASIC_FIELDS
        query = f"SELECT {fields} FROM file_versions WHERE {' AND '.join(clauses)}"  # noqa: S608  # marks
        ending = f"ORDER BY {order} LIMIT {limit + 1}"
        if where.memory_id is None and where.session_id is None and where != VersionFilter():
            rows = await self._looked_for(query, ending, values, limit)
        else:
            rows = await self.read(lambda opened: opened.memory.all(f"{query} {ending}", *values))
        found = tuple(version_of(row) for row in rows[:limit])
        if len(rows) <= limit:
            return Page(found, None)
        return Page(found, encoded(listing, (rows[limit - 1][0],)))

    async def _looked_for(self, query: str, ending: str, values: Sequence[object], limit: int) -> Sequence[Row]:
        """The rows of a query for which there is no index: it may look at all versions. Where readers wait for each
        other, they come in between."""
        rows, below = list[Row](), _NO_NUMBER
        first, second = f"${len(values) + 2}", f"${len(values) + 3}"

        async def look(opened: Opened) -> tuple[Sequence[Row], int]:
            if not opened.transaction.one_at_a_time:
                return await opened.memory.all(f"{query} {ending}", *values), 0
            top = min(below, opened.head.seq + 1)
            part = f"{query} AND seq < {first} AND seq >= {second} {ending}"
            return await opened.memory.all(part, *values, top, top - _LOOKED_AT), max(top - _LOOKED_AT, 0)

        while below and len(rows) <= limit:
            found, below = await self.read(look)
            rows += found
        return rows

    async def retrieve(self, version_id: str) -> Version:
        """`not_found`."""
        return await self.read(lambda opened: stored_version(opened, version_id))

    async def redact(self, version_id: str, *, by: str) -> Version:
        """Erase a version's path and content for good, and return what remains. When this returns, no byte of them is
        left in the database, as far as the engine can tell. Redacting again changes nothing.

        `conflict` for the current version of a memory: change or delete the memory first.
        """

        async def redact(opened: Opened) -> Version:
            await stored_version(opened, version_id)
            try:
                return await changes.redact(opened.memory, version_id, by, self.shelf.mint)
            except MemoryStoreError as error:
                if error.code != "forbidden":
                    raise
                raise MemoryStoreError(
                    "conflict",
                    f"Version {version_id} is the current version of its memory; nothing changed. Change or delete the "
                    "memory first.",
                ) from None

        return await self.erase(redact)

    async def pair(self, version_id: str, other_id: str | None = None) -> tuple[Version | None, Version]:
        """Two versions to compare: the one before a version, `None` if it is the first, and itself; or with another
        one, these two. `not_found`."""

        async def pair(opened: Opened) -> tuple[Version | None, Version]:
            first = await stored_version(opened, version_id)
            if other_id is not None:
                return first, await stored_version(opened, other_id)
            parent = first.parent_id
            return await stored_version(opened, parent) if parent is not None else None, first

        return await self.read(pair)
