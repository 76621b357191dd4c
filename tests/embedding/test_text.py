"""What is embedded of a text. Vectors of it are kept: what changes here changes `PASSAGES`."""

from __future__ import annotations

import pytest

from memshelf.embedding.text import PASSAGES, passages
from memshelf.records.retrieval.analysis import analyse

_LONG = "The parking space is B217, on the second basement floor"


@pytest.mark.parametrize(
    ("text", "embedded"),
    [
        ("Likes green tea.", ["Likes green tea"]),
        ("[note] 2026-05-01 12:00 Likes green tea.", ["Likes green tea"]),
        ("喜欢绿茶。", ["喜欢绿茶"]),
        ("...", ["..."]),
        (f"{_LONG}. Call the porter!\nOr Bob.", [f"{_LONG}. Call the porter!\nOr Bob", f"{_LONG}.", "Call the porter!",
                                               "Or Bob"]),
        (f"{_LONG}。没有电梯，请走楼梯。", [f"{_LONG}。没有电梯，请走楼梯", f"{_LONG}。", "没有电梯，请走楼梯"]),
        ("x" * 3_000, ["x" * 2_000]),
    ],
)  # fmt: skip
def test_what_is_embedded_of_a_text_is_what_kept_vectors_are_of(text, embedded):
    assert (PASSAGES, passages(text)) == (1, embedded)
    assert analyse(text, turn=False).passages == embedded


def test_who_says_it_is_not_embedded_with_a_turn_of_a_conversation():
    assert (PASSAGES, analyse("Ann Lee: I like tea.", turn=True).passages) == (1, ["I like tea"])
    assert analyse("Ann Lee: I like tea.", turn=False).passages == ["Ann Lee: I like tea"]
