"""Records from the answers of a mem0 server, which may hold anything: what is not as it must be is an
`UnreadableError`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memshelf.records.backends.mem0.connection import UnreadableError
from memshelf.records.model import MemoryRecord
from memshelf.untrusted import sound

__all__ = ["Found", "added_id", "awaited", "found", "results"]


@dataclass(frozen=True, slots=True)
class Found:
    """A record in an answer, and what only the store looks at. `user_id` is `None` when the server names nobody."""

    record: MemoryRecord
    user_id: object
    created_at: datetime | None


def found(item: Any) -> Found:
    if not isinstance(item, dict):
        raise UnreadableError("The server's answer has something else where a record is expected.")
    created_at = _time(item.get("created_at"))
    return Found(
        MemoryRecord(
            _text(item, "id"),
            _text(item, "memory"),
            score=_score(item.get("score")),
            updated_at=_time(item.get("updated_at")) or created_at,
        ),
        item.get("user_id"),
        created_at,
    )


def results(answer: Any) -> list[Any]:
    listed = answer.get("results") if isinstance(answer, dict) else answer
    if not isinstance(listed, list):
        raise UnreadableError("The server's answer has no results.")
    return listed


def added_id(answer: Any) -> str:
    """The id of the one record that was added."""
    added = results(answer)
    if len(added) != 1 or not isinstance(added[0], dict) or added[0].get("event") != "ADD":
        raise UnreadableError("The server does not say that it added one record.")
    return _text(added[0], "id")


def awaited(answer: Any) -> str | None:
    """The id of the event in which the server will carry out what it was asked to; `None` when it has, or failed."""
    if not isinstance(answer, dict) or answer.get("status") not in ("PENDING", "RUNNING"):
        return None
    event_id = answer.get("event_id", answer.get("id"))
    return event_id if isinstance(event_id, str) else None


def _text(item: dict[str, Any], name: str) -> str:
    value = item.get(name)
    if not isinstance(value, str):
        raise UnreadableError(f"The server's answer has a record without {name}.")
    return sound(value)


def _score(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value:
        return None
    return float(min(max(value, 0), 1))


def _time(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
