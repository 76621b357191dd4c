"""Search by reading: patterns that would hang the process or take its memory."""

from __future__ import annotations

import re
import time
from itertools import repeat

import pytest

from memshelf import MemoryStoreError
from memshelf.files import grep
from memshelf.files.model import FileText


def _compiled(pattern, *, regex=True):
    return grep.Pattern.compile(pattern, regex=regex, case_sensitive=False)


def _refusal(call):
    with pytest.raises(MemoryStoreError) as caught:
        call()
    assert caught.value.code == "invalid_pattern"
    return caught.value.message


@pytest.mark.parametrize(
    "pattern",
    [
        "a{1000000}",
        "a{1000000,}?",
        "[ab]{1000000}",
        "(?:ab){1000000}",
        "(?:(?:a{100}){100}){100}",
        "(?:(?:a{100})+){100}{100}",
        "[a[b](c{999}]){999}",
        "(?x)a{1#\n000000}",
        "(?R)",
        "(a|(?1))*b",
        "(?P<name>a|(?&name))*b",
    ],
)
def test_a_pattern_that_its_compiler_would_write_out_a_million_times_is_refused(pattern):
    _refusal(lambda: _compiled(pattern))


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", "id 123e4567-e89b-12d3-a456-426614174000"),
        ("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "123e4567-e89b-12d3-a456-426614174000"),
        (r"(?:\d{1,3}\.){3}\d{1,3}", "at 127.0.0.1"),
        (r"^- \[[ x]\] .{0,200}$", "- [x] tea"),
        (r"call\(?x\)", "call(x)"),
        (r"(?P<quote>['\"])tea(?P=quote)", "'tea'"),
        (r"\{100000\}", "{100000}"),
    ],
)
def test_patterns_that_people_write_are_not_refused(pattern, line):
    found, _ = grep.search([FileText("a.md", line, "v")], _compiled(pattern), 1)
    assert [match.text for match in found] == [line]


LINES = ["Hello {d}", "Hello", "tea{e}", "te", "x{i}", "f(){s}", "{", "}", "{}", "aa", "aaa", "a{1,2}", "é"]


@pytest.mark.parametrize(
    "pattern",
    ["Hello {d}", "tea{e}", "(te){e<=1}", "{s}", "x{i}", r"f\(\){s}", "{", "}", "{}", "a{2}", "a{3,}", "^a{,2}$",
     "a{,}", "a{ 1000000 }", r"a\{1,2}", r"\\{d}|aaa", "[{]e", "a{1 }", "a{e}?", "{{"],
)  # fmt: skip
def test_a_brace_that_repeats_nothing_is_a_brace(pattern):
    wanted = [line for line in LINES if re.search(pattern, line, re.IGNORECASE)]
    compiled = grep.Pattern.compile(pattern, regex=True, case_sensitive=False)
    found, _ = grep.search([FileText("a.md", "\n".join(LINES), "v")], compiled, 50)
    assert [match.text for match in found] == wanted


def test_letters_can_be_named_by_what_they_are():
    compiled = grep.Pattern.compile(
        r"^\p{Lu}\P{L}\N{LATIN SMALL LETTER E WITH ACUTE}{2}$", regex=True, case_sensitive=True
    )
    found, _ = grep.search([FileText("a.md", "A1éé\na1éé\nA1é", "v")], compiled, 5)
    assert [match.line for match in found] == [1]


@pytest.mark.parametrize("regex", [True, False])
def test_a_pattern_has_a_greatest_length(regex):
    _compiled("a" * grep.PATTERN_CHARS, regex=regex)
    _refusal(lambda: _compiled("a" * (grep.PATTERN_CHARS + 1), regex=regex))


@pytest.mark.parametrize(
    ("pattern", "regex", "text"),
    [
        ("(?:a|aa)+$", True, f"{'a' * 21}b\n" * 1_000),  # each line takes a millisecond or so, and there is no end
        ("b" + "a" * 999, False, "a" * 65_536),  # in each file every place is tried, and almost matches
    ],
)
def test_a_search_ends_when_many_lines_or_files_each_take_a_while(monkeypatch, pattern, regex, text):
    monkeypatch.setattr(grep, "SECONDS", 0.1)
    monkeypatch.setattr(grep, "_SECONDS_A_CHAR", 0.0)
    started = time.monotonic()
    endless = repeat(FileText("a.md", text, "v"))
    assert "too long" in _refusal(lambda: grep.search(endless, _compiled(pattern, regex=regex), 1))
    assert time.monotonic() - started < 30


def test_searches_that_share_an_allowance_end_together(monkeypatch):
    monkeypatch.setattr(grep, "SECONDS", 0.2)
    monkeypatch.setattr(grep, "_SECONDS_A_CHAR", 0.0)
    allowance, file = grep.Allowance(), FileText("a.md", f"{'a' * 40}b", "v")
    _refusal(lambda: grep.search([file], _compiled("(a|aa)+$"), 1, allowance))
    _refusal(lambda: grep.search([FileText("b.md", "aa", "v")], _compiled("(a|aa)+$"), 1, allowance))
