"""What differs between two texts, as rows to show. What it costs is bounded, whatever the texts are."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Literal

from memshelf.console.text import line_ends

__all__ = ["Difference", "Row", "compared"]

_AROUND = 3
_MOST_LINES = 1_000_000
"""The most pairs of lines that are compared; texts that differ in more are shown as one taken away, one added."""
_MOST_PARTS = 40_000
"""The same for the words of two lines."""
_MOST_ROWS = 3_000

_PARTS = re.compile(r"[^\W\u2e80-\U0003ffff]+|\s+|.", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Row:
    """A line that is on both sides, only before (`del`) or only after (`ins`); or `count` lines left out (`gap`).
    `parts` are its text, each with whether it is what changed. `unended` says that no line end follows."""

    kind: Literal["same", "del", "ins", "gap"]
    old: int = 0
    new: int = 0
    parts: Sequence[tuple[bool, str]] = ()
    unended: bool = False
    count: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    rows: Sequence[Row]
    added: int
    removed: int
    cut: bool
    """There are more rows than are shown."""


def compared(old: str, new: str) -> Difference:
    """The way from `old` to `new`, line by line, and by words in lines that were changed."""
    if line_ends(old) == line_ends(new) == "crlf":
        old, new = old.replace("\r\n", "\n"), new.replace("\r\n", "\n")
    before, after = _lines(old), _lines(new)
    rows: list[Row] = []
    added = removed = 0
    blocks = list(_blocks(before, after, _MOST_LINES))
    for number, (same, i1, i2, j1, j2) in enumerate(blocks):
        if same:
            rows += _context(before, i1, i2, j1, first=number == 0, last=number == len(blocks) - 1)
            continue
        removed += i2 - i1
        added += j2 - j1
        rows += _changed(before, after, i1, i2, j1, j2)
    return Difference(rows[:_MOST_ROWS], added, removed, len(rows) > _MOST_ROWS)


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    return [f"{each}\n" for each in lines[:-1]] + ([lines[-1]] if lines[-1] else [])


def _row(kind: Literal["same", "del", "ins"], line: str, old: int, new: int, parts: object = None) -> Row:
    text = line.removesuffix("\n")
    shown = parts if isinstance(parts, list) else [(False, text)]
    return Row(kind, old, new, shown, unended=kind != "same" and not line.endswith("\n"))


def _context(lines: Sequence[str], i1: int, i2: int, j1: int, *, first: bool, last: bool) -> Iterator[Row]:
    """Lines that stayed: those next to a change."""
    head = 0 if first else _AROUND
    tail = 0 if last else _AROUND
    if i2 - i1 <= head + tail + 1:
        head, tail = i2 - i1, 0
    for at in range(i1, i1 + head):
        yield _row("same", lines[at], at + 1, j1 + at - i1 + 1)
    if gap := i2 - i1 - head - tail:
        yield Row("gap", count=gap)
    for at in range(i2 - tail, i2):
        yield _row("same", lines[at], at + 1, j1 + at - i1 + 1)


def _changed(before: Sequence[str], after: Sequence[str], i1: int, i2: int, j1: int, j2: int) -> Iterator[Row]:
    taken: list[Row] = []
    given: list[Row] = []
    paired = i2 - i1 == j2 - j1 <= 100
    for at in range(i1, i2):
        parts = _words(before[at], after[j1 + at - i1]) if paired else (None, None)
        taken.append(_row("del", before[at], at + 1, 0, parts[0]))
        if paired:
            given.append(_row("ins", after[j1 + at - i1], 0, j1 + at - i1 + 1, parts[1]))
    if not paired:
        given = [_row("ins", after[at], 0, at + 1) for at in range(j1, j2)]
    yield from taken
    yield from given


def _words(old: str, new: str) -> tuple[list[tuple[bool, str]] | None, list[tuple[bool, str]] | None]:
    """The parts of two lines, with what changed; `None` when hardly anything stayed."""
    before, after = _PARTS.findall(old.removesuffix("\n")), _PARTS.findall(new.removesuffix("\n"))
    left: list[tuple[bool, str]] = []
    right: list[tuple[bool, str]] = []
    kept = 0
    for same, i1, i2, j1, j2 in _blocks(before, after, _MOST_PARTS):
        text = "".join(before[i1:i2])
        left.append((not same, text))
        right.append((not same, "".join(after[j1:j2])))
        kept += len(text) if same else 0
    if kept * 4 < max(len(old), len(new)):
        return None, None
    return [each for each in left if each[1]], [each for each in right if each[1]]


def _blocks(before: Sequence[str], after: Sequence[str], most: int) -> Iterator[tuple[bool, int, int, int, int]]:
    """Ranges that are the same on both sides, and those that differ, in order."""
    start = 0
    shorter = min(len(before), len(after))
    while start < shorter and before[start] == after[start]:
        start += 1
    end = 0
    while end < shorter - start and before[-1 - end] == after[-1 - end]:
        end += 1
    old_end, new_end = len(before) - end, len(after) - end
    if start:
        yield True, 0, start, 0, start
    if (old_end - start) * (new_end - start) <= most:
        # What is frequent is left out where it would take long, which is the default.
        matcher = SequenceMatcher(None, before[start:old_end], after[start:new_end])
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            yield tag == "equal", start + i1, start + i2, start + j1, start + j2
    else:
        yield False, start, old_end, start, new_end
    if end:
        yield True, old_end, len(before), new_end, len(after)
