"""The calls to the operating system that a directory memory makes. No other module of it makes any.

Everything below the root is reached by one name from an open directory, and no call follows a symbolic link. So a
link that is swapped in between two calls, anywhere below the root, leads nowhere.
"""

from __future__ import annotations

import errno
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

if sys.platform != "win32":
    import fcntl

__all__ = ["Disk", "require_support"]

_NEEDED = (os.open, os.stat, os.mkdir, os.rmdir, os.unlink, os.rename, os.link)
_DIRECTORY = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
# Opening a FIFO waits for its other end without O_NONBLOCK; a terminal must not become ours.
_FILE = os.O_RDONLY | _NO_FOLLOW | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0)


def require_support() -> None:
    """`NotImplementedError` where the system cannot open a file relative to an open directory."""
    if sys.platform == "win32" or not _NO_FOLLOW or not os.supports_dir_fd.issuperset(_NEEDED):
        raise NotImplementedError(
            "DirectoryFileStore needs a POSIX system, on which files can be opened relative to an open directory. "
            "Use SqliteFileStore here."
        )


class Disk:
    """One system call a method, failing with `OSError`. Names are relative to the open directory `at`.

    A subclass can observe the calls, refuse them or stop after one: see `memshelf.testing.disk`. A change is made by
    `make_directory`, `create`, `write`, `link`, `rename`, `unlink` and `remove_directory`, and survives a power cut
    once `sync` has returned for the file or directory it changed.
    """

    def now(self) -> int:
        """Nanoseconds, on the clock that files are stamped with."""
        return time.time_ns()

    def open_root(self, path: str) -> int:
        """Open a directory by its absolute path, through symbolic links too: that is the host's choice."""
        return os.open(path, _DIRECTORY)

    def open_directory(self, name: str, at: int) -> int:
        return os.open(name, _DIRECTORY | _NO_FOLLOW, dir_fd=at)

    def open_file(self, name: str, at: int) -> int:
        """Open for reading, without waiting, whatever it is that stands there."""
        return os.open(name, _FILE, dir_fd=at)

    def close(self, fd: int) -> None:
        """Close what nothing depends on any more, such as what was read. Never an `OSError`."""
        with suppress(OSError):
            os.close(fd)

    def close_written(self, fd: int) -> None:
        """Close a file that was written: some systems say only now that they could not keep it."""
        os.close(fd)

    def status(self, fd: int) -> os.stat_result:
        return os.fstat(fd)

    def status_of(self, name: str, at: int) -> os.stat_result:
        return os.stat(name, dir_fd=at, follow_symlinks=False)

    def entries(self, fd: int) -> Iterator[os.DirEntry[str]]:
        with os.scandir(fd) as found:
            yield from found

    def read(self, fd: int, size: int) -> bytes:
        """The whole file, which had `size` bytes a moment ago."""
        data = os.read(fd, size + 1)
        while len(data) != size and (more := os.read(fd, 65_536)):
            data += more
        return data

    def make_directory(self, name: str, at: int) -> None:
        os.mkdir(name, 0o700, dir_fd=at)

    def create(self, name: str, at: int) -> int:
        """Open a new, empty file for writing."""
        return os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW, 0o600, dir_fd=at)

    def write(self, fd: int, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(fd, rest) :]

    def sync(self, fd: int) -> None:
        """Wait until the file's content, or the directory's entries, are on the disk."""
        if sys.platform == "darwin":
            with suppress(OSError):  # not every volume can do it
                fcntl.fcntl(fd, fcntl.F_FULLFSYNC)  # there, fsync leaves the data in the drive's own cache
        os.fsync(fd)

    def sync_directory(self, fd: int) -> None:
        try:
            self.sync(fd)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system that does this by itself
                raise

    def link(self, name: str, at: int, new_name: str, new_at: int) -> None:
        os.link(name, new_name, src_dir_fd=at, dst_dir_fd=new_at, follow_symlinks=False)

    def rename(self, name: str, at: int, new_name: str, new_at: int) -> None:
        os.rename(name, new_name, src_dir_fd=at, dst_dir_fd=new_at)

    def unlink(self, name: str, at: int) -> None:
        os.unlink(name, dir_fd=at)

    def remove_directory(self, name: str, at: int) -> None:
        os.rmdir(name, dir_fd=at)

    def open_lock(self, name: str, at: int) -> int:
        return os.open(name, os.O_RDWR | os.O_CREAT | _NO_FOLLOW | os.O_NONBLOCK, 0o600, dir_fd=at)

    def lock(self, fd: int) -> None:
        """Wait for the exclusive lock. The system releases it when the process ends, however it ends."""
        fcntl.flock(fd, fcntl.LOCK_EX)

    def unlock(self, fd: int) -> None:
        """Release the lock, as closing does unless another process has a copy of the descriptor. Never an `OSError`."""
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_UN)

    def is_at(self, fd: int, path: str) -> bool:
        """Whether the open file still stands at the absolute path."""
        try:
            return os.path.samestat(os.fstat(fd), os.stat(path))
        except FileNotFoundError:
            return False
