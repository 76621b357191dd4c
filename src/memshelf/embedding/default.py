"""The embedder that a store uses unless it is given another."""

from __future__ import annotations

import logging
from functools import cache

from memshelf.embedding.protocol import Embedder

__all__ = ["default_embedder", "warn_words_only"]

_log = logging.getLogger(__name__)


@cache
def default_embedder() -> Embedder | None:
    """The bundled model, one for the process; `None` without the extra `embed`, which is said when it is missed."""
    try:
        from memshelf.embedding.bundled import BundledEmbedder
    except ImportError:
        return None
    return BundledEmbedder()


@cache
def warn_words_only() -> None:
    """Say in the log, once in a process, that a search which should go by meaning does not."""
    _log.warning('Recall goes by words only; to find by meaning too, install the extra: pip install "memshelf[embed]".')
