"""What a record's text must be."""

from __future__ import annotations

from memshelf.credentials import SecretsPolicy, admit
from memshelf.errors import MemoryStoreError

__all__ = ["admitted_text", "validate_record_text"]


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


def admitted_text(text: str, *, max_chars: int, secrets: SecretsPolicy) -> str:
    """The text to store: a valid one, as it is unless credentials in it are masked. Else `invalid_text`."""
    return admit(validate_record_text(text, max_chars=max_chars), secrets, subject="A record")
