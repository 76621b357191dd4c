"""`memshelf demo`: the story, checked in what the store kept, and the commands that it ends with."""

from __future__ import annotations

import json
import re
import shlex
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import program
from responses_api import message

DATABASE = "memshelf-demo/memory.db"


@pytest.fixture
def demo(run):
    ran = run("demo")
    assert (ran.code, ran.err) == (0, "")
    return ran.text


def _history(run):
    """The versions, oldest first."""
    return run("files", "history", "-m", DATABASE, "--json").json["versions"][::-1]


def test_the_store_holds_what_the_story_tells(run, demo):
    kept = _history(run)
    assert [(each["operation"], each["path"], each["origin"]["principal_id"]) for each in kept] == [
        ("created", "prefs/me.md", "demo:conversation-1"),
        ("created", "projects/current.md", "demo:conversation-1"),
        ("modified", "prefs/me.md", "demo:conversation-3"),
        ("modified", "prefs/me.md", "demo:conversation-4"),
    ]
    assert len({each["origin"]["run_id"] for each in kept}) == 3
    changes = [run("files", "diff", version["id"], "-m", DATABASE).text.splitlines()[2:] for version in kept[2:]]
    assert [[line for line in change if line[0] in "+-"] for change in changes] == [
        ["-- reply in English", "+- reply in Chinese"],
        ["-- likes tea", "+- likes coffee"],
    ]
    assert run("files", "view", "prefs/me.md", "-m", DATABASE).text.endswith("- likes coffee\n- reply in Chinese\n")
    assert run("files", "verify", "-m", DATABASE).code == 0


def _shown(demo: str, label: str) -> list[str]:
    """What stands behind a label, without the margin."""
    blocks = re.findall(rf"^ *{label} \|(.*(?:\n +\|.*)*)", demo, re.MULTILINE)
    return ["\n".join(line.rpartition("| ")[2].strip() for line in block.split("\n")) for block in blocks]


def test_the_bytes_that_the_model_saw_are_shown(run, demo):
    assert "scripted" in demo.splitlines()[0]
    contexts = _shown(demo, "model sees")
    bodies = [json.loads(each.split("\n")[2]) for each in contexts]
    kinds = [re.fullmatch('<memory-context .* kind="(.*)">', each.split("\n")[0])[1] for each in contexts]
    assert kinds == ["full", "full", "full", "full", "changes"]
    assert bodies[1]["index"] == [
        "prefs/me.md: Who the user is, and how to answer",
        "projects/current.md: The user is building an oak bookshelf.",
    ]
    assert bodies[4] == {"files": [], "changed": ["prefs/me.md: Who the user is, and how to answer"]}
    [refused] = map(json.loads, _shown(demo, "refused"))
    assert refused["error"] == "no_match"
    assert refused["current"]["content"].endswith("- likes coffee\n- reply in Chinese\n")


def test_the_commands_that_it_ends_with_work_as_they_are_printed(run, demo, model, monkeypatch):
    commands = [shlex.split(line) for line in demo.splitlines() if line.startswith("  memshelf ")]
    assert [command[:3] for command in commands] == [
        ["memshelf", "files", "history"],
        ["memshelf", "files", "view"],
        ["memshelf", "chat", "--memory"],
    ]
    monkeypatch.delenv("MEMSHELF_MODEL")
    model.will([message("You like coffee.")])
    history, view, chat = (program(*command[1:], stdin=b"What do I like?") for command in commands)
    assert (history.code, len(history.text.splitlines())) == (0, 3)
    assert "likes coffee" in view.text
    assert (chat.code, chat.text) == (0, "You like coffee.\n")
    assert "prefs/me.md: Who the user is" in json.dumps(model.requests[0]["input"])


def test_it_starts_afresh_and_leaves_other_files_alone(run, demo):
    Path("memshelf-demo/notes.txt").write_text("mine")
    before = _history(run)
    again = run("demo")
    assert (again.code, again.err) == (
        0,
        "Starting afresh: this replaces the memory of an earlier demo in memshelf-demo/memory.db.\n",
    )
    after = _history(run)
    assert (len(after), {each["id"] for each in after} & {each["id"] for each in before}) == (len(before), set())
    assert Path("memshelf-demo/notes.txt").read_text() == "mine"


@pytest.mark.parametrize("memory", [DATABASE, f"{DATABASE}#other"])
def test_a_memory_that_somebody_else_has_written_to_is_refused_and_left_alone(run, demo, memory):
    run("files", "create", "mine.md", "x", "-m", memory)
    run("files", "rm", "mine.md", "--yes", "-m", memory)
    before = run("files", "history", "-m", memory).out
    ran = run("demo")
    assert (ran.code, ran.out) == (2, b"")
    assert "--folder" in ran.err
    assert run("files", "history", "-m", memory).out == before


def test_a_folder_that_is_not_its_own_is_refused_and_left_alone(run, tmp_path):
    (tmp_path / "mine").mkdir()
    with sqlite3.connect(tmp_path / "mine" / "memory.db") as database:
        database.execute("CREATE TABLE t (a)")
    database.close()
    before = (tmp_path / "mine" / "memory.db").read_bytes()
    (tmp_path / "file").write_text("x")
    for folder in ("mine", "file"):
        ran = run("demo", "--folder", folder)
        assert (ran.code, ran.out) == (2, b"")
    assert (tmp_path / "mine" / "memory.db").read_bytes() == before
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["memory.db"]


def test_paths_are_quoted_in_the_commands(run):
    ran = run("demo", "--folder", "a demo's folder")
    assert ran.code == 0
    commands = [shlex.split(line) for line in ran.text.splitlines() if line.startswith("  memshelf files ")]
    for command in commands:
        assert run(*command[1:]).code == 0


def test_it_needs_no_network_and_no_key():
    code = (
        "import socket, sys\n"
        "def refuse(*_): raise AssertionError('the network was asked for')\n"
        "socket.getaddrinfo = socket.create_connection = socket.socket.connect = refuse\n"
        "from memshelf.cli import main\n"
        "sys.exit(main(['demo']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
