"""The rows of a session log, and how one is a line of JSON."""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from memshelf.errors import MemoryStoreError

__all__ = [
    "Call",
    "Row",
    "RowType",
    "calls_of",
    "check_fields",
    "check_type",
    "decode",
    "encode",
    "session_name",
    "strings",
    "texts",
    "tool_calls",
]

Row: TypeAlias = dict[str, Any]  # Any: JSON
RowType: TypeAlias = Literal["user", "assistant", "tool", "system", "compact_boundary", "event"]

ID_CHARS = 128
ID_BYTES = 200
_ID = re.compile(r"[^\W_][\w.@+=-]*")
_RESERVED = frozenset({"type", "id", "parent_id", "session_id", "timestamp", "content"})
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _finite(number: str) -> float | None:
    """A number of JSON. What only some programs write as one, such as NaN, is read as null, so that the row is not lost
    and can be written again."""
    value = float(number)
    return value if math.isfinite(value) else None


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_finite)


def session_name(session_id: str) -> str:
    """A session's id in NFC, or else `invalid_value`.

    It begins with a letter or digit of any script, goes on with those and `.`, `_`, `-`, `@`, `+`, `=`, has no `..`,
    and takes at most 128 characters and 200 bytes: it is a file's name, and can lead nowhere else.
    """
    name = unicodedata.normalize("NFC", session_id) if isinstance(session_id, str) else ""
    if _ID.fullmatch(name) is None or ".." in name or len(name) > ID_CHARS or len(name.encode()) > ID_BYTES:
        raise MemoryStoreError(
            "invalid_value",
            f"{session_id!r} is no session id: a letter or digit, then letters, digits, '.', '_', '-', '@', '+', '=', "
            f"without '..', at most {ID_CHARS} characters and {ID_BYTES} bytes.",
        )
    return name


def check_type(type_: str) -> None:
    if type_ not in get_args(RowType):
        raise MemoryStoreError("invalid_value", f"A row is one of {', '.join(get_args(RowType))}, not {type_!r}.")


def check_fields(fields: Iterable[str]) -> None:
    if taken := sorted(_RESERVED & set(fields)):
        raise MemoryStoreError("invalid_value", f"A row has its own {', '.join(taken)}; name the field otherwise.")


def encode(row: Row) -> bytes:
    """One line. It holds no line break of any kind, whatever stands in the row's texts; `invalid_value` if no JSON."""
    try:
        text = _ENCODER.encode(row)
    except (TypeError, ValueError, RecursionError) as error:
        raise MemoryStoreError("invalid_value", f"What is logged is JSON. {error}") from error
    if not text.isascii():
        # JSON allows these in a string, but readers that split text into lines would break there.
        text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\u0085", "\\u0085")
    # What UTF-8 cannot hold is a lone surrogate, and Python's escape for it is JSON's too.
    return text.encode(errors="backslashreplace") + b"\n"


def decode(line: bytes) -> Row | None:
    """The row in a line, or `None` if there is none."""
    try:
        text = line.decode().removeprefix("\ufeff").strip()  # some editors begin a file with it
        row, end = _DECODER.raw_decode(text)  # in a log of many rows, `decode` would take a third of the time
    except (ValueError, RecursionError):
        return None
    if end != len(text) or not isinstance(row, dict) or not isinstance(row.get("type"), str):
        return None
    for each in (row.get("id"), row.get("run_id"), row.get("tool_call_id")):
        if each is not None and not isinstance(each, str):
            return None
    return row


def tool_calls(row: Row) -> list[Row]:
    """The calls of an assistant's row, each with `id`, `name` and `args`."""
    calls = row.get("tool_calls")
    return [
        call
        for call in (calls if isinstance(calls, list) else [])
        if isinstance(call, dict) and isinstance(call.get("id"), str) and isinstance(call.get("name"), str)
    ]


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call, the position of its row, and those of the rows that hold a result of it."""

    position: int
    id: str
    name: str
    run_id: object
    results: list[int] = field(default_factory=list)


def calls_of(rows: Iterable[Row]) -> list[Call]:
    """The tool calls, in order.

    A result is that of the newest call with its id in its run, or else in another run, as when it had to be approved.
    So models may number their calls anew in each response.
    """
    found: list[Call] = []
    newest: dict[object, Call] = {}  # by id, and by run and id
    for position, row in enumerate(rows):
        run_id = row.get("run_id")
        if row["type"] == "assistant":
            for each in tool_calls(row):
                call = Call(position, each["id"], each["name"], run_id)
                newest[call.id] = newest[run_id, call.id] = call
                found.append(call)
        elif row["type"] == "tool":
            call_id = row.get("tool_call_id")
            if (answered := newest.get((run_id, call_id)) or newest.get(call_id)) is not None:
                answered.results.append(position)
    return found


def strings(value: object) -> list[str]:
    """The texts of a list that should hold nothing else."""
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def texts(content: object) -> list[str]:
    """Every text in a row's content, in order."""
    found: list[str] = []
    rest = [content]
    while rest:  # a foreign row may nest deeper than functions can
        each = rest.pop()
        if isinstance(each, str):
            found.append(each)
        elif isinstance(each, dict | list):
            rest += reversed(list(each.values()) if isinstance(each, dict) else each)
    return found
