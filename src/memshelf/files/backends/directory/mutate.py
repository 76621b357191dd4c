"""One change of a directory memory: lock, load, decide, commit.

What is written is staged in the control directory and synced there; then one `link` (of a new file) or one `rename`
puts it in place. So a crash leaves the old state or the new one. What it leaves behind in the control directory is
removed by the next change, and a directory without files is no part of a memory.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import assert_never

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.directory.content import no_directory, version_of
from memshelf.files.backends.directory.disk import Disk
from memshelf.files.backends.directory.lock import Exclusive
from memshelf.files.backends.directory.names import actual, memory_path
from memshelf.files.backends.directory.scan import nothing, scan
from memshelf.files.backends.directory.tree import Tree, Way
from memshelf.files.decide import Delete, Move, Request, Write, decide
from memshelf.files.model import FileEntry
from memshelf.limits import FileFormat

__all__ = ["Mutations"]

_STAGED = "staged"
_ATTEMPTS = 10
_CHANGED_MEANWHILE = {errno.ENOENT, errno.EEXIST, errno.EISDIR, errno.ENOTDIR, errno.ELOOP}
_NO_LINKS = {errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class Mutations:
    """Changes of the memory at `root`. Every call blocks, first for the lock: call it off the event loop.

    Raises `MemoryStoreError`, and `OSError` for what the system refused. Unless the code is `write_unconfirmed`,
    nothing changed.
    """

    def __init__(self, disk: Disk, root: str, format: FileFormat, *, durable: bool) -> None:
        self._disk = disk
        self._root = root
        self._format = format
        self._durable = durable
        self._on_disk: set[tuple[int, int]] = set()  # directories that were seen to be in their parents on the disk
        self._replaced: list[int] = []
        self._late: list[int] | None = None  # directories that are to be synced when the turn ends

    def apply(self, request: Request) -> str:
        """Commit a request, and return the version of the file that it wrote, moved or removed."""
        with self._turn(request) as held:
            return self._commit(held, request)

    def apply_both(self, first: Write, second: Write) -> tuple[str, str | OSError | MemoryStoreError]:
        """Commit two writes in one turn: their versions, or what kept the second from being made.

        Only the directory of the first is synced, and only at the end: to sync the content of the second takes a
        journalling disk the way that it has to go anyway.
        """
        with self._turn(first) as held:
            late = self._late = list[int]()
            try:
                version = self._commit(held, first)
                changed = late.copy()
                try:
                    other: str | OSError | MemoryStoreError = self._commit(held, second)
                except (OSError, MemoryStoreError) as error:
                    other = error
                self._sync(changed)
            finally:
                self._late = None
                for directory in late:
                    self._disk.close(directory)
        return version, other

    def release(self) -> None:
        """Let the system free the files that were replaced. That takes as long as all of a change without durability,
        so it is for after the answer."""
        while self._replaced:
            self._disk.close(self._replaced.pop())

    def purge(self) -> None:
        """Remove every file that a listing shows, and what was derived from them; leave what is no memory file."""
        try:
            with Exclusive(self._disk, self._root, create=False, durable=self._durable) as held:
                self._discard_derived(held)
                tree = Tree(self._disk, held.root, self._format)
                entries = scan(self._disk, held.root, self._format, nothing()).entries
                try:
                    while entries:
                        self._remove_all(tree, entries)
                        # Removing one of two names that differ in their Unicode form reveals the other.
                        entries = scan(self._disk, held.root, self._format, nothing()).entries
                except (OSError, MemoryStoreError) as error:
                    raise _unconfirmed("Some files may be left", error) from error
        except FileNotFoundError:  # no root
            return

    @contextmanager
    def _turn(self, request: Request) -> Iterator[Exclusive]:
        try:
            with Exclusive(self._disk, self._root, create=request.loads is None, durable=self._durable) as held:
                yield held
        except FileNotFoundError:  # no root
            if request.loads is not None:
                decide(request, None, None)
            raise

    def _commit(self, held: Exclusive, request: Request) -> str:
        tree = Tree(self._disk, held.root, self._format)
        for _ in range(_ATTEMPTS):
            try:
                return self._attempt(held, tree, request)
            except OSError as error:
                if error.errno not in _CHANGED_MEANWHILE:
                    raise
                # Another program changed something between two of our steps: look again.
        raise MemoryStoreError("unavailable", "Other programs keep changing these files; nothing changed.")

    def _attempt(self, held: Exclusive, tree: Tree, request: Request) -> str:
        match request:
            case Write(expected=None):
                return self._create(held, tree, request)
            case Write():
                return self._replace(held, tree, request)
            case Move():
                self._discard_staged(held)
                return self._move(tree, request)
            case Delete():
                self._discard_staged(held)
                return self._delete(tree, request)
            case _:
                assert_never(request)

    def _create(self, held: Exclusive, tree: Tree, request: Write) -> str:
        data = request.text.encode()
        with tree.way(request.path) as way:
            decide(request, None, tree.in_the_way(way))
            with self._staged(held, data), self._completed(way):
                self._remove_empty(way.name, way.end, way.path)
                try:
                    # Unlike a rename, a link cannot overwrite a file that a person makes at this moment.
                    self._disk.link(_STAGED, held.control, way.name, way.end)
                except OSError as error:
                    if error.errno not in _NO_LINKS:
                        raise
                    decide(request, None, tree.in_the_way(way))
                    self._disk.rename(_STAGED, held.control, way.name, way.end)
                self._confirm(way)
                with suppress(OSError):  # the next change tries again
                    self._discard_staged(held)
        return version_of(data)

    def _replace(self, held: Exclusive, tree: Tree, request: Write) -> str:
        data = request.text.encode()
        with tree.way(request.path) as way:
            if decide(request, tree.file(way), None) is None:
                self._sync_file(way)
                self._sync_steps(way)
                self._confirm(way)
                return version_of(data)
            with self._staged(held, data):
                self._sync_steps(way)
                decide(request, tree.file(way), None)  # staging took time, in which a person may have edited the file
                self._replaced.append(self._disk.open_file(way.name, way.end))
                self._disk.rename(_STAGED, held.control, way.name, way.end)
                self._confirm(way)
        return version_of(data)

    def _move(self, tree: Tree, request: Move) -> str:
        with tree.way(request.source) as source, tree.way(request.destination) as destination:
            decide(request, tree.file(source), tree.in_the_way(destination))
            with self._completed(destination):
                self._sync_file(source)
                decide(request, tree.file(source), tree.in_the_way(destination))  # for the same reason as in `_replace`
                self._remove_empty(destination.name, destination.end, destination.path)
                self._disk.rename(source.name, source.end, destination.name, destination.end)
                self._confirm(destination, source)
            self._prune(source)
        return request.expected

    def _delete(self, tree: Tree, request: Delete) -> str:
        with tree.way(request.path) as way:
            decide(request, tree.file(way), None)
            self._disk.unlink(way.name, way.end)
            self._confirm(way)
            self._prune(way)
        return request.expected

    def _remove_all(self, tree: Tree, entries: tuple[FileEntry, ...]) -> None:
        for _, together in groupby(entries, key=lambda entry: entry.path.rpartition("/")[0]):
            paths = [entry.path for entry in together]
            with tree.way(paths[0]) as way:
                if way.missing:
                    continue
                for path in paths:
                    with suppress(FileNotFoundError):
                        self._disk.unlink(actual(self._disk, path.rpartition("/")[2], way.end), way.end)
                self._confirm(way)
                self._prune(way)

    def _discard_derived(self, held: Exclusive) -> None:
        for entry in list(self._disk.entries(held.control)):
            if entry.name not in held.KEPT and entry.is_file(follow_symlinks=False):
                with suppress(FileNotFoundError):
                    self._disk.unlink(entry.name, held.control)

    def _discard_staged(self, held: Exclusive) -> None:
        with suppress(FileNotFoundError):
            self._disk.unlink(_STAGED, held.control)

    @contextmanager
    def _staged(self, held: Exclusive, data: bytes) -> Iterator[None]:
        """Have the content in the control directory, and not any more when what follows fails."""
        try:
            fd = self._disk.create(_STAGED, held.control)
        except FileExistsError:
            # Removed and not written over: a crash in `_create` leaves it as a second name of a file in the memory.
            self._discard_staged(held)
            fd = self._disk.create(_STAGED, held.control)
        try:
            try:
                self._disk.write(fd, data)
                if self._durable:
                    self._disk.sync(fd)
            except BaseException:
                self._disk.close(fd)
                raise
            self._disk.close_written(fd)
            yield
        except (OSError, MemoryStoreError):
            with suppress(OSError):
                self._discard_staged(held)
            raise

    @contextmanager
    def _completed(self, way: Way) -> Iterator[None]:
        """Make the directories that a way lacks, and remove them again when what follows fails."""
        made: list[tuple[str, int]] = []
        try:
            while way.missing:
                name, at = way.missing[0], way.end
                self._disk.make_directory(name, at)
                made.append((name, at))
                way.enter(name)
            self._sync_steps(way)
            yield
        except (OSError, MemoryStoreError):
            with suppress(OSError):  # one that holds a file is needed
                for name, at in reversed(made):
                    self._disk.remove_directory(name, at)
            raise

    def _sync_steps(self, way: Way) -> None:
        if not self._durable:
            return
        for above, _, directory in way.steps:
            # Also one that was there before: who made it may not have synced it, or may have been killed first.
            if (key := self._identity(directory)) not in self._on_disk:
                self._disk.sync_directory(above)
                self._on_disk.add(key)

    def _sync_file(self, way: Way) -> None:
        if not self._durable:
            return
        fd = self._disk.open_file(way.name, way.end)
        try:
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)

    def _remove_empty(self, name: str, at: int, path: str) -> None:
        """Remove a directory in which there are only directories that memory paths lead to; `invalid_path` when there
        is anything else."""
        try:
            inside = self._disk.open_directory(name, at)
        except FileNotFoundError:
            return
        except OSError as error:
            if no_directory(error):
                return
            raise
        try:
            for entry in list(self._disk.entries(inside)):
                below = memory_path(f"{path}/", entry.name, self._format)
                if below is None or not entry.is_dir(follow_symlinks=False):
                    raise MemoryStoreError(
                        "invalid_path", f"{path} is a directory with things that are no memory files; nothing changed."
                    )
                self._remove_empty(entry.name, inside, below)
        finally:
            self._disk.close(inside)
        self._disk.remove_directory(name, at)

    def _confirm(self, *ways: Way) -> None:
        """Wait until a change in these directories is on the disk. It is visible already: there is no way back."""
        if self._durable and self._late is None:
            self._sync([way.end for way in ways])
        elif self._late is not None:
            with _lasting():
                self._late += [self._disk.open_directory(".", way.end) for way in ways]

    def _sync(self, directories: list[int]) -> None:
        if self._durable:
            with _lasting():
                for directory in directories:
                    self._disk.sync_directory(directory)

    def _prune(self, way: Way) -> None:
        with suppress(OSError):  # not empty; or it stays as an empty directory, which is no part of the memory
            for above, name, directory in reversed(way.steps):
                key = self._identity(directory)
                self._disk.remove_directory(name, above)
                self._on_disk.discard(key)

    def _identity(self, fd: int) -> tuple[int, int]:
        status = self._disk.status(fd)
        return status.st_dev, status.st_ino


@contextmanager
def _lasting() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise _unconfirmed("The change is made, but may not survive a power cut", error) from error


def _unconfirmed(what: str, error: Exception) -> MemoryStoreError:
    return MemoryStoreError("write_unconfirmed", f"{what}: {error}. Read before changing it again.")
