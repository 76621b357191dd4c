"""What is kept of one conversation, and what of it a model is shown."""

from __future__ import annotations

from dataclasses import dataclass

from memshelf.arguments import checked_argument, checked_function
from memshelf.threads.tokens import TokenCounter, estimate_tokens

__all__ = ["WorkingMemory"]


@dataclass(frozen=True, slots=True)
class WorkingMemory:
    """How the messages of a thread are kept and shown. It holds no messages: one object serves any number of threads.

    A thread keeps at most `max_messages` messages: the oldest turns go first, each as a whole, and the newest turn and
    the system message always stay. Of these a model is shown what takes at most `max_tokens` (`None`: all of it);
    tool results longer than `tool_result_tokens` are shortened before turns are left out. `count_tokens` is the
    measure; the default needs no network.

    With `create_session_summary` a thread has a summary, which a model reads at the end of its system prompt. It is
    brought up to date after each run by `summary_model`, a name or a model of the agent's framework, or else by the
    agent's own model; with `update_session_summary_after_run=False`, only by a compaction. It takes at most
    `summary_tokens`, and its making at most `summary_seconds`: afterwards the previous one stays.

    Numbers out of range are a `ValueError`.
    """

    create_session_summary: bool = False
    update_session_summary_after_run: bool = True
    max_messages: int | None = 200
    max_tokens: int | None = None
    tool_result_tokens: int = 2_000
    summary_tokens: int = 1_000
    summary_seconds: float = 60
    summary_model: object = None
    count_tokens: TokenCounter = estimate_tokens

    def __post_init__(self) -> None:
        for name in ("max_messages", "max_tokens"):
            if getattr(self, name) is not None:
                _require_whole(name, getattr(self, name))
        for name in ("tool_result_tokens", "summary_tokens"):
            _require_whole(name, getattr(self, name))
        for name in ("create_session_summary", "update_session_summary_after_run"):
            checked_argument(name, getattr(self, name), bool)
        checked_function("count_tokens", self.count_tokens)
        if not checked_argument("summary_seconds", self.summary_seconds, float, int) > 0:
            raise ValueError(f"WorkingMemory.summary_seconds is a positive number, not {self.summary_seconds!r}.")


def _require_whole(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError(f"WorkingMemory.{name} is a whole number of at least 1, not {value!r}.")
