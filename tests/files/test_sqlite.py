"""The SQLite store against the contracts."""

from __future__ import annotations

from hypothesis import settings

from memshelf import SqliteFileStore
from memshelf.testing import (
    FileStoreContract,
    FileStoreMachine,
    HistoryFileStoreContract,
    SearchableFileStoreContract,
)


class TestSqliteFileStore(FileStoreContract, SearchableFileStoreContract, HistoryFileStoreContract):
    exact_changes = True

    def open(self, place, format=None):
        return SqliteFileStore(place / "memory.db", format=format, durable=False)


class _Machine(FileStoreMachine):
    def open(self, place):
        return SqliteFileStore(place / "memory.db", durable=False)


TestSqliteMachine = _Machine.TestCase
TestSqliteMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
