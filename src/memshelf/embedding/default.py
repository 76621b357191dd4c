"""The embedder that a store uses unless it is given another."""

from __future__ import annotations

import logging
from functools import cache

from memshelf.embedding.protocol import Embedder

__all__ = ["default_embedder"]

_log = logging.getLogger(__name__)


@cache
def default_embedder() -> Embedder | None:
    """The bundled model, one for the process; `None` without the extra `embed`, which is said once in the log."""
    try:
        from memshelf.embedding.bundled import BundledEmbedder
    except ImportError as error:
        _log.warning("Records are recalled by their words only, not by meaning. %s", error)
        return None
    return BundledEmbedder()
