"""A memory as a directory of plain files, and back: for editors and agents that only read and write files."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from memshelf.arguments import checked_argument, checked_path
from memshelf.closing import Closes
from memshelf.errors import ErrorCode, MemoryStoreError
from memshelf.files.backends.directory import DirectoryFileStore
from memshelf.files.backends.directory.names import CONTROL
from memshelf.files.model import FileText
from memshelf.files.protocol import FileStore
from memshelf.limits import FileFormat
from memshelf.mounted import Access
from memshelf.origin import Origin
from memshelf.storage.private import make_private, private_directory
from memshelf.storage.whole_file import WholeFile

__all__ = ["Mirror", "MirrorReport"]

_MARK = "mirror"
_PASSES = 3
_AT_ONCE = 16
_FEW = 8
_STOPS: frozenset[ErrorCode] = frozenset({"unavailable", "memory_deleted", "unknown_memory"})
_LOOK_AGAIN: frozenset[ErrorCode] = frozenset({"version_mismatch", "already_exists", "not_found", "write_unconfirmed"})
_UNSENT = "It was changed here, and the mirror is read-only."

Sides: TypeAlias = tuple[str | None, str | None]
"""The version of a file here and in the memory; `None` where it is not."""


@dataclass(slots=True)
class MirrorReport:
    """What one `Mirror.sync` did, by path. All others are alike on both sides now than those that are `refused`, `held`
    or `held_here`."""

    pulled: list[str] = field(default_factory=list)
    """Written here as they are in the memory."""
    pushed: list[str] = field(default_factory=list)
    """Written to the memory as they are here."""
    removed: list[str] = field(default_factory=list)
    """Removed here, as they were deleted in the memory."""
    deleted: list[str] = field(default_factory=list)
    """Deleted in the memory, as they were removed here."""
    conflicts: dict[str, str] = field(default_factory=dict)
    """Changed on both sides: the path has the memory's text, and what was here is in the file named behind it."""
    refused: dict[str, str] = field(default_factory=dict)
    """Left as they are on both sides, and why."""
    held: list[str] = field(default_factory=list)
    """Removed here and still in the memory, as they are so many at once."""
    held_here: list[str] = field(default_factory=list)
    """Deleted in the memory and still here, as they are so many at once."""

    @property
    def changed(self) -> bool:
        """Whether anything was written or removed on either side."""
        return bool(self.pulled or self.pushed or self.removed or self.deleted or self.conflicts)


class Mirror(Closes):
    """Keeps a directory and a memory alike. `sync` carries changes both ways, each one compare-and-swap.

    * `directory` is made if it is not there. Which memory it mirrors is kept in it under `name`, which is the same each
      time, such as a store's id: with another one, `sync` is a `conflict`. So it is for a directory that has files and
      mirrors nothing yet, unless `adopt` is set: then its files go to the memory, where there are none at their paths.
    * **Nothing written is lost.** A file that was changed on both sides gets the memory's text; the text that was here
      is kept beside it, as `NAME.conflict-1f2e3d4c.EXT`. What was changed on one side and deleted on the other comes
      back. A change that comes between is seen in the next pass, or by the next `sync`.
    * **Deletions** are passed on if the other side is as it was. More than 8 files, and more than a quarter of all,
      that vanish at once from one side are held on the other, as a disk that is not mounted, or a database that was
      restored, looks alike; `delete_many` passes them on. If several are all that there was here, they are fetched
      anew; if they are all that the memory had, they are held.
    * With `access="read"` nothing is written to the memory; what is changed here is `refused`, and kept as a conflict
      once the memory has something newer.
    * **Left alone**: what is no file of a memory (`DirectoryFileStore` tells), and new files here whose names, or
      directories, begin with a dot or end with `~`.

    A `sync` that is killed is made up for by the next one. `unavailable` and `memory_deleted`, of either side, end it;
    what was done until then is done. Any number of programs may write to the directory meanwhile, and any number of
    mirrors may be of one memory, in directories of their own. The store is not closed.
    """

    def __init__(
        self,
        store: FileStore,
        directory: str | os.PathLike[str],
        *,
        name: str,
        access: Access = "write",
        adopt: bool = False,
        format: FileFormat | None = None,
        origin: Origin | None = None,
    ) -> None:
        self._store = store
        self._directory = str(Path(checked_path("directory", directory)).absolute())
        self._name = checked_argument("name", name, str)
        if access not in ("read", "write"):
            raise ValueError(f"access is 'read' or 'write', not {access!r}.")
        self._writes = access == "write"
        self._adopt = checked_argument("adopt", adopt, bool)
        self._origin = checked_argument("origin", origin, Origin, None) or Origin()
        self._files = DirectoryFileStore(self._directory, format=format)
        self._mark = WholeFile(Path(self._directory, CONTROL, _MARK))
        self._missing: Collection[str] = ()

    async def aclose(self) -> None:
        await self._files.aclose()

    async def sync(self, *, delete_many: bool = False, patient: bool = False) -> MirrorReport:
        """Carry over what changed since the last time, and say what that was.

        `patient`: a file that is gone here is deleted in the memory only if it was gone in the last `sync` of this
        object already, as some editors remove a file for a moment to write it.
        """
        kept = await self._begin()
        alike = dict(kept)
        report = MirrorReport()
        missing = self._missing if patient else None
        try:
            for _ in range(_PASSES):
                if not await self._pass(alike, report, delete_many=delete_many, missing=missing):
                    break
        finally:
            if alike != kept:
                await asyncio.to_thread(self._keep, alike)
        return report

    async def _begin(self) -> dict[str, Sides]:
        """The versions in which both sides were alike."""
        kept = await asyncio.to_thread(self._kept)
        if kept is None:
            if not self._adopt and await self._files.list():
                raise MemoryStoreError(
                    "conflict", f"{self._directory} has files and mirrors no memory yet: choose another, or adopt them."
                )
            await self._store.list()  # or the directory would be said to mirror a memory that is not there
            await asyncio.to_thread(self._keep, {})
            return {}
        name, alike = kept
        if name != self._name:
            raise MemoryStoreError("conflict", f"{self._directory} mirrors another memory: {name}.")
        return alike

    async def _pass(
        self, alike: dict[str, Sides], report: MirrorReport, *, delete_many: bool, missing: Collection[str] | None
    ) -> bool:
        """Whether there may be more to do at once. What is gone here, and was not `missing` before, is waited for."""
        here = {each.path: each.version for each in await self._files.list()}
        there = {each.path: each.version for each in await self._store.list()}
        if len(alike) > 1 and not here:  # the directory was lost, which is no wish to delete
            alike.clear()
        gone = [path for path, (_, before) in sorted(alike.items()) if path not in here and there.get(path) == before]
        lost = [path for path, (before, _) in sorted(alike.items()) if path not in there and here.get(path) == before]
        most = len(alike) if delete_many else max(_FEW, len(alike) // 4)
        report.held = gone if self._writes and len(gone) > most else []
        report.held_here = lost if len(lost) > (most if there or delete_many else 1) else []
        report.refused = {}
        left = {*report.held, *report.held_here, *(set(gone).difference(missing) if missing is not None else ())}
        self._missing = gone
        work = _Work(self._files, self._store, self._origin, self._writes, alike, report)
        paths = [
            path
            for path in sorted({*alike, *here, *there})
            if (here.get(path), there.get(path)) != alike.get(path, (None, None))
            and path not in left
            and (path in alike or path in there or not _is_private(path))
        ]
        await work.settle({path: (here.get(path), there.get(path)) for path in paths})
        return work.again

    def _kept(self) -> tuple[str, dict[str, Sides]] | None:
        try:
            kept = json.loads(self._mark.read())
            name, files = kept["name"], {path: (here, there) for path, (here, there) in kept["files"].items()}
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):  # none, or a damaged one
            return None
        sound = all(isinstance(version, str) for versions in (*files.values(), [name]) for version in versions)
        return (name, files) if sound else None

    def _keep(self, alike: Mapping[str, Sides]) -> None:
        try:
            make_private(self._directory)
            private_directory(os.path.join(self._directory, CONTROL), durable=False)
            self._mark.write(json.dumps({"name": self._name, "files": dict(alike)}).encode())
        except OSError as error:
            raise MemoryStoreError("unavailable", f"{self._directory}: {error.strerror or error}") from error


class _Work:
    """One pass over the files that differ."""

    def __init__(
        self,
        files: DirectoryFileStore,
        store: FileStore,
        origin: Origin,
        writes: bool,
        alike: dict[str, Sides],
        report: MirrorReport,
    ) -> None:
        self.again = False
        self._files = files
        self._store = store
        self._origin = origin
        self._writes = writes
        self._alike = alike
        self._report = report
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._stopped: MemoryStoreError | None = None

    async def settle(self, sides: Mapping[str, Sides]) -> None:
        async with asyncio.TaskGroup() as tasks:
            for path, (here, there) in sides.items():
                tasks.create_task(self._one(path, here, there))
        if self._stopped is not None:
            raise self._stopped

    async def _one(self, path: str, here: str | None, there: str | None) -> None:
        async with self._turns:
            if self._stopped is not None:
                return
            try:
                alike = await self._made_alike(path, here, there)
            except MemoryStoreError as error:
                if error.code in _STOPS:
                    self._stopped = MemoryStoreError(error.code, f"{path}: {error.message}")
                self.again |= error.code in _LOOK_AGAIN
                self._report.refused[path] = str(error)
                return
            if alike == (None, None):
                self._alike.pop(path, None)
            elif alike is not None:
                self._alike[path] = alike

    async def _made_alike(self, path: str, here: str | None, there: str | None) -> Sides | None:
        """The versions in which the file is alike now; `None` if it is not."""
        here_before, there_before = self._alike.get(path, (None, None))
        if here is None and there is None:
            return None, None
        if here is not None and there is None and here == here_before:
            await _require_gone(self._store, path)
            await self._files.delete(path, expected=here, origin=self._origin)
            self._report.removed.append(path)
            return None, None
        if there is not None and here is None and there == there_before and self._writes:
            await _require_gone(self._files, path)
            await self._store.delete(path, expected=there, origin=self._origin)
            self._report.deleted.append(path)
            return None, None
        if here is not None and (there is None or there == there_before):
            return await self._push(path, there)
        theirs = await self._store.read(path)
        if here is None or here == here_before:
            return await self._pull(theirs, here)
        mine = await self._files.read(path)
        if mine.text == theirs.text:
            return mine.version, theirs.version
        self._report.conflicts[path], sides = await self._both_kept(mine, theirs)
        self.again = True
        return sides

    async def _push(self, path: str, there: str | None) -> Sides | None:
        if not self._writes:
            self._report.refused[path] = _UNSENT
            return None
        mine = await self._files.read(path)
        version = await self._store.write(path, mine.text, expected=there, origin=self._origin)
        self._report.pushed.append(path)
        return mine.version, version

    async def _pull(self, theirs: FileText, here: str | None) -> Sides:
        version = await self._files.write(theirs.path, theirs.text, expected=here, origin=self._origin)
        self._report.pulled.append(theirs.path)
        return version, theirs.version

    async def _both_kept(self, mine: FileText, theirs: FileText) -> tuple[str, Sides]:
        """Put theirs in the place of mine, which is moved: who is still writing into it goes on in the copy."""
        path, copy = mine.path, _copy_of(mine)
        try:
            await self._files.move(path, copy, expected=mine.version, origin=self._origin)
        except MemoryStoreError as error:
            if error.code != "already_exists" or error.current is None or error.current.text != mine.text:
                raise
            return copy, await self._pull(theirs, mine.version)
        try:
            return copy, await self._pull(theirs, None)
        except MemoryStoreError:
            with suppress(MemoryStoreError):  # somebody has put another in its place
                await self._files.move(copy, path, expected=mine.version, origin=self._origin)
            raise


def _copy_of(file: FileText) -> str:
    """The path of a copy. It is named after what it holds, so that a second try makes no second one."""
    directory, slash, name = file.path.rpartition("/")
    stem, dot, suffix = name.rpartition(".")
    if not stem:  # a name without a suffix, or that begins with its only dot
        stem, dot, suffix = name, "", ""
    mark = "".join(char for char in file.version if char.isalnum())[-8:]
    return f"{directory}{slash}{stem}.conflict-{mark}{dot}{suffix}"


async def _require_gone(files: FileStore, path: str) -> None:
    """Refuse to take for deleted what a listing leaves out though it is there: what is no text any more."""
    try:
        await files.read(path)
    except MemoryStoreError as error:
        if error.code == "not_found":
            return
        raise
    raise MemoryStoreError("version_mismatch", f"{path} is there again.")


def _is_private(path: str) -> bool:
    return any(segment.startswith(".") or segment.endswith("~") for segment in path.split("/"))
