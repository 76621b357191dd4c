"""Texts: counting tokens, shortening, asking for a summary, showing one."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from memshelf.threads.shorten import shortened
from memshelf.threads.summary import summary_block, summary_request, usable_summary
from memshelf.threads.tokens import estimate_tokens

COUNTED = {  # as the o200k vocabulary takes them
    "I prefer green tea over coffee in the morning. Please remember that my project deadline moved to April.": 20,
    "你好，我想知道明天上海的天气怎么样？我喜欢喝绿茶，不喜欢咖啡。请用中文回答我的问题，谢谢。": 30,
    "def total(rows: list[Row]) -> int:\n    return sum(row.size for row in rows if row.kind == 'file')\n": 27,
    json.dumps([{"id": i, "path": f"a/b{i}.md", "ok": True, "n": i * 3.5} for i in range(10)]): 281,
}


@pytest.mark.parametrize(("text", "tokens"), COUNTED.items())
def test_tokens_are_estimated_without_a_tokenizer(text, tokens):
    assert tokens * 0.75 <= estimate_tokens(text) <= tokens * 1.5


def test_no_text_takes_no_tokens_and_any_takes_some():
    assert [estimate_tokens(text) for text in ("", " ", "\ud800", "茶")] == [0, 1, 1, 1]


@given(st.text(st.characters(codec=None)), st.text(st.characters(codec=None)))
def test_a_longer_text_never_takes_less(text, more):
    assert 0 <= estimate_tokens(text) <= estimate_tokens(text + more)


def test_a_text_that_fits_is_left_alone():
    assert shortened("short", 100) == "short"


def test_a_text_that_is_too_long_keeps_its_ends_and_says_what_is_missing():
    text = "begin " + "middle " * 1_000 + "end"
    short = shortened(text, 50)
    assert short.startswith("begin middle")
    assert short.endswith("middle end")
    assert "[... " in short
    [missing] = [int(word) for word in short.split() if word.isdecimal()]
    assert missing == len(text) - (len(short) - len(f"\n[... {missing} characters left out ...]\n"))


@given(st.text(st.characters(codec=None), max_size=3_000), st.integers(1, 200))
def test_shortening_holds_its_budget_and_is_the_same_each_time(text, budget):
    short = shortened(text, budget)
    assert short == shortened(text, budget)
    assert len(short) <= len(text)
    if short != text:
        kept = short.split("\n[... ")[0] + short.rsplit(" ...]\n", 1)[1]
        assert estimate_tokens(kept) <= budget + 1


def _request(previous, lines, max_tokens):
    return summary_request(previous, lines, summary_tokens=1_000, max_tokens=max_tokens)


def test_a_request_tells_the_length_the_summary_so_far_and_what_was_said_since():
    asked = _request("so far", [("user", "tea?"), ("assistant", "yes")], 1_000)
    assert asked == (
        "Your summary has at most 750 words, or as many Chinese characters.\n\n"
        'The summary so far:\n"so far"\n\nWhat was said, one message a line:\n{"user":"tea?"}\n{"assistant":"yes"}'
    )
    assert "so far:" not in _request(None, [("user", "tea?")], 1_000)


def test_a_request_that_would_be_too_long_leaves_out_the_oldest_and_says_so():
    lines = [("user", f"message {number} " + "word " * 100) for number in range(100)]
    asked = _request("so far", lines, 1_000)
    assert estimate_tokens(asked) < 1_200
    assert '{"note":"' in asked
    assert "message 99" in asked
    assert "message 0 " not in asked
    told = asked.count('{"user"')
    assert f"{100 - told} earlier messages are left out" in asked


def test_one_message_that_is_too_long_is_shortened_rather_than_left_out():
    asked = _request(None, [("user", "word " * 10_000)], 1_000)
    assert "characters left out" in asked
    assert estimate_tokens(asked) < 1_000


@given(st.text(), st.text())
def test_content_cannot_pose_as_another_line(text, previous):
    asked = _request(previous or None, [("user", text)], 100_000)
    *_, line = asked.split("\n")
    assert json.loads(line) == {"user": text}
    assert not {"<", ">", "&"} & set(line)


@given(st.text())
def test_content_cannot_close_the_block_of_a_summary(text):
    opening, lead, body, closing = summary_block(text + "</conversation-summary>").split("\n")
    assert (opening, closing) == ('<conversation-summary trust="untrusted">', "</conversation-summary>")
    assert lead.startswith("A summary of this conversation up to here.")
    assert json.loads(body) == text + "</conversation-summary>"
    assert "<" not in body


@pytest.mark.parametrize(("answer", "summary"), [("", None), (" \n\t", None), (" tea \n", "tea")])
def test_an_answer_without_text_is_no_summary(answer, summary):
    assert usable_summary(answer, max_tokens=100) == summary
