"""How pages are worded: a section says first what it is about, and the Chinese pages are written in one way."""

from __future__ import annotations

import re

import pytest
from pages import ALL, PAGES, Page

_CODE = re.compile(r"(`+).+?\1")
_QUOTED = re.compile(r"“[^”]*”")
_TARGET = re.compile(r"\]\([^)]*\)")
_HAN = "[\u4e00-\u9fff]"
_APART = re.compile(rf"{_HAN}[A-Za-z0-9]|[A-Za-z0-9%]{_HAN}")
_HALF_WIDTH = re.compile(rf"{_HAN}[,;:!?()]|[()]{_HAN}")
_NEEDLESS = re.compile(rf"\S[，。；：、（）]? +[，。；：、（）]|[，。；：、（] +\S|{_HAN} +{_HAN}")

_ONE_WORD = {
    "打码": "遮盖",
    "撤回": "撤销",
    "字词": "词语",
    "记忆条目": "条目",
    "会话线程": "线程",
    "API key": "API 密钥",
    "扩展 `": "可选依赖 `",
    "` 扩展": "可选依赖 `",
}
"""What these pages do not say, and what they say instead."""


def _worded(page: Page) -> list[str]:
    """The prose with a letter for each piece of code, and without what is quoted and where links lead."""
    return [_QUOTED.sub("", _TARGET.sub("]", _CODE.sub("x", line))).strip() for line in page.prose.split("\n")]


@pytest.mark.parametrize("page", ALL, ids=str)
def test_a_section_begins_with_a_sentence_and_not_with_code(page):
    assert re.findall(r"^#+ (.+)\n\n```", page.text, re.MULTILINE) == []


@pytest.mark.parametrize("page", PAGES["zh"], ids=str)
def test_chinese_stands_apart_from_latin_letters_and_has_punctuation_of_full_width(page):
    wrong = [line for line in _worded(page) if _APART.search(line) or _HALF_WIDTH.search(line)]
    assert wrong == []


@pytest.mark.parametrize("page", PAGES["zh"], ids=str)
def test_no_space_stands_beside_punctuation_of_full_width_or_between_characters(page):
    lines = [line for line in _worded(page) if not line.startswith("|")]
    assert [line for line in lines if _NEEDLESS.search(line)] == []


@pytest.mark.parametrize("page", PAGES["zh"], ids=str)
def test_the_chinese_pages_have_one_word_for_one_thing(page):
    prose = _QUOTED.sub("", page.prose)
    assert {word: _ONE_WORD[word] for word in _ONE_WORD if word in prose} == {}


def test_wrong_spaces_and_signs_are_seen():
    def wrong(text: str) -> bool:
        line = _CODE.sub("x", text)
        return any(each.search(line) for each in (_APART, _HALF_WIDTH, _NEEDLESS))

    for text in ("用Python写", "共 3条", "用 `x`写", "好, 的", "（a）好(的", "好 。", "好， 的", "你 好"):
        assert wrong(text), text
    for text in ("用 Python 写，共 3 条。", "见 `x`、`y`（二者）。"):
        assert not wrong(text), text
