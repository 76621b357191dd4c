"""Searching a session in Chinese, English and anything else."""

from __future__ import annotations

import pytest

from memshelf import SessionLog


@pytest.fixture
def log(tmp_path):
    return SessionLog("s1", tmp_path, durable=False)


def _found(log, query, limit=10):
    return [row["content"] for row in log.search(query, limit)]


def test_two_chinese_characters_are_found_in_a_sentence_without_spaces(log):
    log.extend([{"type": "user", "content": text} for text in ("我喜欢喝绿茶", "今天天气不错", "咖啡和红茶都可以")])
    assert _found(log, "绿茶") == ["我喜欢喝绿茶"]
    assert _found(log, "天气怎么样") == ["今天天气不错"]
    assert set(_found(log, "茶")) == {"我喜欢喝绿茶", "咖啡和红茶都可以"}
    assert _found(log, "早上喝什么绿茶")[0] == "我喜欢喝绿茶"


def test_words_are_found_whole_in_any_case_and_number(log):
    log.extend([{"type": "user", "content": text} for text in ("Two TEAS please", "the team met", "steam engine")])
    assert _found(log, "tea") == ["Two TEAS please"]


def test_languages_may_be_mixed(log):
    log.extend([{"type": "user", "content": text} for text in ("用Python写后端", "pythonic code", "Python很好")])
    assert set(_found(log, "python")) == {"用Python写后端", "Python很好"}


@pytest.mark.parametrize(
    "query",
    ["C++", "c#", "what's", '"quoted"', "a*b", "x-y", "(", "[", "\\", "%", "_", "NOT", "*", "--", "AND OR", "🍵", "??"],
)
def test_a_query_of_signs_finds_what_has_them_and_never_fails(log, query):
    log.append("user", f"before {query} after")
    log.append("user", "unrelated")
    assert _found(log, query) == [f"before {query} after"]


def test_c_plus_plus_is_not_c(log):
    log.extend([{"type": "user", "content": text} for text in ("we use C", "we use C++")])
    assert _found(log, "C++") == ["we use C++"]


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_query_finds_nothing(log, query):
    log.append("user", "hello")
    assert _found(log, query) == []


def test_what_is_rare_counts_more_and_the_whole_query_most(log):
    texts = ["the plan for the plan", "release notes", "the release plan", "plan of release", *["the plan"] * 20]
    log.extend([{"type": "user", "content": text} for text in texts])
    assert _found(log, "release plan", 3)[0] == "the release plan"
    assert set(_found(log, "release plan", 3)) == {"release notes", "the release plan", "plan of release"}


def test_among_equals_the_newest_comes_first_and_the_limit_holds(log):
    rows = log.extend([{"type": "user", "content": "tea"} for _ in range(5)])
    assert [row["id"] for row in log.search("tea", 2)] == [rows[4]["id"], rows[3]["id"]]
    assert log.search("tea", 0) == []


def test_calls_results_summaries_and_nested_content_are_searched_and_events_are_not(log):
    log.append("assistant", "", tool_calls=[{"id": "1", "name": "x", "args": {"path": "needle.md"}}])
    log.append("assistant", "", tool_calls=[{"id": "2", "name": "x", "args": '{"path": "needle.md"}'}])
    log.append("tool", {"found": ["a needle", 7, None]}, tool_call_id="1")
    log.append("user", ["look", {"url": "https://example.com/needle"}])
    log.boundary("They looked for a needle.")
    log.append("event", "needle", event="state")
    assert len(log.search("needle")) == 5


def test_what_a_memory_said_before_the_users_text_is_not_what_was_said(log):
    log.append("user", "hi", context=[{"content": "index: needle.md", "metadata": {}}])
    assert log.search("needle") == []


def test_width_composition_and_accents_make_no_difference(log):
    log.append("user", "ＰＹＴＨＯＮ cafe\u0301")
    assert len(log.search("python")) == len(log.search("café")) == len(log.search("CAFE")) == 1


def test_a_korean_word_is_found_with_its_particle(log):
    log.append("user", "커피를 좋아해요")
    assert len(log.search("커피")) == 1
