"""Searching a file memory by meaning."""

from __future__ import annotations

import asyncio
import builtins
import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Protocol

from memshelf.embedding.text import PASSAGES
from memshelf.errors import MemoryStoreError
from memshelf.files.model import FileEntry, FileText
from memshelf.meaning.kept import KeptVectors, packed, unpacked
from memshelf.meaning.passages import CUT, Passage, called, cut
from memshelf.records.recall import EmbedderChoice, Recall
from memshelf.records.retrieval.analysis import Analysis, analyse
from memshelf.records.retrieval.index import Entry
from memshelf.records.retrieval.terms import pack
from memshelf.untrusted import sound

__all__ = ["FileHit", "FileMeaning", "Files"]

_AT_ONCE = 64
_FILES_AT_ONCE = 32
_KEPT_AT_ONCE = 256
_PASSAGES_A_FILE = 8
"""How many passages are ranked for each file that is asked for, since a file may have many close ones."""

_NO_TIME = datetime(2000, 1, 1, tzinfo=UTC)
"""Passages have no times, so those in a question count for nothing."""

_CERTAIN = math.inf
"""Whoever searches files means them, and sees how close they are: no question is too far from all of them."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FileHit:
    """The passage of a file that is closest to a question, and where it begins. `score` is between 0 and 1."""

    path: str
    version: str
    line: int
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class _Found:
    """A file as the index has it; `first` is the key of its first passage."""

    version: str
    first: int
    passages: list[Passage]


@dataclass(frozen=True, slots=True)
class _Analysed:
    path: str
    version: str
    passages: list[Passage]
    analyses: list[Analysis]


class Files(Protocol):
    """What is asked of a file memory, as in `FileStore`."""

    async def list(self) -> builtins.list[FileEntry]: ...

    async def read(self, path: str) -> FileText: ...


class FileMeaning:
    """The index of a file memory, in the memory of this process; each search first takes in what has changed.

    With `kept`, vectors are kept for the next process, but for those of files that are gone, of earlier versions, and
    of other embedders, which the next search removes. Without an embedder, or when it fails, files are found by words.
    Not for several searches at once: they take turns.
    """

    def __init__(self, store: Files, kept: KeptVectors | None = None, *, embedder: EmbedderChoice = "default") -> None:
        self._store = store
        self._kept = kept
        self._recall = Recall(embedder)
        self._files: dict[str, _Found] = {}
        self._paths: dict[int, str] = {}
        self._vectors: dict[str, bytes] = {}
        self._made = set[str]()
        self._refused = set[str]()
        self._loaded = False
        self._next = 1
        self._turn = asyncio.Lock()

    async def search(
        self,
        query: str,
        *,
        limit: int,
        directory: str = "",
        progress: Callable[[int, int], None] | None = None,
    ) -> list[FileHit]:
        """At most `limit` files whose passages are closest to the query, below a directory, which ends in `/`; the
        closest first. There is always a closest one, so look at the score; none for a blank query.

        `progress` is called with how many files were read, and how many are to be.
        """
        if self._recall.forked():  # and a task of the parent's may have had its turn
            self._files, self._paths, self._turn = {}, {}, asyncio.Lock()
        async with self._turn:
            await self._catch_up(progress)
            every = max(len(self._paths), 1)
            ranked = min(limit * _PASSAGES_A_FILE, every) if not directory else every
            found = await self._ranked(query, ranked)
            hits = self._hits(found, directory, limit)
            if len(hits) < limit and len(found) == ranked < every:  # the few with many close passages hide the others
                hits = self._hits(await self._ranked(query, every), directory, limit)
        return hits

    async def _ranked(self, query: str, limit: int) -> list[tuple[int, float]]:
        return await self._recall.search(query, limit=limit, now=None, clock=_NO_TIME, evidence=_CERTAIN)

    def _hits(self, found: list[tuple[int, float]], directory: str, limit: int) -> list[FileHit]:
        hits: dict[str, FileHit] = {}
        for key, score in found:
            path = self._paths[key]
            if path.startswith(directory) and path not in hits:
                passage = self._files[path].passages[key - self._files[path].first]
                hits[path] = FileHit(path, self._files[path].version, passage.line, passage.text, score)
                if len(hits) == limit:
                    break
        return list(hits.values())

    async def aclose(self) -> None:
        """End the thread that searches. The store stays open."""
        self._recall.close()

    @property
    def _maker(self) -> str | None:
        embedder = self._recall.embedder
        if embedder is None:
            return None
        return "\t".join(map(str, (embedder.model, embedder.version, embedder.dimension, CUT, PASSAGES)))

    async def _catch_up(self, progress: Callable[[int, int], None] | None) -> None:
        if self._kept is not None and self._maker is not None and not self._loaded:
            self._vectors, self._loaded = await self._kept.load(self._maker), True
        before = set(self._vectors)
        entries = {entry.path: entry for entry in await self._store.list()}
        changed = [entry for entry in entries.values() if not self._has(entry)]
        await self._forget([path for path in self._files if path not in entries or not self._has(entries[path])])
        await self._take_in(changed, progress)
        live = {found.version for found in self._files.values()}
        self._vectors = {version: each for version, each in self._vectors.items() if version in live}
        self._refused &= live
        if self._made or self._vectors.keys() != before:
            await self._keep(self._made & live)
            self._made = set()
        if self._recall.index.wasteful:
            self._files, self._paths = {}, {}
            await self._recall.change(self._recall.reset)
            await self._take_in(list(entries.values()), None)

    def _has(self, entry: FileEntry) -> bool:
        found = self._files.get(entry.path)
        if found is None or found.version != entry.version:
            return False
        return self._recall.embedder is None or found.version in self._vectors or found.version in self._refused

    async def _keep(self, new: set[str]) -> None:
        if self._kept is None or self._maker is None:
            return
        try:
            await self._kept.keep(self._maker, self._vectors, new)
        except (OSError, MemoryStoreError) as error:  # a memory that may only be read is searched all the same
            _log.info("Vectors could not be kept, and will be made again (%s).", error)

    async def _take_in(self, entries: list[FileEntry], progress: Callable[[int, int], None] | None) -> None:
        for at in range(0, len(entries), _FILES_AT_ONCE):
            part = entries[at : at + _FILES_AT_ONCE]
            texts = await asyncio.gather(*(self._text(entry) for entry in part))
            pairs = [(entry, file) for entry, file in zip(part, texts, strict=True) if file is not None]
            analysed = await asyncio.to_thread(lambda pairs: [_analysed(*pair) for pair in pairs], pairs)
            await self._embed(analysed)
            new = [entry for each in analysed for entry in self._entries(each)]
            await self._recall.change(partial(self._recall.index.put, new))
            if len(self._made) >= _KEPT_AT_ONCE:  # so that who stops here has not waited for nothing
                await self._keep(self._made)
                self._made = set()
            if progress is not None:
                progress(at + len(part), len(entries))

    async def _text(self, entry: FileEntry) -> FileText | None:
        try:
            return await self._store.read(entry.path)
        except MemoryStoreError as error:
            if error.code in ("not_found", "invalid_file", "too_large"):  # it was deleted meanwhile, or is no text
                return None
            raise

    async def _embed(self, files: list[_Analysed]) -> None:
        """Make the vectors of the files that have none yet, of many files at once."""
        if self._recall.embedder is None:
            return
        new = {each.version: each for each in files if self._rows(each) is None}
        texts = [analysis.passages for each in new.values() for analysis in each.analyses]
        rows: list[bytes | None] = []
        works = True
        for at in range(0, len(texts), _AT_ONCE):
            part = texts[at : at + _AT_ONCE]
            vectors = await self._recall.vectors(part)
            if None in vectors:
                apart = await self._recall.vectors_apart(part)
                works = works and apart is not None
                vectors = apart or vectors
            rows += vectors
        for version, each in new.items():
            own, rows = rows[: len(each.analyses)], rows[len(each.analyses) :]
            whole = [vectors for vectors in own if vectors is not None]
            self._vectors.pop(version, None)
            if len(whole) == len(own):
                self._vectors[version] = packed(whole)
                self._made.add(version)
            elif works:
                self._refused.add(version)

    def _rows(self, file: _Analysed) -> list[bytes] | None:
        dimension = self._recall.embedder.dimension if self._recall.embedder is not None else 0
        return unpacked(self._vectors.get(file.version, b""), len(file.passages), dimension)

    def _entries(self, file: _Analysed) -> list[Entry]:
        first, self._next = self._next, self._next + len(file.passages)
        self._files[file.path] = _Found(file.version, first, file.passages)
        self._paths |= dict.fromkeys(range(first, self._next), file.path)
        rows: Sequence[bytes | None] = self._rows(file) or [None] * len(file.passages)
        return [
            Entry(key, 0, analysis.terms, vectors=vectors)
            for key, analysis, vectors in zip(count(first), file.analyses, rows, strict=False)
        ]

    async def _forget(self, paths: list[str]) -> None:
        keys: list[int] = []
        for path in paths:
            found = self._files.pop(path)
            keys += range(found.first, found.first + len(found.passages))
        for key in keys:
            del self._paths[key]
        if keys:
            await self._recall.change(lambda: self._recall.index.remove(keys))


def _analysed(entry: FileEntry, file: FileText) -> _Analysed:
    passages = cut(entry.path, file.text, entry.description)
    name, analyses = called(entry.path), list[Analysis]()
    for each in passages:
        # A lone surrogate has no meaning, and no model takes it.
        whole = sound(each.whole)
        # What the file is called is looked for in each passage, and is no part of what the passage means.
        terms = pack(sound(f"{name}\n{whole}"))
        analyses.append(replace(analyse(whole, turn=False), terms=terms))
    return _Analysed(entry.path, file.version, passages, analyses)
