"""The English and the Chinese documents stay in step."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex

import pytest
from pages import FOR_DEVELOPERS, PAGES, ROOT, Block, page

NAMES = [each.name for each in PAGES["en"]]


def test_every_document_exists_in_both_languages():
    assert [each.name for each in PAGES["zh"]] == NAMES
    assert set(NAMES) >= {"README.md", "docs/README.md", "docs/file-memory.md", "docs/stores.md", "docs/agents.md"}
    assert all((ROOT / name).exists() for name in NAMES)
    assert not any((ROOT / "docs" / "zh-CN" / name.removeprefix("docs/")).exists() for name in FOR_DEVELOPERS)


@pytest.mark.parametrize("name", NAMES)
def test_a_document_begins_with_a_link_to_the_other_language(name):
    english, chinese = page(name, "en"), page(name, "zh")
    there, back = (os.path.relpath(to.path, of.path.parent) for of, to in ((english, chinese), (chinese, english)))
    assert english.text.split("\n")[2] == f"English · [简体中文]({there})"
    assert chinese.text.split("\n")[2] == f"[English]({back}) · 简体中文"


@pytest.mark.parametrize("name", NAMES)
def test_headings_have_the_same_structure(name):
    english, chinese = ([heading.level for heading in page(name, each).headings] for each in ("en", "zh"))
    assert chinese == english


@pytest.mark.parametrize("name", NAMES)
def test_code_blocks_are_the_same_apart_from_comments_and_natural_language(name):
    english, chinese = page(name, "en").blocks, page(name, "zh").blocks
    assert len(chinese) == len(english)
    assert [(one.line, other.line) for one, other in zip(english, chinese, strict=True) if not _agree(one, other)] == []


@pytest.mark.parametrize("name", NAMES)
def test_sections_have_their_blocks_in_the_same_places(name):
    def places(language: str) -> list[int]:
        titles = [heading.title for heading in page(name, language).headings]
        return [titles.index(block.section) for block in page(name, language).blocks]

    assert places("zh") == places("en")


@pytest.mark.parametrize("name", NAMES)
def test_tables_and_lists_have_the_same_rows(name):
    def rows(language: str) -> list[str]:
        lines = page(name, language).prose.split("\n")
        marks = (re.match(r"\|| *\* | *\d+\. ", line) for line in lines)
        return [re.sub(r"\d", "1", mark[0]) for mark in marks if mark]

    assert rows("zh") == rows("en")


@pytest.mark.parametrize("name", NAMES)
def test_tables_speak_of_the_same_names(name):
    """What the first column of a table sets as code is an identifier, and the same in every language."""

    def names(language: str) -> list[list[str]]:
        lines = page(name, language).prose.split("\n")
        return [re.findall(r"`([^`]+)`", line.split("|")[1]) for line in lines if line.startswith("|")]

    assert names("zh") == names("en")


def _agree(one: Block, other: Block) -> bool:
    return _equal((one.kind, _essence(one)), (other.kind, _essence(other)))


def _equal(one: object, other: object) -> bool:
    if isinstance(one, list | tuple) and type(one) is type(other):
        return len(one) == len(other) and all(map(_equal, one, other))
    if isinstance(one, _Text) and isinstance(other, _Text):
        return one == other or one.natural or other.natural
    return one == other


class _Text(str):
    """A text that may be said in another language, if it is natural language in one of them."""

    @property
    def natural(self) -> bool:
        return not self.isascii() or re.search(r"\w[,;]?\s+\w|\w[.!?]\s*$", self) is not None


def _essence(block: Block) -> object:
    """What a block consists of, without comments and output."""
    match block.kind:
        case "python":
            return _tree(compile(block.text, "<example>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT))
        case "bash":
            return [_words(line) for line in block.text.replace("\\\n", " ").split("\n")]
        case "console":
            return [_words(line[2:]) for line in block.text.split("\n") if line.startswith("$ ")]
        case "json":
            return _json(json.loads(block.text))
        case _:
            return re.findall(r"[\w-]+(?==\")|^\w+(?=:)|^---$|\n", block.text, re.MULTILINE)


def _tree(node: object) -> object:
    if isinstance(node, ast.AST):
        return [type(node).__name__, *(_tree(value) for _, value in ast.iter_fields(node))]
    if isinstance(node, list):
        return [_tree(each) for each in node]
    return _Text(node) if isinstance(node, str) else node


def _words(command: str) -> list[_Text]:
    return [_Text(word) for word in shlex.split(command, comments=True)]


def _json(value: object) -> object:
    if isinstance(value, dict):
        return [(key, _json(each)) for key, each in value.items()]
    if isinstance(value, list):
        return [_json(each) for each in value]
    return _Text(value) if isinstance(value, str) else type(value).__name__


def test_a_difference_that_matters_is_seen():
    def agree(kind: str, one: str, other: str) -> bool:
        return _agree(Block(kind, one, 1, ""), Block(kind, other, 1, ""))

    assert agree("python", "say('I like tea.')  # a\n", "say('我喜欢茶。')  # 甲\n")
    assert agree("python", "say('tea')\n", "say('茶')\n")
    assert not agree("python", "open('user.db')\n", "open('team.db')\n")
    assert not agree("python", "run(a)\n", "run(b)\n")
    assert not agree("python", "run(a)\n", "run(a, 1)\n")
    assert agree("bash", 'memshelf files create a.md "Likes tea."\n', 'memshelf files create a.md "喜欢茶。"\n')
    assert not agree("bash", "memshelf files ls\n", "memshelf files ls -r\n")
    assert not agree("console", "$ memshelf files ls\n", "$ memshelf files view\n")
    assert agree("console", "$ memshelf files ls\na\n", "$ memshelf files ls\n甲\n")
    assert agree("json", '{"error":"It is."}', '{"error":"是。"}')
    assert not agree("json", '{"error":"It is."}', '{"code":"It is."}')
    assert not agree("text", "a\n", "a\nb\n")
    assert not agree("markdown", "---\nname: a\n", "---\ntype: a\n")


@pytest.mark.parametrize("page", PAGES["zh"], ids=str)
def test_chinese_lines_break_where_a_space_does_no_harm(page):
    """A line break is shown as a space, which does not belong between two characters."""
    assert re.findall(r".{0,10}[\u4e00-\u9fff]\n *[\u4e00-\u9fff].{0,10}", page.prose) == []
