"""How what is stored is shown: as text, with what hides in it made visible."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Literal, TypeAlias
from urllib.parse import quote

from markupsafe import Markup, escape

__all__ = [
    "LineEnds",
    "hidden",
    "line_ends",
    "moment",
    "path_query",
    "shown",
    "size",
    "tail",
    "times",
    "with_line_ends",
]

# Controls, soft hyphen, fillers, direction, zero width, separators, variation selectors but the one of emoji, tags,
# halves of surrogate pairs: what is not seen misleads.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]"
)
_LINE = re.compile(f"{_HIDDEN.pattern[:-1]}\t\n]")
_NAMES = {"\t": "\\t", "\n": "\\n", "\r": "\\r"}


def shown(text: str, *, lines: bool = False) -> Markup:
    """Text as HTML, with each invisible character as a marked escape; with `lines`, line ends and tabs stay."""
    pattern = _HIDDEN if lines else _LINE
    if lines:
        text = text.replace("\r\n", "\n") if line_ends(text) == "crlf" else text
    parts: list[Markup] = []
    at = 0
    for found in pattern.finditer(text):
        char = found.group()
        name = _NAMES.get(char, f"U+{ord(char):04X}")
        parts += (escape(text[at : found.start()]), Markup('<span class="hidden-char">{}</span>').format(name))
        at = found.end()
    parts.append(escape(text[at:]))
    return Markup("").join(parts)


def hidden(text: str) -> list[str]:
    """The names of the invisible characters in a text, each once: a field to type in cannot mark them."""
    return list(dict.fromkeys(f"U+{ord(char):04X}" for char in _HIDDEN.findall(text) if char != "\r"))


LineEnds: TypeAlias = Literal["lf", "crlf", "mixed"]


def line_ends(text: str) -> LineEnds:
    """How the lines of a text end. A form keeps none but one kind of line end, so that `mixed` ones would be lost."""
    pairs = text.count("\r\n")
    if pairs == 0 and "\r" not in text:
        return "lf"
    return "crlf" if pairs == text.count("\n") == text.count("\r") else "mixed"


def with_line_ends(typed: str, before: str) -> str:
    """What was typed, with line ends as the text had them before."""
    kind = line_ends(before)
    if kind == "mixed" and typed == before.replace("\r\n", "\n").replace("\r", "\n"):
        return before  # nothing was changed
    return typed.replace("\n", "\r\n") if kind == "crlf" else typed


def size(count: int) -> str:
    """A number of bytes for a person."""
    return f"{count:,} B" if count < 10_240 else f"{count / 1024:,.1f} KiB"


def times(text: str) -> Markup:
    """A time of the API, in UTC to the second, with the whole of it in the title."""
    return Markup('<time datetime="{}" title="{}">{}</time>').format(text, text, text[:19].replace("T", " "))


def moment(typed: str) -> str | None:
    """The time that a field holds, in UTC, as the API wants it; `None` for nothing or no time."""
    try:
        time = datetime.fromisoformat(typed.strip())
        return (time if time.tzinfo is not None else time.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    except (ValueError, OverflowError):  # in UTC, it may be before the first year or after the last
        return None


def tail(id: str) -> str:
    """How a long id is shown where its kind is clear: by its end, which differs."""
    return id if len(id) <= 16 else f"…{id[-8:]}"


def path_query(**values: object) -> str:
    """A query of the parameters that say something."""
    return "&".join(f"{name}={quote(str(value), safe='')}" for name, value in values.items() if value not in (None, ""))
