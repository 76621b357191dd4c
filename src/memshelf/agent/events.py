"""What memory reports into the event stream of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic_ai import CapabilityEvent

from memshelf.files.context.deliver import Outcome

__all__ = ["ContextDelivery", "HistoryReplacedEvent", "MemoryContextEvent"]


@dataclass(frozen=True, kw_only=True)
class ContextDelivery:
    """What one memory contributed to a run's context: the outcome and its UTF-8 bytes, never the content.

    `full` and `changes` put a block before the user's text; `unchanged` had nothing new to say; `unavailable` is a
    store that could not be read; `omitted` is a block for which the budget had no room.
    """

    memory: str
    outcome: Outcome
    bytes: int


@dataclass(kw_only=True)
class MemoryContextEvent(CapabilityEvent, namespace="memshelf"):
    """The context of a run was put into its first request. One entry a memory, in mount order."""

    memories: list[ContextDelivery]


@dataclass(kw_only=True)
class HistoryReplacedEvent(CapabilityEvent, namespace="memshelf"):
    """A summary took the place of a thread's history: by compaction, or by a handoff that the model asked for.

    `before` and `after` are how many messages the history had and has.
    """

    cause: Literal["compaction", "handoff"]
    before: int
    after: int
