"""Hosted memory stores against the contracts, behind the service on SQLite."""

from __future__ import annotations

import sys
from pathlib import Path

from hypothesis import settings

from memshelf import MemoryStoreFileStore, PlatformFileStore
from memshelf.testing import (
    FileStoreContract,
    FileStoreMachine,
    HistoryFileStoreContract,
    SearchableFileStoreContract,
)

sys.path.append(str(Path(__file__).parent))
from hosted import hosted


class TestMemoryStoreFileStore(FileStoreContract, SearchableFileStoreContract, HistoryFileStoreContract):
    exact_changes = True
    own_origin = False

    def open(self, place, format=None):
        return hosted(MemoryStoreFileStore, place, format)


class TestPlatformFileStore(FileStoreContract):
    keeps_nul = False

    def open(self, place, format=None):
        return hosted(PlatformFileStore, place, format)


class _Machine(FileStoreMachine):
    def open(self, place):
        return hosted(MemoryStoreFileStore, place)


TestMemoryStoreMachine = _Machine.TestCase
TestMemoryStoreMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)
