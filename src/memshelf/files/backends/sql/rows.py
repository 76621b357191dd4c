"""What rows of files and versions say: the columns to ask for, and what is made of them."""

from __future__ import annotations

from typing import Any, NamedTuple

from memshelf.files.chain import Facts, Stored
from memshelf.files.model import FileText, Version
from memshelf.origin import Origin
from memshelf.storage.ids import from_micros
from memshelf.storage.transaction import Row

__all__ = [
    "BASIC_FIELDS",
    "LIVE_FIELDS",
    "STORED_FIELDS",
    "VERSION_FIELDS",
    "Live",
    "live_of",
    "stored_of",
    "text_of",
    "version_of",
]

VERSION_FIELDS = (
    "seq, id, file_id, parent_id, operation, path, content, sha256, size, run_id, principal_id, tool_call_id, "
    "session_id, api_key_id, created_at, redacted_at, redacted_by"
)
"""What `version_of` makes a version of."""

BASIC_FIELDS = VERSION_FIELDS.replace("content", "NULL")
"""The same without its content."""

STORED_FIELDS = (
    "id, seq, file_id, parent_id, operation, moved, created_at, commitment, link, path, content, sha256, size, salt, "
    "redacted_at, run_id, principal_id, tool_call_id, session_id, api_key_id"
)
"""What `stored_of` makes a version of that the chain is checked against."""

LIVE_FIELDS = "f.path, f.version_id, f.file_id, f.size, f.description, f.created_at, v.created_at, v.sha256, v.content"
"""A file `f` as it stands, and the version `v` of that: what `live_of` makes a `Live` of."""


class Live(NamedTuple):
    """A file as it stands now."""

    file: FileText
    file_id: str
    size: int
    description: str | None
    created_at: int
    changed_at: int
    sha256: str


def text_of(stored: bytes | None) -> str | None:
    return stored.decode() if stored is not None else None


def live_of(row: Row | None) -> Live | None:
    """`None` for no row, and for one of a join that found no file."""
    if row is None or row[0] is None:
        return None
    path, version_id, file_id, size, description, created_at, changed_at, sha256, content = row
    file = FileText(path, content.decode(), version_id)
    return Live(file, file_id, size, text_of(description), created_at, changed_at, sha256)


def version_of(row: Row) -> Version:
    (_, id, file_id, parent_id, operation, path, content, sha256, size, *origin, created_at, redacted_at, by) = row
    return Version(
        id=id,
        file_id=file_id,
        parent_id=parent_id,
        operation=operation,
        path=path,
        text=text_of(content),
        sha256=sha256,
        size=size,
        origin=Origin(*origin),
        created_at=from_micros(created_at),
        redacted_at=from_micros(redacted_at) if redacted_at is not None else None,
        redacted_by=by,
    )


def stored_of(
    id: str,
    seq: int,
    file_id: str,
    parent_id: str | None,
    operation: Any,  # the table holds it to the three words
    moved: int,
    created_at: int,
    commitment: bytes,
    link: bytes,
    path: str | None,
    content: bytes | None,
    sha256: str | None,
    size: int | None,
    salt: bytes | None,
    redacted_at: int | None,
    *origin: str | None,
) -> Stored:
    facts = Facts(
        id=id,
        seq=seq,
        file_id=file_id,
        parent_id=parent_id,
        operation=operation,
        moved=bool(moved),
        origin=Origin(*origin),
        created_at=created_at,
        commitment=commitment,
    )
    return Stored(
        facts=facts,
        link=link,
        path=path,
        content=content,
        sha256=sha256,
        size=size,
        salt=salt,
        redacted=redacted_at is not None,
    )
