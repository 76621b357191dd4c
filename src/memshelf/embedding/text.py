"""Cutting texts for an embedder."""

from __future__ import annotations

import re

__all__ = ["EMBEDDED_CHARS", "MOST_SENTENCES", "PASSAGES", "passages", "sentences"]

PASSAGES = 1
"""The version of `passages`, and of what of a text it is given: vectors that are kept of others are made again."""

EMBEDDED_CHARS = 2_000
"""A model sees no more of a text than this."""

MOST_SENTENCES = 8
"""So many of a text are looked at on their own."""

_WORTH_SPLITTING = 60
_SHORTEST = 6

_END = re.compile(r"(?<=[。！？；!?])(?![。！？；!?”’」』）)])|(?<=[.;])\s+|\n+")
_TAG = re.compile(r"^\[[^\]\n]{1,20}\]\s*")
_TIMESTAMP = re.compile(r"(?:19|20)\d\d-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?)?")


def sentences(text: str, *, shortest: int = _SHORTEST) -> list[str]:
    """The sentences of a Chinese or English text, without the spaces between them. Shorter ones stay together."""
    found: list[str] = []
    for part in _END.split(text):
        part = part.strip()
        if not part:
            continue
        if found and len(found[-1]) < shortest:
            found[-1] += f" {part}"
        else:
            found.append(part)
    return found


def passages(text: str) -> list[str]:
    """What to embed of a text: its whole, and if it has several, its first sentences, each on its own.

    A leading tag in brackets, time stamps and the last full stop are left out: they move a vector, and say nothing of
    what the text is about.
    """
    whole = _TIMESTAMP.sub("", _TAG.sub("", text[:EMBEDDED_CHARS])).strip()
    whole = whole.rstrip(".。").rstrip() or whole or text[:EMBEDDED_CHARS]
    if len(whole) < _WORTH_SPLITTING:
        return [whole]
    parts = sentences(whole)[:MOST_SENTENCES]
    return [whole, *parts] if len(parts) > 1 else [whole]
