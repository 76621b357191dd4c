"""Which rows say what a question names."""

from __future__ import annotations

from collections.abc import Iterable

from memshelf.matching import best_matches
from memshelf.threads.rows import Row, texts, tool_calls

__all__ = ["search"]

_SEARCHED = frozenset({"user", "assistant", "tool", "system", "compact_boundary"})


def search(query: str, rows: Iterable[Row], limit: int) -> list[Row]:
    """At most `limit` rows that say what `query` names, as `best_matches` finds them; events are not searched."""
    return best_matches(query, ((row, "\n".join(_said(row))) for row in rows if row["type"] in _SEARCHED), limit)


def _said(row: Row) -> list[str]:
    return texts(row.get("content")) + [text for call in tool_calls(row) for text in texts(call.get("args"))]
