"""Directories that only their user can read, and that last; descriptors that are done with."""

from __future__ import annotations

import errno
import os
from contextlib import suppress

__all__ = ["close_quietly", "make_private", "private_directory", "settle", "sync_directory"]


def make_private(path: str) -> None:
    """Make a directory, and those above it that are missing, for its user only."""
    for each in _missing(path):
        _make(each)


def private_directory(path: str, *, durable: bool) -> None:
    """Make a directory that only its user can read, and keep version control away from it, unless it exists."""
    for each in _missing(path):  # from the top, and each in one that is on the disk
        if not _make(each):
            continue
        try:
            _keep_out_of_version_control(each)
        except OSError:
            with suppress(OSError):  # or the next attempt would find it made, and keep nobody away
                os.rmdir(each)
            raise
        if durable:
            settle(each)


def _missing(path: str) -> list[str]:
    missing = []
    while path and not os.path.lexists(path):
        missing.append(path)
        path = os.path.dirname(path)
    return missing[::-1]


def _make(path: str) -> bool:
    with suppress(FileExistsError):  # somebody was faster
        os.mkdir(path, 0o700)
        return True
    return False


def _keep_out_of_version_control(directory: str) -> None:
    path = os.path.join(directory, ".gitignore")
    with suppress(FileExistsError):
        ignore = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            with open(ignore, "wb") as file:
                file.write(b"*\n")
        except OSError:
            with suppress(OSError):
                os.unlink(path)
            raise


def settle(path: str) -> None:
    """Sync the entry of a file or directory, and that of the directory it is in: who made that may not have come to."""
    directory = os.path.dirname(path)
    with suppress(PermissionError):  # then somebody else made it
        sync_directory(os.path.dirname(directory))
    sync_directory(directory)


def sync_directory(path: str) -> None:
    """Wait until the entries of a directory are on the disk."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that does this by itself
            raise
    finally:
        close_quietly(directory)


def close_quietly(descriptor: int) -> None:
    """Close what was only read or synced: nothing depends any more on whether the system can."""
    with suppress(OSError):
        os.close(descriptor)
