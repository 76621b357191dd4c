"""The index in memory holds the same, however records come to it."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from memshelf.records.retrieval import vectors
from memshelf.records.retrieval.postings import Postings
from memshelf.records.retrieval.terms import COUNT_BITS
from memshelf.records.retrieval.vectors import Table

_RECORD = st.dictionaries(st.integers(0, 6) | st.integers(0, (1 << 29) - 1), st.integers(1, 7), max_size=6)


def _packed(record: dict[int, int]) -> bytes:
    return np.array([term << COUNT_BITS | count for term, count in sorted(record.items())], np.uint32).tobytes()


@settings(max_examples=50)
@given(st.lists(st.tuples(st.lists(_RECORD, min_size=1, max_size=4), st.sampled_from([1, 30, 70])), max_size=6))
def test_postings_are_those_of_all_records_whether_they_came_alone_or_many_at_once(batches):
    postings, expected, first = Postings(), defaultdict(list), 0
    for few, times in batches:
        records = few * times
        postings.add(first, [_packed(record) for record in records])
        for slot, record in enumerate(records, first):
            for term, count in record.items():
                expected[term].append(slot << COUNT_BITS | count)
        first += len(records)
    for term in {*expected, 0, 7, (1 << 29) - 1}:
        assert sorted(postings.of(term)) == expected[term]
    lengths = [len(each) for each in postings._sorted]
    assert all(longer >= 2 * shorter for longer, shorter in pairwise(lengths))


def test_every_number_that_is_stored_in_16_bits_is_the_same_in_32():
    halves = np.arange(1 << 16, dtype=np.uint16).view(np.float16).reshape(-1, 64)
    halves[~np.isfinite(halves)] = 0
    table = Table(64)
    table.extend([row.tobytes() for row in halves])
    assert table.wholes.take(np.arange(table.wholes.count)).tobytes() == halves.astype(np.float32).tobytes()


@pytest.mark.parametrize("block", [1 << 25, 1 << 14, 100, 1])
def test_vectors_are_the_same_whether_records_came_one_by_one_or_all_at_once(block, monkeypatch):
    monkeypatch.setattr(vectors, "_BLOCK", block)
    numbers = np.random.default_rng(3)
    stored = [
        None if passages == 0 else numbers.normal(size=(passages, 8)).astype("<f2").tobytes()
        for passages in numbers.integers(0, 5, 700)
    ]
    alone, together = Table(8), Table(8)
    together.extend(stored)
    for each in stored:
        alone.extend([each])
    questions = list(numbers.normal(size=(3, 8)).astype(np.float32))
    close = together.closeness(questions)
    assert (alone.closeness(questions) == close).all()
    assert all((together.closeness([each])[0] == row).all() for each, row in zip(questions, close, strict=True))
    for slot, each in enumerate(stored):
        row = together.wholes.take(np.array([slot]))[0]
        expected = np.zeros(8) if each is None else np.frombuffer(each, "<f2")[:8]
        assert (row == expected.astype(np.float32)).all()
