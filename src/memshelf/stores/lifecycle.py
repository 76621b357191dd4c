"""What may happen to a store and to a session in the state that it is in, as pure functions. Refusals are raised."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from memshelf.errors import MemoryStoreError

__all__ = [
    "SessionStatus",
    "holds_stores",
    "require_changeable",
    "require_session_changeable",
    "require_session_open",
    "require_unused",
    "require_writable",
]

SessionStatus: TypeAlias = Literal["rescheduling", "running", "idle", "terminated"]


def require_writable(archived_at: object | None) -> None:
    """A store takes new and changed memories until it is archived. Deleting memories and redacting versions go on."""
    if archived_at is not None:
        raise MemoryStoreError("store_archived", "The memory store is archived: its memories can no longer be changed.")


def require_changeable(archived_at: object | None) -> None:
    """A store's own fields change until it is archived."""
    if archived_at is not None:
        raise MemoryStoreError("store_archived", "The memory store is archived: it can no longer be changed.")


def holds_stores(status: SessionStatus, archived_at: object | None) -> bool:
    """Whether a session keeps the stores that it may write to from being archived and deleted."""
    return archived_at is None and status in ("running", "rescheduling")


def require_unused(action: Literal["archived", "deleted"], session_ids: Sequence[str]) -> None:
    """A store is not archived or deleted under a session that may still write to it."""
    if session_ids:
        named = ", ".join(session_ids)
        raise MemoryStoreError(
            "conflict",
            f"The memory store cannot be {action} while running sessions hold it read_write; archive or end them "
            f"first: {named}.",
        )


def require_session_changeable(archived_at: object | None) -> None:
    """A session's own fields change until it is archived, also after it has ended."""
    if archived_at is not None:
        raise MemoryStoreError("conflict", "The session is archived: it can no longer be changed.")


def require_session_open(status: SessionStatus, archived_at: object | None, target: SessionStatus) -> None:
    """A session moves between running, rescheduling and idle, and from each of them to terminated, which is final.
    An archived session stays as it is; setting the status that already stands is always allowed."""
    if status == target:
        return
    if archived_at is not None:
        raise MemoryStoreError("conflict", "The session is archived: its status no longer changes.")
    if status == "terminated":
        raise MemoryStoreError("conflict", "The session is terminated: its status no longer changes.")
