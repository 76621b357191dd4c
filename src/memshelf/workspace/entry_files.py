"""The files of a user's entries, and their rows in the index."""

from __future__ import annotations

import logging
from itertools import chain

from memshelf.errors import MemoryStoreError
from memshelf.files.decide import Write
from memshelf.files.edits import find, find_text
from memshelf.files.model import FileText
from memshelf.files.protocol import FileStore
from memshelf.origin import Origin
from memshelf.workspace.catalogue import Catalogue
from memshelf.workspace.entries import EntryDraft, EntryInfo, MemoryEntry, file_names, read_entry_file
from memshelf.workspace.index_file import IndexFile
from memshelf.workspace.turns import TRIES, Turns, give_way, overtaken

__all__ = ["EntryFiles"]

_log = logging.getLogger(__name__)


class EntryFiles:
    """Writes, reads and removes entries. An entry's file comes first, and its row follows."""

    def __init__(self, store: FileStore, catalogue: Catalogue, index: IndexFile) -> None:
        self._store = store
        self._catalogue = catalogue
        self._index = index
        self._turns = Turns()

    async def write(self, draft: EntryDraft, origin: Origin, candidate: FileText | None = None) -> str:
        """Store an entry in its own file, or in a new one, and answer the file's name.

        With the `candidate` that the draft was made from, `version_mismatch` when its file is not as it was.
        """
        await self._catalogue.refresh(hurried=True)
        own, current = self._own(draft), None
        if own and (current := await find_text(self._store, self._catalogue.path_of(own[0]))) is None:
            await self._catalogue.refresh()  # somebody moved it a moment ago
            own = self._own(draft)
        for file in chain(own, file_names(draft.memory_type, draft.title)):
            its = candidate is not None and self._catalogue.path_of(file) == candidate.path
            async with self._turns.of(file):
                if await self._write_at(file, draft, origin, candidate if its else current, once=its):
                    return file
            current = None
        raise MemoryStoreError("already_exists", "Other files have all the names that this entry could have.")

    def _own(self, draft: EntryDraft) -> list[str]:
        """The files in which the entry may be already."""
        known = self._catalogue.named(draft.memory_type, draft.title)
        known.sort(key=lambda each: each.source, reverse=True)  # a confirmed entry before a candidate
        return [each.file for each in known if draft.source in (each.source, "confirmed")]

    async def _write_at(
        self, file: str, draft: EntryDraft, origin: Origin, current: FileText | None, *, once: bool = False
    ) -> bool:
        """Write the entry and its row, if the file is free or its own; `False` when it is another's.

        `current` is what the file was seen to hold, which the write itself checks; `once` writes over nothing else.
        """
        path = self._catalogue.path_of(file)
        for attempt in range(TRIES):
            if attempt:
                try:
                    current = await find(self._store, path)
                except MemoryStoreError as error:
                    if error.code in ("invalid_file", "invalid_path"):
                        return False  # something of a person's that is no text
                    raise
            if current is not None and not draft.belongs_in(read_entry_file(file, current.text)):
                return False
            text = draft.text(current.text if current is not None else "")
            entry = read_entry_file(file, text)
            row = {file: entry.info if entry.source == "confirmed" else None}
            write = Write(path, text, current.version if current is not None else None, None)
            try:
                async with self._catalogue.changing(path):
                    version, shown = await self._index.update_with(row, write, origin)
            except MemoryStoreError as error:
                unseen = not attempt and error.code == "invalid_path"
                if not once and (unseen or overtaken(error, path)):
                    await give_way(attempt)
                    continue
                raise
            self._catalogue.take(path, version, entry)
            if not shown:
                await self._show(file, row[file])
            return True
        raise MemoryStoreError("conflict_retries_exhausted", f"Other writers kept changing {file}; nothing changed.")

    async def _show(self, file: str, entry: EntryInfo | None) -> None:
        """The entry stands; the index is only a view of it, which the next write or a rebuild completes."""
        try:
            await self._index.follow(file, entry)
        except MemoryStoreError as error:
            _log.warning("The memory index could not be updated (%s); the entries themselves are right.", error.code)

    async def _take_out(self, file: str) -> None:
        """The entry is gone. Its row has words of it, so whoever wants it forgotten hears of one that may be left."""
        try:
            await self._index.follow(file, None)
        except MemoryStoreError as error:
            if error.code in ("invalid_file", "invalid_path"):  # there is no index that could have a row
                _log.warning("The memory index could not be updated (%s); the entries are right.", error.code)
                return
            raise MemoryStoreError(
                "write_unconfirmed",
                f"{file} is removed, but its row may be left in the index: {error.message} Rebuild the index.",
            ) from error

    async def read(self, file: str) -> MemoryEntry:
        """The entry in a file, as it is now. `not_found`, `invalid_path`."""
        path = self._catalogue.path_of(file)
        return read_entry_file(self._catalogue.file_of(path), (await self._store.read(path)).text)

    async def load(self, files: list[str]) -> list[MemoryEntry]:
        """The entries in those of the files that are still there."""
        found = [await find_text(self._store, self._catalogue.path_of(file)) for file in files]
        return [read_entry_file(file, text.text) for file, text in zip(files, found, strict=True) if text is not None]

    async def promote(self, file: str, origin: Origin) -> str:
        """Confirm a candidate, and answer the name of its file from now on."""
        path = self._catalogue.path_of(file)
        for attempt in range(TRIES):
            seen = await self._store.read(path)
            entry = read_entry_file(self._catalogue.file_of(path), seen.text)
            if entry.source == "confirmed":
                return entry.file
            draft = EntryDraft(entry.title, entry.description, entry.memory_type, entry.content, "confirmed")
            try:
                kept = await self.write(draft, origin, seen)
                if kept != entry.file:
                    await self.delete(entry.file, origin, seen)
            except MemoryStoreError as error:
                if error.code != "version_mismatch":
                    raise
                await give_way(attempt)  # it says something else by now
            else:
                return kept
        raise MemoryStoreError("conflict_retries_exhausted", f"Other writers kept changing {file}; nothing changed.")

    async def delete(self, file: str, origin: Origin, seen: FileText | None = None, *, candidate: bool = False) -> None:
        """Remove an entry and its row. `not_found`; `version_mismatch` when it is not as it was `seen`, or was changed
        at that very moment; `write_unconfirmed` when words of it may be left in the index, or in what the next process
        begins with; `conflict` where a `candidate` is wanted and it is none."""
        path = self._catalogue.path_of(file)
        current = seen or await (self._store.read(path) if candidate else find(self._store, path))
        if candidate and current is not None and read_entry_file(file, current.text).source != "auto":
            raise MemoryStoreError("conflict", "This entry is confirmed; forget it instead of rejecting it.")
        if current is not None:
            async with self._catalogue.changing(path):
                await self._store.delete(path, expected=current.version, origin=origin)
        try:
            self._catalogue.forget(path)
        finally:
            await self._take_out(self._catalogue.file_of(path))
        if current is None:
            raise MemoryStoreError("not_found", f"There is no entry {self._catalogue.file_of(path)}.")
