"""Stored content inside a request to a model: JSON in a block that it can neither close nor open."""

from __future__ import annotations

import json

__all__ = ["encode", "is_sound", "size", "sound"]


def encode(value: object) -> str:
    """The value as JSON on one line, with `<`, `>` and `&` escaped. `ValueError` for a number that is none."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def size(text: str) -> int:
    """UTF-8 bytes. A store may hand over text with lone surrogates; they count as they will be sent."""
    return len(text.encode(errors="surrogatepass"))


def is_sound(text: str) -> bool:
    """Whether UTF-8 can carry the text: JSON may hold half a surrogate pair, which nothing else takes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def sound(text: str) -> str:
    """The text as UTF-8 can carry it: U+FFFD in the place of lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
