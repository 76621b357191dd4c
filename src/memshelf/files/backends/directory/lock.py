"""The control directory of a memory, and the lock in it that makes changes take turns."""

from __future__ import annotations

import os
from contextlib import suppress
from types import TracebackType

from memshelf.files.backends.directory.disk import Disk
from memshelf.files.backends.directory.names import CONTROL

__all__ = ["Exclusive"]

_LOCK, _IGNORE = "lock", ".gitignore"


class Exclusive:
    """Hold the lock of the memory at `path`, with its `root` and `control` directory open.

    A missing root is created, or else `FileNotFoundError`. The lock is the system's: it excludes threads and processes
    alike, and ends with the process that holds it. It is opened anew each time, so a forked child shares none.
    """

    KEPT = frozenset({_LOCK, _IGNORE, "mirror", "mirror.new"})
    """What the control directory always has, and what a mirror keeps there."""

    __slots__ = ("_create", "_disk", "_durable", "_lock", "_path", "control", "root")

    def __init__(self, disk: Disk, path: str, *, create: bool, durable: bool) -> None:
        self._disk = disk
        self._path = path
        self._create = create
        self._durable = durable
        self.root = self.control = self._lock = -1

    def __enter__(self) -> Exclusive:
        """Wait for the lock for as long as a living process holds it."""
        try:
            while True:
                self.root = self._open_root()
                self.control = self._open_control()
                self._lock = self._disk.open_lock(_LOCK, self.control)
                self._disk.lock(self._lock)
                # Whoever replaced the root or the control directory while we waited took this lock with it.
                if self._disk.is_at(self._lock, f"{self._path}/{CONTROL}/{_LOCK}"):
                    return self
                self._release()
        except BaseException:
            self._release()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._release()

    def _release(self) -> None:
        if self._lock >= 0:
            # Closing is not enough if another thread forked meanwhile: the child has a copy of the descriptor.
            self._disk.unlock(self._lock)
        for fd in (self._lock, self.control, self.root):
            if fd >= 0:
                self._disk.close(fd)
        self.root = self.control = self._lock = -1

    def _open_root(self) -> int:
        try:
            return self._disk.open_root(self._path)
        except FileNotFoundError:
            if not self._create:
                raise
            self._make(self._path)
            return self._disk.open_root(self._path)

    def _open_control(self) -> int:
        try:
            return self._disk.open_directory(CONTROL, self.root)
        except FileNotFoundError:
            self._settle(self._path)
            with suppress(FileExistsError):
                self._disk.make_directory(CONTROL, self.root)
            control = self._disk.open_directory(CONTROL, self.root)
            with suppress(OSError):  # a convenience for memories under version control, not worth a failed change
                self._keep_out_of_version_control(control)
            return control

    def _keep_out_of_version_control(self, control: int) -> None:
        ignore = self._disk.create(_IGNORE, control)
        try:
            self._disk.write(ignore, b"*\n")
        finally:
            self._disk.close(ignore)

    def _make(self, path: str) -> None:
        above, name = os.path.split(path)
        try:
            at = self._disk.open_root(above)
        except FileNotFoundError:
            if above == path:
                raise
            self._make(above)
            at = self._disk.open_root(above)
        else:
            self._settle(above)
        try:
            with suppress(FileExistsError):
                self._disk.make_directory(name, at)
            if self._durable:
                self._disk.sync_directory(at)
        finally:
            self._disk.close(at)

    def _settle(self, path: str) -> None:
        """Sync the entry of a directory, which a writer may have made and been killed before it had synced it."""
        if not self._durable:
            return
        with suppress(PermissionError):  # then someone else made it
            above = self._disk.open_root(os.path.dirname(path))
            try:
                self._disk.sync_directory(above)
            finally:
                self._disk.close(above)
