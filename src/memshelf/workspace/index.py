"""MEMORY.md: one link a line to the entries written last, among whatever a person wrote there. Pure functions.

A row is a line `- [title](memory/file.md) — description` whose link leads to an entry. Every other line is a
person's, and is never changed. Over 200 lines or 25,000 bytes the oldest rows leave, first of all the first.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from urllib.parse import quote, unquote

from memshelf.workspace.entries import EntryInfo

__all__ = ["INDEX_BYTES", "INDEX_LINES", "listed_files", "living", "rebuilt", "updated"]

INDEX_LINES, INDEX_BYTES = 200, 25_000

_ROW = re.compile(r"\ufeff?[ \t]*[-*+][ \t]+\[(?:\\.|[^\\\[\]])*\]\((?:<([^<>\n]+)>|([^()\s]+))\)")
_SPECIAL = re.compile(r"([\\\[\]])")
_HOOK_CHARS = 200


def listed_files(text: str, under: str) -> list[str]:
    """The files that the rows lead to, in the order of the rows."""
    return [file for line in text.split("\n") if (file := _file(line, under)) is not None]


def updated(text: str, changes: Mapping[str, EntryInfo | None], under: str) -> str:
    """The index with the rows of some files removed, and new ones for those that have an entry, last."""
    lines = [line for line in _lines(text) if _file(line, under) not in changes]
    rows = [_row(entry, under) for entry in changes.values() if entry is not None]
    at = next((at for at in range(len(lines), 0, -1) if _file(lines[at - 1], under) is not None), len(lines))
    return _fitted([*lines[:at], *rows, *lines[at:]], under)


def rebuilt(text: str, entries: Iterable[EntryInfo], under: str) -> str:
    """The index with exactly the rows of these entries: those that it has stay where they are and as they are; the
    others come before the first of them, as older ones."""
    by_file = {entry.file: entry for entry in entries}
    seen: set[str] = set()
    lines = []
    for line in _lines(text):
        file = _file(line, under)
        if file is None or (file in by_file and file not in seen):
            lines.append(line)
        if file is not None:
            seen.add(file)
    missing = [_row(entry, under) for file, entry in by_file.items() if file not in seen]
    at = next((number for number, line in enumerate(lines) if _file(line, under) is not None), len(lines))
    return _fitted([*lines[:at], *missing, *lines[at:]], under)


def living(text: str, files: Collection[str], under: str) -> str:
    """The index without the rows of other files than these."""
    return "\n".join(line for line in text.split("\n") if (file := _file(line, under)) is None or file in files)


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []


def _fitted(lines: list[str], under: str) -> str:
    count, size = len(lines), len("\n".join(lines).encode()) + 1
    if count <= INDEX_LINES and size <= INDEX_BYTES:
        return "\n".join(lines) + "\n" if lines else ""
    kept: list[str] = []
    for at, line in enumerate(lines):
        if count <= INDEX_LINES and size <= INDEX_BYTES:
            kept += lines[at:]
            break
        if _file(line, under) is not None:
            count -= 1
            size -= len(line.encode()) + 1
        else:
            kept.append(line)
    return "\n".join(kept) + "\n" if kept else ""


def _row(entry: EntryInfo, under: str) -> str:
    title = _SPECIAL.sub(r"\\\1", entry.title)
    row = f"- [{title}]({_target(under + entry.file)})"
    return f"{row} — {entry.hook[:_HOOK_CHARS]}" if entry.hook else row


def _target(path: str) -> str:
    """A link that every Markdown reader follows, with letters of all languages as they are."""
    return "".join(
        character if character.isalnum() or character in "/_-.~" else quote(character, safe="") for character in path
    )


@lru_cache(maxsize=4_096)  # of an index, all lines but one are those of the time before
def _file(line: str, under: str) -> str | None:
    """The file that a row leads to, in the memory's directory; `None` for a line that is no row."""
    if "](" not in line or (match := _ROW.match(line)) is None:
        return None
    path = unquote(match[1] or match[2]).removeprefix("./")
    file = path.removeprefix(under)
    inside = path.startswith(under) and file.endswith(".md") and not {"", ".", ".."}.intersection(file.split("/"))
    return file if inside and "\\" not in file else None
