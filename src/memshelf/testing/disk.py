"""Disks that fail and crash, for `DirectoryFileStore(root, disk=...)`."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from memshelf.files.backends.directory.disk import Disk

__all__ = ["CrashingDisk", "FaultyDisk", "PowerCut"]


class FaultyDisk(Disk):
    """Calls `before` with the name of each operation that changes the disk or syncs it, before it is made.

    Whatever `before` raises is what the operation raises: an `OSError`, as from a disk that is full.
    """

    def __init__(self, before: Callable[[str], None]) -> None:
        self._before = before

    def make_directory(self, name: str, at: int) -> None:
        self._before("make_directory")
        super().make_directory(name, at)

    def create(self, name: str, at: int) -> int:
        self._before("create")
        return super().create(name, at)

    def write(self, fd: int, data: bytes) -> None:
        self._before("write")
        super().write(fd, data)

    def sync(self, fd: int) -> None:
        self._before("sync")
        super().sync(fd)

    def link(self, name: str, at: int, new_name: str, new_at: int) -> None:
        self._before("link")
        super().link(name, at, new_name, new_at)

    def rename(self, name: str, at: int, new_name: str, new_at: int) -> None:
        self._before("rename")
        super().rename(name, at, new_name, new_at)

    def unlink(self, name: str, at: int) -> None:
        self._before("unlink")
        super().unlink(name, at)

    def remove_directory(self, name: str, at: int) -> None:
        self._before("remove_directory")
        super().remove_directory(name, at)


class PowerCut(BaseException):
    """The process is over: not an `Exception`, so that nothing tidies up after it."""


@dataclass(slots=True)
class _Change:
    """Entries that an operation set or, with `None`, removed. It reaches the disk as a whole, when the directory of
    one of them is synced."""

    entries: list[tuple[int, str, int | None]]
    synced: bool = False


@dataclass(slots=True)
class _Node:
    """A directory (`data` is `None`) or a file: what it holds, and what of that has been synced."""

    data: bytes | None
    synced: bytes | None


class CrashingDisk(FaultyDisk):
    """A disk that stops after `limit` operations, and knows what would have survived.

    What is in `place` then is what a killed process leaves. `power_cut` shows what a power cut could leave: all that
    was synced and, as on a journalling file system, some first part of the operations that were not. Content that was
    not synced is cut in half. `revive` is the next process, on the same disk.

    Only what happens below `place` is known, and what is there at the start counts as synced.
    """

    def __init__(self, place: Path, limit: int | None = None) -> None:
        super().__init__(self._count)
        self.operations: list[str] = []
        self._limit = limit
        self._nodes: list[_Node] = []
        self._by_inode: dict[int, int] = {}
        self._changes: list[_Change] = []
        self._top = self._adopt(place)

    def revive(self) -> None:
        """Work again, without a limit."""
        self._limit = None

    @property
    def pending(self) -> int:
        """How many changes of directories a power cut could still lose."""
        return sum(not change.synced for change in self._changes)

    def power_cut(self, into: Path, kept: int = 0) -> None:
        """Write what is left into a new directory, when the first `kept` of the pending changes reached the disk."""
        directories: dict[int, dict[str, int]] = {}
        for change in self._changes:
            if not change.synced:
                kept -= 1
                if kept < 0:
                    continue
            for directory, name, node in change.entries:
                entries = directories.setdefault(directory, {})
                if node is None:
                    entries.pop(name, None)
                else:
                    entries[name] = node
        self._restore(self._top, into, directories, {})

    def make_directory(self, name: str, at: int) -> None:
        super().make_directory(name, at)
        node = self._new(os.stat(name, dir_fd=at, follow_symlinks=False), None)
        self._changes.append(_Change([(self._node(at), name, node)]))

    def create(self, name: str, at: int) -> int:
        fd = super().create(name, at)
        self._changes.append(_Change([(self._node(at), name, self._new(os.fstat(fd), b""))]))
        return fd

    def write(self, fd: int, data: bytes) -> None:
        super().write(fd, data)
        node = self._nodes[self._node(fd)]
        node.data = (node.data or b"") + data

    def sync(self, fd: int) -> None:
        self._count("sync")  # the real disk need not be waited for
        number = self._by_inode.get(os.fstat(fd).st_ino)
        if number is None:  # above `place`
            return
        self._nodes[number].synced = self._nodes[number].data
        for change in self._changes:
            change.synced = change.synced or any(directory == number for directory, _, _ in change.entries)

    def link(self, name: str, at: int, new_name: str, new_at: int) -> None:
        node = self._named(name, at)
        super().link(name, at, new_name, new_at)
        self._changes.append(_Change([(self._node(new_at), new_name, node)]))

    def rename(self, name: str, at: int, new_name: str, new_at: int) -> None:
        node = self._named(name, at)
        super().rename(name, at, new_name, new_at)
        self._changes.append(_Change([(self._node(new_at), new_name, node), (self._node(at), name, None)]))

    def unlink(self, name: str, at: int) -> None:
        super().unlink(name, at)
        self._changes.append(_Change([(self._node(at), name, None)]))

    def remove_directory(self, name: str, at: int) -> None:
        super().remove_directory(name, at)
        self._changes.append(_Change([(self._node(at), name, None)]))

    def _count(self, operation: str) -> None:
        if self._limit is not None and len(self.operations) >= self._limit:
            raise PowerCut(f"before operation {self._limit}, {operation}")
        self.operations.append(operation)

    def _adopt(self, path: Path) -> int:
        number = self._new(path.stat(), None if path.is_dir() else path.read_bytes())
        if path.is_dir():
            for child in path.iterdir():
                self._changes.append(_Change([(number, child.name, self._adopt(child))], synced=True))
        return number

    def _new(self, status: os.stat_result, data: bytes | None) -> int:
        self._nodes.append(_Node(data, data))
        self._by_inode[status.st_ino] = len(self._nodes) - 1  # the number may have been another file's, now gone
        return len(self._nodes) - 1

    def _node(self, fd: int) -> int:
        return self._by_inode[os.fstat(fd).st_ino]

    def _named(self, name: str, at: int) -> int:
        return self._by_inode[os.stat(name, dir_fd=at, follow_symlinks=False).st_ino]

    def _restore(self, number: int, path: Path, directories: dict[int, dict[str, int]], done: dict[int, Path]) -> None:
        node = self._nodes[number]
        if node.data is None:
            path.mkdir()
            for name, child in directories.get(number, {}).items():
                self._restore(child, path / name, directories, done)
        elif number in done:
            path.hardlink_to(done[number])
        else:
            path.write_bytes(node.data if node.synced == node.data else node.data[: len(node.data) // 2])
            done[number] = path
