"""The listing of a directory memory, with the least work for what did not change since the scan before."""

from __future__ import annotations

import hashlib
import os
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TypeAlias

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.directory.content import decode, no_directory, read_file, version_of
from memshelf.files.backends.directory.disk import Disk
from memshelf.files.backends.directory.names import memory_path, preference
from memshelf.files.format import describe
from memshelf.files.model import FileEntry
from memshelf.limits import FileFormat

__all__ = ["SETTLED_NS", "Listing", "nothing", "scan"]

SETTLED_NS = 2_000_000_000
"""A file that was stamped less than this before it was read is read again at the next scan.

A second change within one tick of the disk's clock would leave the same stamp. No disk ticks more slowly than this.
"""

_LOOKS = 5

_Stamp: TypeAlias = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class _File:
    """`stamp` is `None` while the content has to be read again; `entry` is `None` for what is no memory file."""

    stamp: _Stamp | None
    entry: FileEntry | None


@dataclass(frozen=True, slots=True)
class _Directory:
    """What stood in one directory, by the names on the disk. Scans share it, so it is never changed.

    `foreign` are the names of what is no part of the memory, as far as they may hide one of another Unicode form.
    """

    prefix: str
    files: dict[str, _File]
    directories: dict[str, _Directory]
    foreign: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Listing:
    """Every file in byte-wise path order, and a digest of their paths and versions."""

    entries: tuple[FileEntry, ...]
    cursor: str
    top: _Directory


def nothing(prefix: str = "") -> Listing:
    """The listing of an empty directory, with which a first scan begins."""
    return _listing(_Directory(prefix, {}, {}))


def scan(disk: Disk, at: int, format: FileFormat, before: Listing) -> Listing:
    """List what stands below an open directory; `before` itself when that is what it still is.

    What is created, moved or deleted meanwhile is looked at again, so that the listing is of one moment: a file that
    moves would else be found in neither directory, as if it were deleted. Who changes something without a break is not
    waited for.

    A symbolic link, a special file, a name that no memory path leads to and content that is not UTF-8 or too large
    are left out. An unreadable file or directory is an `OSError`: left out, it would seem to be deleted.
    """
    top = before.top
    for _ in range(_LOOKS):
        looking = _Scan(disk, format)
        top = looking.directory(at, top)
        if looking.saw_one_moment(at):
            break
    return before if top is before.top else _listing(top)


def _listing(top: _Directory) -> Listing:
    entries = sorted(_visible(top), key=attrgetter("path"))  # code points sort as their UTF-8 bytes do
    digest = hashlib.sha256("\n".join(f"{entry.path}\0{entry.version}" for entry in entries).encode())
    return Listing(tuple(entries), digest.hexdigest(), top)


def _visible(directory: _Directory) -> Iterator[FileEntry]:
    hidden = _hidden([*directory.files, *directory.directories, *directory.foreign])
    for name, file in directory.files.items():
        if file.entry is not None and name not in hidden:
            yield file.entry
    for name, child in directory.directories.items():
        if name not in hidden:
            yield from _visible(child)


def _hidden(names: Sequence[str]) -> set[str]:
    """Of names that differ in their Unicode form only, those that no memory path leads to."""
    of_any_form = [name for name in names if not name.isascii()]
    chosen: dict[str, str] = {}
    for name in sorted(of_any_form, key=preference):
        chosen.setdefault(unicodedata.normalize("NFC", name), name)
    return set(of_any_form).difference(chosen.values())


class _Scan:
    def __init__(self, disk: Disk, format: FileFormat) -> None:
        self._disk = disk
        self._format = format
        self._any_size = replace(format, max_file_bytes=sys.maxsize)  # a lowered limit hides nothing
        self._looked_at: list[tuple[str, _Stamp]] = []

    def saw_one_moment(self, root: int) -> bool:
        """Whether every directory is still as it was before it was looked at."""
        try:
            return all(_stamp(self._disk.status_of(where, root)) == stamp for where, stamp in self._looked_at)
        except OSError:  # one is gone
            return False

    def directory(self, at: int, before: _Directory, where: str = ".") -> _Directory:
        self._looked_at.append((where, _stamp(self._disk.status(at))))
        known = before.files
        unchanged: list[str] = []
        others: list[os.DirEntry[str]] = []
        for found in self._disk.entries(at):
            file = known.get(found.name)
            if file is not None:
                try:
                    now = found.stat(follow_symlinks=False)
                except FileNotFoundError:
                    continue
                # As in `_stamp`, which would cost a tenth of the scan here.
                if file.stamp == (now.st_ctime_ns, now.st_mtime_ns, now.st_size, now.st_ino, now.st_dev):
                    unchanged.append(found.name)
                    continue
            others.append(found)
        files = dict(self._files(others, at, before.prefix))
        directories = dict(self._directories(others, at, before, where))
        rest = (found.name for found in others if not found.name.isascii())
        foreign = frozenset(name for name in rest if name not in files and name not in directories)
        same = not files and len(unchanged) == len(known) and foreign == before.foreign
        if same and _are_same(directories, before.directories):
            return before
        return _Directory(before.prefix, {name: known[name] for name in unchanged} | files, directories, foreign)

    def _directories(
        self, others: Sequence[os.DirEntry[str]], at: int, before: _Directory, where: str
    ) -> Iterator[tuple[str, _Directory]]:
        for found in others:
            if not found.is_dir(follow_symlinks=False):
                continue
            child = before.directories.get(found.name)
            if child is None:
                path = memory_path(before.prefix, found.name, self._format)
                if path is None:
                    continue
                child = _Directory(f"{path}/", {}, {})
            try:
                inside = self._disk.open_directory(found.name, at)
            except FileNotFoundError:
                continue
            except OSError as error:
                if no_directory(error):
                    continue
                raise
            try:
                yield found.name, self.directory(inside, child, f"{where}/{found.name}")
            finally:
                self._disk.close(inside)

    def _files(self, others: Sequence[os.DirEntry[str]], at: int, prefix: str) -> Iterator[tuple[str, _File]]:
        for found in others:
            if not found.is_file(follow_symlinks=False):
                continue
            path = memory_path(prefix, found.name, self._format)
            if path is None:
                continue
            started = self._disk.now()
            try:
                content = read_file(self._disk, found.name, at, path, self._format)
            except MemoryStoreError:
                continue
            if content is not None:
                data, status = content
                settled = max(status.st_mtime_ns, status.st_ctime_ns) + SETTLED_NS < started
                yield found.name, _File(_stamp(status) if settled else None, self._entry(path, data))

    def _entry(self, path: str, data: bytes) -> FileEntry | None:
        try:
            text = decode(data, path)
        except MemoryStoreError:
            return None
        try:
            description = describe(text, self._any_size)
        except MemoryStoreError:
            description = None
        return FileEntry(path, version_of(data), len(data), description)


def _stamp(status: os.stat_result) -> _Stamp:
    """Any change of content moves the first of these, which no program can set."""
    return status.st_ctime_ns, status.st_mtime_ns, status.st_size, status.st_ino, status.st_dev


def _are_same(directories: dict[str, _Directory], before: dict[str, _Directory]) -> bool:
    return len(directories) == len(before) and all(before.get(name) is each for name, each in directories.items())
