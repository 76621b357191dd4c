"""Embedders to test with."""

from __future__ import annotations

import hashlib

import pytest

from memshelf import MemoryStoreError


class Hashing:
    """Vectors from hashes of words: close when texts share words. It counts what it embeds, and can be broken."""

    def __init__(self, model: str = "hashing", version: str = "1", dimension: int = 32) -> None:
        self.model, self.version, self.dimension = model, version, dimension
        self.embedded: list[str] = []
        self.failure: Exception | None = None
        self.answer = None

    async def embed(self, texts, *, query=False):
        if self.failure is not None:
            raise self.failure
        if not query:
            self.embedded += texts
        if self.answer is not None:
            return self.answer
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> list[float]:
        vector = [0.01] * self.dimension
        for word in text.lower().strip(".?").split():
            digest = hashlib.sha256(f"{self.model}{self.version}{word}".encode()).digest()
            vector[digest[0] % self.dimension] += 1.0
        return vector


@pytest.fixture
def hashing():
    return Hashing


@pytest.fixture
def down():
    return MemoryStoreError("unavailable", "The endpoint is down.")
