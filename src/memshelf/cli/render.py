"""What a command prints: one JSON document for programs, or text for a person.

Content goes out byte for byte when it is piped. What stands in a listing, and everything on a terminal, has its
control characters escaped: memory is written by many hands, and none of them may steer the reader's terminal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from click._termui_impl import ProgressBar

__all__ = [
    "columns",
    "counted",
    "document",
    "empty",
    "line",
    "note",
    "on_terminal",
    "paint",
    "present",
    "progress",
    "show",
    "table",
    "visible",
    "visible_line",
]

# C0 without tab and newline, DEL, C1, direction marks and overrides, line separators, lone surrogates.
_UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

_LEAST_ROOM = 16


def on_terminal() -> bool:
    """Whether a person is looking at standard output."""
    return sys.stdout.isatty()


def _colours() -> bool:
    return on_terminal() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str | None) -> str:
    """`text` in a colour, where colours are shown."""
    return click.style(text, fg=colour) if colour is not None and _colours() else text


def visible(text: str) -> str:
    """Text of several lines for a terminal: every control character but tab and line end is shown escaped."""
    return _UNSAFE.sub(_escaped, text.replace("\r\n", "\n"))


def visible_line(text: str) -> str:
    """Text for one line of a listing."""
    return _UNSAFE.sub(_escaped, text).replace("\t", "\\t").replace("\n", "\\n")


def _escaped(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode()


def document(value: object) -> None:
    """Print one JSON document. It is UTF-8, and safe to look at on a terminal."""
    text = json.dumps(value, ensure_ascii=False, indent=2 if on_terminal() else None)
    click.echo(_UNSAFE_IN_JSON.sub(lambda match: f"\\u{ord(match.group()):04x}", text))


def show(text: str) -> None:
    """Print content: byte for byte when piped, escaped and with a line end on a terminal."""
    if on_terminal():
        text = visible(text)
        click.echo(text, nl=not text.endswith("\n"))
    else:
        click.echo(text.encode(errors="surrogatepass"), nl=False)


def line(text: str) -> None:
    """Print one line of a listing or a report."""
    click.echo(text, color=_colours())


def note(text: str) -> None:
    """Tell the person at the terminal something that is no part of the result, on standard error."""
    click.echo(text, err=True)


def empty(said: str) -> None:
    """Tell a person at a terminal, and no program, that a listing has no lines."""
    if on_terminal():
        note(said)


def counted(count: int, what: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def present(count: int) -> str:
    """How an import counts what it did not add: `1 was there already`."""
    return f"{count} {'was' if count == 1 else 'were'} there already"


@contextmanager
def progress(label: str) -> Iterator[Callable[[int, int], None]]:
    """What to call with how much is done, and of how much: a bar on standard error, if a person is looking at it. Work
    that is done with the first call has none."""
    with ExitStack() as stack:
        bars: list[ProgressBar[int]] = []

        def show(done: int, every: int) -> None:
            if not bars and done < every and sys.stderr.isatty():
                bars.append(stack.enter_context(click.progressbar(length=every, label=label, file=sys.stderr)))
            for bar in bars:
                bar.length = every
                bar.update(done - bar.pos)

        yield show


def columns(text: str) -> int:
    """The columns that `text` takes on a terminal: wide characters take two, combining ones none."""
    return sum(map(_columns, text))


def _columns(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def table(
    rows: Sequence[Sequence[str]],
    *,
    header: Sequence[str] = (),
    right: Sequence[int] = (),
    whole: bool = False,
    nothing: str = "",
) -> None:
    """Print rows: aligned under a header on a terminal, else separated by tabs, without a header. Where there are none,
    a person at a terminal is told `nothing`.

    The columns numbered in `right` are aligned to the right. On a terminal the last column is cut to what its width
    leaves, but not to next to nothing, and that is said; unless it is wanted `whole`.
    """
    rows = [[visible_line(cell) for cell in row] for row in rows]
    if not on_terminal():
        for row in rows:
            line("\t".join(row))
        return
    if not rows:
        empty(nothing)
        return
    widths = [max(map(columns, column)) for column in zip(header, *rows, strict=True)]
    widest = widths[-1]
    room = shutil.get_terminal_size().columns - sum(widths[:-1]) - 2 * (len(widths) - 1)
    if not whole:
        widths[-1] = min(widths[-1], max(room, _LEAST_ROOM))
    for number, row in enumerate([header, *rows]):
        cells = [_padded(_cut(cell, widths[at]), widths[at], right=at in right) for at, cell in enumerate(row)]
        text = "  ".join(cells).rstrip()
        line(paint(text, "bright_black") if number == 0 else text)
    if widths[-1] < widest:
        note("Long texts are cut; --json has all of them.")


def _padded(text: str, width: int, *, right: bool) -> str:
    space = " " * (width - columns(text))
    return space + text if right else text + space


def _cut(text: str, width: int) -> str:
    if columns(text) <= width:
        return text
    taken = 0
    for at, char in enumerate(text):
        taken += _columns(char)
        if taken >= width:
            return f"{text[:at]}…"
    return text
