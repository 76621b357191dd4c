"""`PostgresRecordStore` against the contract, by words only and with the bundled model."""

from __future__ import annotations

from pathlib import Path

import pytest

from memshelf.records.backends.postgres import PostgresRecordStore
from memshelf.testing import RecallRecordStoreContract


@pytest.fixture(autouse=True)
def server(request, postgres_server):
    if request.instance is not None:
        request.instance.dsn = postgres_server.dsn


class TestByWords(RecallRecordStoreContract):
    def open(self, place: Path, namespace="default"):
        return PostgresRecordStore(self.dsn, f"{place}:{namespace}", embedder=None)


class TestByMeaning(RecallRecordStoreContract):
    def open(self, place: Path, namespace="default"):
        return PostgresRecordStore(self.dsn, f"{place}:{namespace}")
