"""Which paths and texts a `FileStore` keeps, and how: the part of its contract that is about the file format."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memshelf.errors import MemoryStoreError
from memshelf.files.protocol import FileStore
from memshelf.limits import FileFormat
from memshelf.testing.harness import ORIGIN, StoreContract, contents, refused, scenario

__all__ = ["FormatContract"]

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


class FormatContract(StoreContract):
    """Paths, content and limits of a file memory."""

    reopens = True
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

    def _run(self, place: Path, body: object, format: FileFormat | None = None) -> None:
        async def run() -> None:
            async with self.open(place, format) as store:
                await body(store)  # type: ignore[operator]  # an async function of the store

        asyncio.run(run())
