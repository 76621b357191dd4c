"""What a recall was worth. Of the standard library alone: peers run it in environments of their own."""

from __future__ import annotations

__all__ = ["KINDS", "figure"]

KINDS = ("english", "chinese", "unrelated")


def figure(queries: list[dict[str, str]], found: list[list[str]], kind: str) -> float:
    """The mean reciprocal rank of the right entry, or how many unrelated questions found nothing."""
    if kind == "unrelated":
        quiet = [not ids for query, ids in zip(queries, found, strict=True) if query["a"] is None]
        return sum(quiet) / len(quiet)
    ranks = [
        1 / (ids.index(query["a"]) + 1) if query["a"] in ids else 0.0
        for query, ids in zip(queries, found, strict=True)
        if query["a"] is not None and query["q"].isascii() == (kind == "english")
    ]
    return sum(ranks) / len(ranks)
