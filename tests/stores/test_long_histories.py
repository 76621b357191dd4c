"""What a page costs does not grow with what is not on it. Steps are those of SQLite's machine, which are the same each
time, whatever else the computer does."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from workspace_of_tests import ORIGIN, WORKSPACE

from memshelf.files.backends.sql.changes import erase
from memshelf.origin import Origin
from memshelf.storage import sqlite_engine
from memshelf.stores.catalogue import Period
from memshelf.stores.files import StoreFiles
from memshelf.stores.history import Author, History
from memshelf.stores.memories import Memories
from memshelf.stores.shelf import Opened, Shelf, StoreAccess
from memshelf.stores.verification import Verification
from memshelf.stores.versions import VersionFilter, Versions

EARLY, LATER = 40, 300
"""How many versions there are when a page is first asked for, and when it is asked for again."""


class Steps:
    """How many steps the scripts took that ran while `counting`: all of them, and the one that took most."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.taken: list[int] = []
        run = sqlite_engine._run

        def counted(script: Any, connection: Any, **options: Any) -> Any:
            self.taken.append(0)
            connection.set_progress_handler(self._step, 1)
            try:
                return run(script, connection, **options)
            finally:
                connection.set_progress_handler(None, 0)

        monkeypatch.setattr(sqlite_engine, "_run", counted)

    def _step(self) -> int:
        self.taken[-1] += 1
        return 0

    async def of(self, call: Callable[[], Awaitable[object]]) -> int:
        self.taken.clear()
        await call()
        return sum(self.taken)

    async def longest(self, call: Callable[[], Awaitable[object]]) -> int:
        self.taken.clear()
        await call()
        return max(self.taken)


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> Steps:
    return Steps(monkeypatch)


async def rewrite(memories: Memories, memory_id: str, versions: range) -> None:
    await asyncio.gather(
        *(memories.update(memory_id, content=f"version {number}", origin=ORIGIN) for number in versions)
    )


async def fill(memories: Memories, numbers: range) -> None:
    await asyncio.gather(*(memories.create(f"/z/{number:04}.md", "x", origin=ORIGIN) for number in numbers))


@contextmanager
def no_more_than_before(before: list[int]) -> Iterator[list[int]]:
    """A page takes at most a tenth more steps than the same page took before."""
    now: list[int] = []
    yield now
    assert before
    assert all(later <= 1.1 * early for early, later in zip(before, now, strict=True)), (before, now)


@pytest.mark.parametrize("content", [False, True])
async def test_a_page_of_one_memorys_versions_costs_the_same_however_many_there_are(
    shelf: Shelf, store: str, memories: Memories, steps: Steps, content: bool
) -> None:
    one = (await memories.create("/log.md", "version 0", origin=ORIGIN)).id
    versions, where = Versions(shelf, WORKSPACE, store), VersionFilter(memory_id=one)

    async def pages() -> list[int]:
        first = await versions.page(limit=10, where=where, content=content)
        return [
            await steps.of(lambda: versions.page(limit=10, where=where, content=content)),
            await steps.of(lambda: versions.page(limit=10, where=where, page=first.next_page, content=content)),
        ]

    await rewrite(memories, one, range(1, EARLY))
    before = await pages()
    await rewrite(memories, one, range(EARLY, LATER))
    with no_more_than_before(before) as now:
        now += await pages()


async def test_a_page_of_a_paths_versions_costs_the_same_however_many_there_are(
    shelf: Shelf, store: str, memories: Memories, steps: Steps
) -> None:
    one = (await memories.create("/log.md", "version 0", origin=ORIGIN)).id
    files = StoreFiles(shelf, WORKSPACE, store)

    async def pages() -> list[int]:
        cursor = (await files.versions("log.md", None, 10, None)).next_cursor
        return [
            await steps.of(lambda: files.versions("log.md", None, 10, None)),
            await steps.of(lambda: files.versions("log.md", None, 10, cursor)),
        ]

    await rewrite(memories, one, range(1, EARLY))
    before = await pages()
    await rewrite(memories, one, range(EARLY, LATER))
    with no_more_than_before(before) as now:
        now += await pages()


async def test_a_paths_versions_are_those_of_all_files_that_stood_there_page_by_page(
    shelf: Shelf, store: str, memories: Memories
) -> None:
    for number in range(4):
        memory = await memories.create("/a.md", f"file {number}", origin=ORIGIN)
        await rewrite(memories, memory.id, range(5))
        if number == 1:
            await memories.update(memory.id, path="/b.md", origin=ORIGIN)
        else:
            await memories.delete(memory.id, origin=ORIGIN)
    files = StoreFiles(shelf, WORKSPACE, store)
    whole = (await files.versions("a.md", None, 100, None)).versions
    assert [version.created_at for version in whole] == sorted((each.created_at for each in whole), reverse=True)
    assert len(whole) == 4 * 7
    for limit in (1, 3, 7, 28):
        found, cursor = [], None
        while True:
            page = await files.versions("a.md", None, limit, cursor)
            found += page.versions
            if (cursor := page.next_cursor) is None:
                break
        assert found == list(whole)
    since = whole[9].created_at
    assert (await files.versions("a.md", since, 100, None)).versions == whole[:10]


async def test_a_page_of_an_earlier_time_costs_the_same_however_much_was_written(
    shelf: Shelf, store: str, memories: Memories, steps: Steps
) -> None:
    made = [await memories.create(f"/{number:03}.md", "first", origin=ORIGIN) for number in range(30)]
    history, moment = History(shelf, WORKSPACE, store), datetime.now(UTC)
    before = [await steps.of(lambda: history.at(datetime.now(UTC), limit=10))]
    await fill(memories, range(200))
    await rewrite(memories, made[-1].id, range(300))
    with no_more_than_before(before) as now:
        now += [await steps.of(lambda: history.at(datetime.now(UTC), limit=10))]
    was = await history.at(moment, limit=100, content=True)
    assert [version.path for version in was.items] == [memory.path.removeprefix("/") for memory in made]
    assert {version.text for version in was.items} == {"first"}


async def test_a_store_at_a_time_is_whole_where_nothing_stands_at_most_places(
    shelf: Shelf, store: str, memories: Memories
) -> None:
    history, stood = History(shelf, WORKSPACE, store), []
    for number in range(150):
        memory = await memories.create(f"/{number:03}.md", "x", origin=ORIGIN)
        if number % 7:
            await memories.delete(memory.id, origin=ORIGIN)
        else:
            stood.append(f"{number:03}.md")
    again = await memories.create("/001.md", "another file at the place of one that went", origin=ORIGIN)
    moved = await memories.create("/000a.md", "x", origin=ORIGIN)
    await memories.update(moved.id, path="/002.md", origin=ORIGIN)
    expected = sorted([*stood, "001.md", "002.md"])
    found, page, moment = [], None, datetime.now(UTC)
    while True:
        part = await history.at(moment, limit=4, page=page)
        found += [version.path for version in part.items]
        if (page := part.next_page) is None:
            break
    assert found == expected
    await memories.delete(again.id, origin=ORIGIN)
    assert len((await history.at(datetime.now(UTC) - timedelta(days=1), limit=100)).items) == 0


async def test_undoing_the_last_change_of_a_memory_does_not_read_its_whole_history(
    shelf: Shelf, store: str, memories: Memories, steps: Steps
) -> None:
    one = (await memories.create("/log.md", "version 0", origin=ORIGIN)).id
    other = (await memories.create("/other.md", "version 0", origin=ORIGIN)).id
    history, author = History(shelf, WORKSPACE, store), Author("session", "sesn_1")

    async def undone(memory_id: str) -> int:
        begin = datetime.now(UTC)
        await memories.update(memory_id, content="by the session", origin=Origin(session_id="sesn_1"))
        return await steps.of(lambda: history.undo(author, begin, origin=ORIGIN))

    await rewrite(memories, other, range(1, 150))
    before = [await undone(other)]
    await rewrite(memories, one, range(1, 600))
    with no_more_than_before(before) as now:
        now.append(await undone(one))


async def test_verifying_never_keeps_other_readers_waiting_for_the_whole_history(
    shelf: Shelf, store: str, memories: Memories, steps: Steps
) -> None:
    verification = Verification(shelf, WORKSPACE, store)
    await fill(memories, range(500))
    before = await steps.longest(verification.verify)
    await fill(memories, range(500, 1_100))
    assert await steps.longest(verification.verify) <= 1.1 * before
    assert (await verification.verify()).versions == 1_100


@pytest.mark.parametrize(
    "where",
    [
        VersionFilter(operation="deleted"),
        VersionFilter(api_key_id="apikey_rare"),
        VersionFilter(period=Period(until=datetime(2020, 1, 1, tzinfo=UTC))),
    ],
    ids=["operation", "key", "time"],
)
async def test_looking_for_rare_versions_lets_other_readers_in_between(
    shelf: Shelf, store: str, memories: Memories, steps: Steps, where: VersionFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memshelf.stores.versions._LOOKED_AT", 50)
    versions = Versions(shelf, WORKSPACE, store)
    await fill(memories, range(100))
    before = await steps.longest(lambda: versions.page(limit=10, where=where))
    await fill(memories, range(100, 600))
    assert await steps.longest(lambda: versions.page(limit=10, where=where)) <= 1.1 * before


async def test_rare_versions_are_found_page_by_page_wherever_they_stand(
    shelf: Shelf, store: str, memories: Memories, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memshelf.stores.versions._LOOKED_AT", 7)
    rare, versions = Origin(api_key_id="apikey_rare"), Versions(shelf, WORKSPACE, store)
    wrote = []
    for number in range(60):
        origin = rare if number in (0, 1, 13, 14, 15, 59) else ORIGIN
        memory = await memories.create(f"/{number}.md", "x", origin=origin)
        if origin is rare:
            wrote.append(memory.version_id)
    for limit in range(1, 8):
        found, page = [], None
        while True:
            part = await versions.page(limit=limit, where=VersionFilter(api_key_id="apikey_rare"), page=page)
            found += [version.id for version in part.items]
            if (page := part.next_page) is None:
                break
        assert found == wrote[::-1]
    assert (await versions.page(limit=5, where=VersionFilter(api_key_id="none"))).items == ()


async def test_erasing_a_version_costs_the_same_however_many_files_and_erased_versions_there_are(
    shelf: Shelf, store: str, memories: Memories, steps: Steps
) -> None:
    one = (await memories.create("/log.md", "version 0", origin=ORIGIN)).id
    access = StoreAccess(shelf, WORKSPACE, store)

    async def erased(seqs: range) -> int:
        """The steps for some of the oldest versions, as retention erases them."""

        async def script(opened: Opened) -> int:
            rows = await opened.memory.all(
                "SELECT id, file_id FROM file_versions WHERE memory_id = $1 AND seq >= $2 AND seq < $3",
                seqs.start,
                seqs.stop,
            )
            return await erase(opened.memory, dict(map(tuple, rows)), "retention", shelf.mint)

        return await steps.of(lambda: access.write(script))

    await rewrite(memories, one, range(1, 400))
    await erased(range(1, 6))
    before = [await erased(range(6, 11))]
    await fill(memories, range(500))
    await erased(range(11, 300))
    with no_more_than_before(before) as now:
        now.append(await erased(range(300, 305)))
    assert len((await StoreFiles(shelf, WORKSPACE, store).versions("log.md", None, 1_000, None)).versions) == 400


async def test_a_place_is_left_with_the_last_version_that_says_so(shelf: Shelf, store: str, memories: Memories) -> None:
    one = (await memories.create("/a.md", "0", origin=ORIGIN)).id
    await rewrite(memories, one, range(1, 6))
    await memories.update(one, path="/b.md", origin=ORIGIN)
    await rewrite(memories, one, range(6, 12))
    versions, files = Versions(shelf, WORKSPACE, store), StoreFiles(shelf, WORKSPACE, store)
    at_a = [each.id for each in (await versions.page(limit=100)).items if each.path == "a.md"]
    assert len(at_a) == 6
    for left, id in enumerate(at_a[::2] + at_a[1::2], start=1):
        await versions.redact(id, by="ann")
        found = (await files.versions("a.md", None, 100, None)).versions
        assert len(found) == (13 if left < 6 else 0)
    assert len((await files.versions("b.md", None, 100, None)).versions) == 13


async def test_a_page_with_content_costs_the_same_however_many_memories_there_are(
    shelf: Shelf, memories: Memories, steps: Steps
) -> None:
    async def pages() -> list[int]:
        page = (await memories.page(limit=10, content=True)).next_page
        return [await steps.of(lambda: memories.page(limit=10, page=page, content=True))]

    await fill(memories, range(50))
    before = await pages()
    await fill(memories, range(50, 600))
    with no_more_than_before(before) as now:
        now += await pages()
