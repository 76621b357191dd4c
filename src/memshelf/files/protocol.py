"""The contract of a file memory. These docstrings are what `memshelf.testing` checks."""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Callable
from datetime import datetime
from typing import Protocol, TypeVar, runtime_checkable

from memshelf.errors import MemoryStoreError
from memshelf.files.decide import Write
from memshelf.files.model import Changes, FileEntry, FileText, FullResync, GrepMatch, Version, VersionPage
from memshelf.origin import Origin

__all__ = [
    "FileStore",
    "HistoryFileStore",
    "ListsWithChanges",
    "SearchableFileStore",
    "WritesTogether",
    "documented_by",
]

Store = TypeVar("Store", bound=type)


@runtime_checkable
class FileStore(Protocol):
    """The files of one memory.

    Every mutation is atomic and compare-and-swap: it happens whole or not at all, and only if the file is as the
    caller expects at that moment. A mutation that returns is visible to every later call of every process. A refusal
    raises `MemoryStoreError` and changes nothing; when the caller is cancelled, the mutation may or may not have
    happened.

    Paths are taken in any Unicode form and stored in NFC (`validate_path`). A path names a file or a directory, never
    both: while `a` exists nothing can be created at or moved to `a/b`, and while `a/b` exists, nothing at `a`.

    Besides the codes named below, every call may raise `invalid_path` (the path is not canonical) and `unavailable`
    (the store could not do it now).
    """

    async def list(self) -> builtins.list[FileEntry]:
        """Every file, in byte-wise path order. Content that no write could have stored is left out or undescribed."""
        ...

    async def read(self, path: str) -> FileText:
        """The file as it is now. `not_found`; `invalid_file` when what is stored is not UTF-8."""
        ...

    async def write(self, path: str, text: str, *, expected: str | None, origin: Origin) -> str:
        """Store `text` whole and return the new version.

        `expected` is the version that must be current (`version_mismatch`, carrying the file as it is now or `None`);
        `None` means that the path must be free (`already_exists`, carrying the file in the way).
        `too_large`, `invalid_file`.
        """
        ...

    async def move(self, source: str, destination: str, *, expected: str, origin: Origin) -> str:
        """Rename a file in one step and return its version at the destination.

        The source must be at `expected` (`version_mismatch`) and the destination free (`already_exists`); the source
        itself counts as being in the way. Never a copy and a delete.
        """
        ...

    async def delete(self, path: str, *, expected: str, origin: Origin) -> None:
        """Remove the file if it is at `expected` (`version_mismatch`)."""
        ...

    async def changes(self, since: str | None) -> Changes | FullResync:
        """What changed after the cursor `since`, or that everything is to be read again.

        The cursor in the answer was taken before the answer returned, so a change made while the caller reads next is
        listed again, never skipped. `None`, and any cursor that this store cannot place, answer `FullResync`.
        """
        ...

    async def purge(self) -> None:
        """Remove every file, and on a store with history every version, leaving no content behind."""
        ...


@runtime_checkable
class SearchableFileStore(FileStore, Protocol):
    """A file memory that can search itself; the tools read the files of any other."""

    async def search(
        self, pattern: str, *, regex: bool, case_sensitive: bool, path: str, limit: int
    ) -> tuple[builtins.list[GrepMatch], bool]:
        """At most `limit` matching lines under the directory `path`, and whether there are more.

        Files come in byte-wise path order. A pattern that does not compile, or takes too long, is `invalid_pattern`.
        """
        ...


@runtime_checkable
class HistoryFileStore(FileStore, Protocol):
    """A file memory that keeps every version.

    Each mutation that returns wrote exactly one version, in the same transaction. A mutation repeated with the same
    `(run_id, tool_call_id)` and arguments changes nothing and returns its first result; with other arguments it is
    `forbidden`, and so is one whose version was redacted, as nothing tells its arguments any more. `changes` is exact:
    `FullResync` comes only for a cursor that is not of this memory, or when a redaction removed a path that the answer
    would have to name.
    """

    async def versions(
        self,
        path: str | None = None,
        *,
        since: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> VersionPage:
        """Versions, newest first: of the whole memory, or of every file that stood at `path` at some time, through
        its moves. `since` leaves out what is older. `invalid_cursor`."""
        ...

    async def read_version(self, version_id: str) -> Version:
        """One version with its content. `not_found`."""
        ...

    async def restore(self, version_id: str, *, expected: str | None, origin: Origin) -> str:
        """Write a version's content back at its path, as a new version, and return that.

        `expected` is as in `write`. A deleted or redacted version has no content: `not_found`.
        """
        ...

    async def redact(self, version_id: str, *, by: str) -> Version:
        """Erase a version's path and content for good, and return what remains.

        The current version of a live file is refused (`forbidden`): change or delete the file first. Redacting twice
        changes nothing. When this returns, no byte of what was erased is left in the store's files. `not_found`.
        """
        ...

    async def replayed(self, origin: Origin) -> Version | None:
        """The version that this `(run_id, tool_call_id)` wrote, or `None`; always `None` when either is missing."""
        ...


@runtime_checkable
class ListsWithChanges(Protocol):
    """A file memory for which one look answers `changes` and `list` together, at the cost of one of them."""

    async def changes_and_list(self, since: str | None) -> tuple[Changes | FullResync, builtins.list[FileEntry]]:
        """What `changes` and `list` answer at one moment."""
        ...


@runtime_checkable
class WritesTogether(Protocol):
    """A file memory that makes two writes for little more than the price of one."""

    async def write_both(self, first: Write, second: Write, *, origin: Origin) -> tuple[str, str | MemoryStoreError]:
        """Make the first write, then the second if that was made: what each answers, or why the second was refused.

        What the first raises is raised; unless it is `write_unconfirmed`, nothing changed. With durability, the first
        survives a power cut once this has returned. The second may be lost in one, but leaves its file whole.
        """
        ...


def documented_by(*protocols: type) -> Callable[[Store], Store]:
    """Give the methods of a store the docstrings of the protocols that it keeps, before what they add of their own."""

    def documented(store: Store) -> Store:
        for protocol in protocols:
            for name, promise in vars(protocol).items():
                method = vars(store).get(name)
                if not name.startswith("_") and inspect.isfunction(promise) and inspect.isfunction(method):
                    texts = (inspect.getdoc(promise), inspect.getdoc(method))
                    method.__doc__ = "\n\n".join(text for text in texts if text)
        return store

    return documented
