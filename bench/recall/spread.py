"""The bundled model on all processors: what it takes minutes to embed, when a data set is filled into memory."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context

import numpy as np

from memshelf.embedding.bundled import BundledEmbedder
from memshelf.embedding.protocol import Vectors

__all__ = ["SpreadEmbedder"]

_FEW = 512
_AT_ONCE = 256


class SpreadEmbedder(BundledEmbedder):
    """The same vectors. Texts of similar length go together, as a batch costs what its longest one does."""

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        if len(texts) <= _FEW:
            return await super().embed(texts, query=query)
        order = sorted(range(len(texts)), key=lambda at: -len(texts[at]))
        parts = [order[at : at + _AT_ONCE] for at in range(0, len(order), _AT_ONCE)]
        loop, vectors = asyncio.get_running_loop(), np.empty((len(texts), self.dimension), np.float32)
        found = [loop.run_in_executor(_processes(), _embed, [texts[at] for at in part]) for part in parts]
        for part, rows in zip(parts, await asyncio.gather(*found), strict=True):
            vectors[part] = rows
        return vectors


@cache
def _processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"))


def _embed(texts: list[str]) -> np.ndarray:
    return np.asarray(asyncio.run(BundledEmbedder().embed(texts)))
