"""Full-text search: which memories are found, and in which order."""

from __future__ import annotations

import pytest
from workspace_of_tests import ORIGIN, WORKSPACE

from memshelf import MemoryStoreError
from memshelf.stores.search import Search, Terms


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("green tea", ("green", "tea")),
        ("Green GREEN", ("green",)),
        ("绿茶", ("绿茶",)),
        ("喝绿茶", ("喝绿", "绿茶")),
        ("茶", ("茶",)),
        ("用Python写", ("用", "python", "写")),
        ("what's up", ("what", "s", "up")),
        ("C++", ("c",)),
        ("snake_case", ("snake_case",)),
        ("Straße", ("strasse",)),
        ("カメラ", ("カメ", "メラ")),
        ("naïve", ("naïve",)),
        ("a-b", ("a", "b")),
        ("2026年", ("2026", "年")),
    ],
)
def test_what_a_query_looks_for(query, terms):
    assert Terms(query).terms == terms


@pytest.mark.parametrize("query", ["", " ", "*", '"', "--", "🙂", "()"])
def test_a_query_without_a_word_is_refused(query):
    with pytest.raises(MemoryStoreError) as refused:
        Terms(query)
    assert refused.value.code == "invalid_value"


@pytest.mark.parametrize(
    ("query", "text", "count"),
    [
        ("deploy", "Deploying a deployment; redeploy.", 2),
        ("cat", "concatenate the category of a cat, cats", 1),
        ("cat", "猫cat狗", 1),
        ("tea", "tea.tea tea_tea", 2),
        ("绿茶", "绿茶和绿茶", 2),
        ("s", "It's", 1),
        ("strasse", "Straße", 1),
        ("tea", "TEA", 1),
    ],
)
def test_how_often_a_text_has_a_term(query, text, count):
    assert Terms(query).counts(text.casefold()) == (count,)


@pytest.fixture
def search(shelf, store):
    return Search(shelf, WORKSPACE, store)


async def test_rarer_words_and_shorter_memories_come_first(memories, search):
    for number in range(20):
        await memories.create(f"/common/{number:02}", "tea " + "filler " * 200, origin=ORIGIN)
    await memories.create("/long", "tea oolong " + "filler " * 2_000, origin=ORIGIN)
    await memories.create("/short", "oolong tea", origin=ORIGIN)
    found = await search.search("oolong tea", limit=3)
    assert [hit.memory.path for hit in found] == ["/short", "/long", "/common/00"]
    assert found[0].score > found[1].score > found[2].score
    assert len(await search.search("tea", limit=5)) == 5
    assert next(hit.memory.path for hit in await search.search("tea", limit=50, prefix="/common/")) == "/common/00"


async def test_the_line_that_answers_best_is_shown(memories, search):
    lines = ["about tea", "x" * 400 + " green tea " + "y" * 400, "green"]
    await memories.create("/a", "\r\n".join(lines), origin=ORIGIN)
    (hit,) = await search.search("green tea", limit=1)
    assert hit.line == 2
    assert len(hit.excerpt) <= 242
    assert "green tea" in hit.excerpt
    assert hit.excerpt.startswith("…")
    assert hit.excerpt.endswith("…")


async def test_a_store_of_many_pages_is_searched_whole(memories, search, monkeypatch):
    monkeypatch.setattr("memshelf.stores.search._PAGE_BYTES", 100)
    for number in range(30):
        await memories.create(f"/{number:02}", "filler " * 20 + ("needle" if number % 10 == 5 else ""), origin=ORIGIN)
    assert [hit.memory.path for hit in await search.search("needle", limit=10)] == ["/05", "/15", "/25"]


async def test_another_store_is_not_searched(shelf, memories, search):
    from memshelf.stores.catalogue import Stores
    from memshelf.stores.memories import Memories

    other = (await Stores(shelf, WORKSPACE).create("other")).id
    await Memories(shelf, WORKSPACE, other).create("/a", "needle", origin=ORIGIN)
    assert await search.search("needle", limit=10) == []
