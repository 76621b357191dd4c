"""Workspaces in a directory: one `DirectoryFileStore` a user."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from weakref import WeakValueDictionary

from memshelf.errors import MemoryStoreError
from memshelf.files.backends.directory import DirectoryFileStore
from memshelf.files.protocol import FileStore
from memshelf.storage.private import make_private
from memshelf.workspace.config import WorkspaceConfig
from memshelf.workspace.users import directory_name, user_of

__all__ = ["DirectoryUsers", "OneFolder", "changed_at"]


class DirectoryUsers:
    """The users of the workspace at `path`: `{users_dir}/{user}/` is the root of a user's store."""

    def __init__(self, path: Path, config: WorkspaceConfig, *, durable: bool = True) -> None:
        self._config = config
        self._users = path / config.users_dir
        self._durable = durable
        self._stores: WeakValueDictionary[str, DirectoryFileStore] = WeakValueDictionary()

    def root(self, user_id: str) -> Path:
        return self._users / directory_name(user_id)

    def open(self, user_id: str) -> FileStore:
        if (store := self._stores.get(user_id)) is None:
            store = self._stores.setdefault(user_id, DirectoryFileStore(self.root(user_id), durable=self._durable))
        return store

    def prepare(self, user_id: str) -> None:
        with _refusals():
            _prepare(self.root(user_id), self._config)

    async def users(self) -> list[str]:
        with _refusals():
            return await asyncio.to_thread(self._list)

    def _list(self) -> list[str]:
        try:
            with os.scandir(self._users) as found:
                names = [entry.name for entry in found if entry.is_dir()]
        except FileNotFoundError:
            return []
        return sorted(user for name in names if (user := user_of(name)) is not None)

    async def delete(self, user_id: str) -> bool:
        root = self.root(user_id)
        with _refusals():
            try:
                link = stat.S_ISLNK((await asyncio.to_thread(os.lstat, root)).st_mode)
            except FileNotFoundError:
                return False
        if not link:
            await self.open(user_id).purge()  # takes its turn among the writers
        try:
            await asyncio.to_thread(_remove, root)
        except OSError as error:
            raise MemoryStoreError(
                "write_unconfirmed", f"Some files of {user_id} may be left: {error.strerror or error}. Delete it again."
            ) from error
        return True

    async def aclose(self) -> None:
        for store in list(self._stores.values()):
            await store.aclose()


class OneFolder:
    """A folder that is one user's whole memory, whoever asks: as Claude Code keeps it."""

    def __init__(self, folder: Path, config: WorkspaceConfig, *, durable: bool = True) -> None:
        self._folder = folder
        self._config = config
        self._store = DirectoryFileStore(folder, durable=durable)

    def root(self, user_id: str) -> Path:
        del user_id
        return self._folder

    def open(self, user_id: str) -> FileStore:
        if user_id != "default":
            raise ValueError("This folder is the memory of one user; open a workspace for more.")
        return self._store

    def prepare(self, user_id: str) -> None:
        del user_id
        with _refusals():
            _prepare(self._folder, self._config)

    async def users(self) -> list[str]:
        return ["default"]

    async def delete(self, user_id: str) -> bool:
        store = self.open(user_id)
        there = bool(await store.list())
        await store.purge()
        return there

    async def aclose(self) -> None:
        await self._store.aclose()


def changed_at(root: Path, directories: Collection[str]) -> object:
    """When the names in some directories below a root changed last: a `Glance`."""
    stamps = []
    for directory in sorted(directories):
        try:
            status = os.stat(root / directory)
        except OSError:
            stamps.append((directory, 0, 0))
        else:
            stamps.append((directory, status.st_ino, status.st_mtime_ns))
    return stamps


def _prepare(root: Path, config: WorkspaceConfig) -> None:
    for directory in (root, root / config.memory_dir, root / config.conversations_dir):
        make_private(str(directory))
    with suppress(FileExistsError):
        os.close(os.open(root / config.agent_md, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MemoryStoreError("unavailable", f"The system refuses: {error.strerror or error}.") from error


def _remove(root: Path) -> None:
    if root.is_symlink():
        root.unlink()  # what it leads to is somebody else's
    else:
        shutil.rmtree(root)
