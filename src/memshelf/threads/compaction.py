"""When a thread is compacted, what of it stays, and the summary that takes the place of the rest."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from memshelf.threads.shape import MessageShape
from memshelf.threads.summary import Line, usable_summary
from memshelf.threads.tokens import TokenCounter, estimate_tokens

__all__ = ["Compaction", "CompressionManager", "Cut", "Summarise", "cut"]

Message = TypeVar("Message")
Summarise: TypeAlias = Callable[[str | None, list[Line]], Awaitable[str]]
"""Ask a model to bring a summary, if there is one, up to date with these lines. What it raises counts as a failure."""

_LOG = logging.getLogger(__name__)
_TOOL_RESULT_TOKENS = 500  # of a tool's result a summary needs what came of it, not all of it
_THREADS = 10_000


@dataclass(frozen=True, slots=True)
class Cut:
    """What stays of a history: the message at `input`, which began the current turn, and all from `tail` on."""

    input: int
    tail: int


@dataclass(frozen=True, slots=True)
class Compaction:
    """A summary, and what of the history stays behind it."""

    summary: str
    cut: Cut


def cut(history: Sequence[Message], shape: MessageShape[Message], budget: int) -> Cut | None:
    """What stays in a compaction: the current turn, or of one over `budget` tokens its input and its newest rounds.

    The newest round always stays, so a tool result never loses its call. `None` if there is no turn, or nothing that
    a summary could take the place of.
    """
    input_ = next((index for index in reversed(range(len(history))) if shape.starts_turn(history[index])), None)
    if input_ is None:
        return None
    tail, size = len(history), shape.tokens(history[input_])
    for index in reversed(range(input_ + 1, len(history))):
        size += shape.tokens(history[index])
        if size > budget and tail < len(history):
            break
        if shape.starts_round(history[index]):
            tail = index
    else:
        tail = input_ + 1
    return Cut(input_, tail) if input_ > 0 or tail > input_ + 1 else None


class CompressionManager(Generic[Message]):
    """Compacts threads whose messages take `threshold` of a model's window.

    After `max_failures` failures in a row on one thread it stops trying there, until it is asked to with `force`. One
    object serves any number of threads, also at a time.
    """

    def __init__(
        self,
        shape: MessageShape[Message],
        *,
        threshold: float = 0.9,
        max_failures: int = 3,
        summary_tokens: int = 2_000,
        count_tokens: TokenCounter = estimate_tokens,
    ) -> None:
        if not 0 < threshold <= 1:
            raise ValueError(f"The threshold of a compaction is a share of the window, such as 0.9, not {threshold!r}.")
        if max_failures < 1 or summary_tokens < 1:
            raise ValueError("max_failures and summary_tokens are at least 1.")
        self._shape = shape
        self._threshold = threshold
        self._max_failures = max_failures
        self._summary_tokens = summary_tokens
        self._count = count_tokens
        self._failures: OrderedDict[str, int] = OrderedDict()

    async def auto_compact(
        self,
        history: Sequence[Message],
        summarise: Summarise,
        *,
        thread: str,
        used: int,
        window: int,
        summary: str | None = None,
        summarised: int = 0,
        force: bool = False,
    ) -> Compaction | None:
        """The compaction of `thread`, or `None`: it is not due, nothing can go, or no summary could be made.

        `used` is what the next request takes of `window`, in tokens. `summary`, if there is one, tells what was before
        the history and its first `summarised` messages. If that is all that goes, `summarise` is not called; else it
        brings the summary up to date. Nothing is changed: applying it is the caller's. No failure is raised.
        """
        due = used >= self._threshold * window and self._failures.get(thread, 0) < self._max_failures
        if not due and not force:
            return None
        kept = cut(history, self._shape, budget=window // 2)
        if kept is None:
            return None
        gone = [*range(kept.input), *range(kept.input + 1, kept.tail)]
        untold = [history[index] for index in gone if index >= summarised]
        if summary is None or untold:
            summary = await self._summary(thread, summarise, summary, untold)
        if summary is None:
            return None
        self._failures.pop(thread, None)
        return Compaction(summary, kept)

    async def _summary(
        self, thread: str, summarise: Summarise, previous: str | None, untold: Sequence[Message]
    ) -> str | None:
        lines = [line for each in untold for line in self._shape.lines(each, _TOOL_RESULT_TOKENS)]
        try:
            answer = await summarise(previous, lines)
        except Exception as error:  # noqa: BLE001  # anyone's model; a run goes on with the history that it has
            _LOG.warning("A thread could not be compacted: %s", type(error).__name__)
            answer = ""
        summary = usable_summary(answer, max_tokens=self._summary_tokens, count=self._count)
        if summary is None:
            self._failures[thread] = self._failures.pop(thread, 0) + 1
            while len(self._failures) > _THREADS:
                self._failures.popitem(last=False)
        return summary
