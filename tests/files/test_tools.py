"""The tools and edits over any store."""

from __future__ import annotations

import asyncio
import json
import pickle
import re

import pytest

from memshelf import FileFormat, FileMemoryLimits, FileMount, InProcessFileStore, MemoryStoreError, Origin
from memshelf.files.context import deliver
from memshelf.files.tools import FILE_TOOLS, FileTools, failure, selected
from memshelf.testing import refused

ORIGIN = Origin()


class _Plain:
    """A store that only has what `FileStore` asks for, and lets a test step in before each write."""

    def __init__(self, before_write=None):
        self._store = InProcessFileStore()
        self._before_write = before_write
        for name in ("list", "read", "delete", "changes", "purge"):
            setattr(self, name, getattr(self._store, name))

    async def _step_in(self):
        if self._before_write is not None:
            await self._before_write(self._store)

    async def write(self, path, text, *, expected, origin):
        await self._step_in()
        return await self._store.write(path, text, expected=expected, origin=origin)

    async def move(self, source, destination, *, expected, origin):
        await self._step_in()
        return await self._store.move(source, destination, expected=expected, origin=origin)

    async def list(self): ...
    async def read(self, path): ...
    async def delete(self, path, *, expected, origin): ...
    async def changes(self, since): ...
    async def purge(self): ...


def _tools(store=None, access="write", **limits):
    store = store or InProcessFileStore()
    return FileTools([FileMount("user", store, access)], FileMemoryLimits(**limits)), store


async def test_two_threads_that_edit_different_lines_both_remain():
    tools, store = _tools()
    await tools.create("user", "a.md", "likes tea\nreply in English\n", origin=ORIGIN)
    await tools.edit("user", "a.md", "reply in English", "reply in Chinese", origin=ORIGIN)
    await tools.edit("user", "a.md", "likes tea", "likes coffee", origin=ORIGIN)
    assert (await store.read("a.md")).text == "likes coffee\nreply in Chinese\n"
    error = await refused("no_match", tools.edit("user", "a.md", "reply in English", "x", origin=ORIGIN))
    shown = failure(error, FileFormat())
    assert shown["error"] == "no_match"
    assert shown["current"]["content"] == "likes coffee\nreply in Chinese\n"


async def test_results_have_the_documented_shapes():
    tools, store = _tools()
    written = await tools.create("user", "notes/tea.md", "绿茶", origin=ORIGIN)
    assert written == {"memory": "user", "path": "notes/tea.md", "version": written["version"], "size": 6}
    viewed = await tools.view("user", "notes/tea.md")
    assert viewed == {**written, "content": "绿茶"}
    root = await tools.view("user")
    assert root == {
        "memory": "user", "path": "", "directories": [{"path": "notes/", "files": 1}], "files": [],
    }  # fmt: skip
    for path in ("notes", "notes/"):
        assert (await tools.view("user", path))["files"] == [
            {"path": "notes/tea.md", "description": "绿茶", "size": 6, "version": written["version"]}
        ]
    assert await tools.grep("user", "绿") == {
        "memory": "user", "matches": [{"path": "notes/tea.md", "line": 1, "text": "绿茶"}], "truncated": False,
    }  # fmt: skip
    assert await tools.grep("user", "绿", "notes/tea.md") == await tools.grep("user", "绿", "notes")
    assert "memory_file_view" in (await tools.grep("user", "coffee"))["hint"]
    moved = await tools.move("user", "notes/tea.md", "tea.md", origin=ORIGIN)
    version = (await store.read("tea.md")).version
    assert moved == {"memory": "user", "source": "notes/tea.md", "destination": "tea.md", "version": version}
    deleted = await tools.delete("user", "tea.md", version, origin=ORIGIN)
    assert deleted == {"memory": "user", "path": "tea.md", "deleted": True}


async def test_what_does_not_exist_is_not_found_and_current_is_null():
    tools, _ = _tools()
    for call in (
        tools.view("user", "a"),
        tools.view("user", "a/"),
        tools.edit("user", "a", "x", "y", origin=ORIGIN),
        tools.append("user", "a", "x", origin=ORIGIN),
        tools.move("user", "a", "b", origin=ORIGIN),
        tools.delete("user", "a", "v", origin=ORIGIN),
    ):
        shown = failure(await refused("not_found", call), FileFormat())
        assert shown["current"] is None
    assert (await tools.view("user"))["files"] == []


async def test_failures_carry_current_only_where_the_file_matters():
    format = FileFormat()
    for code in ("forbidden", "unknown_memory", "invalid_path", "unavailable", "too_large"):
        assert failure(MemoryStoreError(code, "why"), format) == {"error": code, "message": "why"}
    assert failure(MemoryStoreError("version_mismatch", "why"), format)["current"] is None


async def test_each_call_checks_the_mount_and_its_access_again():
    tools, _ = _tools(access="read")
    await refused("unknown_memory", tools.view("other"))
    for call in (
        tools.create("user", "a", "x", origin=ORIGIN),
        tools.edit("user", "a", "x", "y", origin=ORIGIN),
        tools.append("user", "a", "x", origin=ORIGIN),
        tools.move("user", "a", "b", origin=ORIGIN),
        tools.delete("user", "a", "v", origin=ORIGIN),
    ):
        await refused("forbidden", call)


async def test_an_edit_needs_exactly_one_occurrence():
    tools, store = _tools()
    await tools.create("user", "a", "tea tea", origin=ORIGIN)
    await refused("ambiguous_match", tools.edit("user", "a", "tea", "x", origin=ORIGIN))
    await refused("no_match", tools.edit("user", "a", "coffee", "x", origin=ORIGIN))
    await refused("no_match", tools.edit("user", "a", "", "x", origin=ORIGIN))
    assert (await store.read("a")).text == "tea tea"


@pytest.mark.parametrize(("before", "after"), [("", "x"), ("a", "a\nx"), ("a\n", "a\nx"), ("a\n\n", "a\n\nx")])
async def test_an_append_starts_on_a_new_line(before, after):
    tools, store = _tools()
    await tools.create("user", "a", before, origin=ORIGIN)
    await tools.append("user", "a", "x", origin=ORIGIN)
    assert (await store.read("a")).text == after


async def test_a_write_that_was_overtaken_is_checked_and_tried_again():
    async def overtake(store):
        file = await store.read("a")
        if "other" not in file.text:
            await store.write("a", file.text + "\nother", expected=file.version, origin=ORIGIN)

    tools, store = _tools(_Plain(overtake))
    await store._store.write("a", "tea", expected=None, origin=ORIGIN)
    await tools.edit("user", "a", "tea", "coffee", origin=ORIGIN)
    assert (await store.read("a")).text == "coffee\nother"


@pytest.mark.parametrize("operation", ["edit", "append", "move"])
async def test_retries_run_out_with_the_file_as_it_is_now(operation):
    count = 0

    async def overtake(store):
        nonlocal count
        count += 1
        file = await store.read("a")
        await store.write("a", f"tea {count}", expected=file.version, origin=ORIGIN)

    tools, store = _tools(_Plain(overtake), write_retries=2)
    await store._store.write("a", "tea", expected=None, origin=ORIGIN)
    call = {
        "edit": lambda: tools.edit("user", "a", "tea", "x", origin=ORIGIN),
        "append": lambda: tools.append("user", "a", "x", origin=ORIGIN),
        "move": lambda: tools.move("user", "a", "b", origin=ORIGIN),
    }[operation]
    error = await refused("conflict_retries_exhausted", call())
    assert count == 3
    assert error.current.text == "tea 3"


class _SaysVersionMismatch(_Plain):
    """A store that answers a creation as any other write whose expected version is not the current one."""

    async def write(self, path, text, *, expected, origin):
        try:
            return await super().write(path, text, expected=expected, origin=origin)
        except MemoryStoreError as error:
            raise MemoryStoreError("version_mismatch", "changed", current=error.current) from None


async def test_a_path_that_is_taken_is_said_to_be_in_the_words_of_every_store():
    tools, store = _tools(_SaysVersionMismatch())
    await tools.create("user", "a.md", "tea", origin=ORIGIN)
    error = await refused("already_exists", tools.create("user", "a.md", "coffee", origin=ORIGIN))
    assert error.current == await store.read("a.md")


async def test_entries_and_matches_are_in_path_order_whatever_order_a_store_lists_them_in():
    class Backwards(_Plain):
        def __init__(self):
            super().__init__()
            ordered = self.list

            async def backwards():
                return (await ordered())[::-1]

            self.list = backwards

    tools, store = _tools(Backwards())
    paths = ["A.md", "a-b.md", "a.md", "d/x.md", "\uffee.md", "🎉.md"]
    for path in paths:
        await store.write(path, "tea", expected=None, origin=ORIGIN)
    assert [file["path"] for file in (await tools.view("user"))["files"]] == [path for path in paths if "/" not in path]
    assert [match["path"] for match in (await tools.grep("user", "tea"))["matches"]] == paths
    [shown] = await deliver([FileMount("user", store, "read")], None, FileMemoryLimits())
    assert re.findall(r'"([^"]*): tea"', shown.block) == paths


async def test_a_creation_that_was_overtaken_by_a_file_which_is_gone_again_is_tried_again():
    fails = 2

    async def overtake(store):
        nonlocal fails
        fails -= 1
        if fails >= 0:
            raise MemoryStoreError("version_mismatch", "changed")

    tools, store = _tools(_Plain(overtake), write_retries=1)
    error = await refused("conflict_retries_exhausted", tools.create("user", "a.md", "tea", origin=ORIGIN))
    assert error.current is None
    await tools.create("user", "a.md", "tea", origin=ORIGIN)
    assert (await store.read("a.md")).text == "tea"


async def test_no_retries_means_one_try():
    async def overtake(store):
        file = await store.read("a")
        await store.write("a", f"{file.text}!", expected=file.version, origin=ORIGIN)

    tools, store = _tools(_Plain(overtake), write_retries=0)
    await store._store.write("a", "tea", expected=None, origin=ORIGIN)
    await refused("conflict_retries_exhausted", tools.append("user", "a", "x", origin=ORIGIN))
    assert (await store.read("a")).text == "tea!"


async def test_a_lost_delete_is_not_tried_again():
    tools, store = _tools()
    first = await tools.create("user", "a", "tea", origin=ORIGIN)
    await tools.edit("user", "a", "tea", "coffee", origin=ORIGIN)
    error = await refused("version_mismatch", tools.delete("user", "a", first["version"], origin=ORIGIN))
    assert error.current.text == "coffee"
    assert (await store.read("a")).text == "coffee"


async def test_who_quotes_other_line_ends_is_told_of_those_of_the_file():
    tools, _ = _tools()
    await tools.create("user", "a.md", "tea\r\ngreen\r\n", origin=ORIGIN)
    for quoted, told in (("tea\ngreen", True), ("coffee\ngreen", False)):
        error = await refused("no_match", tools.edit("user", "a.md", quoted, "x", origin=ORIGIN))
        assert ("Lines of this file end with \\r\\n." in error.message) == told


async def test_concurrent_edits_of_different_lines_are_all_kept():
    tools, store = _tools(_Plain(lambda store: asyncio.sleep(0)), write_retries=100)
    await store._store.write("a", "".join(f"line {n:02d}\n" for n in range(20)), expected=None, origin=ORIGIN)
    await asyncio.gather(*(tools.edit("user", "a", f"line {n:02d}", f"done {n:02d}", origin=ORIGIN) for n in range(20)))
    assert (await store.read("a")).text == "".join(f"done {n:02d}\n" for n in range(20))


async def test_a_file_larger_than_a_lowered_limit_is_shown_cut():
    tools, store = _tools(format=FileFormat(max_file_bytes=7))
    await store.write("a", "茶茶茶", expected=None, origin=ORIGIN)
    viewed = await tools.view("user", "a")
    assert (viewed["content"], viewed["size"], viewed["truncated"]) == ("茶茶", 9, True)


async def test_a_store_without_search_is_searched_by_reading():
    plain, plain_store = _tools(_Plain())
    searching, store = _tools()
    for path in ("b", "a/x", "a/y", "ab"):
        for each in (plain_store._store, store):
            await each.write(path, "Green tea\n" * 20, expected=None, origin=ORIGIN)
    for query in (
        {"pattern": "tea"},
        {"pattern": "TEA", "limit": 25},
        {"pattern": "TEA", "case_sensitive": True},
        {"pattern": "^g.*a$", "regex": True, "path": "a/"},
        {"pattern": "tea", "path": "a"},
        {"pattern": "tea", "limit": 40, "path": "a/"},
    ):
        assert await plain.grep("user", **query) == await searching.grep("user", **query)
    await refused("invalid_pattern", plain.grep("user", "(", regex=True))


def test_tools_are_selected_in_their_order_and_unknown_ones_refused():
    assert [tool.key for tool in selected(None)] == ["view", "grep", "create", "edit", "append", "move", "delete"]
    assert [tool.name for tool in selected(("grep", "view"))] == ["memory_file_view", "memory_file_grep"]
    assert FILE_TOOLS["delete"].id == "memory.file.delete"
    with pytest.raises(ValueError, match="peek"):
        selected(("peek",))
    with pytest.raises(TypeError):
        selected("view")


@pytest.mark.parametrize("name", ["", "User", "1a", "a_b", "a" * 64, "a\n", "ä"])
def test_a_bad_mount_name_is_refused(name):
    with pytest.raises(ValueError, match="mount name"):
        FileMount(name, InProcessFileStore(), "read")


def test_a_bad_mount_is_refused_at_construction():
    with pytest.raises(ValueError, match="access"):
        FileMount("user", InProcessFileStore(), "admin")
    with pytest.raises(TypeError, match="FileStore"):
        FileMount("user", object(), "read")
    with pytest.raises(TypeError, match="always_load"):
        FileMount("user", InProcessFileStore(), "read", always_load="README.md")


def test_an_error_survives_pickling():
    error = pickle.loads(pickle.dumps(MemoryStoreError("not_found", "gone")))
    assert (error.code, error.message, str(error)) == ("not_found", "gone", "not_found: gone")


async def test_a_listing_and_matches_that_have_no_room_in_a_result_are_cut_and_say_so():
    tools, store = _tools(result_bytes=1_000)
    for number in range(40):
        await store.write(f"notes/n{number:02}.md", f"茶 <{number}>\n", expected=None, origin=ORIGIN)
        await store.write(f"d{number:02}/a.md", "tea\n", expected=None, origin=ORIGIN)
    listed = await tools.view("user", "notes/")
    shown = [file["path"] for file in listed["files"]]
    assert shown == [f"notes/n{number:02}.md" for number in range(len(shown))]
    assert listed["truncated"]
    assert listed["hint"].startswith(f"{40 - len(shown)} more entries")
    root = await tools.view("user")
    assert (root["files"], root["truncated"]) == ([], True)
    found = await tools.grep("user", "茶")
    assert (found["truncated"], [match["line"] for match in found["matches"]]) == (True, [1] * len(found["matches"]))
    for result, kind in ((listed, "files"), (root, "directories"), (found, "matches")):
        assert 700 < len(json.dumps(result[kind], ensure_ascii=False, separators=(",", ":")).encode()) <= 1_000
    assert "truncated" not in await tools.view("user", "d00/")
    assert not (await tools.grep("user", "茶", "notes/n00.md"))["truncated"]


async def test_a_text_that_overlaps_itself_occurs_more_than_once():
    tools, store = _tools()
    await tools.create("user", "a.md", "aaa", origin=ORIGIN)
    error = await refused("ambiguous_match", tools.edit("user", "a.md", "aa", "b", origin=ORIGIN))
    assert "2 times" in error.message
    assert (await store.read("a.md")).text == "aaa"
    await refused("no_match", tools.edit("user", "a.md", "", "b", origin=ORIGIN))


@pytest.mark.parametrize(
    ("content", "wrong"),
    [("x" * 41, "too_large"), ("---\nunclosed", "invalid_file"), ("---\n- a\n---\n", "invalid_file")],
)
async def test_that_a_path_is_taken_is_said_before_what_is_wrong_with_the_content(content, wrong):
    tools, store = _tools(store=InProcessFileStore(format=FileFormat(max_file_bytes=40)))
    version = await store.write("a.md", "likes tea", expected=None, origin=ORIGIN)
    error = await refused("already_exists", tools.create("user", "a.md", content, origin=ORIGIN))
    assert (error.current.text, error.current.version) == ("likes tea", version)
    await refused(wrong, tools.create("user", "b.md", content, origin=ORIGIN))
    assert [entry.path for entry in await store.list()] == ["a.md"]


async def test_writes_are_held_to_the_format_of_the_mount_as_well_as_of_the_store():
    tools, store = _tools(format=FileFormat(max_file_bytes=30, description_chars=3))
    await refused("too_large", tools.create("user", "a.md", "x" * 31, origin=ORIGIN))
    await refused("invalid_file", tools.create("user", "a.md", "---\ndescription: long\n---\n", origin=ORIGIN))
    await tools.create("user", "a.md", "a234567b" + "-" * 16, origin=ORIGIN)
    await refused("too_large", tools.append("user", "a.md", "x" * 6, origin=ORIGIN))
    await refused("too_large", tools.edit("user", "a.md", "a234567b", "x" * 15, origin=ORIGIN))
    assert (await store.read("a.md")).text == "a234567b" + "-" * 16
