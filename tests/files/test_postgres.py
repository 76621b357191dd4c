"""The PostgreSQL store against the contracts."""

from __future__ import annotations

import pytest
from hypothesis import settings

from memshelf import PostgresFileStore
from memshelf.testing import (
    FileStoreContract,
    FileStoreMachine,
    HistoryFileStoreContract,
    SearchableFileStoreContract,
)


class TestPostgresFileStore(FileStoreContract, SearchableFileStoreContract, HistoryFileStoreContract):
    exact_changes = True

    @pytest.fixture(autouse=True)
    def server(self, postgres_server):
        self.dsn = postgres_server.dsn

    def open(self, place, format=None):
        return PostgresFileStore(self.dsn, str(place), format=format)


def test_it_agrees_with_a_dictionary_whatever_is_done(postgres_server):
    class Machine(FileStoreMachine):
        def open(self, place):
            return PostgresFileStore(postgres_server.dsn, str(place))

    test = Machine.TestCase()
    test.settings = settings(max_examples=12, stateful_step_count=30, deadline=None)
    test.runTest()
