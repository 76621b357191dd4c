"""Finding the files of a memory, step by step from its open root, without following a symbolic link."""

from __future__ import annotations

import stat
from types import TracebackType

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.directory.content import decode, foreign, no_directory, read_file, version_of
from memshelf.files.backends.directory.disk import Disk
from memshelf.files.backends.directory.names import actual
from memshelf.files.backends.directory.scan import nothing, scan
from memshelf.files.model import FileText
from memshelf.limits import FileFormat

__all__ = ["Tree", "Way"]


class Way:
    """The directories from the root towards a path, open as far as they exist until the context ends.

    `missing` are the segments that do not; `blocked_by` is the path of a file that stands where a directory would.
    `name` is the last segment as it is called on the disk. What happens to a directory on the way after it was opened
    is as if it happened after whatever is done in it.
    """

    __slots__ = ("_disk", "_fds", "_names", "blocked_by", "missing", "name", "path")

    def __init__(self, disk: Disk, root: int, path: str) -> None:
        self._disk = disk
        self._fds = [root]
        self._names: list[str] = []
        self.path = path
        self.blocked_by: str | None = None
        *self.missing, self.name = path.split("/")

    def __enter__(self) -> Way:
        """`invalid_path` when something that is neither a file nor a directory stands on the way."""
        try:
            while self.missing and self._advance():
                pass
            if not self.missing:
                self.name = actual(self._disk, self.name, self.end)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for fd in self._fds[1:]:
            self._disk.close(fd)

    @property
    def end(self) -> int:
        """The last directory that exists."""
        return self._fds[-1]

    @property
    def steps(self) -> list[tuple[int, str, int]]:
        """Each directory below the root: the one above it, its name in that one, and itself."""
        return list(zip(self._fds, self._names, self._fds[1:], strict=False))

    def enter(self, name: str) -> None:
        """Go on into the first directory that was missing, which exists by now, under that name."""
        self._fds.append(self._disk.open_directory(name, self.end))
        self._names.append(name)
        del self.missing[0]

    def _advance(self) -> bool:
        name = actual(self._disk, self.missing[0], self.end)
        try:
            self.enter(name)
        except FileNotFoundError:
            return False
        except OSError as error:
            if not no_directory(error):
                raise
            self._stop_at(name)
            return False
        return True

    def _stop_at(self, name: str) -> None:
        path = "/".join(self.path.split("/")[: len(self._fds)])
        try:
            status = self._disk.status_of(name, self.end)
        except FileNotFoundError:
            return
        if not stat.S_ISREG(status.st_mode):
            raise foreign(path)
        self.blocked_by = path


class Tree:
    """The files below an open root. Everything is looked up anew at each call: a person may change it at any time."""

    def __init__(self, disk: Disk, root: int, format: FileFormat) -> None:
        self._disk = disk
        self._root = root
        self._format = format

    def way(self, path: str) -> Way:
        return Way(self._disk, self._root, path)

    def load(self, path: str) -> FileText | None:
        with self.way(path) as way:
            return self.file(way)

    def file(self, way: Way) -> FileText | None:
        """The file that a way leads to. `invalid_path` for what is no file, `invalid_file` for what is no text."""
        content = read_file(self._disk, way.name, way.end, way.path, self._format) if not way.missing else None
        if content is None:
            return None
        data, _ = content
        return FileText(way.path, decode(data, way.path), version_of(data))

    def in_the_way(self, way: Way) -> FileText | None:
        """The file that a way leads to, or that stands on it, or the first one below; `invalid_path` when that is no
        memory file."""
        try:
            if way.blocked_by is not None:
                return self.load(way.blocked_by)
            return self.file(way) or (self._first_below(way) if not way.missing else None)
        except MemoryStoreError as error:
            if error.code != "invalid_file":
                raise
            raise MemoryStoreError("invalid_path", f"{way.path} is not free: {error.message}") from None

    def _first_below(self, way: Way) -> FileText | None:
        try:
            inside = self._disk.open_directory(way.name, way.end)
        except FileNotFoundError:
            return None
        try:
            below = scan(self._disk, inside, self._format, nothing(f"{way.path}/")).entries
        finally:
            self._disk.close(inside)
        return self.load(below[0].path) if below else None
