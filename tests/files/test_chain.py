"""The hash chain, without a store."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from memshelf import Origin
from memshelf.files.chain import ChainCheck, Facts, Stored, commitment, genesis, link

EPOCH = "epoch"


def history(texts):
    """Versions of one file; `None` is its deletion."""
    versions, previous = [], genesis(EPOCH)
    for seq, text in enumerate(texts, start=1):
        content = text.encode() if text is not None else None
        sha256 = hashlib.sha256(content).hexdigest() if content is not None else None
        size, salt = (len(content) if content is not None else None), bytes([seq]) * 32
        facts = Facts(
            id=f"memver_{seq}",
            seq=seq,
            file_id="mem",
            parent_id=None if seq == 1 else f"memver_{seq - 1}",
            operation="deleted" if text is None else "created" if seq == 1 else "modified",
            moved=False,
            origin=Origin("run", None, str(seq)),
            created_at=seq,
            commitment=commitment(salt, "a", sha256, size),
        )
        previous = link(previous, facts)
        versions.append(
            Stored(
                facts=facts,
                link=previous,
                path="a",
                content=content,
                sha256=sha256,
                size=size,
                salt=salt,
                redacted=False,
            )
        )
    return versions


def problems(versions, head=None, noted=None):
    head = head or versions[-1]
    check = ChainCheck(EPOCH, noted)
    for version in versions:
        check.add(version)
    return check.report(head.facts.seq, head.link).problems


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=8))
def test_what_was_written_verifies(texts):
    assert problems(history([*texts, None])) == ()


def test_a_redacted_version_keeps_the_chain_whole():
    versions = history(["one", "two", "three"])
    versions[1] = replace(versions[1], path=None, content=None, sha256=None, size=None, salt=None, redacted=True)
    assert problems(versions) == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"content": b"other"}, "other content"),
        ({"content": b"other", "sha256": hashlib.sha256(b"other").hexdigest()}, "than was committed to"),
        ({"content": None}, "other content"),
        ({"path": "b"}, "than was committed to"),
        ({"size": 4}, "than was committed to"),
        ({"salt": bytes(32)}, "than was committed to"),
        ({"path": None}, "lost its path"),
        ({"redacted": True}, "redacted and still has"),
        ({"link": bytes(32)}, "does not follow"),
    ],
)
def test_an_altered_version_shows(change, says):
    versions = history(["one", "two", "three"])
    versions[1] = replace(versions[1], **change)
    assert any("version 2 (memver_2)" in problem and says in problem for problem in problems(versions))


@pytest.mark.parametrize(
    "change",
    [
        {"id": "memver_x"},
        {"file_id": "mem_x"},
        {"parent_id": None},
        {"operation": "created"},
        {"moved": True},
        {"origin": Origin("other", None, "2")},
        {"origin": Origin("run", "2", None)},
        {"origin": Origin("run", None, "2", "session")},
        {"origin": Origin("run", None, "2", None, "key")},
        {"created_at": 7},
        {"commitment": bytes(32)},
    ],
)
def test_every_fact_is_covered_by_the_link(change):
    versions = history(["one", "two", "three"])
    versions[1] = replace(versions[1], facts=versions[1].facts._replace(**change))
    assert any("does not follow" in problem for problem in problems(versions))


def test_a_missing_version_shows():
    versions = history(["one", "two", "three", "four"])
    assert problems([versions[0], *versions[2:]]) == ("version 2 is missing.",)
    assert problems(versions[2:]) == ("versions 1 to 2 are missing.",)


def test_a_truncated_history_shows():
    versions = history(["one", "two", "three"])
    assert problems(versions[:1], versions[2]) == ("versions 2 to 3 are missing.",)


def test_versions_that_changed_places_show():
    versions = history(["one", "two", "three"])
    first, second = versions[0], versions[1]
    swapped = [
        replace(second, facts=second.facts._replace(seq=1)),
        replace(first, facts=first.facts._replace(seq=2)),
        versions[2],
    ]
    assert len([problem for problem in problems(swapped) if "does not follow" in problem]) == 3


def test_a_last_version_that_was_exchanged_shows():
    assert problems(history(["one", "two"]), history(["one", "other"])[1]) != ()


def test_a_history_leads_through_every_head_that_it_had():
    versions = history(["one", "two", None])
    for noted in (genesis(EPOCH), *(each.link for each in versions)):
        assert problems(versions, noted=noted.hex()) == ()


def test_a_history_that_was_written_anew_does_not_lead_through_the_head_that_was_noted():
    noted = history(["one", "two"])[-1].link.hex()
    assert problems(history(["one", "other", "two"])) == ()
    (problem,) = problems(history(["one", "other", "two"]), noted=noted)
    assert "head that was noted" in problem


@pytest.mark.parametrize("head", ["", "0", "g" * 64, "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_what_is_no_head_is_refused(head):
    with pytest.raises(ValueError, match="64 hexadecimal digits"):
        ChainCheck(EPOCH, head)


def test_a_history_of_another_epoch_does_not_verify():
    check = ChainCheck("another epoch")
    for version in (versions := history(["one"])):
        check.add(version)
    assert not check.report(1, versions[0].link).intact


def test_fields_cannot_run_into_each_other():
    salt = bytes(32)
    assert commitment(salt, "a1", None, None) != commitment(salt, "a", "1", None)
    facts = history(["one"])[0].facts
    names = ("run_id", "principal_id", "tool_call_id", "session_id", "api_key_id")
    origins = [Origin("ab", "c"), Origin("a", "bc"), Origin(), *(Origin(**{name: "abc"}) for name in names)]
    assert len({link(bytes(32), facts._replace(origin=origin)) for origin in origins}) == len(origins)
