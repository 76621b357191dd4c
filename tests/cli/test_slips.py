"""What was typed in another way than meant: it is taken if only one thing can be meant, and else said what to do."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest
from command_line import program

from memshelf.cli import times


@pytest.fixture(autouse=True)
def _shanghai(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("2026-11-30", (2026, 11, 29, 16)),
        ("2026/11/30", (2026, 11, 29, 16)),
        ("2026/1/3", (2026, 1, 2, 16)),
        ("2026.1.3", (2026, 1, 2, 16)),
        ("2026年1月3日", (2026, 1, 2, 16)),
        ("2026年1月3日 9:05", (2026, 1, 3, 1, 5)),
        ("2026 年 1 月 3 日", None),
        ("2026-1-3 9:00", (2026, 1, 3, 1)),
        ("2026/11/30 9:00:30", (2026, 11, 30, 1, 0, 30)),
        ("2026/11/30T09:00Z", (2026, 11, 30, 9)),
        ("2026/11/30 09:00 +01:00", (2026, 11, 30, 8)),
        ("２０２６/１１/３０ ９：００", (2026, 11, 30, 1)),
        (" 2026-11-30 ", (2026, 11, 29, 16)),
        ("30/11/2026", None),
        ("11/30", None),
        ("2026/13/1", None),
        ("2026/2/30", None),
        ("2026/1-3", None),
        ("2026/11/30 9", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_times_are_taken_with_the_year_first_and_nothing_is_guessed(typed, meant):
    if meant is not None:
        assert times.parsed(typed, "--at") == datetime(*meant, tzinfo=UTC)
        return
    with pytest.raises(click.BadParameter, match=r"give one such as 2026-11-30, 2026-11-30T09:00 or 2026-11-30T09:00Z"):
        times.parsed(typed, "--at")


def test_a_memory_that_is_new_is_told_once(run, model):
    for path in ("notes", "user.db", "user.db#other"):
        new = f"New memory: there was none at {path}.\n"
        assert run("files", "create", "a.md", "x", "-m", path).err == new
        assert run("files", "create", "b.md", "x", "-m", path).err == ""
    refused = run("files", "create", "/../a.md", "x", "-m", "nowhere.db")
    assert (refused.code, "New memory" in refused.err) == (1, False)


def test_a_namespace_that_is_new_is_told_once(run):
    assert run("records", "add", "x", "-m", "facts.db").err == "New memory: there was none at facts.db.\n"
    new = "New namespace ann: facts.db had no records of it.\n"
    assert run("records", "add", "x", "-m", "facts.db", "--namespace", "ann").err == new
    assert run("records", "add", "y", "-m", "facts.db", "--namespace", "ann").err == ""
    hint = "Check --memory; `memshelf records add` makes a new memory."
    assert hint in run("records", "search", "x", "-m", "fact.db").err


def test_a_workspace_and_a_user_that_are_new_are_told_once(run):
    place = Path("notes").absolute()
    assert run("workspace", "add", "a", "b").err == ""  # in the default place, there is no slip
    assert run("workspace", "add", "a", "b", "-w", "notes").err == f"New workspace: there is none in {place} yet.\n"
    assert run("workspace", "add", "c", "d", "-w", "notes").err == ""
    new = run("workspace", "add", "a", "b", "-w", "notes", "--user", "ann").err
    assert new == f"New user ann: {place} holds no memory of ann yet. Users that it knows: default.\n"


def test_the_folder_of_a_service_is_no_memory_and_says_how_to_see_its_stores(run):
    assert run("keys", "create", "--data", "data").code == 0
    run("stores", "create", "Notes", "--data", "data")
    for command in (["files", "ls"], ["files", "create", "a.md", "x"], ["search", "x"]):
        refused = run(*command, "--memory", "data")
        assert (refused.code, refused.err.splitlines()[:2]) == (
            3,
            [
                "error: unknown_memory: data is no memory, but holds the stores of a service.",
                "`memshelf stores list --data data` lists them.",
            ],
        )
    refused = run("files", "ls", "--memory", "data/memshelf.db")
    assert refused.err.endswith("\nIt belongs to a service: `memshelf stores list --data data`.\n")
    assert "files create" not in refused.err  # there, it is no advice
    run("files", "create", "a.md", "x", "--memory", "own/memshelf.db")
    assert run("files", "ls", "--memory", "own").code == 0  # a memory of that name is no service


@pytest.mark.parametrize("user", [["ann"], ["--user", "ann"], ["ann", "--user", "ann"]])
def test_a_user_is_deleted_by_either_name(run, user):
    run("workspace", "init", "--user", "ann")
    assert run("workspace", "delete-user", *user, "--yes").text == "Removed ann\n"


def test_no_user_and_two_users_are_not_deleted(run):
    run("workspace", "init")
    for wrong in ([], ["ann", "--user", "default"], ["--user", ""]):
        assert run("workspace", "delete-user", *wrong, "--yes").code == 2
    assert run("workspace", "users").text == "default\n"


def test_errors_name_the_path_concerned(run):
    Path("file").write_text("no folder")
    serving = program("serve", "--data", "file/data", "--port", "0")
    assert (serving.code, f"The database is {Path('file/data/memshelf.db')}." in serving.err) == (3, True)
    keys = run("keys", "create", "--data", "file")
    assert (keys.code, "file/memshelf.db" in keys.err) == (3, True)
    adding = run("workspace", "add", "a", "b", "-w", "file")
    assert (adding.code, adding.err) == (3, "error: unknown_memory: file is no workspace: it is not a folder.\n")
    adding = run("workspace", "add", "a", "b", "-w", "file/notes")
    assert (adding.code, f"The workspace is {Path('file/notes').absolute()}." in adding.err) == (3, True)


@pytest.mark.parametrize("columns", [60, 72, 100])
def test_listings_are_cut_on_every_terminal_and_say_so(run, terminal, columns):
    long = "tea and cake " * 30
    run("records", "add", long, "--memory", "user.db")
    run("workspace", "add", "Tea", long)
    run("files", "create", "a.md", long, "--memory", "user.db")
    for command in (
        ["records", "list", "--memory", "user.db"],
        ["records", "search", "tea", "--memory", "user.db"],
        ["workspace", "list"],
        ["workspace", "search", "tea"],
        ["files", "ls", "--memory", "user.db"],
    ):
        shown = terminal(*command, columns=columns)
        assert shown.end() == 0
        assert ("…" in shown.seen, "Long texts are cut; --json has all of them." in shown.seen) == (True, True), command
