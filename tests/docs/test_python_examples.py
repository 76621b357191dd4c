"""The Python examples run, in the order of their page, against a model on this machine."""

from __future__ import annotations

import ast
import asyncio
import codeop
import gc
import inspect
import os
import re
import subprocess
import sys
from dataclasses import dataclass, replace

import example_model
import example_service
import pytest
from pages import ALL, Block, Page, page
from threaded import in_a_thread

from memshelf import RecordMemoryLimits
from memshelf.agent.capabilities import records
from memshelf.testing.mem0 import FakeMem0

SECONDS = 100


@dataclass(frozen=True, slots=True)
class Patient(RecordMemoryLimits):
    """However busy the machine is."""

    recall_seconds: float = SECONDS


_FOR_FILES = "json_store"  # the example of a store is two files, which have a test of their own

_MEM0 = "http://localhost:8888"  # the example of a mem0 server, which a test starts at another port

_SETTING = {
    "docs/agents.md": """
from memshelf import AgentSpec, FileMemoryCapability, FileMount, HarnessBuilder, InProcessFileStore

spec = AgentSpec(model="openai-responses:gpt-5")
memory = FileMemoryCapability([FileMount("user", InProcessFileStore(), "write")])
executable = HarnessBuilder().build(spec, capabilities=(memory,))
""",
}
"""What the fragments of a page take as given."""

_PAGES = [each for each in ALL if any(block.kind == "python" for block in each.blocks)]


# Examples, as users do, leave it to the end of the program to close the connections that Pydantic AI keeps.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")


@pytest.fixture(autouse=True)
def what_an_example_leaves_open_is_collected_with_it():
    """Or else a later test would be blamed."""
    yield
    gc.collect()


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MEMSHELF_MODEL", raising=False)
    with example_model.serving() as (model, environment):
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield model


def _examples(of: Page) -> list[Block]:
    python = [each for each in of.blocks if each.kind == "python"]
    return [each for each in python if _FOR_FILES not in each.text + _before(of, each)]


def _before(of: Page, block: Block) -> str:
    """The end of the sentence before a block: there a page says what to save it as."""
    return "\n".join(of.text.split("\n")[max(block.line - 4, 0) : block.line - 1])


def _run(examples: list[Block], names: dict[str, object], capsys) -> None:
    with asyncio.Runner() as runner:
        for block in examples:
            if "run_sync(" in block.text:  # it leaves an event loop and its connections to the end of the process
                subprocess.run([sys.executable, "-c", block.text], check=True, timeout=SECONDS)
                continue
            code = compile(block.text, f"<line {block.line}>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            capsys.readouterr()
            if code.co_flags & inspect.CO_COROUTINE:
                runner.run(eval(code, names))
            else:
                exec(code, names)
            if promised := re.findall(r"# -> (.+)$", block.text, re.MULTILINE):
                assert capsys.readouterr().out.splitlines() == promised, f"line {block.line}"


@pytest.fixture
def service(request, tmp_path_factory, monkeypatch):
    """A service, for the pages that talk to one."""
    if not example_service.needed(request.getfixturevalue("page")):
        yield
        return
    with example_service.serving(tmp_path_factory.mktemp("service")) as environment:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_examples_run_and_print_what_they_say(page, model, service, capsys):
    examples = [each for each in _examples(page) if _MEM0 not in each.text]
    assert examples
    names: dict[str, object] = {"__name__": "example"}
    exec(_SETTING.get(page.name, ""), names)
    _run(examples, names, capsys)


@pytest.mark.parametrize("page", _PAGES, ids=str)
def test_an_example_that_is_no_program_can_be_pasted_into_a_console(page):
    """To a console, a blank line ends what is indented, and nothing else does."""
    for block in _examples(page):
        if "asyncio.run(" not in block.text:
            _paste(block)


def _paste(block: Block) -> None:
    compiled = codeop.CommandCompiler()
    compiled.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT  # as `python -m asyncio` does
    typed: list[str] = []
    for line, text in enumerate(block.text.split("\n"), start=block.line + 1):
        typed.append(text)
        if compiled("\n".join(typed), f"<line {line}>", "single") is not None:
            typed.clear()
    assert typed == [], f"line {block.line}"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_agent_stores_a_memory_that_its_next_run_is_shown(model, capsys, language):
    _run(_examples(page("docs/agents.md", language))[:1], {"__name__": "example"}, capsys)
    [stored] = [each for each in os.listdir(".memory/user") if each != ".memshelf"]
    assert stored.startswith("noted-")
    asked = [str(request["input"]) for request in model.requests]
    assert len(asked) == 3
    assert stored not in asked[0]
    assert 'kind="full"' in asked[0]
    assert asked[2].count("<memory-context") == 2
    assert f"{stored}: As asked." in asked[2]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_agent_on_mem0_stores_a_record_that_its_next_run_recalls(model, capsys, language, monkeypatch):
    monkeypatch.setattr(records, "RecordMemoryLimits", Patient)
    [example] = [each for each in _examples(page("docs/record-memory.md", language)) if _MEM0 in each.text]
    fake = FakeMem0("mem0_oss")
    with in_a_thread(fake.served()) as address:
        _run([replace(example, text=example.text.replace(_MEM0, address))], {"__name__": "example"}, capsys)
    assert fake.texts("alice") == [example_model.FACT]
    asked = [str(request["input"]) for request in model.requests]
    assert ["<memory-recall" in each for each in asked] == [False, False, True]
    assert example_model.FACT in asked[2]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_first_agent_with_record_memory_stores_a_record_that_its_next_run_recalls(
    model, capsys, language, monkeypatch
):
    monkeypatch.setattr(records, "RecordMemoryLimits", Patient)
    example = next(each for each in _examples(page("docs/record-memory.md", language)) if "HarnessBuilder" in each.text)
    _run([example], {"__name__": "example"}, capsys)
    asked = [str(request["input"]) for request in model.requests]
    assert len(asked) == 3
    assert ["<memory-recall" in each for each in asked] == [False, False, True]
    assert example_model.FACT in asked[2]


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_readme_has_the_first_example_of_the_agents_page(language):
    on_an_agent, on_the_harness, *_ = _examples(page("README.md", language))
    assert "pydantic_ai import Agent" in on_an_agent.text
    assert on_the_harness.text == _examples(page("docs/agents.md", language))[0].text


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_example_of_permissions_suspends_and_goes_on(model, capsys, language):
    names: dict[str, object] = {"__name__": "example"}
    examples = [each for each in _examples(page("docs/agents.md", language)) if "ToolPermissions(" in each.text]
    _run(examples, names, capsys)
    assert list(names["answers"].values()) == [True]
    assert names["result"].status == "completed"


def test_the_example_of_a_store_passes_the_contract(tmp_path):
    for name, text in _files(page("docs/stores.md")).items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--color=no", "-W", "error"]
    command += ["-o", "asyncio_default_fixture_loop_scope=function"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr[-1_000:]
    assert int(re.search(r"(\d+) passed", done.stdout)[1]) > 70


def test_the_example_of_a_store_is_the_same_in_both_languages():
    assert _files(page("docs/stores.md", "zh")) == _files(page("docs/stores.md"))


def _files(of: Page) -> dict[str, str]:
    """The examples that the page says to save as a file, by its name."""
    told = {block: re.findall(rf"`(\w*{_FOR_FILES}\.py)`", _before(of, block)) for block in of.blocks}
    files = {names[-1]: block.text for block, names in told.items() if names and block.kind == "python"}
    assert files.keys() == {"json_store.py", "test_json_store.py"}
    return files


def test_an_example_that_prints_something_else_is_seen(capsys):
    with pytest.raises(AssertionError):
        _run([Block("python", "print(1)  # -> 2\n", 1, "")], {}, capsys)
    with pytest.raises(NameError):
        _run([Block("python", "await nothing\n", 1, "")], {}, capsys)


def test_an_example_that_a_console_does_not_take_is_seen():
    _paste(Block("python", "if True:\n    await nothing\n\nprint()\n", 1, ""))
    for text in ("if True:\n    print()\nprint()\n", "if True:\n    print()\n\n    print()\n"):
        with pytest.raises(SyntaxError):
            _paste(Block("python", text, 1, ""))
