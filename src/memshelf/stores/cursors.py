"""Page cursors: where a listing goes on, as an opaque text that says which listing it belongs to."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from memshelf.errors import MemoryStoreError

__all__ = ["Cursor", "decoded", "encoded"]

Cursor = Sequence[str | int]

_PREFIX = "page_"
_MOST_CHARS = 4_096


def encoded(listing: Sequence[object], key: Cursor) -> str:
    """The cursor after the item with this key, in the listing that these filters describe."""
    data = json.dumps([_mark(listing), *key], ensure_ascii=False, separators=(",", ":")).encode()
    return _PREFIX + base64.urlsafe_b64encode(data).decode().rstrip("=")


def decoded(listing: Sequence[object], page: str, *types: type) -> list[str | int]:
    """The key in a cursor of this very listing, whose parts are of these types; `invalid_cursor` for any other text."""
    try:
        mark, *key = _parts(page)
        if mark == _mark(listing) and [type(part) for part in key] == list(types) and all(map(_storable, key)):
            return key
    except (ValueError, TypeError, RecursionError):  # it is not base64 of a JSON array in UTF-8
        pass
    raise MemoryStoreError("invalid_cursor", "page: it is not a cursor of this listing.")


def _parts(page: str) -> list[Any]:  # what a client sent
    if not page.startswith(_PREFIX) or len(page) > _MOST_CHARS:
        return [None]
    data = page[len(_PREFIX) :].encode("ascii")
    return list(json.loads(base64.b64decode(data + b"=" * (-len(data) % 4), b"-_", validate=True)))


def _storable(part: str | int) -> bool:
    return b"\0" not in part.encode() if isinstance(part, str) else part.bit_length() < 64


def _mark(listing: Sequence[object]) -> str:
    return hashlib.sha256(json.dumps(listing, default=str).encode()).hexdigest()[:12]
