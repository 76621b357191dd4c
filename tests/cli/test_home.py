"""`~` at the beginning of a path is the home of the user, wherever a path is given and whatever the shell did."""

from __future__ import annotations

import pytest

from memshelf import DirectoryFileStore, Origin, SessionLog, SqliteFileStore, Workspace


@pytest.fixture
def home(tmp_path, monkeypatch):
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


async def test_what_is_kept_below_a_tilde_is_kept_in_the_home(home, tmp_path):
    for store in (DirectoryFileStore("~/folder"), SqliteFileStore("~/database.db")):
        async with store:
            await store.write("a", "tea", expected=None, origin=Origin())
    async with Workspace("~/workspace", embedder=None) as workspace:
        await workspace.write_memory_entry("Tea", "Green.", "user")
    log = SessionLog("s", "~/sessions")
    log.append("user", "hi")
    log.export("~/s.md")
    assert [info.session_id for info in SessionLog.list_sessions("~/sessions")] == ["s"]
    assert {each.name for each in home.iterdir()} >= {"folder", "database.db", "workspace", "sessions", "s.md"}
    assert not (tmp_path / "~").exists()


def test_a_command_finds_what_a_tilde_leads_to(home, run, tmp_path):
    assert run("files", "create", "a.md", "tea", "--memory=~/notes").code == 0
    assert run("files", "create", "a.md", "tea", "--memory=~/notes.db#team").code == 0
    assert run("files", "view", "a.md", "--memory=~/notes.db#team").text == "tea"
    assert (home / "notes" / "a.md").read_text() == "tea"
    assert not (tmp_path / "~").exists()


def test_a_folder_that_is_called_so_is_reached_from_here(home, run, tmp_path):
    assert run("files", "create", "a.md", "tea", "--memory=./~").code == 0
    assert (tmp_path / "~" / "a.md").read_text() == "tea"
