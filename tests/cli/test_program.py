"""The program as a whole: help, exit codes, output in any locale, completion, terminals."""

from __future__ import annotations

import logging
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import time

import click
import pytest
from command_line import program

from memshelf import __version__
from memshelf.cli.command import WholeNumber
from memshelf.cli.program import cli
from memshelf.storage.sqlite_connection import PATIENCE


def _commands(group: click.Group, *path: str):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from _commands(command, *path, name)


@pytest.mark.parametrize("command", [(), *(path for path, _ in _commands(cli))], ids=" ".join)
def test_the_help_of_every_command_has_examples_of_that_command(run, command):
    shown = run(*command, "--help")
    assert shown.code == 0
    assert "\n  Examples:\n" in shown.text
    assert re.search(rf"^    .*{' '.join(('memshelf', *command))}", shown.text, re.MULTILINE)
    assert all(len(line) <= 120 for line in shown.text.splitlines())


def test_the_exit_codes_are_documented(run):
    shown = run("--help").text
    for code in (0, 1, 2, 3, 130, 141):
        assert re.search(rf"^    {code} +[a-z]", shown, re.MULTILINE)


def test_the_version_is_the_package_s(run):
    assert run("--version").text == f"memshelf {__version__}\n"


def test_without_a_command_the_help_goes_to_standard_error(run):
    shown = run()
    assert (shown.code, shown.out, shown.err.startswith("Usage: memshelf ")) == (2, b"", True)


@pytest.mark.parametrize("arguments", [("--help",), ("files", "ls", "-m", "notes"), ("files", "history", "-m", "a.db")])
def test_nothing_but_chat_and_demo_loads_an_agent_framework(run, arguments):
    run("files", "create", "a.md", "x", "-m", "notes")
    run("files", "create", "a.md", "x", "-m", "a.db")
    code = (
        "import sys; from memshelf.cli import main; code = main(sys.argv[1:]);"
        "print(code, 'pydantic_ai' in sys.modules, 'pydantic' in sys.modules, file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True)
    assert ran.stderr == "0 False False\n"


@pytest.mark.parametrize(
    "then",
    [
        "sys.meta_path.insert(0, type('Finder', (), {'find_spec': lambda *_: os.kill(os.getpid(), signal.SIGINT)})())",
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)",
        "t = threading; t.Thread(target=lambda: (t.main_thread().join(), os.kill(os.getpid(), signal.SIGINT))).start()",
    ],
    ids=["while it loads", "at its end", "while it waits for a thread"],
)
def test_an_interrupt_is_no_traceback_whenever_it_comes(then):
    then = f"signal.signal(signal.SIGINT, signal.default_int_handler); {then}"  # in the background it is ignored
    code = f"import atexit, os, signal, sys, threading; from memshelf.cli import main; {then}; sys.exit(main())"
    ran = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (130, "")


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"LC_ALL": "C", "PYTHONIOENCODING": "ascii"},
    ],
)
def test_output_is_utf_8_in_any_locale(run, locale):
    assert program("files", "create", "记忆/茶.md", "喜欢绿茶\n", "-m", "库.db", env=locale).code == 0
    assert run("files", "view", "记忆/茶.md", "-m", "库.db").text == "喜欢绿茶\n"
    assert program("files", "ls", "-r", "-m", "库.db", env=locale).text.split("\t")[0] == "记忆/茶.md"
    assert program("files", "grep", "茶", "-m", "库.db", env=locale).text == "记忆/茶.md:1:喜欢绿茶\n"
    assert program("files", "view", "记忆/茶.md", "-m", "库.db", "--json", env=locale).json["content"] == "喜欢绿茶\n"


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (("files", "create", "记忆/茶.md", "x", "-m", "notes"), "记忆"),
        (("workspace", "add", "Tea", "Green.", "-w", "w", "--user", "爱丽丝"), "爱丽丝"),
    ],
)
def test_a_locale_that_cannot_name_a_file_is_told_so(run, command, named):
    ascii_only = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    ran = program(*command, env=ascii_only)
    assert (ran.code, ran.out) == (3, b"")
    assert ran.err.splitlines()[-2:] == [
        f"error: unavailable: This locale cannot name '{named}' on the disk.",
        "Use a UTF-8 locale, such as LC_ALL=C.UTF-8, or set PYTHONUTF8=1.",
    ]


def test_a_reader_that_stops_early_ends_the_command_quietly(run, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "big.md").write_text("x" * 1_000_000)
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run(
        [sys.executable, "-m", "memshelf", "files", "view", "big.md", "-m", "notes"],
        stdout=writing,
        stderr=subprocess.PIPE,
    )
    os.close(writing)
    assert (ran.returncode, ran.stderr) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no /dev/full")
def test_a_full_disk_under_the_output_is_one_line(run):
    run("files", "create", "a.md", "x", "-m", "a.db")
    with open("/dev/full", "wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "memshelf", "files", "view", "a.md", "-m", "a.db"],
            stdout=full,
            stderr=subprocess.PIPE,
        )
    assert (ran.returncode, ran.stderr) == (3, b"error: unavailable: No space left on device.\n")


@pytest.mark.parametrize(
    ("closed", "arguments", "ended"),
    [
        (">&-", "list -m a.db", (3, b"error: unavailable: Bad file descriptor.\n")),
        ("<&-", "add -m a.db", (1, b"error: invalid_text: A record's text is not blank; nothing changed.\n")),
        ("2>&-", "list -m none.db", (3, b"")),
    ],
)
def test_a_standard_stream_that_is_closed_is_no_traceback_and_no_success(run, closed, arguments, ended):
    run("records", "add", "tea", "-m", "a.db")
    ran = subprocess.run(
        ["sh", "-c", f'"$0" -m memshelf records {arguments} {closed}', sys.executable], capture_output=True
    )
    assert (ran.returncode, ran.stderr) == ended
    assert ran.stdout == b""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_the_script_and_how_to_install_it(run, shell):
    shown = run("completion", shell)
    assert shown.code == 0
    assert "_MEMSHELF_COMPLETE" in shown.text
    assert shown.text.splitlines()[-1].startswith("# To install it: ")
    assert f"memshelf completion {shell}" in shown.text.splitlines()[-1]


def _completed(monkeypatch, run, *words: str) -> list[str]:
    monkeypatch.setenv("_MEMSHELF_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(("memshelf", *words)))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    ran = run()
    monkeypatch.delenv("_MEMSHELF_COMPLETE")
    assert (ran.code, ran.err) == (0, "")
    return [line.partition(",")[2] for line in ran.text.split()]


def test_the_shell_completes_paths_from_the_memory(run, monkeypatch, tmp_path):
    for path in ("prefs/tea.md", "prefs/语言.md", "plan.md"):
        run("files", "create", path, "x", "-m", "a.db")
    assert _completed(monkeypatch, run, "files", "view", "-m", "a.db", "pre") == ["prefs/tea.md", "prefs/语言.md"]
    assert _completed(monkeypatch, run, "files", "mv", "-m", "a.db", "plan.md", "pl") == ["plan.md"]
    assert _completed(monkeypatch, run, "files", "view", "-m", "nowhere.db", "p") == []
    assert _completed(monkeypatch, run, "files", "view", "p") == []
    assert "history" in _completed(monkeypatch, run, "files", "hi")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.db"]
    monkeypatch.setenv("MEMSHELF_MEMORY", "a.db")
    assert _completed(monkeypatch, run, "files", "rm", "pl") == ["plan.md"]


def test_a_terminal_gets_an_aligned_table_in_colour_and_no_hostile_bytes(run, terminal):
    run("files", "create", "语言.md", "喜欢\x1b[31m简短\x07的回答\n", "-m", "a.db")
    run("files", "create", "a.md", "tea", "-m", "a.db")
    shown = terminal("files", "ls", "-m", "a.db", columns=60)
    assert shown.end() == 0
    assert shown.seen == (
        "\x1b[90mPATH     SIZE  DESCRIPTION\x1b[0m\r\n"
        "a.md        3  tea\r\n"
        "语言.md    28  喜欢\\x1b[31m简短\\x07的回答\r\n"
    )
    plain = terminal("files", "ls", "-m", "a.db", env={"NO_COLOR": "1"})
    plain.end()
    assert "\x1b" not in plain.seen


def test_a_terminal_shows_content_with_its_control_characters_escaped(run, terminal):
    run("files", "create", "a.md", "-m", "a.db", stdin=b"a\x1b]0;t\x07\r\n\tb\xc2\x9b\rc")
    shown = terminal("files", "view", "a.md", "-m", "a.db")
    assert shown.end() == 0
    assert shown.seen == "a\\x1b]0;t\\x07\r\n\tb\\x9b\\rc\r\n"


def test_long_descriptions_are_cut_to_the_width_of_the_terminal(run, terminal):
    run("files", "create", "a.md", "宽" * 90, "-m", "a.db")
    shown = terminal("files", "ls", "-m", "a.db", columns=40)
    shown.end()
    assert shown.seen.splitlines()[1] == "a.md   270  " + "宽" * 13 + "…"


def test_rm_on_a_terminal_shows_what_it_deletes_and_asks(run, terminal):
    run("files", "create", "a.md", "tea", "-m", "a.db")
    declined = terminal("files", "rm", "a.md", "-m", "a.db")
    declined.until("Delete a.md (3 bytes, version ")
    declined.until("[y/N]: ")
    declined.send("n\n")
    assert declined.end() == 1
    interrupted = terminal("files", "rm", "a.md", "-m", "a.db")
    interrupted.until("[y/N]: ")
    interrupted.interrupt()
    assert interrupted.end() == 130
    assert "Traceback" not in interrupted.seen
    assert run("files", "view", "a.md", "-m", "a.db").text == "tea"
    accepted = terminal("files", "rm", "a.md", "-m", "a.db")
    accepted.until("[y/N]: ")
    accepted.send("y\n")
    assert accepted.end() == 0
    assert run("files", "ls", "-m", "a.db").out == b""


def test_rm_deletes_only_the_version_that_was_shown(run, terminal):
    run("files", "create", "a.md", "tea", "-m", "a.db")
    asking = terminal("files", "rm", "a.md", "-m", "a.db")
    asking.until("[y/N]: ")
    run("files", "append", "a.md", "and coffee", "-m", "a.db")
    asking.send("y\n")
    assert asking.end() == 1
    assert "error: version_mismatch: " in asking.seen
    assert run("files", "view", "a.md", "-m", "a.db").text == "tea\nand coffee"


@pytest.mark.skipif(sys.platform != "linux", reason="only /proc tells which files a process has opened")
def test_ctrl_c_ends_a_command_that_waits_for_another_process(run, terminal):
    run("files", "create", "a.md", "tea", "-m", "a.db")
    other = sqlite3.connect("a.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    waiting = terminal("files", "append", "a.md", "coffee", "-m", "a.db")
    waiting.until_it_opens("a.db")
    pressed = time.monotonic()
    waiting.send("\x03")
    assert waiting.end() == 130
    assert time.monotonic() - pressed < PATIENCE / 2
    assert "Traceback" not in waiting.seen
    other.execute("ROLLBACK")
    other.close()
    assert run("files", "view", "a.md", "-m", "a.db").text == "tea"


def test_choices_of_an_argument_are_on_one_line(run):
    assert "Choose from: bash, zsh, fish" in run("completion").err


def test_a_mistyped_command_is_answered_with_the_one_that_is_meant(run):
    mistyped = run("fles", "ls")
    assert (mistyped.code, "'fles'" in mistyped.err) == (2, True)
    if hasattr(click, "NoSuchCommand"):  # from 8.4 on, click knows which one is meant
        assert "'files'" in mistyped.err


@pytest.mark.parametrize(
    "command",
    [
        "files create a.md x --memory ADDRESS", "files ls --memory ADDRESS", "files append a.md x --memory ADDRESS",
        "records import ADDRESS --memory m.db", "records add x --memory ADDRESS", "workspace import ADDRESS",
        "workspace add tea x --workspace ADDRESS", "workspace list --workspace ADDRESS",
        "threads list --threads ADDRESS", "stores list --data ADDRESS", "serve --data ADDRESS",
        "keys list --data ADDRESS",
        "chat --memory x=ADDRESS --model openai-responses:gpt-5", "search tea --memory ADDRESS",
    ],
)  # fmt: skip
def test_an_address_where_a_path_is_meant_is_not_repeated_and_makes_no_folder(run, tmp_path, command):
    before = set(tmp_path.iterdir())
    ran = run(*command.replace("ADDRESS", "postgresql://ann:s3cret@127.0.0.1:9/db").split())
    assert ran.code == 2
    assert "postgresql://... is the address of a server" in ran.err
    assert "s3cret" not in ran.err
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize(
    ("group", "typed", "meant"),
    [
        ("files", "cat", "view"),
        ("files", "delete", "rm"),
        ("files", "rename", "mv"),
        ("files", "list", "ls"),
        ("records", "delete", "rm"),
        ("records", "ls", "list"),
        ("records", "find", "search"),
        ("workspace", "rm", "forget"),
        ("workspace", "cat", "show"),
        ("threads", "delete", "rm"),
        ("stores", "rm", "delete"),
        ("memories", "edit", "update"),
        ("versions", "show", "view"),
        ("keys", "delete", "revoke"),
        ("workspace", "update", "add"),
        ("files", "update", "edit"),
    ],
)
def test_a_usual_name_that_a_group_does_not_have_is_answered_with_the_command_that_is_meant(run, group, typed, meant):
    refused = run(group, typed, "a")
    assert refused.code == 2
    assert f"No such command '{typed}'. Did you mean '{meant}'?" in refused.err


def _examples(command: click.Command) -> list[list[str]]:
    """The arguments of every example of a help, whatever else stands in a pipeline."""
    shown = command.help.partition("Examples:\n")[2].partition("\n\n")[0]
    found = re.findall(r"\bmemshelf ((?:\"[^\"]*\"|'[^']*'|[^|<>\"'\n)])*)", shown)
    return [shlex.split(each) for each in found]


@pytest.mark.parametrize("command", [cli, *(command for _, command in _commands(cli))], ids=lambda each: each.name)
def test_the_examples_of_a_help_are_command_lines_that_there_are(command):
    examples = _examples(command)
    assert examples
    for arguments in examples:
        context = cli.make_context("memshelf", list(arguments))
        while isinstance(context.command, click.Group):
            rest = [*context._protected_args, *context.args]
            name, each, rest = context.command.resolve_command(context, rest)
            context = each.make_context(name, rest, parent=context)
        assert not context.args


def test_an_argument_that_is_no_utf_8_is_a_usage_error_also_where_it_would_be_sent(run):
    for command in (("keys", "create"), ("stores", "create", "Notes")):
        assert run(*command, "--data", "data").code == 0
    for command in (
        ("stores", "create", "a\udcff"),
        ("stores", "update", "Notes", "--name", "a\udcff"),
        ("versions", "view", "Notes", "a\udcff"),
        ("memories", "create", "Notes", "/a.md", "\udcff"),
    ):
        refused = run(*command, "--data", "data")
        assert refused.code in (1, 2), refused.err
        assert "Traceback" not in refused.err
        assert refused.err.startswith(
            ("error: usage: Arguments are UTF-8 text; what has '\\udcff'", "error: invalid_")
        ), refused


@pytest.mark.parametrize("number", ["1_0", " 10", "10\n", "+10", "１０", "10.0", "", "9" * 5_000])
def test_a_number_is_in_digits_in_every_option(run, number):
    run("records", "add", "tea", "--memory", "user.db")
    refused = run("records", "list", "--limit", number, "--memory", "user.db")
    assert (refused.code, refused.err.startswith("error: usage: Invalid value for '--limit'")) == (2, True)
    assert run("records", "list", "--limit", "010", "--memory", "user.db").code == 0


def test_no_option_takes_numbers_as_python_does():
    types = [option.type for _, command in _commands(cli) for option in command.params]
    numbers = [each for each in types if isinstance(each, click.types.IntParamType)]
    assert len(numbers) > 10
    assert all(isinstance(each, WholeNumber) for each in numbers)


def test_a_warning_is_said_once_and_an_error_each_time(run, monkeypatch):
    def logs(arguments):
        for _ in range(2):
            logging.getLogger("memshelf.somewhere").warning("The index is old.")
            logging.getLogger("memshelf.somewhere").error("The tool failed.")
        return 0

    monkeypatch.setattr("memshelf.cli.program._run", logs)
    assert run("demo").err == "warning: The index is old.\nerror: The tool failed.\nerror: The tool failed.\n"
