"""Links lead somewhere, and the documents speak of nothing but the product."""

from __future__ import annotations

import re

import pytest
from pages import ALL, FOR_DEVELOPERS, ROOT, Page

EVERY = [*ALL, Page(ROOT / "CHANGELOG.md", "CHANGELOG.md", "en")]
EVERY += [Page(ROOT / name, name, "en") for name in FOR_DEVELOPERS if (ROOT / name).exists()]
_OF_A_WORKPLACE = re.compile(
    rf"{re.escape(str(ROOT))}/|/tmp/|/home/|/root/|/Users/|/envs/|\bissue #?\d|\bbrief\b|TODO|FIXME|XXX", re.IGNORECASE
)


@pytest.mark.parametrize("page", EVERY, ids=str)
def test_every_relative_link_and_anchor_resolves(page):
    broken = [link for link in page.links if not re.match(r"https?://", link) and not _resolves(page, link)]
    assert broken == []


def _resolves(page, link):
    place, _, anchor = link.partition("#")
    target = (page.path.parent / place).resolve() if place else page.path
    if not target.exists() or not target.is_relative_to(ROOT):
        return False
    return not anchor or anchor in Page(target, target.name, page.language).anchors


@pytest.mark.parametrize("page", ALL, ids=str)
def test_links_stay_in_the_language_where_there_is_a_translation(page):
    other = {each.path for each in ALL if each.language != page.language}
    pairs = {each.path for each in ALL if each.name == page.name}
    for link in page.links:
        target = (page.path.parent / link.partition("#")[0]).resolve()
        assert target in pairs or target not in other, f"{link} leaves the language of {page}"


@pytest.mark.parametrize("page", EVERY, ids=str)
def test_no_document_mentions_a_workplace(page):
    assert _OF_A_WORKPLACE.findall(page.text) == []


@pytest.mark.parametrize("page", ALL, ids=str)
def test_lines_of_prose_are_short(page):
    long = [line for line in page.prose.split("\n") if len(line) > 120 and not line.startswith("|")]
    assert long == []


def test_the_index_links_to_every_page():
    for index in (each for each in ALL if each.name == "docs/README.md"):
        pages = {each.path for each in ALL if each.language == index.language and each.path.parent == index.path.parent}
        linked = {(index.path.parent / link.partition("#")[0]).resolve() for link in index.links}
        assert pages - {index.path} <= linked


@pytest.mark.parametrize("page", [each for each in ALL if each.path.parent != ROOT], ids=str)
def test_how_to_install_is_said_in_one_place(page):
    assert 'pip install "memshelf' not in page.text, "say which extra, and link to the README's section"
