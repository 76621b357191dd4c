"""MEMORY.md is a view: it forgets rows, never entries, and what a person wrote in it stays."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

import pytest

from memshelf import InProcessFileStore, MemoryStoreError, Workspace
from memshelf.origin import Origin
from memshelf.testing import refused
from memshelf.workspace.entries import EntryInfo
from memshelf.workspace.index import INDEX_BYTES, INDEX_LINES, listed_files, rebuilt, updated

ORIGIN = Origin()


def entry(number: int, hook: str = "words", title: str | None = None) -> EntryInfo:
    title = title or f"Entry {number}"
    return EntryInfo(file=f"user_{number}.md", title=title, description=hook, hook=hook, memory_type="user")


def index_of(count: int, text: str = "", hook: str = "words") -> str:
    for number in range(count):
        text = updated(text, {f"user_{number}.md": entry(number, hook)}, "memory/")
    return text


def test_over_two_hundred_lines_the_oldest_rows_leave():
    text = index_of(INDEX_LINES + 5)
    assert listed_files(text, "memory/") == [f"user_{number}.md" for number in range(5, INDEX_LINES + 5)]


def test_over_its_bytes_the_oldest_rows_leave_and_a_character_counts_as_it_is_written():
    text = index_of(150, hook="字" * 100)
    assert INDEX_BYTES - 500 < len(text.encode()) <= INDEX_BYTES
    assert listed_files(text, "memory/")[-1] == "user_149.md"


def test_lines_of_a_person_are_never_evicted_or_changed():
    mine = "# My index\n\nSee also [the wiki](https://wiki.example).\n- [outside](../secret.md) — mine\n* plain\r\n"
    text = index_of(300, mine)
    assert text.startswith(mine)
    assert len(text.splitlines()) == INDEX_LINES
    assert listed_files(text, "memory/")[-1] == "user_299.md"
    full = "".join(f"line {number}\n" for number in range(250))
    assert index_of(3, full) == full


def test_rows_go_behind_the_last_row_and_before_what_a_person_wrote_below():
    text = index_of(2) + "\n## Notes\nmine\n"
    text = updated(text, {"user_9.md": entry(9)}, "memory/")
    assert text.splitlines()[2].startswith("- [Entry 9]")
    assert text.endswith("\n## Notes\nmine\n")


@pytest.mark.parametrize(
    "row",
    [
        "* [a](memory/user_1.md)",
        "  - [a \\] b](memory/user_1.md) - x",
        "- [](<memory/user_1.md>)",
        "- [a](./memory/user_1.md)",
        "- [a](memory%2Fuser_1.md)",
        "\ufeff- [a](memory/user_1.md)",
    ],
)
def test_rows_as_people_write_them_are_rows(row):
    assert listed_files(f"{row}\n", "memory/") == ["user_1.md"]
    assert updated(f"{row}\n", {"user_1.md": None}, "memory/") == ""


@pytest.mark.parametrize(
    "line",
    [
        "- [a](memory/../x.md)",
        "- [a](memory/x.txt)",
        "- [a](x.md)",
        "[a](memory/x.md)",
        "- a](memory/x.md)",
        "- [a](memory/a\\b.md)",
        "- [a] (memory/x.md)",
    ],
)
def test_other_lines_are_no_rows(line):
    assert listed_files(line, "memory/") == []


def test_rebuilding_keeps_rows_that_are_right_drops_dead_ones_and_adds_what_is_missing_as_older():
    text = "# Mine\n- [Two, as I call it](memory/user_2.md) — my words\n- [Gone](memory/user_7.md)\nend\n"
    assert rebuilt(text, [entry(1), entry(2)], "memory/") == (
        "# Mine\n- [Entry 1](memory/user_1.md) — words\n- [Two, as I call it](memory/user_2.md) — my words\nend\n"
    )


async def test_every_entry_stays_reachable_when_its_row_has_left(directory):
    workspace = directory()
    for number in range(INDEX_LINES + 20):
        await workspace.write_memory_entry(f"Fact {number}", f"The code word is zebra{number}.", "project")
    assert len((await workspace.memory_index()).splitlines()) == INDEX_LINES
    assert "zebra0." not in await workspace.memory_index()
    for number in (0, 7, 19, 150, 219):
        [found, *_] = await directory().search(f"zebra{number}")
        assert found.title == f"Fact {number}"


async def test_lines_and_edits_of_a_person_survive_writes(opened):
    workspace = opened()
    await workspace.write_memory_entry("Tea", "Green.", "user")
    found = await workspace.store.read("MEMORY.md")
    mine = f"# Hello\n{found.text}my own line without an end"
    await workspace.store.write("MEMORY.md", mine, expected=found.version, origin=ORIGIN)
    await workspace.write_memory_entry("Coffee", "Black.", "user")
    assert await workspace.memory_index() == (
        "# Hello\n- [Tea](memory/user_tea.md) — Green.\n- [Coffee](memory/user_coffee.md) — Black.\n"
        "my own line without an end\n"
    )


async def test_a_lost_index_is_rebuilt_from_the_files(opened):
    workspace = opened()
    for name in ("One", "Two", "Three"):
        await workspace.write_memory_entry(name, f"{name} text", "user")
    before = await workspace.memory_index()
    found = await workspace.store.read("MEMORY.md")
    await workspace.store.delete("MEMORY.md", expected=found.version, origin=ORIGIN)
    await workspace.rebuild_index()
    assert await workspace.memory_index() == before
    other = opened()
    await other.rebuild_index()
    assert await other.memory_index() == before


async def test_an_index_that_cannot_take_a_row_does_not_lose_the_entry(opened, caplog):
    workspace = opened()
    await workspace.store.write("MEMORY.md", "x\n" * 30_000, expected=None, origin=ORIGIN)
    file = await workspace.write_memory_entry("Tea", "Green.", "user")
    assert (await opened().read_entry(file)).content == "Green."
    assert [each.title for each in await opened().search("green tea")] == ["Tea"]


async def test_files_below_the_name_of_the_index_cost_no_entry_and_are_told_of_at_once(caplog):
    store = InProcessFileStore()
    await store.write("MEMORY.md/mine.md", "mine", expected=None, origin=ORIGIN)
    workspace = Workspace.on(lambda user: store, embedder=None)
    file = await workspace.write_memory_entry("Tea", "Green.", "user")
    assert "could not be updated (already_exists)" in caplog.text
    assert (await workspace.read_entry(file)).content == "Green."
    await refused("already_exists", workspace.rebuild_index())


async def test_a_row_that_somebody_took_out_comes_back_when_its_entry_is_written_again(opened):
    workspace = opened()
    await workspace.write_memory_entry("Tea", "Green.", "user")
    before = await workspace.memory_index()
    found = await workspace.store.read("MEMORY.md")
    await workspace.store.write("MEMORY.md", "mine\n", expected=found.version, origin=ORIGIN)
    await workspace.write_memory_entry("Tea", "Green.", "user")
    assert await workspace.memory_index() == f"mine\n{before}"


async def test_the_index_is_never_put_in_place_before_its_content_is_on_the_disk(tmp_path, monkeypatch):
    calls: list[str] = []

    def recorded(name):
        call = getattr(os, name)

        def record(*args, **options):
            calls.append(name)
            return call(*args, **options)

        monkeypatch.setattr(os, name, record)

    recorded("fsync")
    recorded("rename")
    async with Workspace(tmp_path, embedder=None) as workspace:
        await workspace.write_memory_entry("Tea", "Green.", "user")
        calls.clear()
        await workspace.write_memory_entry("Tea", "Black.", "user", "drinks")
    assert calls == ["fsync", "rename", "fsync", "rename", "fsync"], "entry, index, and the entry's directory"


async def test_what_is_no_text_in_an_entrys_place_gives_it_another_name(directory):
    workspace = directory()
    await workspace.write_memory_entry("Coffee", "Black.", "user")
    (workspace.root / "memory" / "user_tea.md").write_bytes(b"\xff\xfe")
    file = await workspace.write_memory_entry("Tea", "Green.", "user")
    assert file != "user_tea.md"
    assert (await directory().read_entry(file)).content == "Green."
    assert (workspace.root / "memory" / "user_tea.md").read_bytes() == b"\xff\xfe"


async def test_the_index_agrees_with_entries_that_several_write_and_forget_at_a_time(opened):
    workspaces = [opened(), opened(), opened()]

    async def write(number):
        await workspaces[number % 3].write_memory_entry(f"Title {number % 2}", f"By {number}.", "user")

    async def forget(number):
        with suppress(MemoryStoreError):  # it is gone already, or was changed at that moment
            await workspaces[number % 3].forget(f"user_title_{number % 2}.md")

    async def rebuild(number):
        await workspaces[number % 3].rebuild_index()

    for _ in range(3):
        await asyncio.gather(
            *(each(number) for number in range(12) for each in (write, forget, rebuild)[: 2 + number % 2])
        )
        entries = {each.file: each.hook for each in await opened().list_entries()}
        rows = (await opened().memory_index()).splitlines()
        assert sorted(rows) == sorted(f"- [Title {file[-4]}](memory/{file}) — {hook}" for file, hook in entries.items())
