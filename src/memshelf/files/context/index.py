"""Index lines and change lists, in byte-wise path order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from memshelf.files.context.render import cost, costs_within, pointer, size
from memshelf.files.model import FileEntry

__all__ = ["changes", "fit", "lines", "more_cost"]


def lines(entries: Sequence[FileEntry]) -> Iterator[str]:
    """`path: description`, or the path alone."""
    return map(_line, entries)


def changes(paths: Sequence[str], entries: Sequence[FileEntry]) -> list[str]:
    """The index line of each changed path; one that is gone is marked."""
    current = {entry.path: entry for entry in entries}
    return [
        _line(current[path]) if path in current else f"{path} (deleted)" for path in sorted(set(paths), key=_byte_wise)
    ]


def fit(memory: str, entries: Sequence[FileEntry], budget: int) -> tuple[list[str], str | None]:
    """The index within `budget` bytes: directories collapse, the deepest first; then it is cut, with a pointer."""
    if costs_within(lines(entries), budget) <= budget:
        return list(lines(entries)), None
    shown: list[str] = []
    for depth in range(max((entry.path.count("/") for entry in entries), default=0) - 1, -1, -1):
        shown = _collapsed(entries, depth)
        if costs_within(shown, budget) <= budget:
            return shown, None
    shown = shown or list(lines(entries))
    room = budget - more_cost(memory, len(shown))
    kept = 0
    for line in shown:
        room -= cost(line)
        if room < 0:
            break
        kept += 1
    return shown[:kept], pointer(memory, len(shown) - kept)


def more_cost(memory: str, count: int) -> int:
    """What the pointer to at most `count` entries adds to a body."""
    return size(',"more":') + cost(pointer(memory, count)) - 1 + len(" entries") - len(" entry")


def _line(entry: FileEntry) -> str:
    return f"{entry.path}: {entry.description}" if entry.description else entry.path


def _collapsed(entries: Sequence[FileEntry], depth: int) -> list[str]:
    """Files below `depth` directories become one line for their directory, such as `archive/ (37 files)`."""
    found: list[tuple[str, str]] = []
    for directory, group in groupby(entries, lambda entry: _directory(entry.path, depth)):
        if directory is None:
            found += ((entry.path, _line(entry)) for entry in group)
        else:
            count = sum(1 for _ in group)
            found.append((directory, f"{directory} ({count} file{'' if count == 1 else 's'})"))
    return [line for _, line in sorted(found, key=lambda each: each[0].encode())]


def _directory(path: str, depth: int) -> str | None:
    """The directory that stands for `path` when only `depth` levels of directories are open."""
    end = -1
    for _ in range(depth + 1):
        end = path.find("/", end + 1)
        if end < 0:
            return None
    return path[: end + 1]


def _byte_wise(path: str) -> bytes:
    return path.encode()
