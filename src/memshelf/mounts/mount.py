"""A store mounted in a session, as pure functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from memshelf.errors import MemoryStoreError
from memshelf.limits import StoreLimits

__all__ = ["MountAccess", "StoreMount", "mount_path", "require_mountable"]

MountAccess: TypeAlias = Literal["read_write", "read_only"]

_ROOT = "/mnt/memory"
_TAIL = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreMount:
    """A store as a session sees it. Name and description, and so the path, are those of the time it was mounted."""

    store_id: str
    access: MountAccess
    instructions: str | None
    name: str
    description: str
    path: str


def mount_path(name: str, store_id: str) -> str:
    """Where a store is mounted: a directory whose name is made of the store's name, and the end of its id, so that
    stores of one name have different paths. Lower-case ASCII letters and digits, every run of anything else one `-`.
    """
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    return f"{_ROOT}/{slug or 'store'}-{store_id[-_TAIL:]}"


def require_mountable(store_ids: Sequence[str], limits: StoreLimits) -> None:
    """`invalid_value` for more stores than a session takes, or one that is named twice."""
    if len(store_ids) > limits.mounts:
        raise MemoryStoreError("invalid_value", f"resources: a session has at most {limits.mounts} memory stores.")
    if len(set(store_ids)) < len(store_ids):
        raise MemoryStoreError("invalid_value", "resources: a memory store is mounted once.")
