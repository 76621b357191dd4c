"""English and Chinese: the same things are said, all of them in the catalogue."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from jinja2 import Environment

import memshelf.console
from memshelf.console.language import LANGUAGES, catalogue, chosen, message

HOME = Path(memshelf.console.__file__).parent
TEMPLATES = sorted((HOME / "templates").glob("*.html"))
_SAID = ("title", "placeholder", "alt", "aria-label")
_NAMES = {"memshelf", "memshelf keys create", "· memshelf"}
_PREFIXES = (
    "access.wrong_",
    "diff.",
    "error.",
    "memory.line_ends_",
    "operation.",
    "outcome.",
    "problem.",
    "search.by_",
)
_PREFIXES += ("sessions.", "status.", "tab.", "who.")


class _Bare(HTMLParser):
    """What a template says itself, in texts and in attributes that are read out."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def handle_data(self, data: str) -> None:
        self.said.append(data.strip())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.said += [value or "" for name, value in attrs if name in _SAID]


def _without_expressions(source: str) -> str:
    tokens = Environment(autoescape=True).lex(source)
    return "".join(text for _, kind, text in tokens if kind == "data")


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.name)
def test_no_template_has_text_of_its_own(template):
    parser = _Bare()
    parser.feed(_without_expressions(template.read_text()))
    said = {each for each in parser.said if re.search(r"[^\W\d_]", each)}
    assert {each for each in said if each not in _NAMES and not re.fullmatch(r"2026[-\d :]*", each)} == set()


def test_both_catalogues_say_the_same_things():
    english, chinese = catalogue("en"), catalogue("zh")
    assert list(english) == list(chinese)
    assert len(english) > 150
    for name, text in english.items():
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", chinese[name])), name
        assert text.strip() == text != ""
        assert chinese[name].strip() == chinese[name] != ""


def test_the_chinese_is_chinese():
    loan = {"language.other", "language.tag", "language.other_tag", "memory.sha256", "sessions.agent", "stores.id"}
    for name, text in catalogue("zh").items():
        assert name in loan or re.search("[\u4e00-\u9fff]", text), name
        assert not re.search("[\u4e00-\u9fff][A-Za-z0-9]|[A-Za-z0-9][\u4e00-\u9fff]", text), text
        assert not re.search("[\u4e00-\u9fff][,;:!?()]|[()][\u4e00-\u9fff]", text), text


def test_every_message_is_there_and_none_is_for_nothing():
    sources = [path.read_text() for path in (*TEMPLATES, *(HOME / "routes").glob("*.py"), *HOME.glob("*.py"))]
    named = {name for source in sources for name in re.findall(r'["\']([a-z]+\.[a-z0-9_]+)["\']', source)}
    sections = {each.partition(".")[0] for each in catalogue("en")}
    named = {name for name in named if name.partition(".")[0] in sections and not name.endswith(("_", ".html"))}
    assert named - set(catalogue("en")) == set()
    assert {each for each in set(catalogue("en")) - named if not each.startswith(_PREFIXES)} == set()


def test_values_are_shown_as_text():
    assert message("en", "moment.title", time="<b>&{time}") == "The store at &lt;b&gt;&amp;{time}"


@pytest.mark.parametrize(
    ("asked", "remembered", "accepted", "language"),
    [
        (None, None, "", "en"),
        (None, None, "zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        (None, None, "en-US,en;q=0.9,zh;q=0.8", "en"),
        (None, None, "fr, zh;q=0.5", "zh"),
        (None, None, "en;q=0.1, zh-Hant", "zh"),
        (None, None, "zh;q=0, en;q=0.1", "en"),
        (None, None, "*;q=x, ;;;q=, zh;q=high", "en"),
        (None, "zh", "en", "zh"),
        ("en", "zh", "zh", "en"),
        ("<script>", "de", "zh", "zh"),
    ],
)
def test_the_language_is_what_was_chosen_or_what_the_browser_likes_best(asked, remembered, accepted, language):
    assert chosen(asked, remembered, accepted) == language


async def test_a_language_that_is_chosen_stays(host, visitor):
    browser = visitor()
    assert "Sign in" in (await browser.get("/sign-in")).text
    page = await browser.get("/sign-in?lang=zh&back=%2Fconsole%2Fstores%3Farchived%3D1")
    assert "登录" in page.text
    assert ("html", {"lang": "zh-CN"}) in page.tags
    page = await browser.send({"key": host.key})
    assert "隐藏已归档的存储" in page.text
    [other] = [link for link in page.links if "lang=" in link]
    assert other == "/console/stores?archived=1&lang=en"
    page = await browser.get(other)
    assert "Hide archived stores" in page.text
    assert set(LANGUAGES) == {"en", "zh"}
