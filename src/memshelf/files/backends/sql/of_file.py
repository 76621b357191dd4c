"""The versions of one file, the newest first, whatever else the history holds.

A file is named by a range that holds one id, and the order begins with that id. So only the index of versions by file
has the order, whatever an engine knows of the tables, and a page of a long history costs no more than a page: with an
equality, an engine may walk the whole history for the file, or read all of the file's versions to sort them.
"""

from __future__ import annotations

__all__ = ["AT_PATH", "NEWEST_FIRST", "newest", "of_file", "oldest"]

NEWEST_FIRST = "file_id DESC, seq DESC"

# SQLite keeps the order of a CROSS JOIN; it might else begin with all versions of the memory.
AT_PATH = (
    "(SELECT w.memory_id, w.seq FROM file_places p CROSS JOIN file_versions w WHERE p.memory_id = $1 AND p.path = $2 "
    "AND w.memory_id = p.memory_id AND (w.file_id, w.seq) >= (p.file_id, coalesce({least}, 0)) "
    "AND w.file_id <= p.file_id{where} ORDER BY +w.seq DESC LIMIT {most})"
)
"""The numbers of the newest versions of all files that stood at a path. `least` is what `newest` says of `p` with a
`skipped` of `most`: no file has more of them than that. `where` says more of the versions `w` of the place `p`."""


def of_file(mark: str) -> str:
    """That a version is one of the file whose id stands at the mark."""
    return f"file_id >= {mark} AND file_id <= {mark}"


def newest(row: str, *, before: str = "", where: str = "", skipped: int = 0) -> str:
    """The number of the newest version of the file that a row is of, after `skipped` newer ones; NULL if there are no
    more. Only those count with a number less than the one at the mark `before`; `where` says more of the versions
    `n`."""
    first = f"(n.file_id, n.seq) < ({row}.file_id, {before})" if before else f"n.file_id <= {row}.file_id"
    return (
        f"(SELECT n.seq FROM file_versions n WHERE n.memory_id = {row}.memory_id AND n.file_id >= {row}.file_id "  # noqa: S608  # names
        f"AND {first}{where} ORDER BY n.file_id DESC, n.seq DESC LIMIT 1 OFFSET {skipped})"
    )


def oldest(row: str, *, since: str, where: str = "") -> str:
    """The number of the oldest version of that file from the number at the mark `since` on."""
    return (
        f"(SELECT n.seq FROM file_versions n WHERE n.memory_id = {row}.memory_id AND n.file_id <= {row}.file_id "  # noqa: S608  # names
        f"AND (n.file_id, n.seq) >= ({row}.file_id, {since}){where} ORDER BY n.file_id, n.seq LIMIT 1)"
    )
