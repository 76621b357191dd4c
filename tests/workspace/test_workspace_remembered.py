"""What one process learned of many entries spares the next one the reading, and is never taken for the truth."""

from __future__ import annotations

import json
import os

import pytest

from memshelf import Workspace
from memshelf.workspace.catalogue import _WORTH_KEEPING
from memshelf.workspace.remembered import _mark

MANY = _WORTH_KEEPING + 20


@pytest.fixture
async def many(tmp_path):
    """A workspace of many entries, and the file in which what was learned of them is kept."""
    workspace = Workspace(tmp_path, durable=False, embedder=None)
    workspace.initialize()
    folder = tmp_path / "users" / "default" / "memory"
    for number in range(MANY):
        (folder / f"user_{number}.md").write_text(
            f"---\nname: Fact {number}\ndescription: number{number}\ntype: user\n---\n\nThe word is zebra{number}.\n"
        )
    await workspace.write_memory_entry("Tea", "Drinks oolong.", "user")
    return tmp_path / "users" / "default" / ".memshelf" / "entries"


def _reading(workspace: Workspace) -> list[str]:
    """The paths that are read from now on."""
    store, seen = workspace.store, []
    read = store.read

    async def noted(path: str):
        seen.append(path)
        return await read(path)

    store.read = noted
    return seen


async def test_the_next_process_reads_only_what_it_shows(many, directory):
    first = await directory().search("zebra7")
    assert many.exists()
    assert many.stat().st_mode & 0o077 == 0
    workspace = directory()
    read = _reading(workspace)
    assert await workspace.search("zebra7") == first
    assert {path for path in read if path != "MEMORY.md"} == {"memory/user_7.md"}
    fresh = await directory().list_entries()
    many.unlink()
    assert {each.file: each for each in fresh} == {each.file: each for each in await directory().list_entries()}


async def test_what_changed_in_between_is_read_anew(many, directory, tmp_path):
    await directory().search("zebra7")
    folder = tmp_path / "users" / "default" / "memory"
    (folder / "user_7.md").write_text("Now about quokkas.\n")
    (folder / "user_8.md").unlink()
    (folder / "new.md").write_text("Of numbats.\n")
    workspace = directory()
    assert [each.file for each in await workspace.search("quokkas")] == ["user_7.md"]
    assert [each.file for each in await workspace.search("numbats")] == ["new.md"]
    assert await workspace.search("zebra7") == await workspace.search("zebra8") == []
    assert [each.file for each in await workspace.search("zebra9")] == ["user_9.md"]


async def test_what_was_forgotten_is_not_kept(many, directory):
    workspace = directory()
    await workspace.search("zebra7")
    assert b"zebra7" in many.read_bytes()
    await workspace.forget("user_7.md")
    assert not many.exists()


async def test_what_is_kept_may_be_damaged_or_hostile(many, directory):
    expected = await directory().search("zebra7")
    marked = many.read_bytes()
    for at in range(70, len(marked), len(marked) // 20):
        many.write_bytes(marked[:at] + bytes([marked[at] ^ 1]) + marked[at + 1 :])
        assert await directory().search("zebra7") == expected
    whole = marked.partition(b"\n")[2]
    model = json.loads(whole.split(b"\n")[0])[0]
    for damaged in (
        b"", b"\n", b"null\n", b"[]\n", b"[[1],[]]\n", whole[:-100], whole[: len(whole) // 2], whole + b"x",
        b"\xff" * 100,
        json.dumps([model, [["memory/user_7.md"]]]).encode() + b"\n",
        json.dumps([model, [["memory/user_7.md", "v", {"file": 1}, 0, [], -5, 9]]]).encode() + b"\n",
        b"[" * 100_000,
    ):  # fmt: skip
        for mark in (b"", _mark(damaged) + b"\n"):
            many.write_bytes(mark + damaged)
            assert await directory().search("zebra7") == expected
    many.unlink()
    many.mkdir()
    assert await directory().search("zebra7") == expected


async def test_few_entries_leave_nothing_beside_them(directory, tmp_path):
    workspace = directory()
    await workspace.write_memory_entry("Tea", "Drinks oolong.", "user")
    await workspace.search("oolong")
    assert "entries" not in os.listdir(tmp_path / "users" / "default" / ".memshelf")


async def test_what_another_process_forgets_before_it_has_read_anything_is_not_kept(many, directory):
    await directory().search("zebra7")
    assert b"zebra7" in many.read_bytes()
    await directory().forget("user_7.md")
    assert not many.exists()


async def test_a_process_that_was_killed_while_it_kept_leaves_nothing_that_was_forgotten(many, directory):
    await directory().search("zebra7")
    os.replace(many, many.with_name("entries.new"))
    await directory().forget("user_7.md")
    assert not [each for each in many.parent.iterdir() if b"zebra7" in each.read_bytes()]


async def test_a_full_disk_leaves_nothing_half_written(many, directory, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    before = os.listdir(many.parent)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        assert await directory().search("zebra7")
    assert os.listdir(many.parent) == before


async def test_vectors_are_kept_with_the_model_that_made_them(many, tmp_path):
    class Letters:
        """Counts letters, and how many texts it was asked for."""

        model, version, dimension = "letters", "1", 26
        asked = 0

        async def embed(self, texts, *, query=False):
            Letters.asked += 0 if query else len(texts)
            return [[1.0 + text.lower().count(chr(97 + each)) for each in range(26)] for text in texts]

    def opened(version: str) -> Workspace:
        embedder = Letters()
        embedder.version = version
        return Workspace(tmp_path, durable=False, embedder=embedder)

    found = await opened("1").search("zebra7")
    assert found[0].title == "Fact 7"
    assert Letters.asked > MANY
    Letters.asked = 0
    assert await opened("1").search("zebra7") == found
    assert Letters.asked == 0
    await opened("2").search("zebra7")
    assert Letters.asked > MANY


async def test_vectors_made_so_far_are_kept(many, tmp_path):
    for number in range(MANY, MANY + 120):
        (tmp_path / "users" / "default" / "memory" / f"user_{number}.md").write_text(f"The word is zebra{number}.\n")

    class Tiring:
        """Gives up after so many texts."""

        model, version, dimension = "tiring", "1", 4
        left = 800

        async def embed(self, texts, *, query=False):
            Tiring.left -= 0 if query else len(texts)
            if Tiring.left < 0:
                raise ValueError("tired")
            return [[1.0, float(len(text)), 0.5, 0.1] for text in texts]

    await Workspace(tmp_path, durable=False, embedder=Tiring()).search("zebra7")
    assert Tiring.left < 0
    assert many.exists()
    Tiring.left = 10_000
    assert (await Workspace(tmp_path, durable=False, embedder=Tiring()).search("zebra7"))[0].title == "Fact 7"
    assert 0 < 10_000 - Tiring.left < 400
