"""A file that is written beside its place until it is whole."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import IO

__all__ = ["staged"]

_NAME = re.compile(r"\.memshelf-[0-9a-f]{16}\.new")
_NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
_LEFT = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@contextmanager
def staged(directory: str) -> Iterator[tuple[IO[bytes], str]]:
    """A new private file in a directory, open for writing, and its path. Link or rename it when it is whole.

    When the context ends nothing stands at that path. What a writer that was killed left goes when the next one comes:
    a file is held for as long as it is written, so that nobody takes it for left. Whatever the system refuses is an
    `OSError`; one that closing the file brings comes after what the context did.
    """
    _remove_left(directory)
    while True:
        path = os.path.join(directory, f".memshelf-{secrets.token_hex(8)}.new")
        with open(os.open(path, _NEW, 0o600), "wb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                if not _is_at(file.fileno(), path):
                    continue  # somebody took it for left before we held it
                yield file, path
            finally:
                with suppress(OSError):
                    os.unlink(path)
        return


def _remove_left(directory: str) -> None:
    with suppress(OSError):
        for name in [each for each in os.listdir(directory or ".") if _NAME.fullmatch(each)]:
            with suppress(OSError):  # somebody is writing it
                _remove(os.path.join(directory, name))


def _remove(path: str) -> None:
    descriptor = os.open(path, _LEFT)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_at(descriptor, path):
                os.unlink(path)
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path, follow_symlinks=False))
    except FileNotFoundError:
        return False
