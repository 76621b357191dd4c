"""Record memories in a SQL database: durable records, and an index of them in the memory of this process."""

from __future__ import annotations

import asyncio
import builtins
import contextlib
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeAlias, TypeVar

from memshelf.arguments import checked_argument, checked_number
from memshelf.closing import Closes
from memshelf.credentials import SecretsPolicy, check_policy
from memshelf.errors import MemoryStoreError
from memshelf.limits import page_limit
from memshelf.origin import Origin
from memshelf.records.backends.drafts import Draft, draft_all
from memshelf.records.backends.paging import FOUND, LISTED, cursor_position, record_missing
from memshelf.records.backends.sql.namespace import Changed, Missing, Namespace, model_id, open_namespace
from memshelf.records.model import MemoryRecord, NewRecord, RecordPage
from memshelf.records.recall import EmbedderChoice, Recall
from memshelf.storage.ids import Mint
from memshelf.storage.transaction import Engine, Script, Transaction

__all__ = ["Progress", "SqlRecordStore"]

Progress = Callable[[int, int], None]
"""Called with how many records are done, and how many there are."""

T = TypeVar("T")

_Seen: TypeAlias = tuple[int, str, int]
"""The database's generation, the namespace's epoch, and the change up to which the index is right."""

_NOTHING_SEEN: _Seen = (-1, "", 0)
_PAGE = 5_000
_BATCH = 64


class SqlRecordStore(Closes):
    """The records of `namespace` in a database, which holds any number of namespaces.

    Use the store as it is, from any task and any event loop, or as an async context manager. `aclose` closes the
    engine that the store was given; a closed store opens again when used.

    Records are found by their words as soon as they are added. By meaning they are found when they have vectors of the
    store's embedder: new ones at once; those that were added while there was no embedder, or another one, when a
    search has set off their indexing in the background, or `reindex` has run.
    """

    def __init__(
        self,
        engine: Engine,
        namespace: str = "default",
        *,
        embedder: EmbedderChoice = "default",
        max_chars: int = 100_000,
        secrets: SecretsPolicy = "warn",
        mint: Mint | None = None,
    ) -> None:
        if not checked_argument("namespace", namespace, str) or not namespace.isprintable():
            raise ValueError(f"A namespace's name is one or more printable characters, not {namespace!r}.")
        self._engine = engine
        self._name = namespace
        self._max_chars = checked_number("max_chars", max_chars)
        self._secrets = check_policy(secrets)
        self._mint = mint or Mint()
        self._recall = Recall(embedder)
        self._model: int | None = None
        self._model_of = -1
        self._key: int | None = None
        self._refused: set[tuple[int, int]] = set()  # records, as they are, that the embedder takes no text of
        self._begin()

    def _begin(self) -> None:
        self._seen = _NOTHING_SEEN
        self._filling: asyncio.Task[None] | None = None
        self._lacked = self._filled = 0  # how often records were seen that lack something, and how often none was left
        self._reindexing = False

    async def aclose(self) -> None:
        """Stop indexing, and close the engine after what was called before."""
        await self._stop_filling()
        self._model = None
        self._recall.close()
        await self._engine.aclose()

    async def search(
        self, query: str, *, limit: int = FOUND, now: datetime | None = None
    ) -> builtins.list[MemoryRecord]:
        limit = page_limit(limit)
        await self._catch_up()
        found = await self._recall.search(query, limit=limit, now=now, clock=self._mint.clock())
        if self._lacked > self._filled and not self._recall.failing:
            self._index_in_background()
        if not found:
            return []
        records = await self._read(
            lambda namespace: namespace.records(key for key, _ in found), dict[int, MemoryRecord]()
        )
        return [replace(records[key], score=score) for key, score in found if key in records]

    async def list(self, *, limit: int = LISTED, cursor: str | None = None) -> RecordPage:
        limit = page_limit(limit)
        page = await self._read(lambda namespace: namespace.page(limit, cursor), None)
        if page is None:  # there are no records, and no cursors of theirs
            cursor_position(cursor, "")
        return page if page is not None else RecordPage((), None)

    async def add(
        self,
        text: str,
        *,
        at: datetime | None = None,
        thread: str | None = None,
        origin: Origin | None = None,
        replaces: str | None = None,
    ) -> MemoryRecord:
        new = NewRecord(text=text, at=at, thread=thread, origin=origin, replaces=replaces)
        return (await self.add_many([new]))[0]

    async def add_many(self, records: Iterable[NewRecord]) -> builtins.list[MemoryRecord]:
        drafts = await draft_all(records, self._max_chars, self._mint.now(), secrets=self._secrets)
        if not drafts:
            return []
        vectors = await self._vectors(drafts)
        return await self._write(lambda namespace: namespace.add(drafts, vectors, self._model, self._mint))

    async def add_unless_others(
        self, records: Iterable[NewRecord], position: int
    ) -> tuple[builtins.list[MemoryRecord], builtins.list[MemoryRecord], int]:
        """Add all of them if no record was added after `position`, for who adds only what is not there yet. Otherwise
        add none.

        Answers with what was added, what had been added before by others, some thousand at a time, and the position
        up to which that is known now. 0 is before all records.
        """
        drafts = await draft_all(records, self._max_chars, self._mint.now(), secrets=self._secrets)
        vectors = await self._vectors(drafts)

        async def script(
            namespace: Namespace,
        ) -> tuple[builtins.list[MemoryRecord], builtins.list[MemoryRecord], int]:
            others, known = await namespace.added_after(position, _PAGE)
            if others:
                return [], others, known
            added = await namespace.add(drafts, vectors, self._model, self._mint)
            return added, [], namespace.last_position

        return await self._write(script)

    async def get(self, record_id: str) -> MemoryRecord:
        """The whole record. `record_not_found`."""
        found = await self._read(lambda namespace: namespace.record(record_id), None)
        if found is None:  # there is no such namespace
            raise record_missing(record_id)
        return found

    async def update(self, record_id: str, text: str, *, origin: Origin | None = None) -> MemoryRecord:
        old, now = await self.get(record_id), self._mint.now()
        new = NewRecord(text=text, at=old.at, thread=old.thread, origin=origin or old.origin)
        (draft,) = await draft_all([new], self._max_chars, now, secrets=self._secrets)
        (vectors,) = await self._vectors([draft])
        return await self._write(lambda namespace: namespace.update(record_id, draft, vectors, self._model, now))

    async def delete(self, record_id: str) -> None:
        await self._write(lambda namespace: namespace.delete(record_id))

    async def purge(self) -> None:
        await self._engine.erase(self._within(lambda namespace: namespace.purge(self._new_epoch())))

    async def erase(self, record_ids: Iterable[str]) -> None:
        """Delete records and leave nothing of them behind, as `purge` does of all; when one is not there, delete none.

        `delete` is a commit, and quick. This rewrites what it was in. `record_not_found`; `unavailable` when the
        records are deleted but others keep the rest from being done, which the same call then finishes.
        """
        if isinstance(record_ids, str):
            raise TypeError("`record_ids` is a collection of ids, also of one: [id], not a str.")
        given = checked_argument("record_ids", record_ids, Iterable)
        wanted = dict.fromkeys(checked_argument("record_id", each, str) for each in given)

        async def deleted(namespace: Namespace) -> None:
            for record_id in wanted:
                await namespace.delete(record_id)
            await namespace.leave_no_trace()

        try:
            await self._engine.erase(self._within(deleted))
        except MemoryStoreError as error:
            if error.code == "record_not_found":  # maybe because an earlier call could not finish
                await self._engine.erase(_nothing)
            raise

    async def reindex(self, *, progress: Progress | None = None) -> None:
        """Give every record vectors of the store's embedder, and drop those of any other.

        It goes on where it was stopped. Searches and changes go on meanwhile. `unavailable` when the embedder cannot
        do it now; what is done until then is kept. A record whose text it refuses is left as it is, found by its words.
        """
        self._recall.say_what_is_missing()
        await self._prepare()
        await self._stop_filling()
        self._reindexing = True
        self._refused.clear()
        try:
            missing, every = await self._read(lambda namespace: namespace.count_missing(self._model), (0, 0))
            done = every - missing
            if progress is not None:
                progress(done, every)
            below: int | None = None
            while filled := await self._fill(below):
                count, below = filled
                done = min(done + count, every)
                if progress is not None:
                    progress(done, every)
            await self._fill_all()  # what others added meanwhile, without an embedder or with another one
        finally:
            self._reindexing = False
        if (model := self._model) is not None:
            await self._write(lambda namespace: namespace.drop_other_models(model))

    async def unindexed(self) -> int:
        """How many records are found by their words only, until they are indexed."""
        await self._prepare()
        missing, _ = await self._read(lambda namespace: namespace.count_missing(self._model), (0, 0))
        return missing

    async def _fill(self, below: int | None) -> tuple[int, int] | None:
        """Index some of the records before the position `below`, the newest of them first: how many, and where the
        next ones are. `None` when none is left. `unavailable` when the embedder fails."""
        missing = await self._read(
            lambda namespace: namespace.missing(self._model, below, _BATCH), builtins.list[Missing]()
        )
        if not missing:
            return None
        again = [NewRecord(text=each.text, thread="" if each.turn else None) for each in missing]
        drafts = await draft_all(again, max(len(each.text) for each in missing), 0, secrets="off")
        pairs = list(zip(missing, drafts, strict=True))
        lacking = [pair for pair in pairs if not pair[0].embedded and pair[0].revision not in self._refused]
        vectors = await self._vectors([draft for _, draft in lacking])
        if self._model is not None and None in vectors:
            apart = await self._recall.vectors_apart([draft.analysis.passages for _, draft in lacking])
            if apart is None:
                raise MemoryStoreError(
                    "unavailable", "The embedder cannot index the records now; what is done is kept."
                )
            vectors = apart
            self._refused.update(each.revision for (each, _), rows in zip(lacking, apart, strict=True) if rows is None)
        new = {each.position: rows for (each, _), rows in zip(lacking, vectors, strict=True) if rows is not None}
        done = (pair for pair in pairs if pair[0].embedded or self._model is None or pair[0].position in new)
        filled = [(each, draft, new.get(each.position)) for each, draft in done]
        await self._write(lambda namespace: namespace.fill(filled, self._model))
        return len(missing), missing[-1].position

    async def _catch_up(self) -> None:
        """Bring the index to what is committed now, by whichever process."""
        self._recall.forked(self._begin)
        await self._prepare()
        generation, seen = self._engine.generation(), self._seen
        now = await self._read(Namespace.stands_at, None, single=True)
        if now is not None and self._seen == (generation, *now) and not self._recall.index.wasteful:
            return
        if now is not None and self._seen == seen > (generation, *now) and seen[1] == now[0]:
            await self._recall.run(self._set_back)  # an older backup is in its place
        while not await self._read_on():
            pass

    async def _read_on(self) -> bool:
        """Read all pages of changes; `False` if another search, which reads too, set the index back meanwhile."""
        generation = self._engine.generation()
        seen = self._seen if self._seen[0] == generation else _NOTHING_SEEN
        applied: asyncio.Future[bool] | None = None
        lacking = False
        while True:
            change = await self._read(partial(self._changes, seen=seen), None)
            if applied is not None:  # it ran while this page was read
                lacking |= await applied
                applied = None
            if change is None:
                if len(self._recall.index):
                    await self._recall.run(self._set_back)
                return True
            now = generation, change.epoch, change.until
            if now != self._seen:
                applied = asyncio.ensure_future(self._recall.run(partial(self._apply, change, now)))
            if not change.more:
                break
            seen = now
        if applied is not None:
            lacking |= await applied
        if lacking:
            self._lacked += 1
            self._index_in_background()
        return self._seen >= now or self._seen[:2] != now[:2]

    def _set_back(self) -> None:
        self._recall.reset()
        self._seen = _NOTHING_SEEN

    async def _changes(self, namespace: Namespace, *, seen: _Seen) -> Changed:
        _, epoch, change = seen
        goes_on = epoch == namespace.epoch and change >= namespace.forgotten and not self._recall.index.wasteful
        return await namespace.changes(change if goes_on else 0, self._model, _PAGE)

    def _apply(self, change: Changed, now: _Seen) -> bool:
        """On the index's thread. Whether some records lack vectors, or what else follows from their text."""
        if change.since == 0:
            if self._seen[:2] == now[:2] and self._seen >= now and not self._recall.index.wasteful:
                return False
            self._recall.reset()
        elif self._seen != (*now[:2], change.since):  # another search was faster
            return False
        self._recall.index.put(change.entries)
        self._recall.index.remove(change.removed)
        self._seen = now
        return change.stale or (change.unembedded and self._recall.embedder is not None)

    def _index_in_background(self) -> None:
        filling, loop = self._filling, asyncio.get_running_loop()
        idle = filling is None or filling.done() or filling.get_loop() is not loop
        if idle and not self._reindexing:
            self._filling = asyncio.create_task(self._fill_quietly())

    async def _fill_all(self) -> None:
        below: int | None = None
        while filled := await self._fill(below):
            _, below = filled

    async def _fill_quietly(self) -> None:
        lacked = self._lacked
        with contextlib.suppress(MemoryStoreError):  # a search sets it off again, and reindex() says why
            await self._fill_all()
            self._filled = lacked

    async def _stop_filling(self) -> None:
        filling, self._filling = self._filling, None
        if filling is not None and filling.get_loop() is asyncio.get_running_loop():
            filling.cancel()
            await asyncio.wait([filling])  # unlike `await filling`, this tells its cancellation from the caller's
            if not filling.cancelled():
                filling.result()

    async def _vectors(self, drafts: builtins.list[Draft]) -> builtins.list[bytes | None]:
        await self._prepare()
        return await self._recall.vectors([draft.analysis.passages for draft in drafts])

    async def _prepare(self) -> None:
        embedder, generation = self._recall.embedder, self._engine.generation()
        if embedder is not None and (self._model is None or self._model_of != generation):
            self._model = await self._engine.write(lambda transaction: model_id(transaction, embedder))
            self._model_of = generation

    async def _read(self, script: Callable[[Namespace], Awaitable[T]], nothing: T, *, single: bool = False) -> T:
        async def within(transaction: Transaction) -> T:
            namespace = await open_namespace(transaction, self._name, None)
            return nothing if namespace is None else await script(namespace)

        return await self._engine.read(within, single=single)

    async def _write(self, script: Callable[[Namespace], Awaitable[T]]) -> T:
        if self._key is None:
            self._key = await self._read(_key, None, single=True)
        return await self._engine.write(self._within(script), key=self._key)

    def _within(self, script: Callable[[Namespace], Awaitable[T]]) -> Script[T]:
        """The script in the namespace, which is made when there is none."""
        epoch = self._new_epoch()

        async def within(transaction: Transaction) -> T:
            namespace = await open_namespace(transaction, self._name, epoch)
            assert namespace is not None  # noqa: S101  # it is made when there is none
            return await script(namespace)

        return within

    def _new_epoch(self) -> str:
        return self._mint.id("recs", self._mint.now())


async def _nothing(_: Transaction) -> None:
    pass


async def _key(namespace: Namespace) -> int:
    return -namespace.id  # the ids of other tables' rows, which others lock, are positive
