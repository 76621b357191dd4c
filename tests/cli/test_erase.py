"""`memshelf files erase` and `memshelf memories erase`: a text is forgotten with all its versions, in one command."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

_SECRET = "絶対に秘密 marmalade"
_OUT_OF_REACH = "Not erased: exports, backups, what chats and logs have shown, and other files that say the same.\n"


def _holds(path: str, text: str) -> bool:
    return any(text.encode() in each.read_bytes() for each in Path().glob(f"{path}*") if each.is_file())


def _rows(path: str, query: str) -> list[tuple]:
    with sqlite3.connect(path) as database:
        return database.execute(query).fetchall()


@pytest.fixture
def files(run, monkeypatch):
    monkeypatch.setenv("MEMSHELF_MEMORY", "user.db")

    def files(*args: str, code: int = 0):
        ran = run("files", *args)
        assert ran.code == code, ran.err
        return ran

    files("create", "diary.md", _SECRET)
    files("append", "diary.md", "and more")
    files("mv", "diary.md", "old/diary.md")
    files("create", "keep.md", "Likes tea.")
    return files


def test_a_file_is_erased_with_all_its_versions_and_names(files):
    assert _holds("user.db", _SECRET)
    assert _holds("user.db", "diary.md")
    erased = files("erase", "old/diary.md", "--by", "Data protection", "--yes")
    assert (erased.text, erased.err) == ("Erased old/diary.md (4 versions)\n", _OUT_OF_REACH)
    assert not _holds("user.db", _SECRET)
    assert not _holds("user.db", "diary.md")
    versions = files("history", "--json").json["versions"]
    assert [each["path"] for each in versions] == [None, "keep.md", None, None, None]
    assert {each["redacted_by"] for each in versions} == {"Data protection", None}
    assert files("verify").text.startswith("Intact: 5 versions")
    assert files("view", "keep.md").text == "Likes tea."
    again = files("erase", "old/diary.md", "--yes", code=1)
    assert "nothing at old/diary.md: it is erased already, or was never there.\n" in again.err


def test_it_is_told_as_a_document(files):
    erased = files("erase", "old/diary.md", "--yes", "--json").json
    versions = erased.pop("versions")
    assert erased == {
        "memory": "user.db", "path": "old/diary.md", "paths": ["diary.md", "old/diary.md"], "kept": []
    }  # fmt: skip
    redacted = {each["id"] for each in files("history", "--json").json["versions"] if each["redacted_at"]}
    assert set(versions) == redacted


def test_what_was_deleted_before_is_erased_and_what_moved_away_is_kept_and_named(files):
    moved = files("erase", "diary.md", "--yes", code=1)
    assert "What stood at diary.md stands at old/diary.md now; erase that." in moved.err
    files("create", "diary.md", "another marmalade")
    files("rm", "diary.md", "--yes")
    files("create", "diary.md", "a third marmalade")
    erased = files("erase", "diary.md", "--yes")
    assert erased.text == "Erased diary.md (4 versions)\n"
    assert erased.err == f"Kept: old/diary.md, which stood there once.\n{_OUT_OF_REACH}"
    assert files("view", "old/diary.md").text == f"{_SECRET}\nand more"
    assert not _holds("user.db", "another marmalade")
    assert not _holds("user.db", "third marmalade")


def test_it_asks_first_and_says_what_goes(files, terminal):
    asking = terminal("files", "erase", "old/diary.md", "--memory", "user.db")
    asking.until(
        "Erase old/diary.md, which also stood at diary.md, with its whole history (3 versions) for good? [y/N]: "
    )
    asking.send("Ｎ\n")  # as a Chinese input method types it
    asking.until("Nothing changed.")
    assert asking.end() == 1
    assert files("view", "old/diary.md").text.startswith(_SECRET)
    assert "There is nobody to ask: say --yes." in files("erase", "old/diary.md", code=2).err


def test_who_was_stopped_in_the_midst_erases_the_rest_by_the_same_path(files, monkeypatch):
    from memshelf.errors import MemoryStoreError
    from memshelf.files.backends.sqlite import SqliteFileStore

    redact, done = SqliteFileStore.redact, []

    async def stopped(self, version_id, *, by):
        if len(done) == 2:
            raise MemoryStoreError("unavailable", "The disk is gone.")
        done.append(version_id)
        return await redact(self, version_id, by=by)

    with monkeypatch.context() as patched:
        patched.setattr(SqliteFileStore, "redact", stopped)
        failed = files("erase", "old/diary.md", "--yes", code=3)
    assert "old/diary.md is deleted, and not all of it erased. Run the command again" in failed.err
    assert files("erase", "old/diary.md", "--yes").text == "Erased old/diary.md (2 versions)\n"
    assert not _holds("user.db", _SECRET)
    assert not _holds("user.db", "diary.md")


def test_who_was_killed_before_the_last_bytes_were_gone_removes_them_by_running_it_again(files, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr("memshelf.storage.sqlite_writer.Writer._sweep", lambda self, connection: False)
        patched.setattr("memshelf.storage.sqlite_connection.PATIENCE", 0.05)
        for _ in ("what stood elsewhere", "what stood here"):
            files("erase", "old/diary.md", "--yes", code=3)
    assert _rows("user.db", "SELECT wanted - done FROM erasures") != [(0,)]
    assert "it is erased already, or was never there" in files("erase", "old/diary.md", "--yes", code=1).err
    assert _rows("user.db", "SELECT wanted - done FROM erasures") == [(0,)]


def test_many_versions_are_erased(files, monkeypatch):
    monkeypatch.setattr("memshelf.cli.erase._AT_ONCE", 20)
    for number in range(45):
        files("append", "old/diary.md", f"line {number}")
    assert files("erase", "old/diary.md", "--yes").text == "Erased old/diary.md (49 versions)\n"
    assert not _holds("user.db", _SECRET)


def test_a_directory_keeps_no_history_and_says_what_to_do(run, files):
    run("files", "create", "a.md", "x", "--memory", "notes")
    refused = files("erase", "a.md", "--yes", "--memory", "notes", code=2)
    assert "notes is a directory, which keeps no history: `memshelf files rm` deletes" in refused.err
    assert "old/ is a directory" in files("erase", "old", "--yes", code=1).err


@pytest.fixture
def memories(run, monkeypatch):
    monkeypatch.setenv("MEMSHELF_DATA", "data")
    run("keys", "create")
    run("stores", "create", "Notes")

    def memories(command: str, *args: str, code: int = 0):
        ran = run("memories", command, "Notes", *args)
        assert ran.code == code, ran.err
        return ran

    memories("create", "/diary.md", _SECRET)
    memories("update", "/diary.md", "--move-to", "/old.md")
    memories("create", "/keep.md", "Likes tea.")
    return memories


def test_a_memory_of_a_service_is_erased_with_all_its_versions(run, memories):
    moved = memories("erase", "/diary.md", "--yes", code=1)
    assert "What stood at /diary.md stands at /old.md now; erase that." in moved.err
    assert memories("erase", "/old.md", "--yes").text == "Erased /old.md (3 versions)\n"
    assert not _holds("data/memshelf.db", _SECRET)
    assert not _holds("data/memshelf.db", "/old.md")
    assert _rows("data/memshelf.db", "SELECT path FROM file_versions WHERE path IS NOT NULL") == [("keep.md",)]
    assert run("stores", "verify", "Notes").code == 0
    memories("create", "/old.md", "again marmalade")
    memories("delete", "/old.md", "--yes")
    erased = memories("erase", "/old.md", "--yes", "--json").json
    assert (len(erased["versions"]), erased["paths"]) == (2, ["/old.md"])
    for path in ("/old.md", "/old/", "/never.md"):
        assert f"The history knows of nothing at {path}" in memories("erase", path, "--yes", code=1).err


def test_a_path_is_erased_without_reading_the_history_of_other_memories(memories, monkeypatch):
    from memshelf.cli.hosted import Api

    asked, items = [], Api.items

    def heard(self, path, **query):
        asked.append(path.rpartition("/")[2])
        return items(self, path, **query)

    with monkeypatch.context() as patched:
        patched.setattr(Api, "items", heard)
        assert memories("erase", "/old.md", "--yes").text == "Erased /old.md (3 versions)\n"
    assert "memory_versions" not in asked


def test_on_a_server_without_a_history_by_path_it_is_found_among_all_versions(memories, monkeypatch):
    from contextlib import asynccontextmanager

    from memshelf.cli.hosted import Api

    @asynccontextmanager
    async def plain(self, store):
        yield object()

    monkeypatch.setattr(Api, "files", plain)
    memories("delete", "/old.md", "--yes")
    assert "stands at /old.md now" not in memories("erase", "/diary.md", "--yes").err
    assert not _holds("data/memshelf.db", _SECRET)
    assert "nothing at /diary.md: it is erased already" in memories("erase", "/diary.md", "--yes", code=1).err


def test_a_memory_that_is_deleted_is_erased_by_its_id(run, memories):
    id = run("versions", "list", "Notes", "--memory", "/old.md", "--json").json["versions"][0]["memory_id"]
    memories("delete", "/old.md", "--yes")
    assert memories("erase", id, "--yes").text == f"Erased {id} (3 versions)\n"
    assert not _holds("data/memshelf.db", _SECRET)
    assert "Nothing" not in memories("view", "/keep.md").text


@pytest.mark.parametrize("by_id", [False, True])
def test_the_last_bytes_of_a_memory_go_when_it_is_erased_again(run, memories, monkeypatch, by_id):
    versions = run("versions", "list", "Notes", "--memory", "/old.md", "--json").json["versions"]
    named = versions[0]["memory_id"] if by_id else "/old.md"
    with monkeypatch.context() as patched:
        patched.setattr("memshelf.storage.sqlite_writer.Writer._sweep", lambda self, connection: False)
        patched.setattr("memshelf.storage.sqlite_connection.PATIENCE", 0.05)
        for _ in versions:
            memories("erase", named, "--yes", code=3)
            if by_id:
                break
    assert _rows("data/memshelf.db", "SELECT wanted - done FROM erasures") != [(0,)]
    memories("erase", named, "--yes", code=0 if by_id else 1)
    assert _rows("data/memshelf.db", "SELECT wanted - done FROM erasures") == [(0,)]
