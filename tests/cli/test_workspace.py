"""`memshelf workspace`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from memshelf import Workspace

PLACE = Path(".memshelf/workspace/users")


def candidate(title="Tea", content="Drinks tea."):
    workspace = Workspace(".memshelf/workspace", durable=False)
    return asyncio.run(workspace.write_memory_entry(title, content, "user", "what she drinks", source="auto"))


def test_what_is_added_is_listed_found_shown_and_forgotten(run):
    added = run("workspace", "add", "Python Style", "Concise and typed.", "--type", "feedback", "-d", "coding style")
    assert (added.code, added.text) == (0, "Stored feedback_python_style.md\n")
    run("workspace", "add", "饮食", "--json", stdin="不吃辣，喜欢喝茶\n".encode())
    listed = run("workspace", "list", "--json").json["entries"]
    assert [(each["memory_type"], each["title"]) for each in listed] == [("user", "饮食"), ("feedback", "Python Style")]
    assert run("workspace", "list").text.splitlines()[1] == (
        "feedback\tfeedback_python_style.md\tPython Style\tcoding style"
    )
    [found] = run("workspace", "search", "how should I write python code", "--json").json["entries"]
    assert found["content"].strip() == "Concise and typed."
    assert [each["title"] for each in run("workspace", "search", "喝什么茶", "--json").json["entries"]] == ["饮食"]
    shown = run("workspace", "show", "feedback_python_style.md")
    assert shown.text.strip() == "# Python Style\n\nConcise and typed."
    assert run("workspace", "forget", "feedback_python_style.md").code == 0
    gone = run("workspace", "show", "feedback_python_style.md")
    assert (gone.code, gone.err.startswith("error: not_found")) == (1, True)
    assert "python_style" not in (PLACE / "default/MEMORY.md").read_text()


def test_an_entry_is_named_by_its_title_if_no_other_has_it(run):
    run("workspace", "add", "Café  au lait", "Two sugars.")
    assert run("workspace", "show", " Cafe\u0301 au lait").text == "# Café au lait\n\nTwo sugars."
    run("workspace", "add", "Café au lait", "A project.", "--type", "project")
    for command in ("show", "forget"):
        both = run("workspace", command, "Café au lait")
        assert (both.code, both.err.splitlines()[0]) == (
            2,
            "error: usage: 2 entries have the title Café au lait; give a file: project_café_au_lait.md, "
            "user_café_au_lait.md.",
        )
    assert run("workspace", "show", "user_café_au_lait.md").code == 0
    run("workspace", "forget", "project_café_au_lait.md")
    assert run("workspace", "forget", "Café au lait").text == "Forgot user_café_au_lait.md\n"
    assert run("workspace", "list", "--json").json == {"entries": []}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Tea", "There is no entry with the title Tea, nor a file of that name."),
        ("a/b", "There is no entry with the title a/b"),
        ("../x.md", "There is no entry with the title ../x.md"),
        ("\udcff", "There is no entry with the title \\udcff"),
        ("user_milk.md", "memory/user_milk.md does not exist."),
    ],
)
def test_an_entry_that_is_not_there_is_not_found_by_file_or_title(run, name, says):
    run("workspace", "add", "Milk and tea", "tea")
    for command in ("show", "promote", "reject"):
        missing = run("workspace", command, name)
        assert (missing.code, missing.err.startswith(f"error: not_found: {says}")) == (1, True), missing.err


def test_a_file_goes_before_a_title_that_is_spelt_like_it(run):
    run("workspace", "add", "Tea", "The file.")
    run("workspace", "add", "user_tea.md", "The title.", "--type", "project")
    assert run("workspace", "show", "user_tea.md").text.endswith("The file.")
    run("workspace", "forget", "user_tea.md")
    assert run("workspace", "show", "user_tea.md").text.endswith("The title.")


def test_a_candidate_is_promoted_by_its_title(run):
    PLACE.joinpath("default/memory").mkdir(parents=True)
    PLACE.joinpath("default/memory/user_tea.md").write_text(
        "---\nname: Tea time\nsource: auto\ntype: user\n---\nAt five.\n"
    )
    assert run("workspace", "promote", "Tea time", "--json").json == {"confirmed": "user_tea.md"}
    assert run("workspace", "candidates", "--json").json == {"entries": []}


def test_an_entry_that_is_added_again_is_said_to_be_updated(run):
    assert run("workspace", "add", "Tea", "Green.").text == "Stored user_tea.md\n"
    assert run("workspace", "add", "Tea", "Black.").text == "Updated user_tea.md\n"
    assert run("workspace", "add", " Tea ", "None.", "--json").json == {"file": "user_tea.md", "updated": True}
    assert run("workspace", "add", "tea", "Mint.", "--json").json["updated"] is False
    assert run("workspace", "add", "Tea", "Plan.", "--type", "project").text == "Stored project_tea.md\n"
    assert run("workspace", "add", "Tea", "Green.", "--user", "ann").text == "Stored user_tea.md\n"


def test_each_user_has_a_memory_of_their_own(run):
    run("workspace", "add", "Tea", "Green.", "--user", "ann")
    run("workspace", "init", "--user", "bob")
    assert run("workspace", "list", "--user", "bob", "--json").json == {"entries": []}
    assert run("workspace", "users").text == "ann\nbob\n"
    run("workspace", "delete-user", "bob", "--yes")
    asked = run("workspace", "delete-user", "ann")
    assert (asked.code, "--yes" in asked.err) == (2, True)
    assert run("workspace", "delete-user", "ann", "--yes", "--json").json == {"removed": "ann"}
    assert run("workspace", "users", "--json").json == {"users": []}
    assert run("workspace", "delete-user", "ann", "--yes").code == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("add", "", "x"),
        ("add", "t" * 201, "x"),
        ("add", "Tea", " "),
        ("add", "Tea", "x", "--type", "opinion"),
        ("list", "--user", " ann"),
        ("add", "T", "x", "--user", ""),
        ("delete-user", "", "--yes"),
        ("add", "T", "x", "--workspace", ""),
    ],
)
def test_what_cannot_be_is_a_usage_error_and_nothing_is_written(run, arguments):
    assert run("workspace", *arguments).code == 2
    assert not PLACE.exists()


def test_an_entry_that_is_no_text_is_refused(run):
    refused = run("workspace", "add", "Tea", stdin=b"\xff\xfe")
    assert (refused.code, refused.err.startswith("error: invalid_file")) == (1, True)


def test_candidates_are_confirmed_or_removed(run):
    kept, dropped = candidate(), candidate("Coffee", "Drinks coffee.")
    listed = run("workspace", "candidates", "--json").json["entries"]
    assert {each["file"] for each in listed} == {kept, dropped}
    assert run("workspace", "promote", kept).text.startswith("Confirmed ")
    assert run("workspace", "reject", dropped, "--json").json == {"rejected": dropped}
    [left] = run("workspace", "list", "--json").json["entries"]
    assert (left["title"], left["source"]) == ("Tea", "confirmed")
    assert run("workspace", "candidates", "--json").json == {"entries": []}


def test_rules_are_those_of_the_user_and_then_of_the_repository(run):
    initialized = Path(run("workspace", "init", "--user", "ann").text.strip())
    assert initialized == (PLACE / "ann").absolute()
    (initialized / "AGENTS.md").write_text("Answer in French.\n")
    Path("app/src").mkdir(parents=True)
    Path("app/.git").mkdir()
    Path("app/AGENTS.md").write_text("Use tabs.\n")
    shown = run("workspace", "rules", "--user", "ann", "--cwd", "app/src")
    assert shown.text == "Answer in French.\nUse tabs.\n"
    rules = run("workspace", "rules", "--user", "ann", "--cwd", "app/src", "--json").json["rules"]
    assert [each["text"] for each in rules] == ["Answer in French.\n", "Use tabs.\n"]


def test_conversations_are_searched_apart_from_entries(run):
    workspace = Workspace(".memshelf/workspace", durable=False)
    said = [{"role": "user", "content": "The deadline is in April."}, {"role": "assistant", "content": "Noted."}]
    asyncio.run(workspace.archive_conversation(said, session_id="work"))
    [found] = run("workspace", "search", "deadline", "--conversations", "--json").json["conversations"]
    assert (found["session_id"], found["messages"][0]["content"]) == ("work", "The deadline is in April.")
    assert "deadline" in run("workspace", "search", "deadline", "--conversations").text
    assert run("workspace", "search", "deadline", "--json").json == {"entries": []}


def test_the_memory_of_another_program_is_taken_over_and_stays_as_it_is(run, tmp_path):
    source = tmp_path / "memory"
    source.mkdir()
    (source / "MEMORY.md").write_text("- [Tea](tea.md) \u2014 what she drinks\n")
    entry = "---\nname: Tea\ndescription: what she drinks\ntype: user\n---\n\nDrinks green tea.\n"
    (source / "tea.md").write_text(entry)
    imported = run("workspace", "import", str(source), "--user", "ann")
    assert (imported.code, imported.text) == (0, "Imported: 1 added, 0 were there already, 0 left alone\n")
    again = run("workspace", "import", str(source), "--user", "ann", "--json").json
    assert (again["imported"], len(again["unchanged"]), again["left"]) == ([], 1, [])
    [listed] = run("workspace", "list", "--user", "ann", "--json").json["entries"]
    assert (listed["title"], listed["description"]) == ("Tea", "what she drinks")
    assert (source / "tea.md").read_text() == entry
    assert run("workspace", "import", "nowhere").err == "error: unavailable: nowhere: No such file or directory.\n"


def test_a_user_who_is_not_there_is_named_with_those_who_are(run):
    Path(".memshelf/workspace").mkdir(parents=True)
    assert run("workspace", "list", "--json").json == {"entries": []}  # nobody has anything yet, and nobody is named
    assert "Users that it knows: none." in run("workspace", "list", "--user", "ann").err
    run("workspace", "add", "Tea", "Green.", "--user", "alice")
    reading = (["list"], ["show", "x.md"], ["search", "tea"], ["search", "tea", "--conversations"], ["candidates"])
    changing = (["forget", "x.md"], ["promote", "x.md"], ["reject", "x.md"])
    for command in (*reading, *changing, ["rules"]):
        missed = run("workspace", *command, "--user", "alcie")
        assert (missed.code, missed.out) == (3, b"")
        assert "holds no memory of alcie. Users that it knows: alice." in missed.err
    assert "holds no memory of default. Users that it knows: alice." in run("workspace", "list").err
    assert run("workspace", "rules").code == 0
    assert run("workspace", "users").text == "alice\n"


def test_a_workspace_of_several_users_is_not_imported_for_one(run):
    for user in ("ann", "bob"):
        run("workspace", "add", "Tea", "Green.", "--user", user, "--workspace", "theirs")
    refused = run("workspace", "import", "theirs", "--user", "ann")
    assert (refused.code, refused.out) == (2, b"")
    assert "theirs/users" in refused.err
    assert run("workspace", "import", "theirs/users/ann", "--user", "carol").code == 0
    assert run("workspace", "users").text == "carol\n"
    assert run("workspace", "import", "theirs").text.startswith("Imported: 2 added")
    assert run("workspace", "users").text == "ann\nbob\ncarol\n"


def test_an_empty_list_on_a_terminal_says_where_it_looked(terminal):
    Path("empty").mkdir()
    for command in (("list",), ("candidates",), ("search", "tea"), ("users",)):
        shown = terminal("workspace", *command, "--workspace", "empty", columns=300)
        shown.until("empty")
        assert shown.end() == 0
    assert list(Path("empty").iterdir()) == []


def test_rules_that_are_no_text_are_told_of_and_the_others_shown(run):
    root = Path(run("workspace", "init").text.strip())
    (root / "AGENTS.md").write_bytes(b"\xff\xfe")
    Path("AGENTS.md").write_text("Use tabs.\n")
    shown = run("workspace", "rules")
    assert (shown.code, shown.text) == (1, "Use tabs.\n")
    assert f"warning: Agents are not told the rules in {root}/AGENTS.md: it is not UTF-8 text" in shown.err
    told = run("workspace", "rules", "--json").json
    assert [each["text"] for each in told["rules"]] == ["Use tabs.\n"]
    assert [each["file"] for each in told["left_out"]] == [str(root / "AGENTS.md")]


def test_rules_of_a_folder_that_is_not_there_are_no_rules_of_nothing(run):
    run("workspace", "init")
    assert run("workspace", "rules", "--cwd", "nope").err == "error: unavailable: nope: No such file or directory.\n"


def test_rules_of_a_repository_need_no_workspace(run):
    Path("AGENTS.md").write_text("Use tabs.\n")
    assert run("workspace", "rules").text == "Use tabs.\n"
