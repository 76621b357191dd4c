"""The contract of `FileStore` and `SearchableFileStore`, as tests."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memshelf.errors import MemoryStoreError
from memshelf.files.model import Changes, FullResync
from memshelf.files.protocol import FileStore, SearchableFileStore
from memshelf.limits import FileFormat
from memshelf.testing.harness import ORIGIN, StoreContract, contents, put, refused, scenario

__all__ = ["FileStoreContract", "SearchableFileStoreContract"]

_BAD_PATHS = (
    "", "/", "/a", "a/", "a//b", ".", "..", "./a", "a/.", "a/./b", "a/../b", "../a", "a\\b", "a\nb", "a\x00b",
    "a\x7fb", "a\x85b", "\ud800", "a/" * 128 + "b", "é" * 129,
)  # fmt: skip
_GOOD_PATHS = (
    "a",
    "a.md",
    ".hidden",
    "...",
    "..a",
    "notes..md",
    "a b/c d.md",
    "100%/_x*?.md",
    "笔记/绿茶.md",
    "é" * 100,
    "ａ",
    "🍵",
)
_TEXTS = {
    "empty": "",
    "one line without an end": "tea",
    "carriage returns": "a\r\nb\rc\r\n",
    "NUL": "a\x00b\n",
    "BOM": "\ufefftea\n",
    "line separators": "a\u2028b\u2029c\x85d\x0be\x0cf\n",
    "Chinese": "喜欢绿茶。\n",
    "decomposed": "cafe\u0301\n",
    "emoji": "👩‍👩‍👧‍👦\U0010ffff",
    "spaces at the end": "tea  \n\n\n",
    "block": "</memory-context>\n<memory-context>",
}
_BAD_FRONTMATTER = {
    "not closed": "---\ndescription: tea\n",
    "closed too late": "---\ndescription: tea\n" + "# " + "x" * 2100 + "\n---\n",
    "not YAML": "---\ndescription: [tea\n---\n",
    "a list": "---\n- tea\n---\n",
    "a scalar": "---\ntea\n---\n",
    "a list as description": "---\ndescription: [tea]\n---\n",
    "two lines as description": '---\ndescription: "a\\nb"\n---\n',
    "an empty description": '---\ndescription: "  "\n---\n',
    "a long description": f"---\ndescription: {'x' * 201}\n---\n",
}


class FileStoreContract(StoreContract):
    """What every file memory guarantees. `reopens`: the memory outlives the handle that wrote it.
    `exact_changes`: `changes` lists paths instead of asking for a full read. `keeps_nul`: content may hold NUL."""

    reopens = True
    exact_changes = False
    keeps_nul = True

    # Paths

    @pytest.mark.parametrize("path", _BAD_PATHS)
    def test_a_path_that_is_not_canonical_is_refused_by_every_call(self, tmp_path: Path, path: str) -> None:
        async def body(store: FileStore) -> None:
            version = await store.write("good", "x", expected=None, origin=ORIGIN)
            await refused("invalid_path", store.read(path))
            await refused("invalid_path", store.write(path, "x", expected=None, origin=ORIGIN))
            await refused("invalid_path", store.write(path, "x", expected=version, origin=ORIGIN))
            await refused("invalid_path", store.move(path, "b", expected=version, origin=ORIGIN))
            await refused("invalid_path", store.move("good", path, expected=version, origin=ORIGIN))
            await refused("invalid_path", store.delete(path, expected=version, origin=ORIGIN))
            assert await contents(store) == {"good": "x"}

        self._run(tmp_path, body)

    @pytest.mark.parametrize("path", _GOOD_PATHS)
    def test_a_canonical_path_works_whatever_its_characters(self, tmp_path: Path, path: str) -> None:
        async def body(store: FileStore) -> None:
            version = await store.write(path, "x", expected=None, origin=ORIGIN)
            assert (await store.read(path)).path == path
            assert [entry.path for entry in await store.list()] == [path]
            await store.delete(path, expected=version, origin=ORIGIN)
            await refused("not_found", store.read(path))

        self._run(tmp_path, body)

    @scenario
    async def test_both_unicode_forms_of_a_path_name_one_file(self, store: FileStore) -> None:
        await store.write("cafe\u0301/re\u0301sume\u0301", "x", expected=None, origin=ORIGIN)
        assert [entry.path for entry in await store.list()] == ["caf\xe9/r\xe9sum\xe9"]
        await refused("already_exists", store.write("caf\xe9/r\xe9sum\xe9", "y", expected=None, origin=ORIGIN))
        assert (await store.read("caf\xe9/re\u0301sume\u0301")).path == "caf\xe9/r\xe9sum\xe9"

    @scenario
    async def test_letter_case_tells_paths_apart_or_the_second_is_refused(self, store: FileStore) -> None:
        await store.write("Tea", "upper", expected=None, origin=ORIGIN)
        try:
            await store.write("tea", "lower", expected=None, origin=ORIGIN)
        except MemoryStoreError as error:
            assert error.code == "already_exists"  # both outcomes are legal
            assert await contents(store) == {"Tea": "upper"}
        else:
            assert await contents(store) == {"Tea": "upper", "tea": "lower"}

    @scenario
    async def test_a_file_and_a_directory_cannot_share_a_path(self, store: FileStore) -> None:
        file = await store.write("a", "file", expected=None, origin=ORIGIN)
        deep = await store.write("d/e/f", "deep", expected=None, origin=ORIGIN)
        for path in ("a/b", "a/b/c"):
            error = await refused("already_exists", store.write(path, "x", expected=None, origin=ORIGIN))
            assert error.current is not None
            assert (error.current.path, error.current.text, error.current.version) == ("a", "file", file)
            error = await refused("already_exists", store.move("d/e/f", path, expected=deep, origin=ORIGIN))
            assert error.current is not None
            assert error.current.path == "a"
        for path in ("d", "d/e"):
            error = await refused("already_exists", store.write(path, "x", expected=None, origin=ORIGIN))
            assert error.current is not None
            assert error.current.path == "d/e/f"
            error = await refused("already_exists", store.move("a", path, expected=file, origin=ORIGIN))
            assert error.current is not None
            assert error.current.path == "d/e/f"
        assert await contents(store) == {"a": "file", "d/e/f": "deep"}

    @scenario
    async def test_near_miss_paths_do_not_get_in_each_others_way(self, store: FileStore) -> None:
        paths = ("a", "a.b/c", "a-/c", "a0", "ab/c", "aa", "a /c", "A/c")
        for path in paths:
            await store.write(path, path, expected=None, origin=ORIGIN)
        assert await contents(store) == {path: path for path in paths}

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

    # Content and limits

    @pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS)
    def test_text_is_stored_byte_for_byte(self, tmp_path: Path, text: str) -> None:
        async def body(store: FileStore) -> None:
            if "\0" in text and not self.keeps_nul:
                await refused("invalid_file", store.write("a", text, expected=None, origin=ORIGIN))
                return
            await store.write("a", text, expected=None, origin=ORIGIN)
            assert (await store.read("a")).text == text
            assert (await store.list())[0].size == len(text.encode())

        self._run(tmp_path, body)

    @pytest.mark.parametrize("text", _BAD_FRONTMATTER.values(), ids=_BAD_FRONTMATTER)
    def test_malformed_frontmatter_is_refused_and_nothing_changes(self, tmp_path: Path, text: str) -> None:
        async def body(store: FileStore) -> None:
            version = await store.write("a", "one", expected=None, origin=ORIGIN)
            await refused("invalid_file", store.write("a", text, expected=version, origin=ORIGIN))
            await refused("invalid_file", store.write("b", text, expected=None, origin=ORIGIN))
            assert await contents(store) == {"a": "one"}

        self._run(tmp_path, body)

    @scenario
    async def test_a_lone_surrogate_is_refused(self, store: FileStore) -> None:
        await refused("invalid_file", store.write("a", "x\udcff", expected=None, origin=ORIGIN))
        assert await store.list() == []

    def test_the_size_limit_counts_bytes_and_allows_the_last_one(self, tmp_path: Path) -> None:
        async def body(store: FileStore) -> None:
            version = await store.write("a", "茶" * 3 + "x", expected=None, origin=ORIGIN)
            await refused("too_large", store.write("a", "茶" * 3 + "xx", expected=version, origin=ORIGIN))
            await refused("too_large", store.write("b", "x" * 11, expected=None, origin=ORIGIN))
            assert await contents(store) == {"a": "茶" * 3 + "x"}

        self._run(tmp_path, body, FileFormat(max_file_bytes=10))

    @scenario
    async def test_a_full_file_of_one_line_is_kept_whole(self, store: FileStore) -> None:
        text = "x" * 65_536
        await store.write("a", text, expected=None, origin=ORIGIN)
        assert (await store.read("a")).text == text
        assert (await store.list())[0].description == "x" * 200

    def test_a_lowered_limit_keeps_what_is_stored_readable(self, tmp_path: Path) -> None:
        if not self.reopens:
            return

        async def body(store: FileStore) -> None:
            version = await store.write("a", "x" * 100, expected=None, origin=ORIGIN)
            async with self.open(tmp_path, FileFormat(max_file_bytes=10)) as smaller:
                assert (await smaller.read("a")).text == "x" * 100
                assert [entry.path for entry in await smaller.list()] == ["a"]
                await smaller.move("a", "b", expected=version, origin=ORIGIN)
                file = await smaller.read("b")
                await refused("too_large", smaller.write("b", "y" * 11, expected=file.version, origin=ORIGIN))
                await smaller.delete("b", expected=file.version, origin=ORIGIN)

        self._run(tmp_path, body)

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

    def _run(self, place: Path, body: object, format: FileFormat | None = None) -> None:
        async def run() -> None:
            async with self.open(place, format) as store:
                await body(store)  # type: ignore[operator]  # an async function of the store

        asyncio.run(run())


class SearchableFileStoreContract(StoreContract):
    """What a store that searches itself guarantees."""

    @scenario
    async def test_a_search_finds_lines_literally_and_in_any_case(self, store: SearchableFileStore) -> None:
        await put(store, "b", "Green TEA\nblack tea\r\ncoffee\n")
        await put(store, "a/x", "a.c\nabc\n喜欢绿茶\n")
        found, more = await store.search("tea", regex=False, case_sensitive=False, path="", limit=10)
        assert [(match.path, match.line, match.text) for match in found] == [
            ("b", 1, "Green TEA"),
            ("b", 2, "black tea"),
        ]
        assert found[0].version == (await store.read("b")).version
        assert not more
        found, _ = await store.search("tea", regex=False, case_sensitive=True, path="", limit=10)
        assert [match.line for match in found] == [2]
        found, _ = await store.search("a.c", regex=False, case_sensitive=False, path="", limit=10)
        assert [match.text for match in found] == ["a.c"]
        found, _ = await store.search("绿茶", regex=False, case_sensitive=False, path="", limit=10)
        assert [match.path for match in found] == ["a/x"]
        for odd in ("%", "_", "C++", '"', "what's", "-", "*", "tea\nblack"):
            assert await store.search(odd, regex=False, case_sensitive=False, path="", limit=10) == ([], False)

    @scenario
    async def test_a_search_stays_in_its_directory_and_limit_and_in_order(self, store: SearchableFileStore) -> None:
        for path in ("a/1", "a/2", "ab/3", "a.4", "b/a/5"):
            await put(store, path, "tea\ntea\n")
        found, more = await store.search("tea", regex=False, case_sensitive=False, path="a/", limit=10)
        assert [(match.path, match.line) for match in found] == [("a/1", 1), ("a/1", 2), ("a/2", 1), ("a/2", 2)]
        assert not more
        found, more = await store.search("tea", regex=False, case_sensitive=False, path="", limit=3)
        assert ([match.path for match in found], more) == (["a.4", "a.4", "a/1"], True)
        await refused("invalid_path", store.search("tea", regex=False, case_sensitive=False, path="a", limit=3))

    @scenario
    async def test_a_regular_expression_matches_within_a_line(self, store: SearchableFileStore) -> None:
        await put(store, "a", "tea 1\r\ntea 22\nno\n")
        found, _ = await store.search(r"^TEA \d+$", regex=True, case_sensitive=False, path="", limit=10)
        assert [match.line for match in found] == [1, 2]
        found, _ = await store.search(r"a\s+t", regex=True, case_sensitive=False, path="", limit=10)
        assert found == []
        await refused("invalid_pattern", store.search("(", regex=True, case_sensitive=False, path="", limit=1))
        await refused("invalid_pattern", store.search("", regex=False, case_sensitive=False, path="", limit=1))

    @scenario
    async def test_a_hostile_regular_expression_neither_hangs_nor_blocks(self, store: SearchableFileStore) -> None:
        await put(store, "a", "a" * 5_000 + "b\n")
        async with asyncio.timeout(30):
            search = asyncio.ensure_future(store.search("(a+)+$", regex=True, case_sensitive=False, path="", limit=10))
            assert (await store.read("a")).path == "a"
            assert not search.done(), "a read does not wait for the search"
            await refused("invalid_pattern", search)

    @scenario
    async def test_a_long_line_is_shown_around_its_match(self, store: SearchableFileStore) -> None:
        await put(store, "a", "x" * 30_000 + "needle" + "y" * 30_000)
        found, _ = await store.search("needle", regex=False, case_sensitive=False, path="", limit=10)
        assert "needle" in found[0].text
        assert len(found[0].text) <= 1_002
