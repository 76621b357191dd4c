"""What a record's text must be."""

from __future__ import annotations

from memshelf.errors import MemoryStoreError

__all__ = ["validate_record_text"]


def validate_record_text(text: str, *, max_chars: int) -> str:
    """The text itself, byte for byte: 1 to `max_chars` characters, not blank, valid Unicode. Else `invalid_text`."""
    if not text.strip():
        raise MemoryStoreError("invalid_text", "A record's text is not blank; nothing changed.")
    if len(text) > max_chars:
        raise MemoryStoreError(
            "invalid_text", f"A record's text has at most {max_chars} characters, not {len(text)}; nothing changed."
        )
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise MemoryStoreError("invalid_text", "A record's text is not valid Unicode; nothing changed.") from error
    return text
