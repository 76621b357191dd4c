"""Which entries a question is about, by what they mean: the index of record memory over the entries of a user."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from weakref import WeakKeyDictionary

from memshelf.records.recall import EmbedderChoice, Recall
from memshelf.records.retrieval.index import Entry
from memshelf.records.retrieval.terms import pack
from memshelf.untrusted import sound
from memshelf.workspace.entries import MemoryEntry

__all__ = ["Meaning"]

_AT_ONCE = 64
_WORTH_WAITING = 256
"""For so many entries that are not embedded yet, a question waits; more are embedded in the background."""

_NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)
"""Entries have no times, so those in a question count for nothing."""


@dataclass(frozen=True, slots=True)
class _Text:
    """What the index takes of an entry. `key` is new whenever the entry is."""

    key: int
    terms: bytes
    passages: tuple[str, ...]


class Meaning:
    """Finds entries in other words than theirs, in any language of the embedder."""

    def __init__(self, embedder: EmbedderChoice) -> None:
        self._recall = Recall(embedder)
        self._texts: dict[str, _Text] = {}
        self._files: dict[int, str] = {}
        self._waiting: dict[str, _Text] = {}
        self._restored: list[Entry] = []
        self._gone: list[int] = []
        self._vectors: dict[int, bytes] = {}
        self._next = 1
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._filling: asyncio.Task[None] | None = None

    @property
    def available(self) -> bool:
        return self._recall.embedder is not None

    def say_what_is_missing(self) -> None:
        """Say once in a process, if it is so, that what should go by meaning goes by words."""
        self._recall.say_what_is_missing()

    def put(self, entry: MemoryEntry) -> None:
        """Take in an entry, or its new content. It is embedded when it is asked for."""
        self.remove(entry.file)
        parts = [sound(part) for part in (entry.title, entry.description, entry.content) if part]
        # What an entry is called counts twice as much as what it says.
        terms = pack("\n".join([entry.title] * 2 + [entry.description] * 2 + [entry.content]))
        text = _Text(self._next, terms, ("\n".join(parts), *parts))
        self._next += 1
        self._texts[entry.file] = self._waiting[entry.file] = text
        self._files[text.key] = entry.file

    def restore(self, file: str, terms: bytes, vectors: bytes) -> None:
        """Take in an entry as `kept` answered it."""
        self.remove(file)
        text = _Text(self._next, terms, ())
        self._next += 1
        self._texts[file] = text
        self._files[text.key] = file
        self._vectors[text.key] = vectors
        self._restored.append(_entry(text, vectors))

    def kept(self, file: str) -> tuple[bytes, bytes] | None:
        """The terms and vectors of an entry; `None` while it has none."""
        text = self._texts.get(file)
        vectors = self._vectors.get(text.key) if text is not None else None
        return (text.terms, vectors) if text is not None and vectors is not None else None

    @property
    def waiting(self) -> int:
        """How many entries are not embedded yet."""
        return len(self._waiting)

    @property
    def model(self) -> tuple[object, ...]:
        """What names the vectors that are comparable."""
        embedder = self._recall.embedder
        return (embedder.model, embedder.version, embedder.dimension) if embedder is not None else ()

    def remove(self, file: str) -> None:
        if (text := self._texts.pop(file, None)) is not None:
            self._waiting.pop(file, None)
            self._files.pop(text.key, None)
            self._vectors.pop(text.key, None)
            self._gone.append(text.key)

    async def search(self, query: str, limit: int, evidence: float) -> dict[str, float] | None:
        """The files that the query is about, each with a score from 0 to 1; `None` when it cannot be told now."""
        if not self._texts:
            return {}
        turn = self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock())
        async with turn:
            if not await self._filled():
                return None
        found = await self._recall.search(query, limit=limit, now=None, clock=_NO_TIME, evidence=evidence)
        return {self._files[key]: score for key, score in found if key in self._files}

    async def _filled(self) -> bool:
        """Whether every entry is in the index."""
        if len(self._waiting) > _WORTH_WAITING:
            filling = self._filling
            # A loop stands still between the runs of another thread, and for good after them.
            if filling is None or filling.done() or not filling.get_loop().is_running():
                self._filling = asyncio.create_task(self._fill())
            return False
        await self._fill()
        return not self._waiting

    async def _fill(self) -> None:
        if restored := self._restored:
            self._restored = []
            await self._recall.change(lambda: self._recall.index.put(restored))
        if gone := self._gone:
            self._gone = []
            await self._recall.change(lambda: self._recall.index.remove(gone))
        while batch := list(self._waiting.items())[:_AT_ONCE]:
            vectors = await self._recall.vectors([text.passages for _, text in batch])
            if None in vectors:
                apart = await self._recall.vectors_apart([text.passages for _, text in batch])
                if apart is None:
                    return  # the embedder cannot do it now
                vectors = apart
            entries = []
            for (file, text), rows in zip(batch, vectors, strict=True):
                if self._waiting.get(file) is text:
                    if rows is not None:
                        self._vectors[text.key] = rows
                    entries.append(_entry(text, rows))
            await self._recall.change(lambda entries=entries: self._recall.index.put(entries))  # type: ignore[misc]
            for file, text in batch:
                if self._waiting.get(file) is text:
                    del self._waiting[file]
        if self._recall.index.wasteful:
            known = [text for file, text in self._texts.items() if self._waiting.get(file) is not text]
            every = [_entry(text, self._vectors.get(text.key)) for text in known]
            await self._recall.change(lambda: self._anew(every))

    def _anew(self, entries: list[Entry]) -> None:
        self._recall.reset()
        self._recall.index.put(entries)

    def close(self) -> None:
        """End the thread that searches; it starts again when needed."""
        if self._filling is not None:
            self._filling.cancel()
        self._recall.close()


def _entry(text: _Text, rows: bytes | None) -> Entry:
    return Entry(text.key, text.key, text.terms, vectors=rows)
