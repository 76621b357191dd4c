"""The bundled model on all processors, and what it made kept on the disk: to embed a data set takes it minutes."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from memshelf.embedding.bundled import BundledEmbedder
from memshelf.embedding.protocol import Vectors

__all__ = ["SpreadEmbedder"]

_KEPT = Path(tempfile.gettempdir()) / "memshelf-bench-vectors"
_FEW = 512
_AT_ONCE = 256


class SpreadEmbedder(BundledEmbedder):
    """The same vectors. Those of many texts are made once on a machine, while the texts and the model are the same."""

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        if len(texts) <= _FEW:
            return await super().embed(texts, query=query)
        name = hashlib.sha256("\0".join([self.version, *texts]).encode("utf-8", "surrogatepass")).hexdigest()
        kept = _KEPT / f"{name}.npy"
        if kept.exists():
            return np.load(kept)  # type: ignore[no-any-return]  # it is what stands below
        parts = [texts[at : at + _AT_ONCE] for at in range(0, len(texts), _AT_ONCE)]
        loop = asyncio.get_running_loop()
        vectors = np.concatenate(
            await asyncio.gather(*[loop.run_in_executor(_processes(), _embed, part) for part in parts])
        )
        _KEPT.mkdir(exist_ok=True)
        unfinished = _KEPT / f"{os.getpid()}.npy"
        np.save(unfinished, vectors)
        unfinished.replace(kept)
        return vectors


@cache
def _processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn"))


def _embed(texts: Sequence[str]) -> np.ndarray:
    return np.asarray(asyncio.run(BundledEmbedder().embed(texts)))
