"""`memshelf files`: reading and changing a memory, the same on a directory and on SQLite."""

from __future__ import annotations

import errno
import json
import os
import pwd
from pathlib import Path

import pytest
from command_line import Run

from memshelf.files.backends.directory.disk import Disk

MEMORIES = ("notes", "notes.db", "team.db#notes")


@pytest.fixture(params=MEMORIES)
def memory(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def tea(run: Run, memory: str) -> str:
    """A memory with a file prefs/tea.md."""
    assert run("files", "create", "prefs/tea.md", "- likes 绿茶\n- no sugar\n", "--memory", memory).code == 0
    return memory


def test_what_is_created_is_listed_and_viewed_byte_for_byte(run, memory):
    content = "first\r\n\x1b[31m二\x00\n\u2028last".encode()
    assert run("files", "create", "a/b.md", "-m", memory, stdin=content).code == 0
    assert run("files", "view", "a/b.md", "-m", memory).out == content
    assert run("files", "ls", "-m", memory).text == "a/\t\t\t1 file\n"
    path, size, version, description = run("files", "ls", "a", "-m", memory).text.rstrip("\n").split("\t")
    assert (path, size, description) == ("a/b.md", str(len(content)), "first")
    assert run("files", "view", "a/b.md", "-m", memory, "--json").json["version"] == version


def test_json_has_the_shapes_of_the_tools(run, tea):
    viewed = run("files", "view", "prefs/tea.md", "-m", tea, "--json").json
    assert viewed == {
        "memory": tea,
        "path": "prefs/tea.md",
        "version": viewed["version"],
        "size": 26,
        "content": "- likes 绿茶\n- no sugar\n",
    }
    listed = run("files", "ls", "-m", tea, "--json").json
    assert listed == {"memory": tea, "path": "", "directories": [{"path": "prefs/", "files": 1}], "files": []}
    everything = run("files", "ls", "--recursive", "-m", tea, "--json").json
    assert [each["path"] for each in everything["files"]] == ["prefs/tea.md"]
    found = run("files", "grep", "绿茶", "-m", tea, "--json").json
    assert found == {
        "memory": tea,
        "matches": [{"path": "prefs/tea.md", "line": 1, "text": "- likes 绿茶"}],
        "truncated": False,
    }
    appended = run("files", "append", "prefs/tea.md", "more", "-m", tea, "--json").json
    assert appended.keys() == {"memory", "path", "version", "size"}
    moved = run("files", "mv", "prefs/tea.md", "tea.md", "-m", tea, "--json").json
    assert (moved["source"], moved["destination"]) == ("prefs/tea.md", "tea.md")
    deleted = run("files", "rm", "tea.md", "--version", moved["version"], "-m", tea, "--json").json
    assert deleted == {"memory": tea, "path": "tea.md", "deleted": True}


def test_edit_replaces_the_one_occurrence_and_nothing_else(run, tea):
    assert run("files", "edit", "prefs/tea.md", "no sugar", "one sugar", "-m", tea).code == 0
    assert run("files", "edit", "-m", tea, "prefs/tea.md", "- one", "- two").code == 0
    assert run("files", "view", "prefs/tea.md", "-m", tea).text == "- likes 绿茶\n- two sugar\n"
    assert run("files", "edit", "-m", tea, "--", "prefs/tea.md", "- two", "-3").code == 0
    assert run("files", "edit", "prefs/tea.md", "-m", tea, "-3", "x").code == 2
    assert run("files", "edit", "-m", tea, "--", "prefs/tea.md", "-3", "- two").code == 0
    refused = run("files", "edit", "prefs/tea.md", "- ", "* ", "-m", tea)
    assert (refused.code, refused.err.startswith("error: ambiguous_match: ")) == (1, True)


def test_append_starts_a_new_line_and_reads_a_file_or_standard_input(run, tea, tmp_path):
    (tmp_path / "more.md").write_bytes("甲".encode())
    assert run("files", "append", "prefs/tea.md", "--file", "more.md", "-m", tea).code == 0
    assert run("files", "append", "prefs/tea.md", "-m", tea, stdin=b"b\n").code == 0
    assert run("files", "append", "prefs/tea.md", "-f", "-", "-m", tea, stdin=b"c").code == 0
    assert run("files", "view", "prefs/tea.md", "-m", tea).text == "- likes 绿茶\n- no sugar\n甲\nb\nc"


def test_mv_to_where_the_file_is_says_that_both_paths_are_the_same(run, tea):
    for destination in ("prefs/tea.md", "prefs/"):
        same = run("files", "mv", "prefs/tea.md", destination, "-m", tea)
        assert (same.code, same.err.splitlines()[0]) == (2, "error: usage: SOURCE and DESTINATION are the same path.")
    assert run("files", "view", "prefs/tea.md", "-m", tea).code == 0


def test_mv_into_a_directory_keeps_the_name(run, tea):
    assert run("files", "mv", "prefs/tea.md", "archive/2026/", "-m", tea).code == 0
    assert run("files", "ls", "-r", "-m", tea).text.split("\t")[0] == "archive/2026/tea.md"


def test_ls_of_a_file_lists_that_file(run, tea):
    assert run("files", "ls", "prefs/tea.md", "-m", tea).text.split("\t")[0] == "prefs/tea.md"


def test_view_of_a_directory_lists_it(run, tea):
    assert run("files", "view", "prefs/", "-m", tea).text == run("files", "ls", "prefs", "-m", tea).text


def test_grep_prints_as_many_lines_as_were_asked_for_however_long_they_are(run, tea):
    for number in range(5):
        run(
            "files", "create", f"{number}.md", "-f", "-", "-m", tea, stdin=("tea ".ljust(900, "x") + "\n").encode() * 60
        )
    assert run("files", "grep", "tea x", "-m", tea, "--limit", "400").text.count("\n") == 300


def test_grep_prints_path_line_and_text(run, tea):
    assert run("files", "grep", "SUGAR", "-m", tea).text == "prefs/tea.md:2:- no sugar\n"
    assert run("files", "grep", "SUGAR", "-s", "-m", tea).text == ""
    assert run("files", "grep", "-E", "^- (no|one)", "prefs/", "-m", tea).text == "prefs/tea.md:2:- no sugar\n"
    assert run("files", "grep", "绿茶", "prefs/tea.md", "-m", tea).text == "prefs/tea.md:1:- likes 绿茶\n"
    cut = run("files", "grep", "-", "--limit", "1", "-m", tea)
    assert (len(cut.text.splitlines()), "--limit" in cut.err) == (1, True)
    assert run("files", "grep", "-E", "(", "-m", tea).code == 1
    assert run("files", "grep", "x", "nowhere/", "-m", tea).err.startswith("error: not_found: ")


def test_hostile_content_is_escaped_in_listings_even_when_piped(run, memory):
    run(
        "files",
        "create",
        "evil\u202e.md",
        "-m",
        memory,
        stdin=b"\x1b]0;owned\x07\ttab\x9b31m\xc2\x9b\n".replace(b"\x9b3", b"3"),
    )
    listed, found = run("files", "ls", "-m", memory), run("files", "grep", "owned", "-m", memory)
    for shown in (listed, found):
        assert "\x1b" not in shown.text
        assert "\x9b" not in shown.text
        assert "\u202e" not in shown.text
        assert "evil\\u202e.md" in shown.text
    assert len(listed.text.split("\t")) == 4
    raw = run("files", "ls", "-m", memory, "--json")
    assert "\x9b" not in raw.text
    assert "\x9b" in raw.json["files"][0]["description"]


def test_a_missing_memory_is_an_error_of_its_own_and_is_not_created(run, memory, tmp_path):
    for command in (["ls"], ["view", "a"], ["grep", "a"], ["append", "a", "b"], ["edit", "a", "b", "c"],
                    ["mv", "a", "b"], ["rm", "a", "--yes"]):  # fmt: skip
        ran = run("files", *command, "-m", memory)
        assert (ran.code, ran.out) == (3, b"")
        assert ran.err.startswith("error: unknown_memory: There is no memory at ")
        assert run("files", *command, "-m", memory, "--json").json["error"] == "unknown_memory"
    assert os.listdir(tmp_path) == []


def test_a_file_that_is_no_memory_is_told_so_and_left_alone(run):
    Path("plain.db").write_text("plain\n")
    refused = run("files", "create", "a.md", "x", "-m", "plain.db")
    assert (refused.code, refused.err) == (
        3,
        "error: unknown_memory: plain.db is no memory: it is neither a directory nor a SQLite database.\n",
    )
    assert Path("plain.db").read_text() == "plain\n"


def test_reading_leaves_nothing_behind(run, tea, tmp_path):
    kept = {
        "notes": ["notes", "notes/.memshelf", "notes/prefs"],
        "notes.db": ["notes.db"],
        "team.db#notes": ["team.db"],
    }
    reading = [["ls"], ["view", "prefs/tea.md"], ["grep", "tea"], ["view", "nowhere"]]
    reading += [] if tea == "notes" else [["history"], ["verify"], ["diff", "made-up"]]
    before = sorted((path, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*"))
    for command in reading:
        run("files", *command, "-m", tea)
    assert sorted((path, path.lstat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
    assert set(kept[tea]) <= {str(path.relative_to(tmp_path)) for path, _ in before}


def test_another_name_in_a_database_is_another_memory(run, tmp_path):
    run("files", "create", "a.md", "one", "-m", "team.db#notes")
    before = run("files", "ls", "-m", "team.db")
    assert (before.code, before.out) == (3, b"")
    assert before.err.startswith("error: unknown_memory: team.db holds no memory default. It holds: notes.")
    run("files", "create", "a.md", "two", "-m", "team.db")
    assert run("files", "view", "a.md", "-m", "team.db#notes").text == "one"
    assert run("files", "view", "a.md", "-m", "team.db#default").text == "two"


def test_a_database_that_has_only_records_says_where_they_are_shown(run):
    run("records", "add", "tea", "--memory", "r.db")
    for command in (("ls",), ("view", "a.md")):
        refused = run("files", *command, "--memory", "r.db")
        assert refused.code == 3
        assert "It holds records, which are no files: `memshelf records list`." in refused.err
    run("records", "rm", "--all", "--yes", "--memory", "r.db")
    assert "It holds records" not in run("files", "ls", "--memory", "r.db").err


def test_a_database_is_known_by_its_content_and_a_directory_by_being_one(run, tmp_path):
    run("files", "create", "a.md", "database", "-m", "x.db")
    (tmp_path / "x.db").rename(tmp_path / "plain")
    (tmp_path / "folder.db").mkdir()
    (tmp_path / "folder.db" / "b.md").write_text("directory")
    (tmp_path / "with#mark").mkdir()
    (tmp_path / "with#mark" / "c.md").write_text("whole")
    assert run("files", "view", "a.md", "-m", "plain#default").text == "database"
    assert run("files", "view", "b.md", "-m", "folder.db").text == "directory"
    assert run("files", "view", "c.md", "-m", "with#mark").text == "whole"


def test_what_is_no_memory_is_refused_and_left_alone(run, tmp_path):
    import sqlite3

    (tmp_path / "letter.txt").write_text("Dear")
    with sqlite3.connect(tmp_path / "foreign.db") as foreign:
        foreign.execute("CREATE TABLE bookmarks (url)")
    foreign.close()
    (tmp_path / "torn.db").write_bytes(b"SQLite format 3\x00" + b"\xff" * 200)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for memory in ("letter.txt", "foreign.db", "torn.db"):
        for command in (["ls"], ["create", "a.md", "b"]):
            ran = run("files", *command, "-m", memory)
            assert (ran.code, ran.err.startswith("error: un")) == (3, True), ran
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_refusals_name_the_code_and_show_the_file_in_json(run, tea):
    taken = run("files", "create", "prefs/tea.md", "x", "-m", tea, "--json")
    assert (taken.code, taken.json["error"]) == (1, "already_exists")
    assert taken.json["current"]["content"] == "- likes 绿茶\n- no sugar\n"
    stale = run("files", "rm", "prefs/tea.md", "--version", "stale", "-m", tea, "--json")
    assert (stale.code, stale.json["error"]) == (1, "version_mismatch")
    assert stale.json["current"]["path"] == "prefs/tea.md"
    gone = run("files", "rm", "gone.md", "--version", "stale", "-m", tea, "--json")
    assert (gone.code, gone.json["error"], gone.json["current"]) == (1, "not_found", None)
    outside = run("files", "view", "../secret", "-m", tea)
    assert (outside.code, outside.out, outside.err.startswith("error: invalid_path: ")) == (1, b"", True)
    assert run("files", "view", "prefs/tea.md", "-m", tea).text == "- likes 绿茶\n- no sugar\n"


def test_content_that_no_memory_takes_is_refused(run, memory):
    assert run("files", "create", "a.md", "-m", memory, stdin=b"\xff\xfe").err.startswith("error: invalid_file: ")
    assert run("files", "create", "a.md", "-m", memory, stdin=b"x" * 65_537).err.startswith("error: too_large: ")
    assert run("files", "create", "a.md", "--file", "nowhere.md", "-m", memory).err == (
        "error: unavailable: nowhere.md: No such file or directory.\n"
    )
    assert run("files", "create", "a.md", "x", "--file", "b.md", "-m", memory).code == 2
    assert run("files", "create", "a.md", "-m", memory, stdin="绿".encode() * 21_845).code == 0


def test_rm_without_a_terminal_needs_a_yes_or_a_version(run, tea):
    refused = run("files", "rm", "prefs/tea.md", "-m", tea, stdin=b"y\n")
    assert (refused.code, "--yes" in refused.err, "--version" in refused.err) == (2, True, True)
    assert run("files", "rm", "prefs/tea.md", "--yes", "-m", tea).code == 0
    assert run("files", "ls", "-m", tea).out == b""


def test_usage_errors_are_one_json_document_too(run):
    for command in (["ls"], ["view", "--memory", "x", "--nonsense"], ["view", "a"]):
        ran = run("files", *command, "--json")
        assert (ran.code, ran.json["error"]) == (2, "usage")
        assert ran.err.startswith("error: usage: ")


def test_changes_are_attributed_to_the_user_of_the_system(run):
    run("files", "create", "a.md", "x", "-m", "a.db")
    [version] = run("files", "history", "-m", "a.db", "--json").json["versions"]
    name = pwd.getpwuid(os.getuid()).pw_name
    assert version["origin"] == {"run_id": None, "principal_id": f"cli:{name}", "tool_call_id": None}


def test_the_memory_may_be_named_by_the_environment(run, monkeypatch):
    monkeypatch.setenv("MEMSHELF_MEMORY", "a.db")
    run("files", "create", "a.md", "x")
    assert run("files", "view", "a.md").text == "x"


def test_a_file_larger_than_the_limit_is_viewed_whole(run, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "big.md").write_text("x" * 100_000)
    assert run("files", "view", "big.md", "-m", "notes").text == "x" * 100_000
    shown = run("files", "view", "big.md", "-m", "notes", "--json").json
    assert (len(shown["content"]), "truncated" in shown) == (100_000, False)


def test_json_survives_lone_surrogates_in_what_the_user_typed(run, tmp_path):
    (tmp_path / "m").mkdir()
    ran = run("files", "view", "a\udcff.md", "-m", "m", "--json")
    assert (ran.code, json.loads(ran.out)["error"]) == (1, "invalid_path")


def test_content_may_start_as_frontmatter_and_lists_do(run, memory):
    for path, content in (("a.md", "---\ndescription: tea\n---\ngreen\n"), ("b.md", "- tea\n"), ("c.md", "---")):
        assert run("files", "create", path, content, "-m", memory).code == 0
        assert run("files", "view", path, "-m", memory).text == content


def test_other_text_that_starts_with_a_dash_is_told_how_to_be_given(run, memory):
    ran = run("files", "create", "a.md", "-5 degrees", "-m", memory)
    assert (ran.code, "Put -- before" in ran.err, "--file" in ran.err) == (2, True, True)
    assert run("files", "create", "-m", memory, "--", "a.md", "-5 degrees").code == 0


def test_an_edit_that_fails_at_line_ends_says_which_ones_the_file_has(run, memory):
    run("files", "create", "a.md", "-m", memory, stdin=b"one\r\ntwo\r\n")
    assert "CRLF" in run("files", "edit", "a.md", "one\ntwo", "x", "-m", memory).err
    run("files", "create", "b.md", "-m", memory, stdin=b"one\ntwo\n")
    assert "CRLF" not in run("files", "edit", "b.md", "three", "x", "-m", memory).err


@pytest.mark.parametrize("directory", ["prefs", "prefs/"])
def test_a_directory_cannot_be_moved_or_deleted_as_such(run, tea, directory):
    for command in (["mv", directory, "likes"], ["rm", directory, "--yes"], ["rm", directory, "--version", "x"]):
        ran = run("files", *command, "-m", tea)
        assert (ran.code, ran.err.splitlines()) == (
            1,
            [
                "error: invalid_path: prefs/ is a directory, and only files can be moved, deleted or erased; nothing "
                "changed.",
                "Name each of its files (1): `memshelf files ls --recursive prefs/`.",
            ],
        )


def test_history_is_advised_only_where_there_is_one(run, tea):
    advised = run("files", "view", "gone.md", "-m", tea).err
    assert ("history" in advised) == (tea != "notes")


def test_a_memory_that_may_not_be_read_or_written_is_named_and_its_inside_is_not(run, monkeypatch):
    def refuse(self, name, at):
        raise PermissionError(errno.EACCES, "Permission denied", name)

    run("files", "create", "a.md", "x", "-m", "notes")
    monkeypatch.setattr(Disk, "create", refuse)
    monkeypatch.setattr(Disk, "open_file", refuse)
    advice = "Check who owns notes, and everything in it, and who may read and write there."
    assert run("files", "view", "a.md", "-m", "notes").err.splitlines() == [
        "error: unavailable: The memory cannot be read: Permission denied (a.md).",
        advice,
    ]
    written = run("files", "create", "b.md", "x", "-m", "notes")
    assert (written.code, written.err.splitlines()) == (
        3,
        ["error: unavailable: The system refuses: Permission denied; nothing changed.", advice],
    )


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("files", "create", "a.md", "-", "-m", "a.db"), ("files", "view", "a.md", "-m", "a.db")),
        (("records", "add", "-", "-m", "a.db"), ("records", "export", "-", "-m", "a.db")),
        (("workspace", "add", "tea", "-"), ("workspace", "show", "user_tea.md")),
    ],
)
def test_a_dash_for_a_text_is_standard_input(run, command, shown):
    assert run(*command, stdin=b"green tea").code == 0
    assert "green tea" in run(*shown).text


def test_a_search_below_what_is_no_directory_says_so_and_one_that_finds_nothing_does_not(run):
    run("files", "create", "tea/green.md", "green tea", "-m", "a.db")
    for under in ("coffee", "coffee/", "tea/green.md"):
        missed = run("search", "tea", "--under", under, "-m", "a.db")
        assert (missed.code, missed.err.splitlines()[0]) == (
            1,
            f"error: not_found: {under} is no directory of this memory.",
        )
    assert run("search", "tea", "--under", "tea", "-m", "a.db").code == 0


def test_a_name_with_a_number_sign_is_a_memory_of_the_file_before_the_first(run):
    assert run("files", "create", "a.md", "tea", "-m", "a.db#b#c").code == 0
    assert sorted(os.listdir()) == ["a.db"]
    assert "It holds: b#c." in run("files", "ls", "-m", "a.db#b").err
    assert run("files", "create", "a.md", "coffee", "-m", "C#/notes.db#d").code == 0
    assert run("files", "view", "a.md", "-m", "C#/notes.db#d").text == "coffee"
    assert run("files", "view", "a.md", "-m", "a.db#b#c").text == "tea"
