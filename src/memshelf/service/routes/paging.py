"""How long a page is."""

from __future__ import annotations

from memshelf.service.call import Call
from memshelf.service.errors import invalid_request

__all__ = ["MOST_FULL", "MOST_ITEMS", "limit_of"]

MOST_ITEMS = 100
MOST_FULL = 20


def limit_of(call: Call, limit: int, *, full: bool = False) -> int:
    """The number of items to answer. Over 100, one dialect refuses and the other answers 100; with content, both
    answer at most 20."""
    if limit > MOST_ITEMS and not call.dialect.zhipu:
        raise invalid_request(f"limit: it must be between 1 and {MOST_ITEMS}.")
    return min(limit, MOST_FULL if full else MOST_ITEMS)
