"""What memory reports into the event stream of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic_ai import CapabilityEvent

from memshelf.files.context.deliver import Outcome
from memshelf.records.context import RecallOutcome

__all__ = ["ContextDelivery", "HistoryReplacedEvent", "MemoryContextEvent", "MemoryRecallEvent", "RecallDelivery"]


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


@dataclass(frozen=True, kw_only=True)
class RecallDelivery:
    """What one memory recalled for a run: the outcome, how many records or entries and UTF-8 bytes, never the content.

    `recalled` put a block before the user's text; `nothing` knew nothing close; `omitted` is a first record that is
    larger than a block may be; `timeout` is a store that took too long, and `unavailable` one that failed.
    """

    memory: str
    outcome: RecallOutcome
    records: int
    bytes: int


@dataclass(kw_only=True)
class MemoryRecallEvent(CapabilityEvent, namespace="memshelf"):
    """Record memories, or the workspace, were searched for what a run's first input is about. One entry a memory."""

    memories: list[RecallDelivery]


@dataclass(kw_only=True)
class HistoryReplacedEvent(CapabilityEvent, namespace="memshelf"):
    """A summary took the place of a thread's history: by compaction, or by a handoff that the model asked for.

    `before` and `after` are how many messages the history had and has.
    """

    cause: Literal["compaction", "handoff"]
    before: int
    after: int
