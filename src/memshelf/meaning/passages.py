"""Cutting a Markdown file into what can be found in it. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["CUT", "Passage", "called", "cut"]

CUT = 1
"""The version of everything below: vectors of passages that another one cut do not fit."""

_LONGEST = 600
_MOST = 2_000

_FENCE = re.compile(r"^\s*(```|~~~)")
_HEADING = re.compile(r"^ {0,3}#{1,6}\s+(.*?)\s*#*\s*$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d{1,9}[.)、])\s+(?:\[[ xX]\]\s+)?")
_RULE = re.compile(r"^\s*(?:[-*_=]\s*){3,}$")


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a file that begins in `line`, counted from 1. `text` is what stands there, without marks of lists;
    `heading` the nearest one above it, or what the file is called."""

    line: int
    text: str
    heading: str

    @property
    def whole(self) -> str:
        """What the passage is found by."""
        return f"{self.heading}: {self.text}" if self.heading else self.text


def cut(path: str, text: str, description: str | None) -> list[Passage]:
    """A file's passages: each paragraph and each item of a list. A long one is cut. A heading is a part of what stands
    below it, and a passage by itself when that is nothing. So is a description that the text does not begin with.

    Frontmatter is left out, which the description stands for. A file has 2,000 passages at most; what comes after them
    is not found.
    """
    name, found = called(path), list[Passage]()
    heading, empty, started, parts = name, 0, 0, list[str]()

    def end() -> None:
        nonlocal parts
        whole = " ".join(parts)
        found.extend(Passage(started, whole[at : at + _LONGEST], heading) for at in range(0, len(whole), _LONGEST))
        parts = []

    lines = text.split("\n")
    first, fenced = _after_frontmatter(lines), False
    for number, line in enumerate(lines[first:], start=first + 1):
        if len(found) > _MOST:
            break
        fence = _FENCE.match(line) is not None
        fenced ^= fence
        title = None if fenced else _HEADING.match(line)
        mark = fence or title or _RULE.match(line)
        stripped = "" if mark else _ITEM.sub("", line, count=1).strip()
        if not stripped or _ITEM.match(line):
            end()
        if title is not None:
            if empty:
                found.append(Passage(empty, heading, ""))
            heading, empty = title[1] or heading, number
        elif stripped:
            empty, started = 0, started if parts else number
            parts.append(stripped)
    end()
    if empty:
        found.append(Passage(empty, heading, ""))
    own = _HEADING.sub(r"\1", description or "")
    told = not own or any(own in (each.text, each.heading) or each.text.startswith(own) for each in found)
    if not told or not found:
        found.insert(0, Passage(1, own or name, name if own else ""))
    return found[:_MOST]


def called(path: str) -> str:
    """What a file is called, in words."""
    return re.sub(r"[/_\-.]+", " ", path.removesuffix(".md")).strip()


def _after_frontmatter(lines: list[str]) -> int:
    if lines[0].rstrip() != "---":
        return 0
    for at, line in enumerate(lines[1:], start=1):
        if line.rstrip() in ("---", "..."):
            return at + 1
    return 0
