"""The in-process store against the contract, by words only and with the bundled model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from memshelf.records.backends.in_process import InProcessRecordStore
from memshelf.testing import RecallRecordStoreContract


@asynccontextmanager
async def _open(embedder) -> AsyncIterator[InProcessRecordStore]:
    async with InProcessRecordStore(embedder=embedder) as store:
        yield store


class TestByWords(RecallRecordStoreContract):
    reopens = False

    def open(self, place: Path, namespace="default"):
        return _open(None)


class TestByMeaning(RecallRecordStoreContract):
    reopens = False

    def open(self, place: Path, namespace="default"):
        return _open("default")
