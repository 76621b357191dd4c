"""A thread of the command line: the log of a session, held by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from memshelf.cli.command import Unavailable
from memshelf.errors import MemoryStoreError
from memshelf.storage.private import private_directory
from memshelf.threads.log import SessionLog

__all__ = ["held", "opened"]

_PRIVATE = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


def opened(directory: Path, name: str, hint: str) -> SessionLog:
    """The log of a thread. A name that cannot be a thread's is a usage error of what `hint` names."""
    try:
        return SessionLog(name, directory)
    except MemoryStoreError:
        raise click.BadParameter(
            f"{name!r} is no thread name: a letter or digit, then letters, digits, '.', '-', '_', '@', '+' or '='",
            param_hint=hint,
        ) from None


@contextmanager
def held(log: SessionLog) -> Iterator[None]:
    """Hold a thread. Another process that holds it is refused; the system releases the thread of one that dies."""
    private_directory(log.directory, durable=True)
    path = Path(log.directory, f"{log.session_id}.lock")
    while True:
        lock = os.open(path, _PRIVATE, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Unavailable(f"Thread {log.session_id} is in use by another process.") from None
            if not _is_at(lock, path):
                continue  # its holder removed it between our opening and locking it
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return
        finally:
            os.close(lock)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
