"""`memshelf stores mirror`."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from memshelf import MemoryStoreError, Mirror

SECONDS = 60


@pytest.fixture
def at(run, monkeypatch):
    """Run a command on local data with one store, Notes, that has one memory."""
    monkeypatch.setenv("MEMSHELF_DATA", "data")
    for name in ("MEMSHELF_URL", "MEMSHELF_KEY", "MEMSHELF_DATABASE"):
        monkeypatch.delenv(name, raising=False)

    def at(*args: str, code: int = 0, stdin: bytes = b""):
        done = run(*args, stdin=stdin)
        assert done.code == code, done.err
        return done

    at("keys", "create", "--data", "data")
    at("stores", "create", "Notes")
    at("memories", "create", "Notes", "/prefs/tea.md", "-", stdin=b"green\n")
    return at


def test_a_store_and_a_directory_are_kept_alike(at):
    assert at("stores", "mirror", "Notes", "here").text == "fetched\tprefs/tea.md\n"
    assert Path("here/prefs/tea.md").read_text() == "green\n"
    Path("here/咖啡.md").write_text("no\n")
    assert at("stores", "mirror", "Notes", "here").text == "sent\t咖啡.md\n"
    assert at("memories", "view", "Notes", "/咖啡.md").text == "no\n"
    at("memories", "update", "Notes", "/prefs/tea.md", "-", stdin=b"black\n")
    Path("here/prefs/tea.md").write_text("oolong\n")
    Path("here/咖啡.md").unlink()
    report = at("stores", "mirror", "Notes", "here", "--json").json
    copy = report["conflicts"]["prefs/tea.md"]
    assert (report["deleted"], report["pushed"], Path("here", copy).read_text()) == (["咖啡.md"], [copy], "oolong\n")
    assert at("stores", "mirror", "Notes", "here").text == ""


def test_what_could_not_be_done_is_said_and_is_exit_code_1(at):
    Path("here").mkdir()
    Path("here/mine.md").write_text("mine\n")
    assert "has files and mirrors no memory yet" in at("stores", "mirror", "Notes", "here", code=1).err
    done = at("stores", "mirror", "Notes", "here", "--adopt", "--read-only", code=1)
    assert done.text == "fetched\tprefs/tea.md\n"
    assert "Not done: mine.md: It was changed here, and the mirror is read-only." in done.err
    Path("here/mine.md").write_text("x" * 102_401)
    Path("here/图.md").write_bytes(b"\xff")  # nothing that a memory could hold
    assert "Not done: mine.md: too_large: " in at("stores", "mirror", "Notes", "here", code=1).err
    at("stores", "create", "Other")
    assert "mirrors another memory" in at("stores", "mirror", "Other", "here", code=1).err


def test_many_files_that_are_gone_are_deleted_if_that_is_said(at):
    for n in range(12):
        at("memories", "create", "Notes", f"/{n}.md", "-", stdin=b"x")
    at("stores", "mirror", "Notes", "here")
    for n in range(12):
        Path(f"here/{n}.md").unlink()
    assert "12 files of the store are gone here" in at("stores", "mirror", "Notes", "here", code=1).err
    assert at("stores", "mirror", "Notes", "here", "--delete-many").text.count("deleted in the store\t") == 12


def test_many_files_that_are_gone_from_the_store_stay_here_until_that_is_said(at):
    at("memories", "create", "Notes", "/b.md", "-", stdin=b"x")
    at("stores", "mirror", "Notes", "here")
    for path in ("/b.md", "/prefs/tea.md"):
        at("memories", "delete", "Notes", path, "--yes")
    assert "2 files are gone from the store" in at("stores", "mirror", "Notes", "here", code=1).err
    assert Path("here/b.md").exists()
    assert at("stores", "mirror", "Notes", "here", "--delete-many").text.count("removed here\t") == 2


def test_a_wrong_id_leaves_no_directory_behind(at):
    assert "no memory store memstore_typo" in at("stores", "mirror", "memstore_typo", "here", code=3).err
    assert not Path("here").exists()


@pytest.mark.parametrize("json", [(), ("--json",)])
def test_watching_says_why_it_waits_and_steers_no_terminal(at, monkeypatch, json):
    answers = [MemoryStoreError("unavailable", "busy\x1b[2J")] * 2 + [MemoryStoreError("forbidden", "the key")]

    async def sync(*_, **__):
        raise answers.pop(0)

    monkeypatch.setattr(Mirror, "sync", sync)
    done = at("stores", "mirror", "Notes", "here", "--watch", "0.1", *json, code=1)
    assert done.err.startswith("unavailable: busy\\x1b[2J\n")
    assert done.err.count("busy") == 1
    assert "pulled" not in done.text


def test_watching_goes_on_until_ctrl_c(at):
    command = [sys.executable, "-m", "memshelf", "stores", "mirror", "Notes", "here", "--watch", "0.2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "fetched\tprefs/tea.md\n"
        Path("here/new.md").write_text("new\n")
        assert process.stdout.readline() == "sent\tnew.md\n"
        at("memories", "create", "Notes", "/late.md", "-", stdin=b"late\n")
        assert process.stdout.readline() == "fetched\tlate.md\n"
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        assert process.wait(SECONDS) == 130
        assert process.stderr is not None
        assert process.stderr.read() == ""
    finally:
        process.kill()
        process.communicate()
