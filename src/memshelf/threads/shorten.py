"""Shortening a text so that its reader sees that something is missing, and how much."""

from __future__ import annotations

from memshelf.threads.tokens import TokenCounter, estimate_tokens

__all__ = ["shortened"]

_HEAD = 2 / 3
"""Mostly the beginning is kept: it says what the text is. Errors and totals stand at the end."""


def shortened(text: str, max_tokens: int, count: TokenCounter = estimate_tokens) -> str:
    """`text` itself if it takes at most `max_tokens`, else its beginning and its end with a marker between.

    The marker comes on top of `max_tokens`. The same text always gives the same result, so prompts stay the same
    bytes.
    """
    taken = count(text)
    if taken <= max_tokens:
        return text
    keep = len(text) * max_tokens // taken
    while keep and sum(map(count, _ends(text, keep))) > max_tokens:
        keep = keep * 9 // 10  # the ends are denser than the middle
    head, tail = _ends(text, keep)
    short = f"{head}\n[... {len(text) - keep} characters left out ...]\n{tail}"
    return short if len(short) < len(text) else text


def _ends(text: str, keep: int) -> tuple[str, str]:
    head = int(keep * _HEAD)
    return text[:head], text[len(text) - (keep - head) :]
