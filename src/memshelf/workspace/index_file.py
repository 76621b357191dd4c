"""The index as a file of the store, which several processes and a person change at the same time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from weakref import WeakKeyDictionary

from memshelf.errors import MemoryStoreError
from memshelf.files.decide import Write
from memshelf.files.edits import find, find_text
from memshelf.files.model import FileText
from memshelf.files.protocol import FileStore, WritesTogether
from memshelf.origin import Origin
from memshelf.workspace import index
from memshelf.workspace.config import WorkspaceConfig
from memshelf.workspace.entries import EntryInfo, read_entry_file
from memshelf.workspace.turns import TRIES, give_way, overtaken

__all__ = ["IndexFile"]

_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class _Waiting:
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    rows: dict[str, EntryInfo | None] = field(default_factory=dict)


class IndexFile:
    """Writers that wait for each other share one write.

    The files of entries are in the store under `files`, or else where `config` says, which the links begin with.
    """

    def __init__(self, store: FileStore, config: WorkspaceConfig, files: str | None = None) -> None:
        self._store = store
        self._path = config.memory_md
        self._under = config.entries_under
        self._files = self._under if files is None else files
        self._seen: FileText | None = None
        self._waiting: WeakKeyDictionary[asyncio.AbstractEventLoop, _Waiting] = WeakKeyDictionary()

    async def text(self) -> str:
        """The index as it is now; `""` while there is none."""
        found = await find(self._store, self._path)
        return found.text if found is not None else ""

    async def shown(self) -> str:
        """The same for a prompt, which goes without an index that is no text; a warning says so."""
        try:
            return await self.text()
        except MemoryStoreError as error:
            if error.code not in ("invalid_file", "invalid_path"):
                raise
            _LOG.warning(
                "%s is left out of the prompt: %s Repair it, or remove it to have it made anew.",
                self._path,
                error.message,
            )
            return ""

    async def update(self, changes: Mapping[str, EntryInfo | None]) -> None:
        """Write the rows of some entries anew, last, and remove those of files without one.

        Rows of an update that failed are written with the next one.
        """
        waiting = self._here()
        for file, entry in changes.items():
            waiting.rows.pop(file, None)
            waiting.rows[file] = entry
        async with waiting.turn:
            if not (rows := waiting.rows):
                return  # somebody wrote them along with theirs
            waiting.rows = {}
            try:
                await self._change(lambda text: index.updated(text, rows, self._under))
            except BaseException:
                waiting.rows = rows | waiting.rows
                raise

    async def follow(self, file: str, entry: EntryInfo | None) -> None:
        """Write the row of an entry that was just written, `None` for one that is gone, and again if its file says
        otherwise by then: the last of several writers may have been overtaken on its way to the index."""
        for attempt in range(TRIES):
            await self.update({file: entry})
            found = await find_text(self._store, self._files + file)
            now = read_entry_file(file, found.text).info if found is not None else None
            now = now if now is None or now.source == "confirmed" else None
            if now == entry:
                return
            entry = now
            await give_way(attempt)

    async def update_with(
        self, changes: Mapping[str, EntryInfo | None], entry: Write, origin: Origin
    ) -> tuple[str, bool]:
        """Write an entry, whose version is answered, and its rows with it, if that is done at once: or else the rows
        are still to be written by `update`."""
        seen, waiting = self._seen, self._here()
        if seen is not None and isinstance(self._store, WritesTogether) and not (waiting.turn.locked() or waiting.rows):
            async with waiting.turn:
                text = index.updated(seen.text, changes, self._under)
                if text != seen.text:
                    self._seen = None
                    rows = Write(self._path, text, seen.version, None)
                    version, shown = await self._store.write_both(entry, rows, origin=origin)
                    if isinstance(shown, str):
                        self._seen = FileText(self._path, text, shown)
                    return version, isinstance(shown, str)
        return await self._store.write(entry.path, entry.text, expected=entry.expected, origin=origin), False

    async def rebuild(self, entries: Iterable[EntryInfo]) -> None:
        """Make the rows agree with these entries; see `index.rebuilt`."""
        listed = list(entries)
        await self._change(lambda text: index.rebuilt(text, listed, self._under))

    def _here(self) -> _Waiting:
        return self._waiting.setdefault(asyncio.get_running_loop(), _Waiting())

    async def _change(self, change: Callable[[str], str]) -> None:
        found, self._seen = self._seen, None  # most often it is as it was left here, which the write itself checks
        fresh = False
        for attempt in range(TRIES):
            if found is None or attempt:
                found, fresh = await find(self._store, self._path), True
            before = found.text if found is not None else ""
            if (after := change(before)) == before:
                if fresh:
                    return
                continue
            try:
                expected = found.version if found is not None else None
                version = await self._store.write(self._path, after, expected=expected, origin=Origin())
            except MemoryStoreError as error:
                if not overtaken(error, self._path):
                    raise
                await give_way(attempt)
            else:
                self._seen = FileText(self._path, after, version)
                return
        raise MemoryStoreError("conflict_retries_exhausted", f"Other writers kept changing {self._path}.")
