"""What a user can name is in the documents, in both languages."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Iterator
from datetime import datetime
from typing import get_args

import click
import pytest
from pages import PAGES, ROOT, page

import memshelf
import memshelf.testing
from memshelf import ErrorCode, FileFormat, FileMount, FileStore, limits as memshelf_limits
from memshelf.cli import program
from memshelf.files.context.deliver import Outcome
from memshelf.files.context.render import block as context_block
from memshelf.files.instructions import FILE_PARAMETERS
from memshelf.files.tools import FILE_TOOLS
from memshelf.origin import Origin
from memshelf.records.context import RecallOutcome, block
from memshelf.records.instructions import RECORD_PARAMETERS
from memshelf.records.model import MemoryRecord
from memshelf.records.tools import RECORD_TOOLS
from memshelf.service.errors import _ANSWERS
from memshelf.service.routes import extensions

LANGUAGES = list(PAGES)


def _commands(command: click.Command, path: str = "memshelf") -> Iterator[tuple[str, click.Command]]:
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            each = command.get_command(context, name)
            yield from _commands(each, f"{path} {name}")


COMMANDS = dict(_commands(program.cli))
EXIT_CODES = {
    0,
    *(
        value
        for name in ("REFUSED", "USAGE", "UNAVAILABLE", "INTERRUPTED", "BROKEN_PIPE")
        if (value := getattr(program, name))
    ),
}


def _missing(names: object, language: str, *pages: str) -> list[str]:
    """The names that no page sets as code, as whole words."""
    chosen = [each for each in PAGES[language] if not pages or each.name in pages]
    code = "\n".join(each.code for each in chosen)
    return [name for name in names if not re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", code)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_public_name_is_documented(language):
    assert _missing(set(memshelf.__all__) - {"__version__"}, language) == []
    assert _missing(memshelf.testing.__all__, language, "docs/stores.md") == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_method_of_a_store_is_documented(language):
    methods = [
        name
        for protocol in (FileStore, memshelf.SearchableFileStore, memshelf.HistoryFileStore)
        for name, _ in inspect.getmembers(protocol, inspect.isfunction)
        if not name.startswith("_")
    ]
    assert _missing(methods, language, "docs/stores.md") == []
    assert _missing([field.name for field in dataclasses.fields(memshelf.Version)], language, "docs/stores.md") == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_command_and_option_is_documented(language):
    assert len(COMMANDS) > 15
    assert _missing(COMMANDS, language, "docs/command-line.md") == []
    options = {
        max(parameter.opts, key=len)
        for command in COMMANDS.values()
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.name != "version"
    }
    assert {"--json", "--memory", "--thread"} <= options
    assert _missing(options, language, "docs/command-line.md") == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_environment_variable_is_documented(language):
    variables = {
        parameter.envvar
        for command in COMMANDS.values()
        for parameter in command.params
        if isinstance(parameter, click.Option) and parameter.envvar
    }
    assert {"MEMSHELF_MEMORY", "MEMSHELF_MODEL"} <= variables
    assert _missing(variables, language, "docs/command-line.md") == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_exit_code_is_documented(language):
    rows = _rows(page("docs/command-line.md", language).prose)
    assert {int(row[0]) for row in rows if row[0].isdecimal()} == EXIT_CODES


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("name", "tools", "parameters"),
    [
        ("docs/file-memory.md", FILE_TOOLS, FILE_PARAMETERS),
        ("docs/record-memory.md", RECORD_TOOLS, RECORD_PARAMETERS),
    ],
)
def test_every_tool_with_its_id_and_parameters_is_documented(language, name, tools, parameters):
    rows = {row[0]: row for row in _rows(page(name, language).prose)}
    for tool in tools.values():
        _, tool_id, documented, _ = rows[f"`{tool.name}`"]
        assert tool_id == f"`{tool.id}`"
        assert [each.partition("=")[0] for each in re.findall(r"`([^`]+)`", documented)] == list(parameters[tool.key])


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_error_code_is_in_the_table_of_failures(language):
    rows = _rows(page("docs/file-memory.md", language).prose)
    documented = {code for row in rows for code in re.findall(r"`(\w+)`", row[0])}
    assert set(get_args(ErrorCode)) - documented == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_limit_is_in_the_table_with_its_default(language):
    pages = [page(name, language) for name in ("docs/file-memory.md", "docs/record-memory.md")]
    rows = {row[0]: row[1] for each in pages for row in _rows(each.prose)}
    limits_ = [getattr(memshelf, name) for name in memshelf_limits.__all__ if name in memshelf.__all__]
    assert FileFormat in limits_
    for limits in limits_:
        for field in dataclasses.fields(limits):
            default = "`FileFormat()`" if field.name == "format" else f"{field.default:,}"
            assert rows[f"`{limits.__name__}.{field.name}`"] == default


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_field_of_a_mount_and_every_outcome_is_documented(language):
    assert _missing([field.name for field in dataclasses.fields(FileMount)], language, "docs/file-memory.md") == []
    assert _missing(get_args(Outcome), language, "docs/agents.md") == []
    fields = [field.name for field in dataclasses.fields(memshelf.RecordMount)]
    assert _missing([*fields, *get_args(RecallOutcome)], language, "docs/record-memory.md") == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_a_record_and_its_stores_have_is_documented(language):
    methods = [name for name, _ in inspect.getmembers(memshelf.RecallRecordStore, inspect.isfunction) if name[0] != "_"]
    fields = [field.name for kind in (memshelf.MemoryRecord, memshelf.NewRecord) for field in dataclasses.fields(kind)]
    assert _missing([*methods, *fields], language, "docs/record-memory.md") == []


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize(
    ("name", "folder"), [("docs/file-memory.md", "results"), ("docs/record-memory.md", "records/results")]
)
def test_results_are_shown_as_the_tools_give_them(language, name, folder):
    golden = [json.loads(path.read_text().split("\n")[1]) for path in (ROOT / "tests/golden" / folder).glob("*.json")]
    shapes = [_shape(each) for each in golden]
    shown = [json.loads(block.text) for block in page(name, language).blocks if block.kind == "json"]
    assert len(shown) >= 7
    assert [each for each in shown if _shape(each) not in shapes] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_blocks_are_shown_as_the_context_renders_them(language):
    shown = [each.text for each in page("docs/file-memory.md", language).blocks if each.kind == "text"]
    assert {re.search(r'kind="(\w+)"', each)[1] for each in shown} == {"full", "changes"}
    for each in shown:
        memory, kind = re.search(r'memory="(\w+)" trust="untrusted" kind="(\w+)"', each).groups()
        body = json.loads(each.split("\n")[2])
        lines = body["index" if kind == "full" else "changed"]
        assert each == context_block(memory, kind, body["files"], lines, body.get("more")) + "\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_recall_is_shown_as_it_is_rendered(language):
    [shown] = [each.text for each in page("docs/record-memory.md", language).blocks if "<memory-recall" in each.text]
    records = [
        MemoryRecord(
            each["id"], each["text"], each["score"], at=datetime.fromisoformat(each["at"]), origin=Origin(kind="agent")
        )
        for each in json.loads(shown.split("\n")[2])["records"]
    ]
    assert shown == block("facts", records, 8_192)[0] + "\n"


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_the_readme_tells_to_make_is_a_target(language):
    makefile = (ROOT / "Makefile").read_text()
    targets = re.findall(r"^make (\w+)$", page("README.md", language).code, re.MULTILINE)
    assert targets == ["demo", "test"]
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in targets)


def test_a_name_that_is_missing_is_seen():
    assert _missing(["FileStore", "memory_file_view", "NoSuchName", "FileStor", "memory_file"], "en") == [
        "NoSuchName",
        "FileStor",
        "memory_file",
    ]


def _rows(prose: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in prose.split("\n") if line.startswith("|")]


def _shape(value: object) -> object:
    if isinstance(value, dict):
        return {key: _shape(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shape(value[0])] if value else []
    return type(value).__name__


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_operation_and_error_of_the_service_is_documented(language):
    guide = page("docs/service.md", language)
    own = [f"{each.method} /v1{each.path}" for each in extensions.OPERATIONS]
    assert [operation for operation in own if f"`{operation}`" not in guide.text] == []
    documented = {type for row in _rows(guide.prose) for type in re.findall(r"`(\w+)`", row[0])}
    assert {type for _, type in _ANSWERS.values()} - documented == set()
