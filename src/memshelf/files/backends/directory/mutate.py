"""One change of a directory memory: lock, load, decide, commit.

What is written is staged in the control directory and synced there; then one `link` (of a new file) or one `rename`
puts it in place. So a crash leaves the old state or the new one. What it leaves behind in the control directory is
removed by the next change, and a directory without files is no part of a memory.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import groupby, pairwise

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.directory.content import no_directory, version_of
from memshelf.files.backends.directory.disk import Disk
from memshelf.files.backends.directory.lock import Held, exclusive
from memshelf.files.backends.directory.names import actual
from memshelf.files.backends.directory.scan import nothing, scan
from memshelf.files.backends.directory.tree import Tree, Way
from memshelf.files.decide import Commit, Request, decide
from memshelf.files.model import FileEntry, FileText
from memshelf.limits import FileFormat

__all__ = ["Mutations"]

_STAGED = "staged"
_ATTEMPTS = 10
_CHANGED_MEANWHILE = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError)
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

    def apply(self, request: Request) -> str:
        """Commit a request, and return the version of the file that it wrote, moved or removed."""
        try:
            with exclusive(self._disk, self._root, create=request.loads is None, durable=self._durable) as held:
                for _ in range(_ATTEMPTS):
                    # Another program changed something between two of our steps: look again.
                    with suppress(*_CHANGED_MEANWHILE):
                        return self._attempt(held, request)
        except FileNotFoundError:  # no root
            if request.loads is not None:
                decide(request, None, None)
            raise
        raise MemoryStoreError("unavailable", "Other programs keep changing these files; nothing changed.")

    def purge(self) -> None:
        """Remove every file that a listing shows, and leave what is no memory file."""
        try:
            with exclusive(self._disk, self._root, create=False, durable=self._durable) as held:
                self._discard_staged(held)
                tree = Tree(self._disk, held.root, self._format)
                # Again, because removing one of two names that differ in their Unicode form reveals the other.
                while entries := scan(self._disk, held.root, self._format, nothing()).entries:
                    try:
                        self._remove_all(tree, entries)
                    except (OSError, MemoryStoreError) as error:
                        raise _unconfirmed("Some files may be left", error) from error
        except FileNotFoundError:  # no root
            return

    def _attempt(self, held: Held, request: Request) -> str:
        self._discard_staged(held)
        tree = Tree(self._disk, held.root, self._format)
        commit, current = _decided(tree, request)
        if commit is None:
            assert current is not None  # noqa: S101  # only an existing file can already be as asked
            return current.version
        if commit.operation == "deleted":
            self._delete(tree, commit)
        elif commit.source is not None:
            self._move(tree, request, commit, commit.source)
        else:
            self._put(held, tree, request, commit)
        return version_of(commit.data)

    def _put(self, held: Held, tree: Tree, request: Request, commit: Commit) -> None:
        create = commit.operation == "created"
        with self._staged(held, commit.data), tree.way(commit.path) as way, self._completed(way, make=create):
            # Staging took time in which a person may have edited the file, or made one.
            _decided(tree, request)
            if create:
                self._remove_empty(way.name, way.end, commit.path)
                self._link(_STAGED, held.control, way.name, way.end)
            else:
                self._disk.rename(_STAGED, held.control, way.name, way.end)
            self._confirm(way)

    def _move(self, tree: Tree, request: Request, commit: Commit, path: str) -> None:
        with (
            tree.way(path) as source,
            tree.way(commit.path) as destination,
            self._completed(source, make=False),
            self._completed(destination, make=True),
        ):
            _decided(tree, request)
            self._remove_empty(destination.name, destination.end, commit.path)
            self._disk.rename(source.name, source.end, destination.name, destination.end)
            self._confirm(destination, source)
            self._prune(source)

    def _delete(self, tree: Tree, commit: Commit) -> None:
        with tree.way(commit.path) as way, self._completed(way, make=False):
            self._disk.unlink(way.name, way.end)
            self._confirm(way)
            self._prune(way)

    def _remove_all(self, tree: Tree, entries: tuple[FileEntry, ...]) -> None:
        for _, together in groupby(entries, key=lambda entry: entry.path.rpartition("/")[0]):
            paths = [entry.path for entry in together]
            with tree.way(paths[0]) as way:
                if not way.complete:
                    continue
                for path in paths:
                    with suppress(FileNotFoundError):
                        self._disk.unlink(actual(self._disk, path.rpartition("/")[2], way.end), way.end)
                self._confirm(way)
                self._prune(way)

    def _discard_staged(self, held: Held) -> None:
        with suppress(FileNotFoundError):
            self._disk.unlink(_STAGED, held.control)

    @contextmanager
    def _staged(self, held: Held, data: bytes) -> Iterator[None]:
        # Never opened if it exists: a crash between `link` and `unlink` left it as a second name of a memory file.
        fd = self._disk.create(_STAGED, held.control)
        try:
            try:
                self._disk.write(fd, data)
                if self._durable:
                    self._disk.sync(fd)
            finally:
                self._disk.close(fd)
            yield
        finally:
            with suppress(OSError):  # renamed; or the next change tries again
                self._disk.unlink(_STAGED, held.control)

    @contextmanager
    def _completed(self, way: Way, *, make: bool) -> Iterator[None]:
        """Make the directories that a way lacks, and remove them again when what follows fails."""
        made: list[tuple[str, int]] = []
        try:
            if way.blocked_by is not None or (way.missing and not make):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), way.path)
            for segment in way.missing:
                self._disk.make_directory(segment, way.end)
                made.append((segment, way.end))
                way.enter(segment, self._disk.open_directory(segment, way.end))
            if self._durable and make:
                self._sync_steps(way)
            yield
        except (OSError, MemoryStoreError):
            with suppress(OSError):  # one that holds a file is needed
                for name, at in reversed(made):
                    self._disk.remove_directory(name, at)
            raise

    def _sync_steps(self, way: Way) -> None:
        for above, below in pairwise(way.steps):
            # A directory that is there may be new too: its maker may have been killed before it was synced.
            if (key := self._identity(below.fd)) not in self._on_disk:
                self._disk.sync_directory(above.fd)
                self._on_disk.add(key)

    def _link(self, name: str, at: int, new_name: str, new_at: int) -> None:
        # Unlike a rename, a link cannot overwrite a file that a person makes at this moment.
        try:
            self._disk.link(name, at, new_name, new_at)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            self._disk.rename(name, at, new_name, new_at)

    def _remove_empty(self, name: str, at: int, path: str) -> None:
        """Remove a directory in which there are only directories; `invalid_path` when there is anything else."""
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
                if not entry.is_dir(follow_symlinks=False):
                    raise MemoryStoreError(
                        "invalid_path", f"{path} is a directory with files that are no memory files; nothing changed."
                    )
                self._remove_empty(entry.name, inside, path)
        finally:
            self._disk.close(inside)
        self._disk.remove_directory(name, at)

    def _confirm(self, *ways: Way) -> None:
        """Wait until a change in these directories is on the disk. It is visible already: there is no way back."""
        if not self._durable:
            return
        try:
            for way in ways:
                self._disk.sync_directory(way.end)
        except OSError as error:
            raise _unconfirmed("The change is made, but may not survive a power cut", error) from error

    def _prune(self, way: Way) -> None:
        with suppress(OSError):  # not empty; or it stays as an empty directory, which is no part of the memory
            for above, below in reversed(list(pairwise(way.steps))):
                key = self._identity(below.fd)
                self._disk.remove_directory(below.name, above.fd)
                self._on_disk.discard(key)

    def _identity(self, fd: int) -> tuple[int, int]:
        status = self._disk.status(fd)
        return status.st_dev, status.st_ino


def _decided(tree: Tree, request: Request) -> tuple[Commit | None, FileText | None]:
    current = tree.load(request.loads) if request.loads is not None else None
    obstacle = tree.in_the_way(request.must_be_free) if request.must_be_free is not None else None
    return decide(request, current, obstacle), current


def _unconfirmed(what: str, error: Exception) -> MemoryStoreError:
    return MemoryStoreError("write_unconfirmed", f"{what}: {error}. Read before changing it again.")
