"""What stands at a path, looked up for several scripts at once: see `Transaction.fetch_keyed`."""

from __future__ import annotations

from memshelf.files.backends.sql.rows import LIVE_FIELDS
from memshelf.files.decide import ancestors
from memshelf.storage.transaction import Keyed, Transaction

__all__ = ["LIVE_FILE", "forget_free", "obstacles"]

LIVE_FILE = (
    f"SELECT {LIVE_FIELDS} FROM files f "  # noqa: S608  # no value
    "JOIN file_versions v ON v.id = f.version_id WHERE f.memory_id = $1 AND f.path {key}"
)
"""The file at a path."""

_OBSTACLE = (
    "SELECT CAST({value} AS TEXT) WHERE "
    "(SELECT f.path FROM files f WHERE f.memory_id = $1 AND f.path = rtrim({value}, '/')) IS NOT NULL OR "
    "(SELECT f.path FROM files f WHERE f.memory_id = $1 AND f.path > {value} AND f.path < rtrim({value}, '/') || '0' "
    "ORDER BY f.path LIMIT 1) IS NOT NULL"
)
"""For `Transaction.finds_nothing`: a file at or below a directory. "0" follows "/": between them lies what is below."""


def obstacles(path: str) -> list[Keyed]:
    """What `Memory.free` looks up."""
    return [(_OBSTACLE, (f"{path}/",)), *((LIVE_FILE, (above,)) for above in ancestors(path))]


def forget_free(transaction: Transaction, path: str) -> None:
    """A file comes to a path that was free."""
    transaction.forget(path)
    for directory in (path, *ancestors(path)):
        transaction.forget(f"{directory}/")
