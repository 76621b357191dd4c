"""The control directory of a memory, and the lock in it that makes changes take turns."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from memshelf.files.backends.directory.disk import Disk
from memshelf.files.backends.directory.names import CONTROL

__all__ = ["Held", "exclusive"]

_LOCK = "lock"


@dataclass(frozen=True, slots=True)
class Held:
    """The open root and control directory, for as long as the lock is held."""

    root: int
    control: int


@contextmanager
def exclusive(disk: Disk, root: str, *, create: bool, durable: bool) -> Iterator[Held]:
    """Wait for the lock of the memory at `root`, which is created if it is missing, or else `FileNotFoundError`.

    The lock is the system's: it excludes threads and processes alike, and ends with the process that holds it. Each
    change opens it anew, so a forked child shares none.
    """
    while True:
        with ExitStack() as opened:
            top = _open_root(disk, root, create, durable)
            opened.callback(disk.close, top)
            control = _open_control(disk, root, top, durable)
            opened.callback(disk.close, control)
            lock = disk.open_lock(_LOCK, control)
            opened.callback(disk.close, lock)
            disk.lock(lock)
            # Unlocking, and not only closing, matters when another thread forked meanwhile: the child has a copy.
            opened.callback(disk.unlock, lock)
            # Whoever replaced the root, or removed the control directory, while we waited, took the lock with it.
            if disk.is_at(lock, os.path.join(root, CONTROL, _LOCK)):
                yield Held(top, control)
                return


def _open_root(disk: Disk, root: str, create: bool, durable: bool) -> int:
    try:
        return disk.open_root(root)
    except FileNotFoundError:
        if not create:
            raise
        _make_root(disk, root, durable)
        return disk.open_root(root)


def _make_root(disk: Disk, path: str, durable: bool) -> None:
    above, name = os.path.split(path)
    try:
        at = disk.open_root(above)
    except FileNotFoundError:
        if above == path:
            raise
        _make_root(disk, above, durable)
        at = disk.open_root(above)
    try:
        with suppress(FileExistsError):
            disk.make_directory(name, at)
        if durable:
            disk.sync_directory(at)
    finally:
        disk.close(at)


def _open_control(disk: Disk, root: str, top: int, durable: bool) -> int:
    try:
        return disk.open_directory(CONTROL, top)
    except FileNotFoundError:
        if durable:
            # A writer that was killed may have made the root without seeing it reach the disk. Where we may not even
            # look into the directory above, the root was made by someone else.
            with suppress(PermissionError):
                _make_root(disk, root, durable)
        with suppress(FileExistsError):
            disk.make_directory(CONTROL, top)
        return disk.open_directory(CONTROL, top)
