"""The contract of `RecallRecordStore`, as tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import get_args

from memshelf.origin import Origin, OriginKind
from memshelf.records.model import NewRecord
from memshelf.records.protocol import RecallRecordStore
from memshelf.testing.harness import refused, scenario
from memshelf.testing.records import RecordStoreContract, texts

__all__ = ["RecallRecordStoreContract"]

_NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)  # a Wednesday
_BEHIND, _AHEAD = timezone(timedelta(hours=-23)), timezone(timedelta(hours=14))


class RecallRecordStoreContract(RecordStoreContract):
    """What a record memory guarantees that uses when, where and from whom a record is."""

    @scenario
    async def test_what_is_said_of_a_record_is_kept(self, store: RecallRecordStore) -> None:
        origin = Origin("run", "principal", "call", kind="user")
        added = await store.add("likes tea", at=_NOW, thread="chat", origin=origin)
        plain = await store.add("likes coffee")
        assert (added.at, added.thread, added.origin) == (_NOW, "chat", origin)
        assert (plain.thread, plain.origin) == (None, None)
        assert plain.at is not None
        assert (await store.list(limit=5)).records == (added, plain)
        updated = await store.update(added.id, "likes green tea")
        assert (updated.at, updated.thread, updated.origin) == (_NOW, "chat", origin)
        assert (await store.list(limit=5)).records[0] == updated

    @scenario
    async def test_a_text_is_from_whoever_wrote_it_last(self, store: RecallRecordStore) -> None:
        record = await store.add("likes tea", origin=Origin(principal_id="ann", kind="user"))
        agent = Origin("run", None, "call", kind="agent")
        updated = await store.update(record.id, "likes coffee", origin=agent)
        assert updated.origin == agent
        found = await store.search("likes coffee", limit=5)
        assert [(each.id, each.text, each.origin) for each in found] == [(record.id, "likes coffee", agent)]
        origins = [Origin(kind=kind) for kind in get_args(OriginKind)]
        added = await store.add_many(NewRecord(text="likes milk", origin=each) for each in origins)
        assert [each.origin for each in added] == origins

    @scenario
    async def test_a_time_that_utc_has_no_year_for_is_refused(self, store: RecallRecordStore) -> None:
        for moment in (datetime.max.replace(tzinfo=_BEHIND), datetime.min.replace(tzinfo=_AHEAD)):
            await refused("invalid_text", store.add("tea", at=moment))
            await store.search("tea last week", limit=1, now=moment)
        assert (await store.list(limit=5)).records == ()

    @scenario
    async def test_times_with_and_without_a_zone_meet(self, store: RecallRecordStore) -> None:
        naive = await store.add("tea at noon", at=datetime(2026, 5, 19, 12))  # noqa: DTZ001  # a time without a zone
        aware = await store.add("tea at eight", at=datetime(2026, 5, 19, 12, tzinfo=timezone(timedelta(hours=4))))
        assert naive.at == datetime(2026, 5, 19, 12, tzinfo=UTC)
        assert aware.at == datetime(2026, 5, 19, 8, tzinfo=UTC)
        for now in (_NOW, _NOW.replace(tzinfo=None), _NOW.astimezone(timezone(timedelta(hours=-7)))):
            assert len(await store.search("tea yesterday", limit=5, now=now)) == 2

    @scenario
    async def test_many_records_are_added_in_order_or_not_at_all(self, store: RecallRecordStore) -> None:
        added = await store.add_many(NewRecord(text=f"record {each}") for each in range(100))
        assert await texts(store) == [record.text for record in added] == [f"record {each}" for each in range(100)]
        assert await store.add_many([]) == []
        await refused("invalid_text", store.add_many([NewRecord(text="good"), NewRecord(text=" ")]))
        await refused("record_not_found", store.add_many([NewRecord(text="good"), NewRecord(text="b", replaces="x")]))
        assert len(await texts(store)) == 100

    @scenario
    async def test_a_record_from_elsewhere_is_as_old_as_it_was_there(self, store: RecallRecordStore) -> None:
        then, later = datetime(2020, 5, 1, tzinfo=UTC), datetime(2021, 5, 1, tzinfo=UTC)
        moved = [
            NewRecord(text="likes tea", at=then, updated_at=later, revised=True),
            NewRecord(text="likes tea", at=then + timedelta(days=1), updated_at=then),
        ]
        added = await store.add_many(moved)
        assert [(each.updated_at, each.revised) for each in added] == [(later, True), (then, False)]
        assert (await store.list(limit=5)).records == tuple(added)
        found = await store.search("likes tea", limit=2)
        assert [each.id for each in found] == [each.id for each in added]
        updated = await store.update(added[1].id, "likes tea")
        assert updated.revised
        assert updated.updated_at is not None
        assert updated.updated_at > then
        out_of_range = NewRecord(text="tea", updated_at=datetime.max.replace(tzinfo=_BEHIND))
        await refused("invalid_text", store.add_many([out_of_range]))

    @scenario
    async def test_a_time_in_the_question_favours_records_of_that_time(self, store: RecallRecordStore) -> None:
        for month in (1, 2, 3, 4, 5):
            await store.add(f"lunch with a friend, number {month}", at=datetime(2026, month, 14, 12, tzinfo=UTC))
            await store.add(f"和朋友吃了午饭，第{month}次", at=datetime(2026, month, 14, 12, tzinfo=UTC))
        for query, number in (
            ("lunch last week", "5"), ("lunch in February", "2"), ("lunch on March 14, 2026", "3"),
            ("上周的午饭", "5"), ("二月的午饭", "2"), ("2026年3月14日的午饭", "3"), ("上个月的午饭", "4"),
        ):  # fmt: skip
            found = await store.search(query, limit=3, now=_NOW)
            assert number in found[0].text, f"{query}: {found[0].text}"

    @scenario
    async def test_a_day_is_that_of_whoever_asks(self, store: RecallRecordStore) -> None:
        there = timezone(timedelta(hours=8))
        for day in (28, 29, 30):
            await store.add(f"lunch with Ann, number {day}", at=datetime(2026, 11, day, 1, tzinfo=there))
        for query, number in (("lunch yesterday", "29"), ("昨天的 lunch", "29"), ("lunch today", "30")):
            found = await store.search(query, limit=3, now=datetime(2026, 11, 30, 7, tzinfo=there))
            assert number in found[0].text, f"{query}: {found[0].text}"

    @scenario
    async def test_no_record_is_left_out_for_its_time(self, store: RecallRecordStore) -> None:
        await store.add("the quokka likes marmalade", at=_NOW - timedelta(days=900))
        assert len(await store.search("marmalade last week", limit=3, now=_NOW)) == 1

    @scenario
    async def test_an_answer_in_a_conversation_is_found_by_its_question(self, store: RecallRecordStore) -> None:
        chat = (
            "Ana: Nice weather.",
            "Ana: What is the name of your new tortoise?",
            "Ben: Sheldon!",
            "Ana: Oh, lovely.",
        )
        filler = [NewRecord(text=f"Ana: And number {each} was boring.", thread="chat") for each in range(20)]
        await store.add_many([*filler, *(NewRecord(text=text, thread="chat") for text in chat)])
        found = await store.search("the name of the tortoise", limit=2)
        assert "Ben: Sheldon!" in [record.text for record in found]

    @scenario
    async def test_a_record_stands_in_for_the_one_that_it_replaces(self, store: RecallRecordStore) -> None:
        for each in range(5):
            await store.add(f"the office has {each} rooms")
        first = await store.add("the quokka lives in Paris")
        second = await store.add("the quokka lives in Lyon", replaces=first.id)
        third = await store.add("moved to Marseille", replaces=second.id)
        found = [record.id for record in await store.search("where is the quokka, in Paris?", limit=8)]
        assert found[0] == third.id
        assert found.index(first.id) > 0
        listed = {record.id: record.replaced_by for record in (await store.list(limit=100)).records}
        assert (listed[first.id], listed[second.id], listed[third.id]) == (second.id, third.id, None)

    @scenario
    async def test_deleting_what_replaces_a_record_restores_it(self, store: RecallRecordStore) -> None:
        first = await store.add("the quokka lives in Paris")
        second = await store.add("the quokka lives in Lyon", replaces=first.id)
        await store.delete(second.id)
        found = await store.search("where does the quokka live?", limit=5)
        assert [(record.id, record.replaced_by) for record in found] == [(first.id, None)]

    @scenario
    async def test_there_must_be_a_record_to_replace(self, store: RecallRecordStore) -> None:
        await refused("record_not_found", store.add("tea", replaces="nothing"))
        assert await texts(store) == []

    @scenario
    async def test_of_equal_records_the_newer_comes_first(self, store: RecallRecordStore) -> None:
        records = [await store.add("the quokka lives in Paris", at=_NOW + timedelta(days=day)) for day in (2, 3, 1)]
        found = [record.id for record in await store.search("quokka", limit=5)]
        assert found == [records[1].id, records[0].id, records[2].id]

    @scenario
    async def test_an_updated_record_is_as_new_as_its_update(self, store: RecallRecordStore) -> None:
        first = await store.add("the quokka lived in Paris", at=_NOW - timedelta(days=900))
        second = await store.add("the quokka lives in Rome", at=_NOW - timedelta(days=800))
        for newer, older in ((first, second), (second, first)):
            updated = await store.update(newer.id, "the quokka lives in Rome")
            assert updated.at == newer.at
            found = [record.id for record in await store.search("quokka", limit=5)]
            assert found == [newer.id, older.id]

    def test_a_record_of_another_namespace_cannot_be_replaced(self, tmp_path: Path) -> None:
        @scenario
        async def body(suite: RecallRecordStoreContract, mine: RecallRecordStore) -> None:
            async with suite.open(tmp_path, "theirs") as theirs:
                record = await theirs.add("their secret")
                await refused("record_not_found", mine.add("taken over", replaces=record.id))
                assert (await theirs.list(limit=5)).records == (record,)

        body(self, tmp_path)
