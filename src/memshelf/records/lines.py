"""Records as JSON lines, one a line, and as mem0 exports them. Pure but for the stream that is read.

::

    {"id":"rec_1","text":"Likes green tea.","at":"2026-05-01T12:00:00+00:00","origin":{"kind":"user"}}
    {"id":"rec_2","text":"Likes black tea now.","at":"2026-05-02T12:00:00+00:00","replaces":"rec_1"}
    {"id":3,"text":"Sings.","at":1777636800}
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import IO, Any, TypeAlias, get_args

from memshelf.errors import MemoryStoreError
from memshelf.origin import Origin, OriginKind
from memshelf.records.model import MemoryRecord, NewRecord
from memshelf.records.text import validate_record_text

__all__ = ["FIELDS", "Line", "Met", "line_of", "read_lines", "record_json"]

Json: TypeAlias = dict[str, Any]  # any JSON value

_LONGEST_LINE = 8 * 1024 * 1024
_LONGEST_DOCUMENT = 512 * 1024 * 1024
_LISTS = ("results", "memories", "data")
_EXPECTED = "Expected are JSON lines with a `text` each, or a list of records as mem0 exports it."
_WHO = ("run_id", "principal_id", "tool_call_id")

FIELDS = ("text", "id", "at", "updated_at", "revised", "thread", "origin", "replaces")
"""What is read of a record, besides mem0's names for it."""
_KNOWN = frozenset(
    (*FIELDS, "score", "replaced_by",  # ours, which `records list --json` shows
     "memory", "created_at", "user_id", "agent_id", "app_id", "run_id", "actor_id", "role", "attributed_to", "hash",
     "metadata", "categories", "input", "event", "owner", "organization", "immutable", "expiration_date", "deleted_at",
     "structured_attributes", "internal_metadata", "score_details")
)  # fmt: skip
"""What is missed by nobody who knows that mem0's metadata is not imported."""

_FIRST_MILLISECONDS = 1e11
"""Seconds would be of the year 5138 from here on, and milliseconds are of 1973."""


@dataclass(slots=True)
class Met:
    """What is met in a file besides its records: every `user_id`, and names of fields that nobody knows, each with how
    many records have it."""

    users: set[str] = field(default_factory=set)
    unknown: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True, slots=True)
class Line:
    """A record to import. `id` is the one that it had; `record.replaces` is such an id, too."""

    record: NewRecord
    id: str | None


def record_json(record: MemoryRecord) -> Json:
    """A record as JSON, without what is not known of it."""
    origin = record.origin
    who = {name: getattr(origin, name) for name in (*_WHO, "kind")} if origin is not None else {}
    shown = {
        "id": record.id,
        "text": record.text,
        "score": record.score,
        "at": _time(record.at),
        "updated_at": _time(record.updated_at),
        "revised": record.revised or None,
        "thread": record.thread,
        "origin": {name: value for name, value in who.items() if value is not None} or None,
        "replaced_by": record.replaced_by,
    }
    return {name: value for name, value in shown.items() if value is not None}


def line_of(record: MemoryRecord, replaces: str | None) -> bytes:
    """A record as a line, to be read with all that is known of it. `replaces` is an earlier one that it corrects."""
    shown = record_json(record)
    shown.pop("replaced_by", None)
    shown["origin"] = {"kind": None} | shown.get("origin", {})  # that it is not known, too
    if replaces is not None:
        shown["replaces"] = replaces
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def read_lines(
    stream: IO[bytes], *, origin: Origin, max_chars: int, user: str | None = None, met: Met | None = None
) -> Iterator[Line]:
    """The records of JSON lines, or of a JSON document as mem0 exports it: a list, alone or as `results` or `memories`.

    A record has `text`, or mem0's `memory`, and may have `id`, `at` (or `created_at`), `updated_at`, `revised`,
    `thread`, `origin` and `replaces`. An id may be a whole number; a time may be a number of seconds or, from 1e11 on,
    milliseconds since 1970. A record that does not say so is from `origin`. With `user`, only those whose `user_id` it
    is. `met` gets what else there is, of these records, and every `user_id`. `invalid_file` names the line, or the
    record of a document, that is not as it must be.
    """
    met = met or Met()
    number, head = 1, _line(stream, 1)
    while head and not head.strip():
        number, head = number + 1, _line(stream, number + 1)
    alone = _is_record(head)
    whole = b"" if alone else b"\n" * (number - 1) + head + stream.read(_LONGEST_DOCUMENT)
    for place, item in _lines(stream, head, number) if alone else _members(whole):
        if not isinstance(item, dict):
            raise _damaged(f"{place} is no JSON object. {_EXPECTED}")
        whose = _id(item.get("user_id"))
        if isinstance(whose, str):
            met.users.add(whose)
        if user is None or whose == user:
            met.unknown.update(item.keys() - _KNOWN)
            yield _read(item, place, origin, max_chars)


def _lines(stream: IO[bytes], line: bytes, number: int) -> Iterator[tuple[str, Any]]:
    while line:
        if line.strip():
            yield f"Line {number}", _parsed(line.rstrip(b"\r\n"), number)
        number += 1
        line = _line(stream, number)


def _line(stream: IO[bytes], number: int) -> bytes:
    line = stream.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE and number > 1:
        raise _damaged(f"Line {number} has more than {_LONGEST_LINE} bytes.")
    return line


def _is_record(line: bytes) -> bool:
    """Whether a first line is a record by itself, rather than the beginning of a document."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return line.lstrip().startswith(b"{") and line.rstrip().endswith(b"}")  # then the line is what is damaged
    if not isinstance(value, dict):
        return False
    return "text" in value or "memory" in value or not any(isinstance(value.get(name), list) for name in _LISTS)


def _members(whole: bytes) -> Iterator[tuple[str, Any]]:
    value = _parsed(whole, 1) if whole.strip() else []
    if isinstance(value, dict):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    if not isinstance(value, list):
        raise _damaged(f"There are no records in it. {_EXPECTED}")
    for number, item in enumerate(value, start=1):
        yield f"Record {number}", item


def _parsed(text: bytes, line: int) -> Any:
    """The value of a text that begins in this line."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        # What is missing at the end is missing in the last line that says something.
        end = len(error.doc.rstrip(" \t\r\n"))
        at = json.JSONDecodeError(error.msg, error.doc, min(error.pos, end))
        number, reason = line + at.lineno - 1, f"{at.msg} at character {at.colno}"
    except UnicodeDecodeError as error:
        number, reason = line + text.count(b"\n", 0, error.start), "it is not UTF-8 text"
    except RecursionError:
        number, reason = line, "it is nested too deeply"
    except ValueError as error:
        number, reason = line, str(error)
    raise _damaged(f"Line {number} is no JSON: {reason}. {_EXPECTED}")


def _read(item: Json, place: str, origin: Origin, max_chars: int) -> Line:
    text = item.get("text", item.get("memory"))
    if not isinstance(text, str):
        raise _damaged(f"{place} has no text. {_EXPECTED}")
    id, thread, replaces = (_optional_id(item, name, place) for name in ("id", "thread", "replaces"))
    at, created_at, updated_at = (_moment(item, name, place) for name in ("at", "created_at", "updated_at"))
    try:
        validate_record_text(text, max_chars=max_chars)
        who = _origin(item["origin"], origin) if item.get("origin") is not None else origin
    except (MemoryStoreError, ValueError, TypeError) as error:
        reason = error.message.removesuffix("; nothing changed.") if isinstance(error, MemoryStoreError) else error
        raise _damaged(f"{place}: {str(reason).removesuffix('.')}.") from None
    if thread is not None and not thread.isprintable():
        raise _damaged(f"{place}: a thread's name is printable.")
    new = NewRecord(
        text=text, at=at or created_at, thread=thread, origin=who, replaces=replaces, updated_at=updated_at,
        revised=item.get("revised") is True,
    )  # fmt: skip
    return Line(new, id)


def _id(value: Any) -> Any:
    """The text of an id that is a whole number; anything else as it is."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _optional_id(item: Json, name: str, place: str) -> str | None:
    value = _id(item.get(name))
    if value is not None and not isinstance(value, str):
        raise _damaged(f"{place}: `{name}` is a text or a whole number.")
    return value


def _moment(item: Json, name: str, place: str) -> datetime | None:
    value = item.get(name)
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1_000 if abs(value) >= _FIRST_MILLISECONDS else value, UTC)
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError, TypeError):  # not even the system knows the year of some numbers
        raise _damaged(
            f"{place}: `{name}` is an ISO 8601 time, such as 2026-05-01T12:00:00Z, or seconds since 1970."
        ) from None


def _origin(value: object, default: Origin) -> Origin:
    if not isinstance(value, dict):
        raise TypeError("`origin` is an object.")
    kind = value.get("kind", default.kind)
    if kind is not None and kind not in get_args(OriginKind):
        raise ValueError(f"`origin.kind` is one of {', '.join(get_args(OriginKind))}.")
    return Origin(*(value.get(name) for name in _WHO), kind=kind)


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment is not None else None


def _damaged(reason: str) -> MemoryStoreError:
    return MemoryStoreError("invalid_file", f"{reason} Nothing was imported.")
