"""How a turn that was cut short is closed."""

from __future__ import annotations

from collections.abc import Sequence

from memshelf.threads.rows import Row, calls_of

__all__ = ["INTERRUPTED", "sealing"]

INTERRUPTED = "This call was interrupted. It may or may not have taken effect."
_MESSAGES = ("user", "assistant", "tool")


def sealing(rows: Sequence[Row], *, suspended: bool) -> list[Row]:
    """The rows that close the last turn of `rows`: none if it ended, or waits for answers and `suspended` is false.

    Every tool call without a result is answered as interrupted, and an `interrupted` event ends the turn.
    """
    last, ended, waits = None, False, False
    for row in rows:
        if row["type"] in _MESSAGES:
            last, ended, waits = row, False, False
        elif row["type"] == "event" and row.get("event") in ("completed", "interrupted"):
            ended = True
        elif row["type"] == "event" and row.get("event") == "suspended":
            waits = True
    newest = {(call.run_id, call.id): call for call in calls_of(rows)}
    open_ = [call for call in newest.values() if not call.results]
    if waits and not suspended:
        return []
    if not open_ and (last is None or ended or last["type"] == "assistant"):
        return []
    results: list[Row] = [
        {
            "type": "tool",
            "content": INTERRUPTED,
            "tool_call_id": call.id,
            "tool_name": call.name,
            "outcome": "interrupted",
            "run_id": call.run_id,
        }
        for call in open_
    ]
    return [*results, {"type": "event", "content": None, "event": "interrupted"}]
