"""What tests of the command line may ask for."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from command_line import ModelServer, Ran, Run, Terminal

from memshelf.cli import main


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command runs in a folder of its own, and in no one's environment."""
    monkeypatch.chdir(tmp_path)
    for name in (
        "MEMSHELF_MEMORY",
        "MEMSHELF_MODEL",
        "MEMSHELF_WORKSPACE",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "NO_COLOR",
        "COLUMNS",
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command in this process; standard input and output are no terminals."""

    def run(*args: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(args)
        captured = capsysbinary.readouterr()
        return Ran(code, captured.out, captured.err.decode())

    return run


@pytest.fixture
def terminal() -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def open_(*args: str, **options: Any) -> Terminal:
        opened.append(Terminal(*args, **options))
        return opened[-1]

    yield open_
    for each in opened:
        each.close()


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A scripted model that commands find in their environment."""
    server = ModelServer()
    server.start()
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-on-this-machine")
    monkeypatch.setenv("MEMSHELF_MODEL", "openai-responses:gpt-5")
    yield server
    server.stop()
