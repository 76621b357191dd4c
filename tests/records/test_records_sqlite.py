"""`SqliteRecordStore` against the contract, by words only and with the bundled model."""

from __future__ import annotations

from pathlib import Path

from memshelf.records.backends.sqlite import SqliteRecordStore
from memshelf.testing import RecallRecordStoreContract


class TestByWords(RecallRecordStoreContract):
    def open(self, place: Path, namespace="default"):
        return SqliteRecordStore(place / "memory.db", namespace, embedder=None)


class TestByMeaning(RecallRecordStoreContract):
    def open(self, place: Path, namespace="default"):
        return SqliteRecordStore(place / "memory.db", namespace)
