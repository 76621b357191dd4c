"""The one error that memshelf's stores and tools raise.

::

    MemoryStoreError
    ├── the request can never succeed as it stands
    │   invalid_path       the path is not a canonical relative path, or the system refuses the name
    │   invalid_file       the content is not UTF-8 text, or its frontmatter is malformed
    │   invalid_pattern    the search pattern does not compile, or took too long to match
    │   too_large          the content is over the size limit
    │   forbidden          the mount is read-only, or a tool call was replayed with other arguments
    │   unknown_memory     no memory of that name is mounted
    │   invalid_text       a record's text is empty, too long or not UTF-8
    │   invalid_cursor     a listing cursor is not one of this store's
    │   invalid_value      a name, description, metadata, filter or another field is not as it must be
    ├── the memory moved on; read `current` and decide again
    │   not_found                    the file does not exist
    │   already_exists               a file is in the way: at the path, above it or below it
    │   version_mismatch             the file is no longer at the version that was expected
    │   no_match                     the text to replace does not occur
    │   ambiguous_match              the text to replace occurs more than once
    │   conflict_retries_exhausted   other writers kept getting in between
    │   record_not_found             the record does not exist in this namespace
    │   conflict                     the state of a store, version or session does not allow it now
    │   store_archived               the store is archived: it can be read, and nothing can be written or mounted
    └── the store could not do it now
        unavailable        the system refused (no space, permission, I/O); nothing changed
        memory_full        the memory holds as many files as it may
        memory_deleted     the memory was deleted
        write_unconfirmed  the write may or may not have happened; search before writing again
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from memshelf.files.model import FileText

__all__ = ["ErrorCode", "MemoryStoreError"]

ErrorCode: TypeAlias = Literal[
    "invalid_path",
    "invalid_file",
    "invalid_pattern",
    "too_large",
    "forbidden",
    "unknown_memory",
    "invalid_text",
    "invalid_cursor",
    "invalid_value",
    "not_found",
    "already_exists",
    "version_mismatch",
    "no_match",
    "ambiguous_match",
    "conflict_retries_exhausted",
    "record_not_found",
    "conflict",
    "store_archived",
    "unavailable",
    "memory_full",
    "memory_deleted",
    "write_unconfirmed",
]


class MemoryStoreError(Exception):
    """A store or a tool refused an operation, or could not complete it.

    `code` is one of `ErrorCode` (the tree is in this module's docstring). Unless the code is
    `write_unconfirmed`, nothing changed.

    `current` is the file as it is now: for `version_mismatch` the file at the path (`None` when it is gone),
    for `already_exists` the file in the way, for the refusals of the edit tools the file they looked at.
    It is `None` for every other code.
    """

    def __init__(self, code: ErrorCode, message: str, *, current: FileText | None = None) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.message = message
        self.current = current

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.code, self.message, self.current)


def _restore(code: ErrorCode, message: str, current: FileText | None) -> MemoryStoreError:
    return MemoryStoreError(code, message, current=current)
