"""Who made a change."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Origin"]


@dataclass(frozen=True, slots=True)
class Origin:
    """Who a change is attributed to. Stores without history ignore it.

    `run_id` names one run of an agent, `principal_id` the user or service it acts for, `tool_call_id` the model's
    tool call. `session_id` and `api_key_id` are for a service: the session in which the change was made, and the key
    that it was made with; an id, never the key itself.

    On a store with history, `run_id` and `tool_call_id` together also make a change idempotent: the same call, made
    again with the same arguments, answers with its first result.
    """

    run_id: str | None = None
    principal_id: str | None = None
    tool_call_id: str | None = None
    session_id: str | None = None
    api_key_id: str | None = None
