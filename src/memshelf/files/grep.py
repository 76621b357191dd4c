"""Search by reading: the same matching for every store."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import regex as rx

from memshelf.arguments import checked_argument
from memshelf.errors import MemoryStoreError
from memshelf.files.model import FileText, GrepMatch
from memshelf.limits import page_limit

__all__ = ["EXCERPT_CHARS", "PATTERN_CHARS", "SECONDS", "Allowance", "Pattern", "search"]

EXCERPT_CHARS = 1_000
"""A longer matching line is shown as this many characters around the match, with an ellipsis where it was cut."""

PATTERN_CHARS = 1_000
"""How long a pattern may be. A longer one could cost seconds a file, and no line is looked for by so much of it."""

SECONDS = 2.0
"""How long one search may match before it is refused as `invalid_pattern`; more text gets `_SECONDS_A_CHAR` more."""

_SECONDS_A_CHAR = 0.5e-6
_UNROLLED_ITEMS = 100_000

_ESCAPED = re.compile(r"\\.", re.DOTALL)
_NO_COUNT = re.compile(r"\\(?:[NPp]\{[^{}]*\}|.)|(\{)(?!(?:\d+|\d*,\d*)\})", re.DOTALL)
"""A brace that repeats nothing. To `regex` it allows for errors, so that `{d}` would find a line without it."""
_UNSUPPORTED = re.compile(r"\(\?(?:R|&|P>|[+-]?\d|[a-zA-Z01-]*x[a-zA-Z01-]*[:)])")
_REPEATED = re.compile(r"\{\s*(\d+)")
_SET = re.compile(r"\[\^?\]?[^\]]*\]")
_AFTER_SEVERAL = frozenset(")]}?*+")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A compiled pattern. `literal` patterns can skip a file without splitting it into lines."""

    compiled: rx.Pattern[str]
    literal: bool

    @classmethod
    def compile(cls, pattern: str, *, regex: bool, case_sensitive: bool) -> Pattern:
        """`invalid_pattern` when it is empty or too long, and as a regular expression when it is none, or one that
        would take much time or memory to compile: repeated too often, recursive, or verbose."""
        if not checked_argument("pattern", pattern, str):
            raise MemoryStoreError("invalid_pattern", "A pattern is not empty.")
        if len(pattern) > PATTERN_CHARS:
            raise MemoryStoreError("invalid_pattern", f"A pattern has at most {PATTERN_CHARS} characters.")
        if regex:
            pattern = _NO_COUNT.sub(lambda found: r"\{" if found[1] else found[0], pattern)
            _require_modest(pattern)
        flags = 0 if case_sensitive else rx.IGNORECASE
        try:
            # A cache would keep hundreds of patterns, each up to tens of megabytes.
            compiled = rx.compile(pattern if regex else rx.escape(pattern), flags, cache_pattern=False)
        except (rx.error, RecursionError, OverflowError, MemoryError) as error:
            raise MemoryStoreError(
                "invalid_pattern", f"The pattern is not a valid regular expression: {error}."
            ) from None
        return cls(compiled, literal=not regex)


def _require_modest(pattern: str) -> None:
    """The compiler writes out what `{n}` repeats, n times: a few characters could take all memory."""
    plain = _ESCAPED.sub("_", pattern)
    if _UNSUPPORTED.search(plain) is not None:
        raise MemoryStoreError("invalid_pattern", "A pattern does not call itself, and has no verbose flag.")
    sets = {each.end(): len(each[0]) for each in _SET.finditer(plain)}
    items, end = 0, 0
    for repeated in _REPEATED.finditer(plain):
        start = repeated.start()
        items += start - end
        # A group is taken for all that stands before it, so that its beginning need not be found.
        size = sets.get(start, items if plain[start - 1 : start] in _AFTER_SEVERAL else 1)
        items += size * (int(repeated[1][:9]) - 1)
        end = start
    if items > _UNROLLED_ITEMS:
        raise MemoryStoreError("invalid_pattern", "The pattern repeats too much. Use smaller numbers in its braces.")


class Allowance:
    """The time that one search may still spend on matching, over all the files that it reads."""

    def __init__(self) -> None:
        self._seconds = SECONDS

    def extend(self, chars: int) -> None:
        self._seconds += chars * _SECONDS_A_CHAR

    def match(self, pattern: rx.Pattern[str], text: str) -> rx.Match[str] | None:
        """The first match. `invalid_pattern` when there is no time left, or not enough memory."""
        if self._seconds <= 0:
            raise _too_slow()
        began = time.monotonic()
        try:
            # The matcher checks the clock itself and lets other threads run, so that no pattern can hang the process.
            return pattern.search(text, timeout=self._seconds, concurrent=True)
        except (TimeoutError, MemoryError):
            raise _too_slow() from None
        finally:
            self._seconds -= time.monotonic() - began


def _too_slow() -> MemoryStoreError:
    return MemoryStoreError("invalid_pattern", "The pattern takes too long to match. Use a simpler one, or plain text.")


def search(
    files: Iterable[FileText], pattern: Pattern, limit: int, allowance: Allowance | None = None
) -> tuple[list[GrepMatch], bool]:
    """At most `limit` matching lines, in the order of `files`, and whether there are more.

    Blocks for up to the `allowance`, which several calls may share: call it off the event loop. Lines end at `\\n`; a
    `\\r` before it is not part of them.
    """
    allowance, limit = allowance or Allowance(), page_limit(limit)
    found: list[GrepMatch] = []
    for file in files:
        for match in _matches(file, pattern, allowance):
            if len(found) == limit:
                return found, True
            found.append(match)
    return found, False


def _matches(file: FileText, pattern: Pattern, allowance: Allowance) -> Iterator[GrepMatch]:
    allowance.extend(len(file.text))
    if pattern.literal and allowance.match(pattern.compiled, file.text) is None:
        return
    # After the end of the last line there is no other one, which `^$` would find.
    for number, line in enumerate(file.text.removesuffix("\n").split("\n") if file.text else (), start=1):
        line = line.removesuffix("\r")
        if (match := allowance.match(pattern.compiled, line)) is not None:
            yield GrepMatch(file.path, number, _excerpt(line, *match.span()), file.version)


def _excerpt(line: str, start: int, end: int) -> str:
    if len(line) <= EXCERPT_CHARS:
        return line
    left = max(0, min(start - (EXCERPT_CHARS - min(end - start, EXCERPT_CHARS)) // 2, len(line) - EXCERPT_CHARS))
    cut = line[left : left + EXCERPT_CHARS]
    return f"{'…' if left else ''}{cut}{'…' if left + EXCERPT_CHARS < len(line) else ''}"
