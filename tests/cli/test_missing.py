"""What is not there: every command says so on standard error, with one exit code, and makes nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

_DATA = ("--data", "nowhere")
_FILE = ("--memory", "nowhere.db")
_FOLDER = ("--memory", "nowhere")
_THREADS = ("--threads", "nowhere")
_WORKSPACE = ("--workspace", "nowhere")


@pytest.mark.parametrize(
    "command",
    [
        ("files", "ls", *_FOLDER),
        ("files", "view", "a.md", *_FOLDER),
        ("files", "grep", "tea", *_FOLDER),
        ("files", "append", "a.md", "x", *_FOLDER),
        ("files", "rm", "a.md", "--yes", *_FOLDER),
        ("files", "history", *_FILE),
        ("files", "verify", *_FILE),
        ("files", "export", "out", *_FILE),
        ("files", "import", "nowhere", *_FILE),
        ("search", "tea", *_FOLDER),
        ("search", "tea", *_FILE),
        ("records", "list", *_FILE),
        ("records", "search", "tea", *_FILE),
        ("records", "update", "REC", "x", *_FILE),
        ("records", "rm", "--all", "--yes", *_FILE),
        ("records", "export", "out", *_FILE),
        ("records", "import", "nowhere", *_FILE),
        ("records", "reindex", *_FILE),
        ("workspace", "list", *_WORKSPACE),
        ("workspace", "show", "user_tea.md", *_WORKSPACE),
        ("workspace", "search", "tea", *_WORKSPACE),
        ("workspace", "search", "tea", "--conversations", *_WORKSPACE),
        ("workspace", "forget", "user_tea.md", *_WORKSPACE),
        ("workspace", "rules", *_WORKSPACE),
        ("workspace", "candidates", *_WORKSPACE),
        ("workspace", "promote", "user_tea.md", *_WORKSPACE),
        ("workspace", "reject", "user_tea.md", *_WORKSPACE),
        ("workspace", "import", "nowhere", *_WORKSPACE),
        ("workspace", "users", *_WORKSPACE),
        ("workspace", "delete-user", "ann", "--yes", *_WORKSPACE),
        ("threads", "list", *_THREADS),
        ("threads", "show", "work", *_THREADS),
        ("threads", "search", "tea", *_THREADS),
        ("threads", "fork", "work", "work-2", *_THREADS),
        ("threads", "export", "work", "out", *_THREADS),
        ("threads", "rm", "work", "--yes", *_THREADS),
        ("stores", "list", *_DATA),
        ("stores", "export", "Notes", "out", *_DATA),
        ("memories", "list", "Notes", *_DATA),
        ("versions", "list", "Notes", *_DATA),
        ("versions", "expire", "--keep-versions", "90", "--yes", *_DATA),
        ("keys", "list", *_DATA),
        ("verify", *_DATA),
    ],
    ids=" ".join,
)
def test_what_does_not_exist_is_exit_code_3_and_a_line(run, command):
    ran = run(*command)
    assert (ran.code, ran.out, list(Path().iterdir())) == (3, b"", [])
    assert "nowhere" in ran.err.splitlines()[0]
    if command[:2] != ("threads", "rm"):  # it prints no documents
        as_json = run(*command, "--json")
        assert (as_json.code, as_json.json["error"]) == (3, ran.err.split(": ")[1])


def test_it_is_said_where_a_workspace_and_threads_may_be_instead(run):
    assert run("workspace", "list").err.splitlines() == [
        "error: unknown_memory: There is no workspace at .memshelf/workspace.",
        "Check --workspace; `memshelf workspace add` makes a new one.",
    ]
    assert run("threads", "list").err.splitlines() == [
        "error: unknown_memory: There is no folder of threads at .memshelf/threads.",
        "Check --threads: `memshelf chat` keeps its threads in .memshelf/threads, an agent its sessions in .sessions.",
    ]


@pytest.mark.parametrize(
    "command",
    [
        ("files", "ls", "--memory", "empty"),
        ("files", "grep", "tea", "--memory", "empty"),
        ("search", "tea", "--memory", "empty"),
        ("workspace", "list", "--workspace", "empty"),
        ("workspace", "search", "tea", "--workspace", "empty"),
        ("workspace", "candidates", "--workspace", "empty"),
        ("workspace", "rules", "--workspace", "empty"),
        ("workspace", "users", "--workspace", "empty"),
        ("threads", "list", "--threads", "empty"),
        ("threads", "search", "tea", "--threads", "empty"),
    ],
    ids=" ".join,
)
def test_what_is_empty_is_exit_code_0(run, command):
    Path("empty").mkdir()
    ran = run(*command)
    assert (ran.code, ran.out, ran.err) == (0, b"", "")


@pytest.mark.parametrize("blank", ["", " \n"])
@pytest.mark.parametrize(
    "command",
    [
        ("search", "--memory", "notes"),
        ("records", "search", "--memory", "notes.db"),
        ("workspace", "search", "--workspace", "notes"),
        ("workspace", "search", "--conversations", "--workspace", "notes"),
        ("threads", "search", "--threads", "notes"),
        ("stores", "search", "Notes", *_DATA),
    ],
    ids=" ".join,
)
def test_a_search_for_nothing_is_refused_before_it_begins(run, command, blank):
    ran = run(*command, blank)
    assert (ran.code, ran.out, list(Path().iterdir())) == (2, b"", [])
    assert ran.err.startswith("error: usage: Invalid value for 'QUERY': it is blank; say what to look for")
    assert run(*command, blank, "--json").json["error"] == "usage"


@pytest.mark.parametrize("command", [("workspace", "list", "--workspace"), ("threads", "list", "--threads")])
def test_a_file_where_a_folder_should_be_is_told_so(run, command):
    Path("file").touch()
    ran = run(*command, "file")
    assert (ran.code, ran.err.endswith(": it is not a folder.\n")) == (3, True)


@pytest.mark.parametrize("what", ["files", "records", "stores", "threads"])
def test_an_export_replaces_a_file_only_when_told_to(run, what):
    Path("out").write_text("mine")
    assert run("files", "create", "a.md", "x", "-m", "a.db").code == 0
    assert run("records", "add", "x", "-m", "a.db").code == 0
    assert run("threads", "list", "--threads", ".").code == 0
    Path("t.jsonl").touch()
    assert run("keys", "create", "--data", "data").code == 0
    assert run("stores", "create", "Notes", "--data", "data").code == 0
    command = {
        "files": ("files", "export", "out", "-m", "a.db"),
        "records": ("records", "export", "out", "-m", "a.db"),
        "stores": ("stores", "export", "Notes", "out", "--data", "data"),
        "threads": ("threads", "export", "t", "out", "--threads", "."),
    }[what]
    ran = run(*command)
    assert (ran.code, "out exists; say --force to replace it." in ran.err) == (2, True)
    assert Path("out").read_text() == "mine"
    elsewhere = run(*("gone/out" if each == "out" else each for each in command))
    assert (elsewhere.code, elsewhere.err) == (3, "error: unavailable: gone/out: No such file or directory.\n")
    Path("folder").mkdir()
    onto_a_folder = run(*("folder" if each == "out" else each for each in command), "--force")
    assert (onto_a_folder.code, onto_a_folder.err) == (3, "error: unavailable: folder: Is a directory.\n")
    assert run(*command, "--force").code == 0
    assert Path("out").read_text() != "mine"


@pytest.mark.parametrize("missing", ["httpx2", "fastapi"])
def test_whichever_package_is_missing_for_local_data_all_extras_are_named_at_once(missing):
    code = f"import sys; sys.modules[{missing!r}] = None; from memshelf.cli import main; sys.exit(main())"
    ran = subprocess.run(
        [sys.executable, "-c", code, "stores", "list", *_DATA], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (
        3,
        'error: unavailable: Stores on local data need two extras: pip install "memshelf[http,service]" '
        f"({missing} is missing).\n",
    )


_AS_IF_WITHOUT = (
    "import sys\n"
    "sys.modules.update(dict.fromkeys(['asyncpg', 'httpx2', 'fastapi', 'uvicorn']))\n"
    "from memshelf.cli import main; sys.exit(main(sys.argv[1:]))"
)


@pytest.mark.parametrize("command", [["records", "list"], ["stores", "list"], ["keys", "list"], ["serve"], ["verify"]])
def test_what_is_no_url_of_a_database_is_said_before_its_extra_is_asked_for(command):
    def run(url: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-c", _AS_IF_WITHOUT, *command, "--database", url], capture_output=True, text=True
        )
        return f"{ran.returncode} {ran.stderr}"

    assert run("r.db").startswith(
        "2 error: usage: Invalid value for --database: The DSN of a PostgreSQL database begins"
    )
    assert run("postgresql://localhost/x").startswith("3 error: unavailable: ")


@pytest.mark.parametrize(
    "command", [["records", "list", "--memory"], ["keys", "list", "--data"], ["stores", "list", "--data"]]
)
def test_a_place_that_is_typed_goes_before_a_database_of_the_environment(run, monkeypatch, command):
    monkeypatch.setenv("MEMSHELF_DATABASE", "postgresql://127.0.0.1:9/nowhere")
    assert "nowhere.db" in run(*command, "nowhere.db").err
    both = run(*command, "nowhere.db", "--database", "postgresql://127.0.0.1:9/nowhere")
    assert (both.code, "and not both" in both.err) == (2, True)
