"""Who made a change, and what errors say."""

from __future__ import annotations

import pytest

from memshelf import MemoryStoreError, Origin, describe, validate_path


@pytest.mark.parametrize("name", ["run_id", "principal_id", "tool_call_id", "session_id", "api_key_id"])
def test_an_origin_is_text_that_every_database_can_hold(name):
    assert getattr(Origin(**{name: "安-1"}), name) == "安-1"
    for value in (b"x", 1, object()):
        with pytest.raises(TypeError, match=name):
            Origin(**{name: value})
    for value in ("a\0b", "\ud800", "é\0"):
        with pytest.raises(ValueError, match=name):
            Origin(**{name: value})


def test_a_path_and_a_content_of_another_type_are_a_type_error():
    with pytest.raises(TypeError, match="bytes"):
        validate_path(b"a")
    with pytest.raises(TypeError, match="NoneType"):
        describe(None)


def test_an_error_shows_its_code():
    error = MemoryStoreError("not_found", "a does not exist.")
    assert str(error) == "not_found: a does not exist."
    assert error.message == "a does not exist."


def test_a_kind_is_one_of_those_that_there_are():
    assert Origin(kind="import").kind == "import"
    for value in ("system", "", 1, b"user"):
        with pytest.raises(ValueError, match=r"Origin\.kind is one of user, agent, tool, import"):
            Origin(kind=value)
