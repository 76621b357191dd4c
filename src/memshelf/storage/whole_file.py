"""A private file that is only ever written anew: for what can be learned again when it is lost."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO

__all__ = ["WholeFile"]


class WholeFile:
    """One file in a folder that is there: what it held before stands nowhere any more, also if a writer is killed.

    As whoever may write to the folder may put anything there, no link is followed, and what is read may be anything.
    What cannot be done is an `OSError`; of several writers at a time, some are told that another one writes.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._new = f"{path.name}.new"

    def read(self) -> bytes:
        with self._folder() as folder:
            with suppress(OSError):  # there is no such file, or somebody is writing it
                self._remove_half_written(folder)
            with open(self._path.name, "rb", opener=partial(_opened, folder)) as file:
                return file.read()

    def write(self, whole: bytes) -> None:
        with self._folder() as folder, open(self._new, "ab", opener=partial(_opened, folder)) as file:
            self._take(folder, file)
            try:
                file.truncate(0)
                file.write(whole)
                file.flush()
                os.replace(self._new, self._path.name, src_dir_fd=folder, dst_dir_fd=folder)
            except OSError:
                os.unlink(self._new, dir_fd=folder)
                raise

    def remove(self) -> None:
        """Remove the file, and what a writer left that was killed."""
        with self._folder() as folder:
            with suppress(OSError):
                self._remove_half_written(folder)
            os.unlink(self._path.name, dir_fd=folder)

    def _remove_half_written(self, folder: int) -> None:
        with open(self._new, "rb", opener=partial(_opened, folder)) as file:
            self._take(folder, file)
            os.unlink(self._new, dir_fd=folder)

    def _take(self, folder: int, file: IO[bytes]) -> None:
        """Hold the file that is being written; `OSError` when somebody else does, or has just put it in place."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(file.fileno()), os.stat(self._new, dir_fd=folder, follow_symlinks=False)):
            raise OSError(errno.EAGAIN, "Somebody else has written it", self._new)

    @contextmanager
    def _folder(self) -> Iterator[int]:
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            yield folder
        finally:
            os.close(folder)


def _opened(folder: int, name: str, flags: int) -> int:
    descriptor = os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600, dir_fd=folder)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "It is no file", name)
    return descriptor
