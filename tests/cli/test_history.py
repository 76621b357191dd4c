"""`memshelf files history | diff | restore | redact | verify`."""

from __future__ import annotations

import sqlite3

import pytest

MEMORY = ("--memory", "a.db")


@pytest.fixture
def ids(run) -> list[str]:
    """The versions of a memory, oldest first: created, edited, moved, deleted, and another file."""
    run("files", "create", "a.md", "one\ntwo\nthree", *MEMORY)
    run("files", "edit", "a.md", "two", "二", *MEMORY)
    run("files", "mv", "a.md", "b.md", *MEMORY)
    run("files", "rm", "b.md", "--yes", *MEMORY)
    run("files", "create", "other.md", "x\n", *MEMORY)
    return [each["id"] for each in reversed(run("files", "history", *MEMORY, "--json").json["versions"])]


def test_history_lists_versions_newest_first_and_pages(run, ids):
    lines = run("files", "history", *MEMORY).text.splitlines()
    rows = [line.split("\t") for line in lines]
    assert [(row[1], row[2], row[3]) for row in rows] == [
        ("created", ids[4], "other.md"),
        ("deleted", ids[3], "b.md"),
        ("modified", ids[2], "b.md"),
        ("modified", ids[1], "a.md"),
        ("created", ids[0], "a.md"),
    ]
    seen, cursor = [], []
    for _ in range(3):
        page = run("files", "history", "--limit", "2", *cursor, *MEMORY, "--json").json
        seen += [each["id"] for each in page["versions"]]
        cursor = ["--cursor", str(page["next_cursor"])]
    assert (seen, page["next_cursor"]) == (ids[::-1], None)
    assert "--cursor " in run("files", "history", "-n", "2", *MEMORY).err


def test_history_of_a_path_follows_the_file_through_its_moves(run, ids):
    found = run("files", "history", "a.md", *MEMORY, "--json").json["versions"]
    assert [each["id"] for each in found] == [ids[3], ids[2], ids[1], ids[0]]
    assert "text" not in found[0]
    assert run("files", "history", "--since", "2999-01-01", *MEMORY).out == b""
    for time in ("yesterday", "0001-01-01T00:00+05:00", "9999-12-31T23:59:59-05:00"):
        assert run("files", "history", "--since", time, *MEMORY).code == 2
    assert run("files", "history", "--cursor", "made up", *MEMORY).err.startswith("error: invalid_cursor: ")


def test_diff_is_against_the_version_before(run, ids):
    assert run("files", "diff", ids[1], *MEMORY).text == (
        f"--- a/a.md\t{ids[0]}\n+++ b/a.md\t{ids[1]}\n@@ -1,3 +1,3 @@\n one\n-two\n+二\n three\n"
        "\\ No newline at end of file\n"
    )
    assert run("files", "diff", ids[0], *MEMORY).text.startswith(
        f"--- /dev/null\n+++ b/a.md\t{ids[0]}\n@@ -0,0 +1,3 @@\n"
    )
    assert run("files", "diff", ids[3], *MEMORY).text.splitlines()[:2] == [
        f"--- a/b.md\t{ids[2]}",
        f"+++ /dev/null\t{ids[3]}",
    ]


def test_diff_of_a_move_alone_names_both_paths(run, ids):
    shown = run("files", "diff", ids[2], *MEMORY, "--json").json
    assert (shown["from"]["path"], shown["to"]["path"], shown["diff"]) == ("a.md", "b.md", "")


def test_diff_of_two_versions_goes_from_the_first_to_the_second(run, ids):
    backwards = run("files", "diff", ids[1], ids[0], *MEMORY, "--json").json
    assert (backwards["from"]["id"], backwards["to"]["id"]) == (ids[1], ids[0])
    assert "\n-二\n+two\n" in backwards["diff"]


def test_restore_brings_a_deleted_file_back_as_a_new_version(run, ids):
    restored = run("files", "restore", ids[1], *MEMORY, "--json").json
    assert (restored["path"], restored["size"]) == ("a.md", len("one\n二\nthree".encode()))
    assert run("files", "view", "a.md", *MEMORY).text == "one\n二\nthree"
    assert run("files", "history", *MEMORY, "--json").json["versions"][0]["id"] == restored["version"]


def test_restore_replaces_what_the_file_says_now(run, ids):
    run("files", "create", "a.md", "new", *MEMORY)
    assert run("files", "restore", ids[0], *MEMORY).code == 0
    assert run("files", "view", "a.md", *MEMORY).text == "one\ntwo\nthree"


def test_what_has_no_content_cannot_be_restored_or_shown(run, ids):
    for command in (["restore", ids[3]], ["view", "--at", ids[3]], ["restore", "made-up"], ["diff", "made-up"]):
        ran = run("files", *command, *MEMORY)
        assert (ran.code, ran.out, ran.err.startswith("error: not_found: ")) == (1, b"", True), ran


def test_an_old_version_can_be_viewed(run, ids):
    assert run("files", "view", "--at", ids[0], *MEMORY).text == "one\ntwo\nthree"
    assert run("files", "view", "--at", ids[0], *MEMORY, "--json").json["path"] == "a.md"
    assert run("files", "view", "a.md", "--at", ids[0], *MEMORY).text == "one\ntwo\nthree"
    other = run("files", "view", "c.md", "--at", ids[0], *MEMORY)
    assert (other.code, other.out) == (1, b"")
    assert other.err.startswith(f"error: not_found: Version {ids[0]} is not of c.md, but of a.md.\n")


def test_redact_needs_a_yes_and_erases_for_good(run, ids, tmp_path):
    assert run("files", "redact", ids[1], "--by", "Ann", *MEMORY).code == 2
    assert "二".encode() in (tmp_path / "a.db").read_bytes()
    kept = run("files", "redact", ids[1], "--by", "Ann", "--yes", *MEMORY, "--json").json["version"]
    assert (kept["id"], kept["path"], kept["redacted_by"]) == (ids[1], None, "Ann")
    shown = run("files", "history", *MEMORY).text
    assert f"modified\t{ids[1]}\t(redacted)" in shown
    assert run("files", "diff", ids[1], *MEMORY).err.startswith("error: not_found: ")
    assert run("files", "redact", ids[4], "--by", "Ann", "--yes", *MEMORY).err.startswith("error: forbidden: ")


def test_who_redacts_is_the_user_of_the_system_unless_somebody_is_named(run, ids):
    run("files", "redact", ids[0], "--by", "数据保护", "--yes", *MEMORY)
    run("files", "redact", ids[1], "--yes", *MEMORY)
    versions = {each["id"]: each for each in run("files", "history", *MEMORY, "--json").json["versions"]}
    me = versions[ids[0]]["origin"]["principal_id"]
    assert me.startswith("cli:")
    assert [versions[id]["redacted_by"] for id in ids[:2]] == ["数据保护", me]


@pytest.mark.parametrize("name", ["", " ", "a\nb", "\udcff"])
def test_who_redacts_has_a_name(run, ids, name):
    refused = run("files", "redact", ids[0], "--by", name, "--yes", *MEMORY)
    assert (refused.code, refused.err.splitlines()[0]) == (
        2,
        "error: usage: Invalid value for '--by': it is one or more printable characters",
    )


def test_verify_tells_an_intact_history_from_an_altered_one(run, ids, tmp_path):
    intact = run("files", "verify", *MEMORY)
    assert (intact.code, intact.text.startswith("Intact: 5 versions, head ")) == (0, True)
    head = intact.text.split()[-1]
    assert run("files", "create", "more.md", "x", *MEMORY).code == 0
    assert run("files", "verify", "--head", head, *MEMORY).text.startswith("Intact: 6 versions, head ")
    assert run("files", "verify", "--head", "0" * 64, *MEMORY).code == 1
    assert run("files", "verify", "--head", "abc", *MEMORY).code == 2
    connection = sqlite3.connect(tmp_path / "a.db")
    with connection:
        connection.execute("UPDATE file_versions SET operation = 'created' WHERE id = ?", (ids[1],))
    connection.close()
    damaged = run("files", "verify", *MEMORY, "--json")
    assert (damaged.code, damaged.json["intact"]) == (1, False)
    assert any(ids[1] in problem for problem in damaged.json["problems"])


@pytest.mark.parametrize("command", [["history"], ["diff", "v"], ["restore", "v"], ["verify"], ["view", "--at", "v"],
                                     ["redact", "v", "--by", "Ann", "--yes"]])  # fmt: skip
def test_directories_say_that_they_keep_no_history_and_what_does(run, command):
    run("files", "create", "a.md", "x", "-m", "notes")
    ran = run("files", *command, "-m", "notes")
    assert (ran.code, ran.out) == (2, b"")
    assert "directories keep no history" in ran.err
    assert "SQLite" in ran.err


def test_one_of_something_is_not_spoken_of_as_many(run):
    assert run("files", "create", "a.md", "x", *MEMORY).text.startswith("Created a.md (1 byte, version ")
    assert run("files", "verify", *MEMORY).text.startswith("Intact: 1 version, head ")
    assert run("files", "export", "--folder", "notes", *MEMORY).text == "Exported 1 file to notes\n"
    assert run("files", "export", "a.memshelf", *MEMORY).text == "Exported 1 version to a.memshelf\n"
    for counts in ("1 version added, 0 were there already", "0 versions added, 1 was there already"):
        assert run("files", "import", "a.memshelf", "--memory", "copy.db").text == f"Imported: {counts}\n"
