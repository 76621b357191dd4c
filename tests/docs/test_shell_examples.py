"""The shell examples run for real, each page in a folder of its own, on a terminal where output is shown."""

from __future__ import annotations

import os
import pty
import re
import select
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import example_model
import example_service
import pytest
from pages import ALL, Block, Page
from preloaded import preloaded

SECONDS = 60

_ELSEWHERE = ("pip ", "make ", "pytest", "memshelf serve")
"""Commands that install, that do not end, or that other tests run."""

_SHELL = {"en": ("bash", "console"), "zh": ("console",)}
"""The blocks that run. In Chinese, commands without output are the same as in English, as `test_languages` checks."""

_VARIABLE = re.compile(r"\b[a-z]+_[0-9a-f]{32}\b|\b[0-9a-f]{64}\b|\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\b|\bcli:\w+\b")
"""What differs from run to run: ids and hashes of a history, times, and who is logged in."""

_PAGES = [each for each in ALL if any(block.kind in _SHELL[each.language] for block in each.blocks)]


class Shell:
    """Runs commands one by one in a folder, and knows which ids stand for those of the document."""

    def __init__(self, folder: Path, programs: Path, environment: dict[str, str]) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("MEMSHELF", "OPENAI"))}
        path = f"{programs}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**inherited, "PATH": path, "NO_COLOR": "1", "TERM": "xterm", "COLUMNS": "120"}
        self._environment |= {"HOME": str(folder), **environment}
        self._folder = folder
        self._actual: dict[str, str] = {}

    def quietly(self, command: str) -> None:
        """Run a command whose output the document does not show."""
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", self._translated(command)],
            input=b"What do you know about me?\n",
            capture_output=True,
            cwd=self._folder,
            env=self._environment,
            timeout=SECONDS,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout.decode()}{done.stderr.decode()}"

    def shown(self, command: str, expected: str) -> None:
        """Run a command on a terminal and compare what it shows."""
        if command.startswith("export "):
            name, _, value = command.removeprefix("export ").partition("=")
            self._environment[name] = value
            return
        seen, code = self._on_a_terminal(self._translated(command))
        assert self._same(expected, seen), f"$ {command}\n--- documented\n{expected}--- seen\n{seen}"
        refused = any(line.startswith("error: ") for line in expected.split("\n"))
        assert (code != 0) == refused, f"$ {command}\nended with {code}"

    def _translated(self, command: str) -> str:
        return _VARIABLE.sub(lambda match: self._actual.get(match[0], match[0]), command)

    def _same(self, expected: str, seen: str) -> bool:
        if _VARIABLE.split(expected) != _VARIABLE.split(seen):
            return False
        for documented, actual in zip(_VARIABLE.findall(expected), _VARIABLE.findall(seen), strict=True):
            if "_" in documented and self._actual.setdefault(documented, actual) != actual:
                return False
        return True

    def _on_a_terminal(self, command: str) -> tuple[str, int]:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            ["bash", "-c", command],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=self._folder,
            env=self._environment,
        )
        os.close(theirs)
        try:
            seen, deadline = b"", time.monotonic() + SECONDS
            while select.select([ours], [], [], max(deadline - time.monotonic(), 0))[0]:
                try:
                    data = os.read(ours, 65_536)
                except OSError:  # how Linux says that the other side is closed
                    break
                if not data:
                    break
                seen += data
            return seen.decode().replace("\r\n", "\n"), process.wait(max(deadline - time.monotonic(), 1))
        finally:
            os.close(ours)
            if process.poll() is None:
                process.kill()
                process.wait()


def _commands(block: Block) -> list[str]:
    lines = block.text.replace("\\\n", " ").split("\n")
    return [line for line in lines if line and not line.startswith("#")]


def _transcript(block: Block) -> list[tuple[str, str]]:
    """Each command with the output that the document shows."""
    assert block.text.startswith("$ ")
    told = [part.partition("\n") for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]]
    return [(command, output) for command, _, output in told]


def _run(page: Page, shell: Shell) -> None:
    for block in page.blocks:
        if block.kind not in _SHELL[page.language]:
            continue
        if block.kind == "console":
            for command, output in _transcript(block):
                shell.shown(command, output)
        else:
            for command in _commands(block):
                if not command.startswith(_ELSEWHERE):
                    shell.quietly(command)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    with preloaded(tmp_path_factory.mktemp("programs")) as folder:
        yield folder


@pytest.mark.timeout(300)  # a page may have a hundred commands, and the machine other things to do
@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_commands_do_what_the_document_shows(page, programs, tmp_path, tmp_path_factory):
    with ExitStack() as stack:
        _, environment = stack.enter_context(example_model.serving())
        if example_service.needed(page):
            environment |= stack.enter_context(example_service.serving(tmp_path_factory.mktemp("service")))
        _run(page, Shell(tmp_path, programs, environment))


def test_output_that_differs_is_seen(tmp_path):
    shell = Shell(tmp_path, tmp_path, {})
    shell.shown("echo ver_" + "0" * 32, "ver_" + "1" * 32 + "\n")
    shell.shown("echo ver_" + "0" * 32, "ver_" + "1" * 32 + "\n")
    for command, output in (
        ("echo ver_" + "2" * 32, "ver_" + "1" * 32 + "\n"),  # another id than before
        ("echo tea", "coffee\n"),
        ("false", ""),
        ("echo tea", "error: tea\n"),
    ):
        with pytest.raises(AssertionError):
            shell.shown(command, output)
    with pytest.raises(AssertionError):
        shell.quietly("exit 3")
