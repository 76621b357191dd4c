"""Recall, as every store has it: an index, the thread that it lives on, and an embedder that may fail."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from datetime import datetime
from functools import partial
from itertools import accumulate
from typing import Any, Literal, TypeAlias, TypeVar

from memshelf.embedding.default import default_embedder, warn_words_only
from memshelf.embedding.protocol import Embedder, Vectors
from memshelf.errors import MemoryStoreError
from memshelf.forks import Process
from memshelf.records.deadline import WORDS_FROM
from memshelf.records.retrieval.answers import answers
from memshelf.records.retrieval.index import RecordIndex
from memshelf.records.retrieval.plain import PlainScorer
from memshelf.records.retrieval.question import Meaning, asked, understand, wall_clock
from memshelf.records.text import is_blank
from memshelf.turns import Turns
from memshelf.untrusted import sound

try:
    import numpy as np

    from memshelf.embedding.blas import one_thread
    from memshelf.records.retrieval.judgement import EXAMPLES, Judgement
    from memshelf.records.retrieval.scoring import Scorer
    from memshelf.records.retrieval.vectors import Floats, Table, normalised
except ImportError:  # the extra `embed` is not installed
    np = None  # type: ignore[assignment]  # checked before every use
    one_thread = nullcontext  # type: ignore[assignment]  # nothing to keep back

__all__ = ["EmbedderChoice", "Recall", "in_time"]

EmbedderChoice: TypeAlias = Embedder | Literal["default"] | None
"""An embedder, the bundled one if it is installed, or none: recall by words only."""

T = TypeVar("T")

_log = logging.getLogger(__name__)
_judgements: dict[tuple[str, str, int], Judgement] = {}
"""What each model's vectors say of questions: the same for all memories, so it is learned once in a process."""

_QUICK_RECORDS = 64
_PLAIN = "memory"
"""A text that every embedder takes which works."""
_TO_SPARE = 16
"""How many more records are ranked than asked for, since some may stand in for those that they replace."""


async def in_time(work: Coroutine[Any, Any, T | None], going_on: set[asyncio.Task[T | None]], what: str) -> T | None:
    """What the work comes to; `None` when it takes longer than `WORDS_FROM` allows, and `what` goes by words.

    It is then one of `going_on`: what it waits for is loaded, or learned, for the next search.
    """
    words_from = WORDS_FROM.get()
    if words_from is None:
        return await work
    task = asyncio.create_task(work)
    going_on.add(task)  # an event loop holds its tasks by weak references
    task.add_done_callback(going_on.discard)
    if (await asyncio.wait([task], timeout=max(words_from - asyncio.get_running_loop().time(), 0)))[0]:
        return task.result()
    _log.warning("%s are recalled by their words only this time: the embedder is not ready yet.", what)
    return None


class Recall:
    """The index of one namespace, and what it takes to fill and to search it.

    Texts are embedded off the event loop, and everything that touches the index runs on its one thread.
    """

    def __init__(self, embedder: EmbedderChoice) -> None:
        made = isinstance(embedder, Embedder) and not isinstance(embedder, type)
        if embedder is not None and embedder != "default" and not made:
            raise TypeError(f'`embedder` is an Embedder, "default" or None, not {embedder!r}.')
        chosen = default_embedder() if embedder == "default" else embedder
        self.embedder = chosen if np is not None else None
        self._lacks_meaning = embedder is not None and self.embedder is None
        self._embedding: set[asyncio.Task[list[Meaning] | None]] = set()
        self.failing = False
        """Whether the embedder failed when it was last asked."""
        self._turns: Turns | None = None
        self._changed: Future[object] | None = None
        self._process = Process()
        self.reset()

    def reset(self) -> None:
        """Forget all records."""
        self.index = RecordIndex(Table(self.embedder.dimension) if self.embedder is not None else None)
        self._scorer = Scorer(self.index) if np is not None else PlainScorer(self.index)

    def forked(self, forget: Callable[[], object] = lambda: None) -> bool:
        """Whether this is a forked child that has not asked before: the index is empty here, and yet to be filled.

        `forget` is called before any other thread goes on.
        """

        def begin() -> None:
            self._turns, self._changed = None, None
            self.reset()  # the thread may have been in the middle of a change
            forget()

        return self._process.forked(begin)

    def say_what_is_missing(self) -> None:
        """Say once in a process, if it is so, that what should go by meaning goes by words. `search` does it itself."""
        if self._lacks_meaning:
            warn_words_only()

    async def run(self, work: Callable[[], T]) -> T:
        """Run work that touches the index on its thread, unless the caller is cancelled before its turn."""
        return await asyncio.wrap_future(self._submit(work))

    async def change(self, work: Callable[[], object]) -> None:
        """Run work that changes the index on its thread, also for a caller that is cancelled meanwhile.

        So who notes what the index holds, and then calls this, may rely on what was noted.
        """
        self._changed = changed = self._submit(work)  # which nobody can cancel, as one could what is waited for
        await self.run(changed.result)

    def _submit(self, work: Callable[[], T]) -> Future[T]:
        self.forked()
        future: Future[T] = Future()
        call = partial(_settle, future, work)
        while self._turns is None or not self._turns.put(call):
            self._turns = Turns("memshelf-recall")
        return future

    def close(self) -> None:
        """End the thread, when it is done with what it was given. It starts again when needed."""
        turns, self._turns = self._turns, None
        if turns is not None and self._process.here:
            turns.end()

    async def vectors(self, texts: Sequence[Sequence[str]]) -> list[bytes | None]:
        """For each record, the vectors of its passages as they are stored: rows of float16.

        `None` for all of them when they cannot be had now.
        """
        flat = await self._embed([passage for passages in texts for passage in passages], query=False)
        if flat is None:
            return [None] * len(texts)
        ends = list(accumulate(len(passages) for passages in texts))
        rows = [flat[end - len(passages) : end] for end, passages in zip(ends, texts, strict=True)]
        if len(rows) <= _QUICK_RECORDS:
            return [each.astype("<f2").tobytes() for each in rows]
        return await asyncio.to_thread(lambda: [each.astype("<f2").tobytes() for each in rows])

    async def vectors_apart(self, texts: Sequence[Sequence[str]]) -> list[bytes | None] | None:
        """As `vectors`, where one record that the embedder refuses keeps no other from having them.

        `None` when it is no record: the embedder does not work at all now.
        """
        if await self._embed([_PLAIN], query=False) is None:
            return None
        vectors = await self._halved(texts)
        if await self._embed([_PLAIN], query=False) is None:
            return None
        if refused := vectors.count(None):
            _log.warning(
                "%d of %d texts can be found by their words only: the embedder refuses them.", refused, len(texts)
            )
        return vectors

    async def _halved(self, texts: Sequence[Sequence[str]]) -> list[bytes | None]:
        half = len(texts) // 2
        self.failing = True  # which was said
        vectors = await self.vectors(texts)
        if None not in vectors or not half:
            return vectors
        return await self._halved(texts[:half]) + await self._halved(texts[half:])

    async def search(
        self, query: str, *, limit: int, now: datetime | None, clock: datetime, evidence: float = 0.0
    ) -> list[tuple[int, float]]:
        """The keys of the records that answer the query best, with their scores, best first.

        `evidence` is what the caller knows to speak for the query, besides what `Scorer` finds; see `weights.FLOOR`.
        """
        moment = wall_clock(now, clock)
        if is_blank(query):
            return []
        # Half a surrogate pair has no meaning, and no model takes it.
        texts = [sound(each) for each in asked(query)]
        as_noted = self._changed is None or self._changed.done()  # or else who was cancelled left a change behind
        if not texts[0].strip() or (as_noted and not len(self.index)):
            return []
        self.say_what_is_missing()
        meanings = await in_time(self._meanings(texts), self._embedding, "Records")

        def rank() -> list[tuple[int, float]]:
            index = self.index
            question = understand(texts, index, now=moment, meanings=meanings, evidence=evidence)
            with one_thread():
                return answers(index, self._scorer.rank(question, limit + _TO_SPARE), limit)

        return await self.run(rank)

    async def _meanings(self, texts: list[str]) -> list[Meaning] | None:
        if self.embedder is None:
            return None
        made_by = self.embedder.model, self.embedder.version, self.embedder.dimension
        judgement = _judgements.get(made_by) or Judgement.kept(made_by)
        if judgement is None:
            examples = await self._embed(list(EXAMPLES), query=True)
            if examples is None:
                return None
            with one_thread():
                judgement = Judgement.learned(examples)
        _judgements[made_by] = judgement
        vectors = await self._embed(texts, query=True)
        return [judgement.of(each) for each in vectors] if vectors is not None else None

    async def _embed(self, texts: list[str], *, query: bool) -> Floats | None:
        if self.embedder is None:
            return None
        if not texts:
            return np.empty((0, self.embedder.dimension), np.float32)
        try:
            answer = await self.embedder.embed(texts, query=query)
            check = partial(_checked, answer, len(texts), self.embedder.dimension)
            vectors = check() if len(texts) <= _QUICK_RECORDS else await asyncio.to_thread(check)
        except Exception as error:  # noqa: BLE001  # embedders are anyone's code; one that fails must not cost the record
            if not self.failing:
                self.failing = True
                reason = error if isinstance(error, MemoryStoreError) else type(error).__name__
                _log.warning("Records are recalled by their words only for now: the embedder failed (%s).", reason)
            return None
        self.failing = False
        return vectors


def _settle(future: Future[T], work: Callable[[], T]) -> None:
    if future.set_running_or_notify_cancel():
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001  # the caller's, as the result would be
            future.set_exception(error)
            del future  # the error leads to here, and would hold itself
        else:
            future.set_result(result)


def _checked(vectors: Vectors, count: int, dimension: int) -> Floats:
    rows = normalised(vectors)
    if rows.shape != (count, dimension) or not np.isfinite(rows).all():
        raise MemoryStoreError("unavailable", "It did not answer one whole vector for each text.")
    return rows
