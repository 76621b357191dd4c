"""Hosted memory stores against the contracts, behind the service on SQLite and on PostgreSQL."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import settings

from memshelf import MemoryStoreFileStore, PlatformFileStore
from memshelf.storage.postgres import PostgresEngine
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


class TestMemoryStoreFileStoreOnPostgres(FileStoreContract, SearchableFileStoreContract, HistoryFileStoreContract):
    exact_changes = True
    own_origin = False

    @pytest.fixture(autouse=True)
    def server(self, postgres_server):
        self.dsn = postgres_server.dsn

    def open(self, place, format=None):
        return hosted(MemoryStoreFileStore, place, format, PostgresEngine(self.dsn))


class _Machine(FileStoreMachine):
    def open(self, place):
        return hosted(MemoryStoreFileStore, place)


TestMemoryStoreMachine = _Machine.TestCase
TestMemoryStoreMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


def test_on_postgres_it_agrees_with_a_dictionary_whatever_is_done(postgres_server):
    class Machine(FileStoreMachine):
        def open(self, place):
            return hosted(MemoryStoreFileStore, place, None, PostgresEngine(postgres_server.dsn))

    test = Machine.TestCase()
    test.settings = settings(max_examples=15, stateful_step_count=25, deadline=None)
    test.runTest()
