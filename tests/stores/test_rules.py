"""The rules for stores, memories and sessions, as pure functions."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime

import pytest

from memshelf import MemoryStoreError
from memshelf.limits import StoreLimits
from memshelf.stores import lifecycle, rules
from memshelf.stores.model import NoSuchStoreError, PathConflictError

LIMITS = StoreLimits()
NOW = datetime(2026, 5, 1, tzinfo=UTC)


def refusal(call, *arguments):
    with pytest.raises(MemoryStoreError) as refused:
        call(*arguments)
    return refused.value.code


@pytest.mark.parametrize("name", ["n", "n" * 255, "记忆 🙂", "line\u2028separator", "zero\u200dwidth", " ", "%_"])
def test_a_name_is_any_text_without_control_characters(name):
    assert rules.checked_name(name, LIMITS) == name


@pytest.mark.parametrize("name", ["", "n" * 256, "a\nb", "\x7f", "\x85", "\0", "\ud800"])
def test_a_name_that_is_refused(name):
    assert refusal(rules.checked_name, name, LIMITS) == "invalid_value"


def test_descriptions_and_instructions_have_their_length():
    assert rules.checked_description("d" * 1024 + "", LIMITS) == "d" * 1024
    assert refusal(rules.checked_description, "d" * 1025, LIMITS) == "invalid_value"
    assert rules.checked_instructions(None, LIMITS) is None
    assert rules.checked_instructions("i" * 4096, LIMITS) == "i" * 4096
    assert refusal(rules.checked_instructions, "i" * 4097, LIMITS) == "invalid_value"
    assert rules.checked_description("tabs\tand\nlines", LIMITS) == "tabs\tand\nlines"
    assert refusal(rules.checked_description, "\0", LIMITS) == "invalid_value"


def test_metadata_is_held_to_its_limits():
    most = {f"{number:064}": "v" * 512 for number in range(16)}
    assert rules.checked_metadata(most, LIMITS) == most
    for pairs in (
        {**most, "one more": "v"},
        {"": "v"},
        {"k" * 65: "v"},
        {"k": "v" * 513},
        {"k": "\0"},
        {"\ud800": "v"},
    ):
        assert refusal(rules.checked_metadata, pairs, LIMITS) == "invalid_value"


def test_a_patch_sets_and_removes_keys_and_is_checked_as_a_whole():
    assert rules.patched_metadata({"a": "1", "b": "2"}, {"a": None, "c": "3", "never": None}, LIMITS) == {
        "b": "2",
        "c": "3",
    }
    full = {str(number): "v" for number in range(16)}
    assert refusal(rules.patched_metadata, full, {"new": "v"}, LIMITS) == "invalid_value"
    assert len(rules.patched_metadata(full, {"0": None, "new": "v"}, LIMITS)) == 16


@pytest.mark.parametrize(
    "path", ["/a", "/a/b", "/" + "é" * 511 + "x", "/" + "/".join("a" * 20), "/a\\b", "/..a", "/a..", "/ ", "/%"]
)
def test_a_path_is_that_of_a_file_with_a_slash_before_it(path):
    assert rules.wire_path(rules.checked_path(path, LIMITS)) == path


REFUSED_PATHS = [
    "",
    "/",
    "a",
    "//",
    "/a//b",
    "/a/",
    "/.",
    "/..",
    "/a/./b",
    "/a/..",
    "/\x00",
    "/\x1f",
    "/\u200b",
    "/\ufeff",
]
REFUSED_PATHS += [
    "/\u2029",
    "/e\u0301",
    "/\ud800",
    "/" + "é" * 512,
    "/" + "/".join("a" * 21),
    "/.anthropic-memory-store",
]


@pytest.mark.parametrize("path", REFUSED_PATHS)
def test_a_path_that_is_refused(path):
    assert refusal(rules.checked_path, path, LIMITS) == "invalid_path"


def test_a_prefix_is_a_directory():
    assert rules.checked_prefix("/", LIMITS) == ""
    assert rules.checked_prefix("/a/b/", LIMITS) == "a/b/"
    for prefix in ("", "a/", "/a", "//", "/a//", "/./"):
        assert refusal(rules.checked_prefix, prefix, LIMITS) == "invalid_path"


def test_content_is_measured_in_bytes_and_kept_as_it_is():
    text = "\ufeff\r\n\x01\u2028é" + "x" * 100
    assert rules.checked_content(text, LIMITS) == text
    assert rules.checked_content("é" * 51_200, LIMITS)
    assert refusal(rules.checked_content, "é" * 51_201, LIMITS) == "too_large"
    assert refusal(rules.checked_content, "a\0b", LIMITS) == "invalid_file"
    assert refusal(rules.checked_content, "\udc00", LIMITS) == "invalid_file"


@pytest.mark.parametrize("field", StoreLimits.__dataclass_fields__)
@pytest.mark.parametrize("value", [0, -1, True, 1.5, "9"])
def test_a_limit_is_a_whole_number_of_at_least_one(field, value):
    with pytest.raises(ValueError, match=f"StoreLimits.{field}"):
        StoreLimits(**{field: value})


def test_an_archived_store_takes_no_writes():
    lifecycle.require_writable(None)
    lifecycle.require_changeable(None)
    assert refusal(lifecycle.require_writable, NOW) == "store_archived"
    assert refusal(lifecycle.require_changeable, NOW) == "store_archived"


@pytest.mark.parametrize(
    ("status", "archived_at", "holds"),
    [
        ("running", None, True),
        ("rescheduling", None, True),
        ("idle", None, False),
        ("terminated", None, False),
        ("running", NOW, False),
    ],
)
def test_a_session_that_may_still_write_holds_its_stores(status, archived_at, holds):
    assert lifecycle.holds_stores(status, archived_at) is holds


def test_a_store_that_is_held_says_by_whom():
    lifecycle.require_unused("archived", [])
    with pytest.raises(MemoryStoreError, match="sesn_1, sesn_2") as refused:
        lifecycle.require_unused("deleted", ["sesn_1", "sesn_2"])
    assert refused.value.code == "conflict"


def test_a_session_ends_once():
    open_ = ("running", "rescheduling", "idle")
    for status in open_:
        for target in (*open_, "terminated"):
            lifecycle.require_session_open(status, None, target)
        lifecycle.require_session_open(status, NOW, status)
    lifecycle.require_session_open("terminated", None, "terminated")
    for target in open_:
        assert refusal(lifecycle.require_session_open, "terminated", None, target) == "conflict"
    assert refusal(lifecycle.require_session_open, "idle", NOW, "running") == "conflict"


def test_refusals_survive_a_process_boundary():
    conflict = pickle.loads(pickle.dumps(PathConflictError("taken", "mem_1", "/a")))
    assert (conflict.code, conflict.message, conflict.memory_id, conflict.path) == (
        "already_exists",
        "taken",
        "mem_1",
        "/a",
    )
    assert pickle.loads(pickle.dumps(NoSuchStoreError("gone"))).code == "not_found"
