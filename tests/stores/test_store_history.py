"""What undoing goes back to, as a rule over one memory's history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from workspace_of_tests import ORIGIN, WORKSPACE

from memshelf import MemoryStoreError, Origin
from memshelf.files.model import Version
from memshelf.stores.history import Author, History, earlier

START = datetime(2026, 5, 1, tzinfo=UTC)
THEM = Author("session", "sesn_1")
THEIRS, OURS = Origin(session_id="sesn_1"), Origin(api_key_id="apikey_1")


def history(*steps: str) -> list[Version]:
    """The history of a memory, newest first: `t` what they wrote, `o` what others did; `d` deletes, `r` is redacted."""
    versions = []
    for number, step in enumerate(steps):
        redacted = "r" in step
        versions.append(
            Version(
                id=str(number),
                file_id="mem_1",
                parent_id=str(number - 1) if number else None,
                operation="deleted" if "d" in step else "modified" if number else "created",
                path=None if redacted else "a",
                text=None,
                sha256=None,
                size=None,
                origin=THEIRS if "t" in step else OURS,
                created_at=START + timedelta(minutes=number),
                redacted_at=START if redacted else None,
            )
        )
    return versions[::-1]


@pytest.mark.parametrize(
    ("steps", "target"),
    [
        (["o", "t"], "0"),
        (["o", "t", "t"], "0"),
        (["o", "o", "t"], "1"),
        (["t"], None),
        (["t", "t", "td"], None),
        (["o", "td"], "0"),
        (["o", "t", "o", "t"], "2"),
        (["o", "od", "t"], None),
    ],
)
def test_before_the_newest_run_of_their_changes(steps, target):
    found = earlier(history(*steps), THEM, START)
    assert (found.id if found is not None else None) == target


@pytest.mark.parametrize("steps", [["t", "o"], ["o", "t", "od"], ["or", "t"]])
def test_what_cannot_be_gone_back_to_is_kept(steps):
    with pytest.raises(MemoryStoreError) as refused:
        earlier(history(*steps), THEM, START)
    assert refused.value.code == "conflict"


def test_what_they_wrote_before_the_time_stands():
    found = earlier(history("t", "t", "t"), THEM, START + timedelta(minutes=1))
    assert found is not None
    assert found.id == "0"


@pytest.mark.parametrize(
    ("author", "origin", "wrote"),
    [
        (Author("session", "s"), Origin(session_id="s"), True),
        (Author("session", "s"), Origin(session_id="t"), False),
        (Author("api_key", "k"), Origin(api_key_id="k"), True),
        (Author("api_key", "k"), Origin(api_key_id="k", session_id="s"), False),
        (Author("user", "u"), Origin(principal_id="u"), True),
        (Author("user", "u"), Origin(principal_id="u", api_key_id="k"), False),
        (Author("user", "k"), Origin(api_key_id="k"), False),
    ],
)
def test_who_wrote_a_version(author, origin, wrote):
    assert author.wrote(origin) is wrote


async def test_a_store_that_is_full_keeps_what_would_come_back(shelf, store, memories):
    small = type(shelf)(shelf.engine, type(shelf.limits)(memories=2), shelf.mint)
    one = await memories.create("/a", "x", origin=ORIGIN)
    await memories.delete(one.id, origin=THEIRS)
    await memories.create("/b", "x", origin=ORIGIN)
    await memories.create("/c", "x", origin=ORIGIN)
    (undone,) = await History(small, WORKSPACE, store).undo(THEM, START - timedelta(days=9999), origin=ORIGIN)
    assert (undone.outcome, undone.memory) == ("kept", None)
    assert "full" in (undone.reason or "")


async def test_two_memories_that_changed_places_go_back_as_far_as_they_can(shelf, store, memories):
    one = await memories.create("/1", "one", origin=ORIGIN)
    two = await memories.create("/2", "two", origin=ORIGIN)
    await memories.update(one.id, path="/x", origin=THEIRS)
    await memories.update(two.id, path="/1", origin=THEIRS)
    await memories.update(one.id, path="/2", origin=THEIRS)
    undone = await History(shelf, WORKSPACE, store).undo(THEM, START - timedelta(days=9999), origin=ORIGIN)
    assert {each.outcome for each in undone} == {"kept"}
    assert (await memories.retrieve(one.id)).path == "/2"
