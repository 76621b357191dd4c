"""A file memory in a directory of plain files, which a person can open, edit and back up."""

from __future__ import annotations

import asyncio
import builtins
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memshelf.arguments import checked_argument, checked_path
from memshelf.closing import Closes
from memshelf.errors import MemoryStoreError
from memshelf.files import grep
from memshelf.files.backends.directory.disk import Disk, require_support
from memshelf.files.backends.directory.mutate import Mutations
from memshelf.files.backends.directory.names import require_addressable
from memshelf.files.backends.directory.scan import Listing, nothing, scan
from memshelf.files.backends.directory.tree import Tree
from memshelf.files.backends.directory.worker import Worker
from memshelf.files.decide import Delete, Move, Request, Write
from memshelf.files.format import validate_directory, validate_path
from memshelf.files.model import Changes, FileEntry, FileText, FullResync, GrepMatch
from memshelf.files.protocol import FileStore, SearchableFileStore, WritesTogether, documented_by
from memshelf.limits import FileFormat
from memshelf.origin import Origin

__all__ = ["DirectoryFileStore"]

_BAD_NAME = {errno.ENAMETOOLONG, errno.EINVAL, errno.EILSEQ}


@documented_by(FileStore, SearchableFileStore, WritesTogether)
class DirectoryFileStore(Closes):
    """The files below the directory `root`; a `SearchableFileStore` without history.

    Usable as it is, from any task and event loop, or as an async context manager; `aclose()` waits for changes under
    way. Any number of stores, in any number of processes of one machine, may share a root. Nothing is kept open
    between calls, so a root that is replaced is simply read anew.

    * **Versions** are content hashes: the same content has the same version, whoever wrote it.
    * **Changes** take turns under a lock in the control directory `.memshelf/`, which no path leads to. A crash at any
      instant leaves the file before or after, and no lock behind; a process that is alive is waited for. The last look
      at a file and its replacement are two system calls: an edit by a program that ignores the lock makes the change
      a `version_mismatch`, except in that instant; likewise for the destination of a move. A file that is created
      overwrites none, on disks that have hard links.
    * **Durability**: what a call returned survives a power cut; `durable=False` leaves that to the system.
      `write_unconfirmed` means that the change is made and visible, but that the disk failed to confirm it.
    * **Privacy**: files are written with mode 0600, directories with 0700. A file that is moved keeps its own mode.
    * **Foreign things** are not listed, never followed, refused as `invalid_path` or `invalid_file`, and left alone
      by `purge`: symbolic links below the root, special files, names that are no valid path, content that is not UTF-8,
      and files over 16 MiB (or over `max_file_bytes`, if that is more).
    * **Unicode**: a file that a person named in decomposed form (NFD) is found under its NFC path. Of two names that
      differ in this only, the one in NFC is found.
    * **Failures of the system** are `unavailable` with its reason, or `invalid_path` when it refuses a name. A
      listing that cannot read a file fails: without it, the file would seem deleted.

    `disk` makes the system calls; see `memshelf.testing.disk`. `NotImplementedError` on systems other than POSIX.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        format: FileFormat | None = None,
        durable: bool = True,
        disk: Disk | None = None,
    ) -> None:
        require_support()
        self.format = checked_argument("format", format, FileFormat, None) or FileFormat()
        checked_argument("durable", durable, bool)
        self._root = str(Path(checked_path("root", root)).absolute())
        self._disk = disk or Disk()
        self._mutations = Mutations(self._disk, self._root, self.format, durable=durable)
        self._worker = Worker(after=self._mutations.release)
        self._listing = nothing()

    async def aclose(self) -> None:
        """Wait for the changes under way and end the thread that makes them. The next change starts another."""
        await self._worker.stop()

    async def list(self) -> builtins.list[FileEntry]:
        return [*(await asyncio.to_thread(self._scan)).entries]

    async def read(self, path: str) -> FileText:
        path = require_addressable(validate_path(path, self.format))
        file = await asyncio.to_thread(self._read, path)
        if file is None:
            raise MemoryStoreError("not_found", f"{path} does not exist.")
        return file

    async def write(self, path: str, text: str, *, expected: str | None, origin: Origin) -> str:
        checked_argument("origin", origin, Origin)
        return await self._apply(self._checked(path, text, expected))

    async def move(self, source: str, destination: str, *, expected: str, origin: Origin) -> str:
        checked_argument("origin", origin, Origin)
        request = Move.checked(source, destination, expected, self.format)
        require_addressable(request.source)
        require_addressable(request.destination)
        return await self._apply(request)

    async def delete(self, path: str, *, expected: str, origin: Origin) -> None:
        checked_argument("origin", origin, Origin)
        request = Delete.checked(path, expected, self.format)
        require_addressable(request.path)
        await self._apply(request)

    async def changes(self, since: str | None) -> Changes | FullResync:
        return (await self.changes_and_list(since))[0]

    async def changes_and_list(self, since: str | None) -> tuple[Changes | FullResync, builtins.list[FileEntry]]:
        """`changes` and `list` of one look at the directory."""
        listing = await asyncio.to_thread(self._scan)
        cursor = listing.cursor
        return Changes(cursor, ()) if since == cursor else FullResync(cursor), [*listing.entries]

    async def purge(self) -> None:
        """Remove every file that a listing shows, by their names: what the disk does with the freed blocks is its own
        affair. Foreign things stay where they are. After `write_unconfirmed` some files may be left."""

        def change() -> None:
            with _refusals(changing=True):
                self._mutations.purge()

        await self._worker.run(change)

    async def search(
        self, pattern: str, *, regex: bool, case_sensitive: bool, path: str, limit: int
    ) -> tuple[builtins.list[GrepMatch], bool]:
        directory = require_addressable(validate_directory(path, self.format))
        compiled = grep.Pattern.compile(pattern, regex=regex, case_sensitive=case_sensitive)
        return await asyncio.to_thread(self._search, directory, compiled, limit)

    async def write_both(self, first: Write, second: Write, *, origin: Origin) -> tuple[str, str | MemoryStoreError]:
        first = self._checked(first.path, first.text, first.expected)
        try:
            second = self._checked(second.path, second.text, second.expected)
        except MemoryStoreError as error:
            return await self.write(first.path, first.text, expected=first.expected, origin=origin), error

        def change() -> tuple[str, str | MemoryStoreError]:
            with _refusals(changing=True):
                version, other = self._mutations.apply_both(first, second)
            return version, other if isinstance(other, str | MemoryStoreError) else _refusal(other, changing=True)

        return await self._worker.run(change)

    def _checked(self, path: str, text: str, expected: str | None) -> Write:
        request = Write.checked(path, text, expected, self.format)
        require_addressable(request.path)
        return request

    async def _apply(self, request: Request) -> str:
        def change() -> str:
            with _refusals(changing=True):
                return self._mutations.apply(request)

        return await self._worker.run(change)

    def _scan(self) -> Listing:
        with self._opened() as root:
            listing = scan(self._disk, root, self.format, self._listing) if root is not None else nothing()
        self._listing = listing
        return listing

    def _read(self, path: str) -> FileText | None:
        with self._opened() as root:
            return Tree(self._disk, root, self.format).load(path) if root is not None else None

    def _search(self, directory: str, pattern: grep.Pattern, limit: int) -> tuple[builtins.list[GrepMatch], bool]:
        with self._opened() as root:
            if root is None:
                return [], False
            tree = Tree(self._disk, root, self.format)
            paths = (entry.path for entry in self._scan().entries if entry.path.startswith(directory))
            files = (file for path in paths if (file := _readable(tree, path)) is not None)
            return grep.search(files, pattern, limit)

    @contextmanager
    def _opened(self) -> Iterator[int | None]:
        """The root, for reading; `None` while there is none."""
        with _refusals():
            try:
                root = self._disk.open_root(self._root)
            except FileNotFoundError:
                yield None
                return
            try:
                yield root
            finally:
                self._disk.close(root)


@contextmanager
def _refusals(*, changing: bool = False) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _refusal(error, changing=changing) from error


def _refusal(error: OSError, *, changing: bool) -> MemoryStoreError:
    reason = error.strerror or str(error)
    if error.errno in _BAD_NAME:
        return MemoryStoreError("invalid_path", f"The system refuses this name: {reason}.")
    if changing:  # the name may be one of the store's own, which tells nobody anything
        return MemoryStoreError("unavailable", f"The system refuses: {reason}; nothing changed.")
    name = error.filename  # a name in the memory; the path of the root is none of a model's business
    where = f" ({name})" if isinstance(name, str) and not os.path.isabs(name) else ""
    return MemoryStoreError("unavailable", f"The memory cannot be read: {reason}{where}.")


def _readable(tree: Tree, path: str) -> FileText | None:
    try:
        return tree.load(path)
    except MemoryStoreError:  # replaced since the scan by something that is no memory file
        return None
