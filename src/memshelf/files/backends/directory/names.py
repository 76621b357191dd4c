"""How the names on the disk and the segments of memory paths correspond."""

from __future__ import annotations

import errno
import os
import unicodedata

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.directory.disk import Disk
from memshelf.files.format import validate_path
from memshelf.limits import FileFormat

__all__ = ["CONTROL", "VERSION_CONTROL", "actual", "memory_path", "preference", "require_addressable"]

CONTROL = ".memshelf"
"""The directory in the root that holds the lock and what is being written. No memory path leads there."""


VERSION_CONTROL = frozenset({".git", ".hg", ".jj", ".svn"})
"""What version control keeps beside the files, at any depth. Whoever writes there decides which programs the next
`git status` runs, so no memory path leads there either."""


def require_addressable(path: str) -> str:
    """The path, unless it leads into the control directory or into version control's (`invalid_path`)."""
    if "." not in path:
        return path
    segments = [_folded(segment) for segment in path.split("/")]
    if segments[0] == CONTROL:
        raise MemoryStoreError("invalid_path", f"{CONTROL}/ belongs to the store; choose another name.")
    if found := VERSION_CONTROL.intersection(segments):
        raise MemoryStoreError("invalid_path", f"{min(found)} belongs to version control; choose another name.")
    return path


def _folded(segment: str) -> str:
    """What a disk may take for the same name: some ignore case, invisible characters, or dots and spaces at the end."""
    if not segment.isascii():
        segment = "".join(char for char in segment if unicodedata.category(char) != "Cf")
    return segment.rstrip(". ").casefold()


def memory_path(prefix: str, name: str, format: FileFormat) -> str | None:
    """The path of what a person named `name` in the directory `prefix`; `None` when no memory path leads to it."""
    try:
        path = require_addressable(validate_path(prefix + name, format))
    except MemoryStoreError:
        return None
    segment = path.rpartition("/")[2]
    # A name such as the Kelvin sign for K has a path in NFC that `actual` does not lead back to it.
    return path if segment == name or _decomposed(segment) != segment else None


def actual(disk: Disk, segment: str, at: int) -> str:
    """The name that stands for `segment` in a directory: in NFC, or as a person's system may have decomposed it."""
    if segment.isascii() or (decomposed := _decomposed(segment)) == segment:
        return segment
    for name in (segment, decomposed):
        if _exists(disk, name, at):
            return name
    forms = (entry.name for entry in disk.entries(at) if unicodedata.normalize("NFC", entry.name) == segment)
    return min(forms, key=preference, default=segment)


def preference(name: str) -> tuple[int, bytes]:
    """Sorts names that stand for one segment: the first is the one that `actual` finds."""
    forms = (unicodedata.normalize("NFC", name), _decomposed(name))
    return forms.index(name) if name in forms else len(forms), os.fsencode(name)


def _decomposed(name: str) -> str:
    return unicodedata.normalize("NFD", name)


def _exists(disk: Disk, name: str, at: int) -> bool:
    try:
        disk.status_of(name, at)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):  # a decomposed name is longer
            return False
        raise
    return True
