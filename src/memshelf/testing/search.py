"""The contract of `SearchableFileStore`, as tests."""

from __future__ import annotations

import asyncio

from memshelf.files.protocol import SearchableFileStore
from memshelf.testing.harness import StoreContract, put, refused, scenario

__all__ = ["SearchableFileStoreContract"]


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
        await put(store, "b", "one\n\n")
        await put(store, "c", "")
        found, _ = await store.search("^$", regex=True, case_sensitive=False, path="", limit=10)
        assert [(match.path, match.line) for match in found] == [("b", 2)], "a file's last line ends at its newline"
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
