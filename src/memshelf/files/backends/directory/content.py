"""What is in one file, if it is a file of the memory at all."""

from __future__ import annotations

import errno
import hashlib
import os
import stat

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.directory.disk import Disk
from memshelf.limits import FileFormat

__all__ = ["READABLE_BYTES", "decode", "foreign", "no_directory", "read_file", "version_of"]

READABLE_BYTES = 16 * 1024 * 1024
"""A file over this size (and over `max_file_bytes`) is no memory file: it is not listed, and reading it is refused."""

_SYMLINK = {errno.ELOOP, errno.EMLINK}  # the second on FreeBSD
_SOCKET = {errno.ENXIO, errno.ENODEV, errno.EOPNOTSUPP}


def version_of(data: bytes) -> str:
    """The same content has the same version. 128 bits, so that a model need not read 64 characters."""
    return hashlib.sha256(data).hexdigest()[:32]


def read_file(disk: Disk, name: str, at: int, path: str, format: FileFormat) -> tuple[bytes, os.stat_result] | None:
    """The bytes and the status they were read under; `None` when nothing or a directory stands there.

    `invalid_path` for anything else that is no regular file, `invalid_file` for one that is too large to be ours.
    """
    try:
        fd = disk.open_file(name, at)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno in _SYMLINK or error.errno in _SOCKET:
            raise foreign(path) from None
        raise
    try:
        status = disk.status(fd)
        if stat.S_ISDIR(status.st_mode):
            return None
        if not stat.S_ISREG(status.st_mode):
            raise foreign(path)
        if status.st_size > max(READABLE_BYTES, format.max_file_bytes):
            raise MemoryStoreError("invalid_file", f"{path} has {status.st_size} bytes: too large for a memory file.")
        return disk.read(fd, status.st_size), status
    finally:
        disk.close(fd)


def decode(data: bytes, path: str) -> str:
    """`invalid_file` unless it is UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise MemoryStoreError("invalid_file", f"{path} is not UTF-8 text.") from None


def foreign(path: str) -> MemoryStoreError:
    return MemoryStoreError(
        "invalid_path", f"{path} is a symbolic link or a special file, which a memory does not follow or change."
    )


def no_directory(error: OSError) -> bool:
    """Whether a directory could not be opened because something else, perhaps a symbolic link, stands there."""
    return error.errno == errno.ENOTDIR or error.errno in _SYMLINK
