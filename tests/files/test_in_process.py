"""The in-process store against the contracts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from hypothesis import settings

from memshelf import FileFormat, InProcessFileStore
from memshelf.testing import FileStoreContract, FileStoreMachine, SearchableFileStoreContract


@asynccontextmanager
async def _open(_: Path, format: FileFormat | None = None) -> AsyncIterator[InProcessFileStore]:
    yield InProcessFileStore(format=format)


class TestInProcessFileStore(FileStoreContract, SearchableFileStoreContract):
    reopens = False
    exact_changes = True

    def open(self, place, format=None):
        return _open(place, format)


class _Machine(FileStoreMachine):
    def open(self, place):
        return _open(place)


TestInProcessMachine = _Machine.TestCase
TestInProcessMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
