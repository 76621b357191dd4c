"""Times and ids."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta, timezone

from hypothesis import given, strategies as st

from memshelf.storage.ids import Mint, from_micros, micros


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_time_survives_as_microseconds(moment):
    assert from_micros(micros(moment)) == moment


def test_a_time_of_any_zone_is_stored_in_utc():
    moment = datetime(2026, 9, 17, 8, 0, 0, 1, tzinfo=timezone(timedelta(hours=8)))
    assert from_micros(micros(moment)).isoformat() == "2026-09-17T00:00:00.000001+00:00"


def test_an_id_is_a_prefix_and_a_version_7_uuid_of_its_time():
    prefix, _, tail = Mint().id("memver", 1_700_000_000_123_456).partition("_")
    assert prefix == "memver"
    assert (uuid.UUID(tail).version, uuid.UUID(tail).variant) == (7, uuid.RFC_4122)
    assert uuid.UUID(tail).int >> 80 == 1_700_000_000_123


@given(st.lists(st.integers(0, 2**52), min_size=2, max_size=20, unique=True))
def test_ids_sort_by_their_time(times):
    ids = [Mint().id("memver", time) for time in sorted(times)]
    assert ids == sorted(ids)


def test_a_thousand_ids_of_one_moment_differ():
    mint = Mint()
    assert len({mint.id("memver", 0) for _ in range(1000)}) == 1000


def test_clock_and_randomness_decide_an_id():
    def mint():
        return Mint(clock=lambda: datetime(2026, 1, 2, tzinfo=UTC), random=lambda count: bytes(count))

    assert mint().id("memver", mint().now()) == mint().id("memver", mint().now())
