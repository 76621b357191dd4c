"""The sessions of a directory, each at a glance."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from memshelf.errors import MemoryStoreError
from memshelf.storage.journal import Journal
from memshelf.threads.rows import decode, session_name, texts

__all__ = ["SessionInfo", "inspect"]

_LOG = logging.getLogger(__name__)
_ENDING = ".jsonl"
_PREVIEW_CHARS = 120
_PREVIEW_LINES = 50
_RENAMED = b'"renamed"'


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionInfo:
    """One session: `name` is what `rename` gave it, `preview` how the user began, `updated_at` when its file changed,
    and `size` how many bytes that has."""

    session_id: str
    name: str | None
    preview: str
    updated_at: datetime
    size: int


def inspect(directory: str) -> list[SessionInfo]:
    """What is no session is left out, as is one that disappears meanwhile. One that cannot be read has no preview.
    `unavailable`."""
    try:
        with os.scandir(directory) as entries:
            found = [info for entry in entries if (info := _info(entry)) is not None]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise MemoryStoreError("unavailable", f"{directory}: {error.strerror}.") from error
    return sorted(found, key=lambda info: (info.updated_at, info.session_id), reverse=True)


def _info(entry: os.DirEntry[str]) -> SessionInfo | None:
    session_id = entry.name.removesuffix(_ENDING)
    try:
        if (
            session_id == entry.name
            or session_name(session_id) != session_id
            or not entry.is_file(follow_symlinks=False)
        ):
            return None
        status = entry.stat(follow_symlinks=False)
    except (MemoryStoreError, FileNotFoundError):
        return None
    name, preview = None, ""
    try:
        with Journal(entry.path, durable=False).reading() as lines:
            name = _name(lines.backwards())
            preview = _preview(lines.forwards())
    except MemoryStoreError as error:
        _LOG.warning("Session %s is listed without what is in it: %s", session_id, error.message)
    return SessionInfo(
        session_id=session_id,
        name=name,
        preview=preview,
        updated_at=datetime.fromtimestamp(status.st_mtime, UTC),
        size=status.st_size,
    )


def _name(lines: Iterable[bytes]) -> str | None:
    for line in lines:
        row = decode(line) if _RENAMED in line else None
        if row is not None and row.get("event") == "renamed" and isinstance(row.get("name"), str):
            return str(row["name"])
    return None


def _preview(lines: Iterable[bytes]) -> str:
    for _, line in zip(range(_PREVIEW_LINES), lines, strict=False):
        row = decode(line)
        if (
            row is not None
            and row["type"] == "user"
            and (said := " ".join(" ".join(texts(row.get("content"))).split()))
        ):
            return said if len(said) <= _PREVIEW_CHARS else f"{said[: _PREVIEW_CHARS - 1]}…"
    return ""
