"""Index lines and change lists, in byte-wise path order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from memshelf.files.context.render import cost, costs_within, pointer
from memshelf.files.model import FileEntry
from memshelf.untrusted import size

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
    beside = [(parent, list(files)) for parent, files in groupby(entries, _parent)]
    for depth in range(max((parent.count("/") for parent, _ in beside), default=0) - 1, -1, -1):
        # Counted before they are put in order: what is far over the budget costs no more than what fits.
        within = costs_within((line for _, line in _collapsed(beside, depth)), budget) <= budget
        if within or depth == 0:
            found = sorted(_collapsed(beside, depth), key=lambda each: each[0].encode())
            shown = [line for _, line in found]
        if within:
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


def _collapsed(beside: Sequence[tuple[str, list[FileEntry]]], depth: int) -> Iterator[tuple[str, str]]:
    """Files below `depth` directories become one line for their directory, such as `archive/ (37 files)`.

    `beside` are files that stand one after the other in one directory, with its path. Each line comes with what it is
    sorted by.
    """

    def directory(files: tuple[str, list[FileEntry]]) -> str | None:
        names = files[0].split("/", depth + 1)
        return f"{'/'.join(names[:-1])}/" if len(names) > depth + 1 else None

    for name, group in groupby(beside, directory):
        if name is None:
            yield from ((entry.path, _line(entry)) for _, files in group for entry in files)
        else:
            count = sum(len(files) for _, files in group)
            yield name, f"{name} ({count} file{'' if count == 1 else 's'})"


def _parent(entry: FileEntry) -> str:
    return entry.path[: entry.path.rfind("/") + 1]


def _byte_wise(path: str) -> bytes:
    return path.encode()
