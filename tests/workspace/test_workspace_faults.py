"""A workspace on a disk that fails: nothing that cannot be read is missing, and nothing that remains is gone."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from memshelf import MemoryStoreError, Workspace, import_memories
from memshelf.testing import refused
from memshelf.workspace.rules import repository_rules


def _broken(monkeypatch, name, *, of, module=os):
    """Let a call of the system fail for the paths or names that end so."""
    real = getattr(module, name)

    def fail(path, *arguments, **options):
        if str(path).endswith(of):
            raise OSError(errno.EIO, "Input/output error", str(path))
        return real(path, *arguments, **options)

    monkeypatch.setattr(module, name, fail)


@pytest.fixture
def workspace(tmp_path):
    return Workspace(tmp_path, "ann", durable=False, embedder=None)


def test_rules_of_which_nobody_can_say_whether_they_are_there_are_a_problem_and_not_missing(tmp_path, monkeypatch):
    (tmp_path / "AGENTS.md").write_text("Be brief.\n")
    _broken(monkeypatch, "lstat", of="AGENTS.md")
    (found,) = repository_rules(tmp_path, "AGENTS.md")
    assert "Input/output error" in found.problem


def test_rules_that_the_disk_gives_in_small_pieces_are_whole(tmp_path, monkeypatch):
    (tmp_path / "AGENTS.md").write_text("Be brief.\n" * 100)
    real = os.read
    monkeypatch.setattr(os, "read", lambda fd, size: real(fd, min(size, 7)))
    (found,) = repository_rules(tmp_path, "AGENTS.md")
    assert found.text == "Be brief.\n" * 100


async def test_a_user_of_whom_nobody_can_say_whether_they_are_there_is_not_told_to_be_gone(workspace, monkeypatch):
    await workspace.write_memory_entry("Tea", "Likes tea.")
    _broken(monkeypatch, "lstat", of="ann")
    await refused("unavailable", workspace.delete_user("ann", confirm=True))
    monkeypatch.undo()
    assert len(await workspace.list_entries()) == 1


async def test_a_user_who_is_deleted_in_part_is_said_to_be_and_can_be_deleted_again(workspace, tmp_path, monkeypatch):
    await workspace.write_memory_entry("Tea", "Likes tea.")
    await workspace.archive_conversation([{"role": "user", "content": "Hello"}])
    _broken(monkeypatch, "rmdir", of="conversations")
    await refused("write_unconfirmed", workspace.delete_user("ann", confirm=True))
    monkeypatch.undo()
    assert await workspace.delete_user("ann", confirm=True)
    assert not (tmp_path / "users" / "ann").exists()


async def test_a_turn_that_was_archived_is_not_said_to_have_failed_as_a_directory_cannot_be_closed(
    workspace, monkeypatch
):
    real = os.close

    def close(fd):
        directory = os.path.isdir(f"/dev/fd/{fd}")
        real(fd)
        if directory:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "close", close)
    await workspace.archive_conversation([{"role": "user", "content": "Hello"}])
    assert [turn.text for turn in await workspace.search_conversations("hello")] == ["Hello"]


async def test_a_forgotten_entry_of_which_the_next_process_may_be_told_is_unconfirmed(workspace, tmp_path, monkeypatch):
    file = await workspace.write_memory_entry("Tea", "Likes tea.", "user")
    kept = tmp_path / "users" / "ann" / ".memshelf" / "entries"
    kept.write_text("what was learned of Tea")
    _broken(monkeypatch, "unlink", of="entries")
    await refused("write_unconfirmed", workspace.forget(file))
    monkeypatch.undo()
    assert "Tea" not in await workspace.memory_index()
    await refused("not_found", workspace.forget(file))
    assert not kept.exists()


@pytest.mark.parametrize("what", ["users", "memory", "testing.md"])
async def test_a_folder_that_cannot_be_read_is_unavailable_to_an_import(workspace, tmp_path, monkeypatch, what):
    entries = tmp_path / "claude" / "memory"
    entries.mkdir(parents=True)
    (entries / "testing.md").write_text("---\nname: Testing\ndescription: no mocks\n---\n\nUse a real database.\n")

    def fails(real):
        def fail(path, *arguments, **options):
            if isinstance(path, Path) and path.name == what:
                raise OSError(errno.EIO, "Input/output error", str(path))
            return real(path, *arguments, **options)

        return fail

    monkeypatch.setattr(Path, "read_bytes", fails(Path.read_bytes))
    monkeypatch.setattr("memshelf.presence.os.stat", fails(os.stat))
    assert what in (await refused("unavailable", import_memories(tmp_path / "claude", workspace))).message


async def test_a_forgotten_entry_whose_row_may_be_left_in_the_index_is_unconfirmed(workspace, tmp_path, monkeypatch):
    file = await workspace.write_memory_entry("Tea", "Likes tea.", "user")
    index = tmp_path / "users" / "ann" / "MEMORY.md"
    store, write = workspace.store, workspace.store.write

    async def full(path, text, **options):
        if path == "MEMORY.md":
            raise MemoryStoreError("unavailable", "The system refuses: No space left on device; nothing changed.")
        return await write(path, text, **options)

    monkeypatch.setattr(store, "write", full)
    await refused("write_unconfirmed", workspace.forget(file))
    assert ("Tea" in index.read_text(), await workspace.list_entries()) == (True, [])
    monkeypatch.undo()
    await workspace.rebuild_index()
    assert "Tea" not in index.read_text()


async def test_an_index_that_is_no_text_keeps_nobody_from_forgetting(workspace, tmp_path):
    file = await workspace.write_memory_entry("Tea", "Likes tea.", "user")
    (tmp_path / "users" / "ann" / "MEMORY.md").write_bytes(b"\xff\xfe")
    await workspace.forget(file)
    assert await workspace.list_entries() == []
