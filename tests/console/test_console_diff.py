"""What differs between two texts, and how text is shown."""

from __future__ import annotations

import random
import time

import pytest
from hypothesis import given, strategies

from memshelf.console.diff import Difference, compared
from memshelf.console.text import hidden, line_ends, moment, shown, size, tail, with_line_ends

LINES = strategies.text("ab\n", max_size=40)


def told(found: Difference) -> list[str]:
    signs = {"same": " ", "del": "-", "ins": "+", "gap": "…"}
    return [signs[row.kind] + "".join(part for _, part in row.parts) for row in found.rows]


@given(LINES, LINES)
def test_each_side_can_be_read_from_the_rows(old, new):
    found = compared(old, new)
    for text, kind in ((old, "del"), (new, "ins")):
        lines = text.split("\n")[:-1] + ([text.split("\n")[-1]] if not text.endswith("\n") and text else [])
        seen = []
        for row in found.rows:
            if row.kind == "gap":
                seen += lines[len(seen) : len(seen) + row.count]
            elif row.kind in (kind, "same"):
                assert (row.old if kind == "del" else row.new) == len(seen) + 1
                seen.append("".join(part for _, part in row.parts))
        assert seen == lines
    assert found.added == sum(row.kind == "ins" for row in found.rows)
    assert found.removed == sum(row.kind == "del" for row in found.rows)


def test_words_that_changed_are_marked():
    found = compared("Likes green tea.\n", "Likes oolong tea.\n")
    assert [[part for changed, part in row.parts if changed] for row in found.rows] == [["green"], ["oolong"]]
    found = compared("用户喜欢绿茶。", "用户喜欢红茶。")
    assert [[part for changed, part in row.parts if changed] for row in found.rows] == [["绿"], ["红"]]


def test_lines_that_have_little_in_common_are_not_marked():
    found = compared("the quick brown fox", "a mountain of old letters")
    assert [row.parts for row in found.rows] == [
        [(False, "the quick brown fox")],
        [(False, "a mountain of old letters")],
    ]


def test_what_stayed_far_from_a_change_is_left_out():
    lines = [f"line {number}\n" for number in range(20)]
    found = compared("".join(lines), "".join([*lines[:10], "new\n", *lines[10:]]))
    assert told(found) == ["…", *(f" line {n}" for n in (7, 8, 9)), "+new", *(f" line {n}" for n in (10, 11, 12)), "…"]
    assert [row.count for row in found.rows if row.kind == "gap"] == [7, 7]


def test_a_line_end_that_is_missing_is_a_difference():
    found = compared("a\nb", "a\nb\n")
    assert [(row.kind, row.unended) for row in found.rows] == [("same", False), ("del", True), ("ins", False)]


def test_line_ends_differ_visibly_but_not_in_a_text_that_has_one_kind():
    assert told(compared("a\r\nb\r\n", "a\r\nc\r\n")) == [" a", "-b", "+c"]
    assert told(compared("a\r\n", "a\n")) == ["-a\r", "+a"]


@pytest.mark.parametrize("kind", ["one line", "lines", "repeated", "shuffled", "few words", "blank"])
def test_it_takes_a_bounded_time_whatever_the_texts_are(kind):
    draw = random.Random(7)
    numbers = [str(draw.randrange(10**6)) for _ in range(14_000)]
    shuffled = draw.sample(numbers, len(numbers))
    old, new = {
        "one line": (" ".join(numbers), " ".join(shuffled)),
        "lines": ("\n".join(numbers), "\n".join(shuffled)),
        "repeated": ("a\n" * 50_000, "b\na\n" * 25_000),
        "shuffled": ("\n".join(numbers[:999]), "\n".join(draw.sample(numbers[:999], 999))),
        "few words": ("\n".join(draw.choices("abcd", k=999)), "\n".join(draw.choices("abcd", k=999))),
        "blank": ("\n" * 100_000, "x" * 100_000),
    }[kind]
    started = time.process_time()
    found = compared(old, new)
    assert time.process_time() - started < 5
    assert len(found.rows) <= 3_000


def test_what_cannot_be_seen_is_shown():
    text = "a\u202eb\u200bc\x1bd\tf\ng\r\nh\ufeff\U000e0041<b>"
    assert (
        shown(text, lines=True).replace('<span class="hidden-char">', "[").replace("</span>", "]")
        == "a[U+202E]b[U+200B]c[U+001B]d\tf\ng[\\r]\nh[U+FEFF][U+E0041]&lt;b&gt;"
    )
    assert "\t" not in shown(text)
    assert shown("a\r\nb\r\n", lines=True) == "a\nb\n"
    assert shown("好 é 👩‍💻"[:4]) == "好 é "


def test_what_a_field_cannot_mark_is_named():
    assert hidden("a\u202eb\u200bc\u202e\r\n\td") == ["U+202E", "U+200B"]
    assert hidden("plain 好 👩") == []


@pytest.mark.parametrize(
    ("before", "kind", "typed", "saved"),
    [
        ("a\nb", "lf", "a\nc", "a\nc"),
        ("a\r\nb\r\n", "crlf", "a\nb\nc", "a\r\nb\r\nc"),
        ("a\r\nb\nc", "mixed", "a\nb\nc", "a\r\nb\nc"),
        ("a\r\nb\nc", "mixed", "a\nb\nd", "a\nb\nd"),
        ("a\rb", "mixed", "a\nb", "a\rb"),
        ("", "lf", "x", "x"),
    ],
)
def test_line_ends_stay_as_far_as_a_form_can_keep_them(before, kind, typed, saved):
    assert line_ends(before) == kind
    assert with_line_ends(typed, before) == saved


def test_times_sizes_and_ids():
    assert moment("2026-01-31 08:00") == "2026-01-31T08:00:00+00:00"
    assert moment(" 2026-01-31T08:00:00.123456Z ") == "2026-01-31T08:00:00.123456+00:00"
    assert moment("2026-01-31T08:00:00+08:00") == "2026-01-31T00:00:00+00:00"
    assert moment("yesterday") is None
    assert [size(0), size(10_239), size(102_400)] == ["0 B", "10,239 B", "100.0 KiB"]
    assert [tail("ana"), tail("sesn_01a22f11dcfb70628df6f126c4c138cf")] == ["ana", "…c4c138cf"]
