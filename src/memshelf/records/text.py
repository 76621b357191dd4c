"""What a record's text must be."""

from __future__ import annotations

from memshelf.credentials import SecretsPolicy, admit
from memshelf.errors import MemoryStoreError

__all__ = ["admitted_text", "is_blank", "validate_record_text"]


def validate_record_text(text: str, *, max_chars: int) -> str:
    """The text itself, byte for byte: 1 to `max_chars` characters, not blank, valid Unicode. Else `invalid_text`.

    What is no `str` is a `TypeError`.
    """
    if not isinstance(text, str):
        raise TypeError(f"A record's text is a str, not {type(text).__name__}.")
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


def is_blank(query: str) -> bool:
    """Whether a query asks for nothing. What is no `str` is a `TypeError`."""
    if not isinstance(query, str):
        raise TypeError(f"A query is a str, not {type(query).__name__}.")
    return not query.strip()


def admitted_text(text: str, *, max_chars: int, secrets: SecretsPolicy) -> str:
    """The text to store: a valid one, as it is unless credentials in it are masked. Else `invalid_text`."""
    return admit(validate_record_text(text, max_chars=max_chars), secrets, subject="A record")
