"""Search by reading: the same matching for every store."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import regex as rx

from memshelf.errors import MemoryStoreError
from memshelf.files.model import FileText, GrepMatch

__all__ = ["EXCERPT_CHARS", "SECONDS", "Pattern", "search"]

EXCERPT_CHARS = 1_000
"""A longer matching line is shown as this many characters around the match, with an ellipsis where it was cut."""

SECONDS = 2.0
"""How long one search with a regular expression may take before it is refused as `invalid_pattern`."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. `literal` patterns can skip a file without splitting it into lines."""

    compiled: rx.Pattern[str]
    literal: bool

    @classmethod
    def compile(cls, pattern: str, *, regex: bool, case_sensitive: bool) -> Pattern:
        """`invalid_pattern` when it is empty or not a regular expression."""
        if not pattern:
            raise MemoryStoreError("invalid_pattern", "A pattern is not empty.")
        flags = 0 if case_sensitive else rx.IGNORECASE
        try:
            return cls(rx.compile(pattern if regex else rx.escape(pattern), flags), literal=not regex)
        except (rx.error, RecursionError, OverflowError, MemoryError) as error:
            raise MemoryStoreError(
                "invalid_pattern", f"The pattern is not a valid regular expression: {error}."
            ) from None


def search(files: Iterable[FileText], pattern: Pattern, limit: int) -> tuple[list[GrepMatch], bool]:
    """At most `limit` matching lines, in the order of `files`, and whether there are more.

    Blocks for up to `SECONDS`: call it off the event loop. Lines end at `\\n`; a `\\r` before it is not part of them.
    """
    deadline = time.monotonic() + SECONDS
    found: list[GrepMatch] = []
    for file in files:
        for match in _matches(file, pattern, deadline):
            if len(found) == limit:
                return found, True
            found.append(match)
    return found, False


def _matches(file: FileText, pattern: Pattern, deadline: float) -> Iterator[GrepMatch]:
    if pattern.literal and pattern.compiled.search(file.text) is None:
        return
    for number, line in enumerate(file.text.split("\n"), start=1):
        line = line.removesuffix("\r")
        match = _match(pattern, line, deadline)
        if match is not None:
            yield GrepMatch(file.path, number, _excerpt(line, *match.span()), file.version)


def _match(pattern: Pattern, line: str, deadline: float) -> rx.Match[str] | None:
    if pattern.literal:
        return pattern.compiled.search(line)
    try:
        # The matcher checks the clock itself and lets other threads run meanwhile, so no pattern can hang the process.
        return pattern.compiled.search(line, timeout=max(deadline - time.monotonic(), 0.001), concurrent=True)
    except (TimeoutError, MemoryError):
        raise MemoryStoreError(
            "invalid_pattern", f"The pattern took over {SECONDS:g} seconds to match. Use a simpler one, or plain text."
        ) from None


def _excerpt(line: str, start: int, end: int) -> str:
    if len(line) <= EXCERPT_CHARS:
        return line
    left = max(0, min(start - (EXCERPT_CHARS - min(end - start, EXCERPT_CHARS)) // 2, len(line) - EXCERPT_CHARS))
    cut = line[left : left + EXCERPT_CHARS]
    return f"{'…' if left else ''}{cut}{'…' if left + EXCERPT_CHARS < len(line) else ''}"
