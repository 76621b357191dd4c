"""The directory store: the contracts, and what holds for plain files on a disk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hypothesis import settings

from memshelf import DirectoryFileStore, FileFormat
from memshelf.testing import FileStoreContract, FileStoreMachine, SearchableFileStoreContract


@asynccontextmanager
async def _open(place: Path, format: FileFormat | None = None) -> AsyncIterator[DirectoryFileStore]:
    async with DirectoryFileStore(place / "memory", format=format, durable=False) as store:
        yield store


class TestDirectoryFileStore(FileStoreContract, SearchableFileStoreContract):
    def open(self, place, format=None):
        return _open(place, format)


class _Machine(FileStoreMachine):
    def open(self, place):
        return _open(place)


TestDirectoryMachine = _Machine.TestCase
TestDirectoryMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
