"""The contract of `FileStore`, as tests."""

from __future__ import annotations

import asyncio
from pathlib import Path

from memshelf.files.model import Changes, FullResync
from memshelf.files.protocol import FileStore
from memshelf.testing.format import FormatContract
from memshelf.testing.harness import ORIGIN, contents, put, refused, scenario

__all__ = ["FileStoreContract"]


class FileStoreContract(FormatContract):
    """What every file memory guarantees. `reopens`: the memory outlives the handle that wrote it.
    `exact_changes`: `changes` lists paths instead of asking for a full read. `keeps_nul`: content may hold NUL."""

    exact_changes = False

    # Compare-and-swap

    @scenario
    async def test_a_write_answers_with_the_version_that_a_read_then_shows(self, store: FileStore) -> None:
        first = await store.write("a", "one", expected=None, origin=ORIGIN)
        assert (await store.read("a")).version == first
        second = await store.write("a", "two", expected=first, origin=ORIGIN)
        assert second != first
        file = await store.read("a")
        assert (file.path, file.text, file.version) == ("a", "two", second)

    @scenario
    async def test_a_stale_write_is_refused_with_the_file_as_it_is_now(self, store: FileStore) -> None:
        first = await store.write("a", "one", expected=None, origin=ORIGIN)
        second = await store.write("a", "two", expected=first, origin=ORIGIN)
        for operation in (
            store.write("a", "three", expected=first, origin=ORIGIN),
            store.write("a", "three", expected="no version", origin=ORIGIN),
            store.move("a", "b", expected=first, origin=ORIGIN),
            store.delete("a", expected=first, origin=ORIGIN),
        ):
            error = await refused("version_mismatch", operation)
            assert error.current is not None
            assert (error.current.path, error.current.text, error.current.version) == ("a", "two", second)
        assert await contents(store) == {"a": "two"}

    @scenario
    async def test_a_change_of_a_file_that_is_gone_is_refused_with_none(self, store: FileStore) -> None:
        version = await store.write("a", "one", expected=None, origin=ORIGIN)
        await store.delete("a", expected=version, origin=ORIGIN)
        for operation in (
            store.write("a", "two", expected=version, origin=ORIGIN),
            store.move("a", "b", expected=version, origin=ORIGIN),
            store.delete("a", expected=version, origin=ORIGIN),
        ):
            assert (await refused("version_mismatch", operation)).current is None
        assert await store.list() == []

    @scenario
    async def test_creating_over_a_file_is_refused_with_that_file(self, store: FileStore) -> None:
        version = await store.write("a", "one", expected=None, origin=ORIGIN)
        error = await refused("already_exists", store.write("a", "two", expected=None, origin=ORIGIN))
        assert error.current is not None
        assert (error.current.text, error.current.version) == ("one", version)
        assert await contents(store) == {"a": "one"}

    @scenario
    async def test_of_many_writes_that_expect_one_version_exactly_one_wins(self, store: FileStore) -> None:
        first = await store.write("a", "start", expected=None, origin=ORIGIN)
        results = await asyncio.gather(
            *(store.write("a", f"writer {each}", expected=first, origin=ORIGIN) for each in range(50)),
            return_exceptions=True,
        )
        winners = [each for each, result in enumerate(results) if isinstance(result, str)]
        assert len(winners) == 1
        assert all(getattr(result, "code", "version_mismatch") == "version_mismatch" for result in results)
        assert await contents(store) == {"a": f"writer {winners[0]}"}

    @scenario
    async def test_of_many_creations_of_one_path_exactly_one_wins(self, store: FileStore) -> None:
        paths = ["a", "a/b", "a/b/c"]
        results = await asyncio.gather(
            *(store.write(paths[each % 3], str(each), expected=None, origin=ORIGIN) for each in range(30)),
            return_exceptions=True,
        )
        assert sum(isinstance(result, str) for result in results) == 1
        assert all(getattr(result, "code", "already_exists") == "already_exists" for result in results)
        assert len(await store.list()) == 1

    @scenario
    async def test_writing_what_already_stands_changes_nothing(self, store: FileStore) -> None:
        version = await store.write("a", "one", expected=None, origin=ORIGIN)
        cursor = (await store.changes(None)).cursor
        assert await store.write("a", "one", expected=version, origin=ORIGIN) == version
        assert await store.changes(cursor) == Changes(cursor, ())

    # Move and delete

    @scenario
    async def test_a_move_carries_the_content_to_the_new_path(self, store: FileStore) -> None:
        version = await store.write("a/b/c", "tea", expected=None, origin=ORIGIN)
        moved = await store.move("a/b/c", "x/y", expected=version, origin=ORIGIN)
        assert (await store.read("x/y")).version == moved
        assert await contents(store) == {"x/y": "tea"}
        await store.write("a", "the directories are gone", expected=None, origin=ORIGIN)

    @scenario
    async def test_a_move_onto_a_file_is_refused_with_that_file(self, store: FileStore) -> None:
        a = await store.write("a", "one", expected=None, origin=ORIGIN)
        await store.write("b", "two", expected=None, origin=ORIGIN)
        error = await refused("already_exists", store.move("a", "b", expected=a, origin=ORIGIN))
        assert error.current is not None
        assert error.current.text == "two"
        error = await refused("already_exists", store.move("a", "a", expected=a, origin=ORIGIN))
        assert error.current is not None
        assert error.current.text == "one"
        assert await contents(store) == {"a": "one", "b": "two"}

    @scenario
    async def test_a_file_is_in_its_own_way(self, store: FileStore) -> None:
        version = await store.write("a/b", "tea", expected=None, origin=ORIGIN)
        await refused("already_exists", store.move("a/b", "a", expected=version, origin=ORIGIN))
        await refused("already_exists", store.move("a/b", "a/b/c", expected=version, origin=ORIGIN))
        assert await contents(store) == {"a/b": "tea"}

    @scenario
    async def test_a_path_can_be_used_again_after_a_delete(self, store: FileStore) -> None:
        first = await store.write("a", "one", expected=None, origin=ORIGIN)
        await store.delete("a", expected=first, origin=ORIGIN)
        deep = await store.write("a/b", "two", expected=None, origin=ORIGIN)
        await store.delete("a/b", expected=deep, origin=ORIGIN)
        await store.write("a", "three", expected=None, origin=ORIGIN)
        assert await contents(store) == {"a": "three"}

    # Listing

    @scenario
    async def test_a_listing_stands_in_byte_wise_order_with_sizes_and_descriptions(self, store: FileStore) -> None:
        texts = {
            "b": "---\ndescription: Tea\n---\nbody",
            "B": "\n\n  first line  \nsecond",
            "a/z": "喜欢绿茶",
            "a.md": "",
            "a-": "---\nname: x\n---\n\nbody line\n",
            "\uff21": "wide",
            "\U0001f375": "cup",
        }
        versions = {path: await put(store, path, text) for path, text in texts.items()}
        listing = await store.list()
        assert [entry.path for entry in listing] == sorted(texts, key=str.encode)
        assert {entry.path: entry.version for entry in listing} == versions
        assert {entry.path: entry.size for entry in listing} == {path: len(t.encode()) for path, t in texts.items()}
        descriptions = {entry.path: entry.description for entry in listing}
        assert descriptions == {
            "b": "Tea", "B": "first line", "a/z": "喜欢绿茶", "a.md": None, "a-": "body line", "\uff21": "wide",
            "\U0001f375": "cup",
        }  # fmt: skip

    @scenario
    async def test_a_new_memory_is_empty(self, store: FileStore) -> None:
        assert await store.list() == []
        await refused("not_found", store.read("a"))
        assert isinstance(await store.changes(None), FullResync)
        await store.purge()

    # Cursors

    @scenario
    async def test_an_unchanged_memory_has_no_changes(self, store: FileStore) -> None:
        await store.write("a", "one", expected=None, origin=ORIGIN)
        cursor = (await store.changes(None)).cursor
        await store.read("a")
        await store.list()
        assert await store.changes(cursor) == Changes(cursor, ())

    @scenario
    async def test_every_change_shows_after_the_cursor(self, store: FileStore) -> None:
        a = await store.write("a", "one", expected=None, origin=ORIGIN)
        b = await store.write("b", "one", expected=None, origin=ORIGIN)
        c = await store.write("c", "one", expected=None, origin=ORIGIN)
        cursor = (await store.changes(None)).cursor
        await store.write("a", "two", expected=a, origin=ORIGIN)
        await store.move("b", "m", expected=b, origin=ORIGIN)
        await store.delete("c", expected=c, origin=ORIGIN)
        await store.write("n", "new", expected=None, origin=ORIGIN)
        answer = await store.changes(cursor)
        assert answer.cursor != cursor
        if self.exact_changes:
            assert isinstance(answer, Changes)
            assert sorted(answer.paths) == ["a", "b", "c", "m", "n"]
        elif isinstance(answer, Changes):
            assert set(answer.paths) >= {"a", "b", "c", "m", "n"}
        assert await store.changes(answer.cursor) == Changes(answer.cursor, ())

    @scenario
    async def test_a_cursor_that_the_store_cannot_place_asks_for_a_full_read(self, store: FileStore) -> None:
        await store.write("a", "one", expected=None, origin=ORIGIN)
        for since in ("", "nonsense", "0", ":", "9" * 5_000, "\ud800", "\x00", "١"):
            assert isinstance(await store.changes(since), FullResync)

    @scenario
    async def test_a_refused_change_does_not_show(self, store: FileStore) -> None:
        await store.write("a", "one", expected=None, origin=ORIGIN)
        cursor = (await store.changes(None)).cursor
        await refused("already_exists", store.write("a", "two", expected=None, origin=ORIGIN))
        await refused("version_mismatch", store.delete("b", expected="x", origin=ORIGIN))
        assert await store.changes(cursor) == Changes(cursor, ())

    # Purge, reopening, handles

    @scenario
    async def test_a_purge_removes_every_file_and_leaves_a_usable_memory(self, store: FileStore) -> None:
        old = await store.write("a/b", "one", expected=None, origin=ORIGIN)
        await store.write("c", "two", expected=None, origin=ORIGIN)
        cursor = (await store.changes(None)).cursor
        await store.purge()
        assert await store.list() == []
        answer = await store.changes(cursor)
        assert isinstance(answer, FullResync) or set(answer.paths) == {"a/b", "c"}
        await store.write("a/b", "other", expected=None, origin=ORIGIN)
        await refused("version_mismatch", store.write("a/b", "three", expected=old, origin=ORIGIN))

    def test_a_memory_outlives_its_handle(self, tmp_path: Path) -> None:
        if not self.reopens:
            return

        async def body() -> None:
            async with self.open(tmp_path) as store:
                version = await store.write("a/b", "one", expected=None, origin=ORIGIN)
                listing, cursor = await store.list(), (await store.changes(None)).cursor
            async with self.open(tmp_path) as store:
                assert (await store.read("a/b")).version == version
                assert await store.list() == listing
                assert await store.changes(cursor) == Changes(cursor, ())
                await store.write("a/b", "two", expected=version, origin=ORIGIN)

        asyncio.run(body())

    def test_two_handles_see_each_others_changes_at_once(self, tmp_path: Path) -> None:
        if not self.reopens:
            return

        async def body() -> None:
            async with self.open(tmp_path) as one, self.open(tmp_path) as other:
                version = await one.write("a", "one", expected=None, origin=ORIGIN)
                assert await other.list() == await one.list()
                cursor = (await other.changes(None)).cursor
                version = await other.write("a", "two", expected=version, origin=ORIGIN)
                assert (await one.read("a")).version == version
                assert (await one.list())[0].version == version
                assert await one.changes(cursor) != Changes(cursor, ())
                await one.delete("a", expected=version, origin=ORIGIN)
                await refused("not_found", other.read("a"))
                assert await other.list() == []

        asyncio.run(body())

    @scenario
    async def test_concurrent_writers_of_different_files_all_land(self, store: FileStore) -> None:
        await asyncio.gather(
            *(store.write(f"d{each % 4}/{each}", str(each), expected=None, origin=ORIGIN) for each in range(60))
        )
        assert await contents(store) == {f"d{each % 4}/{each}": str(each) for each in range(60)}
