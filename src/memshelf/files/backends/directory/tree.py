"""Finding the files of a memory, step by step from its open root, without following a symbolic link."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.directory.content import decode, foreign, no_directory, read_file, version_of
from memshelf.files.backends.directory.disk import Disk
from memshelf.files.backends.directory.names import actual
from memshelf.files.backends.directory.scan import nothing, scan
from memshelf.files.model import FileText
from memshelf.limits import FileFormat

__all__ = ["Step", "Tree", "Way"]


@dataclass(frozen=True, slots=True)
class Step:
    """An open directory on a way, under the name that it has in the one before it."""

    name: str
    fd: int


@dataclass(slots=True)
class Way:
    """How far the directories towards a path exist.

    `missing` are the segments that do not; `blocked_by` is the path of a file that stands where a directory would.
    `name` is the last segment, as it is called on the disk.
    """

    path: str
    steps: list[Step]
    missing: list[str]
    blocked_by: str | None
    name: str

    @property
    def end(self) -> int:
        """The last directory that exists."""
        return self.steps[-1].fd

    @property
    def complete(self) -> bool:
        """Whether all of them exist, so that the file can stand in `end`."""
        return not self.missing

    def enter(self, segment: str, fd: int) -> None:
        """Go on into a directory that was missing."""
        self.steps.append(Step(segment, fd))


class Tree:
    """The files below an open root. Everything is looked up anew at each call: a person may change it at any time."""

    def __init__(self, disk: Disk, root: int, format: FileFormat) -> None:
        self._disk = disk
        self._root = root
        self._format = format

    @contextmanager
    def way(self, path: str) -> Iterator[Way]:
        """`invalid_path` when something that is neither a file nor a directory stands in between."""
        *segments, name = path.split("/")
        way = Way(path, [Step("", self._root)], [], None, name)
        try:
            for depth, segment in enumerate(segments, start=1):
                name_here = actual(self._disk, segment, way.end)
                try:
                    way.steps.append(Step(name_here, self._disk.open_directory(name_here, way.end)))
                    continue
                except FileNotFoundError:
                    pass
                except OSError as error:
                    if not no_directory(error):
                        raise
                    way.blocked_by = self._file_at(name_here, way.end, "/".join(segments[:depth]))
                way.missing = segments[depth - 1 :]
                break
            else:
                way.name = actual(self._disk, name, way.end)
            yield way
        finally:
            for step in way.steps[1:]:
                self._disk.close(step.fd)

    def load(self, path: str) -> FileText | None:
        """The file at the path. `invalid_path` for what is no file, `invalid_file` for what is no text."""
        with self.way(path) as way:
            return self._load(way) if way.complete else None

    def in_the_way(self, path: str) -> FileText | None:
        """The file at the path, above it, or the first one below it; `invalid_path` when it is no memory file."""
        try:
            return self._in_the_way(path)
        except MemoryStoreError as error:
            if error.code != "invalid_file":
                raise
            raise MemoryStoreError("invalid_path", f"{path} is not free: {error.message}") from None

    def _in_the_way(self, path: str) -> FileText | None:
        with self.way(path) as way:
            if way.blocked_by is not None:
                return self.load(way.blocked_by)
            if not way.complete:
                return None
            if (file := self._load(way)) is not None:
                return file
            try:
                inside = self._disk.open_directory(way.name, way.end)
            except FileNotFoundError:
                return None
            try:
                below = scan(self._disk, inside, self._format, nothing(f"{path}/")).entries
            finally:
                self._disk.close(inside)
        return self.load(below[0].path) if below else None

    def _load(self, way: Way) -> FileText | None:
        content = read_file(self._disk, way.name, way.end, way.path, self._format)
        if content is None:
            return None
        data, _ = content
        return FileText(way.path, decode(data, way.path), version_of(data))

    def _file_at(self, name: str, at: int, path: str) -> str | None:
        try:
            status = self._disk.status_of(name, at)
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            raise foreign(path)
        return path
