"""What a store, a memory and a request for a change must be like, as pure functions. Refusals are raised."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Final

from memshelf.errors import MemoryStoreError
from memshelf.limits import StoreLimits
from memshelf.untrusted import is_sound

__all__ = [
    "KEEP",
    "Keep",
    "checked_content",
    "checked_description",
    "checked_instructions",
    "checked_metadata",
    "checked_name",
    "checked_path",
    "checked_prefix",
    "patched_metadata",
    "wire_path",
]

_RESERVED = "/.anthropic-memory-store"
_SEPARATORS = "\u2028\u2029"


class Keep:
    """The type of `KEEP`: a field that an update leaves as it is."""


KEEP: Final = Keep()


def checked_name(name: str, limits: StoreLimits) -> str:
    """`invalid_value` for a name that is empty, too long, or has control characters."""
    _require_text("name", name, limits.name_chars)
    if not name:
        raise MemoryStoreError("invalid_value", "name: it is not empty.")
    if any(unicodedata.category(char) == "Cc" for char in name):
        raise MemoryStoreError("invalid_value", "name: it has no control characters.")
    return name


def checked_description(description: str, limits: StoreLimits) -> str:
    return _require_text("description", description, limits.description_chars)


def checked_instructions(instructions: str | None, limits: StoreLimits) -> str | None:
    if instructions is None:
        return None
    return _require_text("instructions", instructions, limits.instructions_chars)


def checked_metadata(metadata: Mapping[str, str], limits: StoreLimits) -> dict[str, str]:
    if len(metadata) > limits.metadata_pairs:
        raise MemoryStoreError("invalid_value", f"metadata: it has at most {limits.metadata_pairs} pairs.")
    for key, value in metadata.items():
        if not key:
            raise MemoryStoreError("invalid_value", "metadata: a key is not empty.")
        _require_text("metadata: a key", key, limits.metadata_key_chars)
        _require_text("metadata: a value", value, limits.metadata_value_chars)
    return dict(metadata)


def patched_metadata(
    metadata: Mapping[str, str], patch: Mapping[str, str | None] | Keep | None, limits: StoreLimits
) -> dict[str, str]:
    """`metadata` with the keys of `patch` set, or removed where it says `None`, all of them for `None` as a whole; the
    limits hold for the result."""
    if patch is None or isinstance(patch, Keep):
        return {} if patch is None else dict(metadata)
    merged: dict[str, str | None] = {**metadata, **patch}
    return checked_metadata({key: value for key, value in merged.items() if value is not None}, limits)


def _require_text(field: str, text: str, most: int) -> str:
    if len(text) > most:
        raise MemoryStoreError("invalid_value", f"{field}: it has at most {most} characters, not {len(text)}.")
    if "\0" in text or not is_sound(text):
        raise MemoryStoreError("invalid_value", f"{field}: it is Unicode text, without NUL and lone surrogates.")
    return text


def wire_path(file_path: str) -> str:
    """The path of a memory, from the path of its file."""
    return f"/{file_path}"


def checked_path(path: str, limits: StoreLimits) -> str:
    """The path of the file that a memory's path names; `invalid_path` for one that no memory can have.

    A path is in NFC, starts with `/`, and has 1 to `path_segments` segments, none of them empty, `.` or `..`, in at
    most `path_bytes` bytes; no control or format characters, and no line or paragraph separators. The name of the
    marker that clients keep beside a store's files is reserved.
    """
    _check_segments("path", path, limits)
    if path == _RESERVED or path.startswith(f"{_RESERVED}/"):
        raise MemoryStoreError("invalid_path", f"path: {_RESERVED} is reserved for the clients' own marker.")
    return path[1:]


def checked_prefix(prefix: str, limits: StoreLimits) -> str:
    """The directory that a prefix of memory paths names: `""` for `/`, else the path of a file and a `/`."""
    if prefix == "/":
        return ""
    if not prefix.endswith("/"):
        raise MemoryStoreError("invalid_path", 'path_prefix: it is "/", or starts and ends with "/".')
    _check_segments("path_prefix", prefix[:-1], limits)
    return prefix[1:]


def _check_segments(field: str, path: str, limits: StoreLimits) -> None:
    if not is_sound(path):
        raise MemoryStoreError("invalid_path", f"{field}: it is valid Unicode, without lone surrogates.")
    if (size := len(path.encode())) > limits.path_bytes:
        raise MemoryStoreError("invalid_path", f"{field}: it has at most {limits.path_bytes} bytes, not {size}.")
    if not path.startswith("/"):
        raise MemoryStoreError("invalid_path", f'{field}: it starts with "/", such as /notes/tea.md.')
    segments = path[1:].split("/")
    if len(segments) > limits.path_segments:
        raise MemoryStoreError(
            "invalid_path", f"{field}: it has at most {limits.path_segments} segments, not {len(segments)}."
        )
    if any(segment in ("", ".", "..") for segment in segments):
        raise MemoryStoreError("invalid_path", f'{field}: it has no empty, "." or ".." segments.')
    if any(char in _SEPARATORS or unicodedata.category(char) in ("Cc", "Cf") for char in path):
        raise MemoryStoreError(
            "invalid_path", f"{field}: it has no control or format characters and no line separators."
        )
    if not unicodedata.is_normalized("NFC", path):
        raise MemoryStoreError("invalid_path", f"{field}: it is in Unicode normalization form C (NFC).")


def checked_content(content: str, limits: StoreLimits) -> str:
    """`invalid_file` unless it is UTF-8 text without NUL; `too_large`. Nothing is normalized."""
    try:
        size = len(content.encode())
    except UnicodeEncodeError:
        raise MemoryStoreError("invalid_file", "content: it is UTF-8 text, without lone surrogates.") from None
    if size > limits.content_bytes:
        raise MemoryStoreError("too_large", f"content: it has at most {limits.content_bytes} bytes, not {size}.")
    if "\0" in content:
        raise MemoryStoreError("invalid_file", "content: it has no NUL characters.")
    return content
