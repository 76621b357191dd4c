"""A deadline of whoever searches records, apart from the search, which loads NumPy."""

from __future__ import annotations

from contextvars import ContextVar

__all__ = ["WORDS_FROM"]

WORDS_FROM: ContextVar[float | None] = ContextVar("memshelf_recall_words_from", default=None)
"""From when on, by the event loop's clock, a search goes by words alone rather than wait for an embedder any longer.

For who must answer by a deadline while a model is still being loaded. It is no parameter, since it is nothing to a
store that does not embed.
"""
