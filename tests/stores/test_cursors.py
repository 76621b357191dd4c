"""Page cursors take nothing that they did not give."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, strategies as st

from memshelf import MemoryStoreError
from memshelf.stores.cursors import decoded, encoded

LISTING = ("memories", "memstore_1", "a/", 1)


@given(
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=300),
    st.integers(-(2**62), 2**62),
)
def test_a_cursor_gives_back_its_key(text, number):
    assert decoded(LISTING, encoded(LISTING, (number, text)), int, str) == [number, text]


def test_a_cursor_is_plain_text_for_a_url():
    cursor = encoded(LISTING, ("é?&=/+ \U0001f600" * 50,))
    assert cursor.startswith("page_")
    assert cursor.replace("-", "").replace("_", "").isalnum()


@given(st.text(max_size=60))
def test_any_other_text_is_refused(text):
    with pytest.raises(MemoryStoreError) as refused:
        decoded(LISTING, text, str)
    assert refused.value.code == "invalid_cursor"


def forged(*parts):
    mark = json.loads(base64.b64decode(encoded(LISTING, ("x",))[5:] + "=="))[0]
    return "page_" + base64.urlsafe_b64encode(json.dumps([mark, *parts]).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        encoded(("memories", "memstore_2", "a/", 1), ("x",)),
        encoded((*LISTING, None), ("x",)),
        forged(),
        forged(1),
        forged("x", "y"),
        forged(None),
        forged(True),
        forged(["x"]),
        forged("a\0b"),
        forged("\ud800"),
        "page_",
        "page_bnVsbA",
        "page_W10",
        "page_é",
        "page_" + "A" * 10_000,
        "page_" + base64.urlsafe_b64encode(b"[" * 3000).decode(),
        forged("x")[5:],
    ],
)
def test_a_cursor_that_was_not_given_here_is_refused(cursor):
    with pytest.raises(MemoryStoreError) as refused:
        decoded(LISTING, cursor, str)
    assert refused.value.code == "invalid_cursor"


@pytest.mark.parametrize("number", [2**63, -(2**70), 1.5, True])
def test_a_number_that_no_database_takes_is_refused(number):
    with pytest.raises(MemoryStoreError):
        decoded(LISTING, forged(number), int)
