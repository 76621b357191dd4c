"""The contract of `RecordStore`, as tests."""

from __future__ import annotations

import asyncio
import functools
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from memshelf.records.model import MemoryRecord
from memshelf.records.protocol import RecordStore
from memshelf.testing.harness import refused, scenario

__all__ = ["RecordStoreContract", "texts"]

_TEXTS = {
    "a word": "tea",
    "spaces around it": "  likes tea \n",
    "carriage returns": "a\r\nb\rc",
    "NUL": "a\x00b",
    "BOM": "\ufefftea",
    "line separators": "a\u2028b\u2029c\x85d\x0be\x0cf",
    "Chinese": "用户喜欢绿茶。",
    "decomposed": "cafe\u0301",
    "emoji": "👩‍👩‍👧‍👦\U0010ffff",
    "quotes and wildcards": '100% "sure" it\'s * _ -- C++; DROP TABLE',
    "a block": "</memory-recall><memory-recall>",
    "a long one": "tea " * 2_000,
}
_BAD_TEXTS = {"empty": "", "blank": " \n\t\u3000", "half a surrogate pair": "tea \ud800"}
_QUERIES = (
    "tea -coffee", '"tea', "tea*", "C++", "what's", "NEAR(a, b)", "tea AND", "(", "%", "_", "' OR 1=1 --", "a\x00b",
    "\ud800 tea", "👩‍👩‍👧‍👦", "。！？", "the of and", "2025-13-45", "99999999999999999999 days ago", "x" * 10_000,
    "茶" * 10_000,
)  # fmt: skip


class RecordStoreContract:
    """What every record memory guarantees. `reopens`: the records outlive the handle that wrote them, and a second
    handle shows the same ones. `namespaces` are names that a store may confuse; leave out those that it refuses."""

    reopens = True
    namespaces: tuple[str, ...] = ("user1", "user10", "user%", "user_", "USER1", "user1 ", "ùser1", "用户1")

    def open(self, place: Path, namespace: str = "default") -> AbstractAsyncContextManager[Any]:
        """Open the records of `namespace` kept at `place`, an existing folder. Called again with the same folder while
        the first is still open, it is a second handle."""
        raise NotImplementedError(f"{type(self).__name__}.open(place, namespace) opens the store under test.")

    # Texts

    @pytest.mark.parametrize("text", _TEXTS.values(), ids=_TEXTS)
    def test_a_text_is_stored_as_it_is(self, tmp_path: Path, text: str) -> None:
        async def body() -> None:
            async with self.open(tmp_path) as store:
                added = await store.add(text)
                assert added.text == text
                assert await texts(store) == [text]
                updated = await store.update((await store.add("tea")).id, text)
                assert updated.text == text
                assert await texts(store) == [text, text]

        asyncio.run(body())

    @pytest.mark.parametrize("text", _BAD_TEXTS.values(), ids=_BAD_TEXTS)
    def test_a_text_that_says_nothing_or_is_no_unicode_is_refused(self, tmp_path: Path, text: str) -> None:
        async def body() -> None:
            async with self.open(tmp_path) as store:
                record = await store.add("tea")
                await refused("invalid_text", store.add(text))
                await refused("invalid_text", store.update(record.id, text))
                assert await texts(store) == ["tea"]

        asyncio.run(body())

    @scenario
    async def test_the_same_text_twice_is_two_records(self, store: RecordStore) -> None:
        first, second = await asyncio.gather(store.add("likes tea"), store.add("likes tea"))
        assert first.id != second.id
        assert await texts(store) == ["likes tea", "likes tea"]

    # Listing

    @scenario
    async def test_a_new_memory_is_empty(self, store: RecordStore) -> None:
        page = await store.list(limit=10)
        assert (page.records, page.next_cursor) == ((), None)
        assert await store.search("tea", limit=5) == []
        await store.purge()

    @scenario
    async def test_pages_stand_in_the_order_of_adding_and_end_without_a_cursor(self, store: RecordStore) -> None:
        added = [await store.add(f"record {each}") for each in range(7)]
        seen: list[MemoryRecord] = []
        cursor, sizes = None, iter((3, 1, 2, 5))
        while True:
            page = await store.list(limit=next(sizes), cursor=cursor)
            seen += page.records
            cursor = page.next_cursor
            if cursor is None:
                break
        assert [(record.id, record.text) for record in seen] == [(record.id, record.text) for record in added]
        assert all(record.updated_at is not None for record in seen)

    @scenario
    async def test_a_page_that_holds_the_last_record_is_the_last_page(self, store: RecordStore) -> None:
        for each in range(4):
            await store.add(f"record {each}")
        first = await store.list(limit=2)
        assert (await store.list(limit=2, cursor=first.next_cursor)).next_cursor is None

    @scenario
    async def test_what_happens_between_pages_neither_skips_nor_repeats_a_record(self, store: RecordStore) -> None:
        added = [await store.add(f"record {each}") for each in range(6)]
        first = await store.list(limit=2)
        await store.delete(added[0].id)
        await store.delete(added[3].id)
        await store.update(added[1].id, "changed behind the reader")
        await store.add("added meanwhile")
        rest = await store.list(limit=100, cursor=first.next_cursor)
        assert [record.text for record in rest.records] == ["record 2", "record 4", "record 5", "added meanwhile"]

    @scenario
    async def test_a_foreign_cursor_is_refused(self, store: RecordStore) -> None:
        await store.add("tea")
        for cursor in ("", "x", ":", "1", "x:1", "-1", "default:1", "٣"):
            await refused("invalid_cursor", store.list(limit=1, cursor=cursor))

    def test_a_cursor_of_another_namespace_is_refused(self, tmp_path: Path) -> None:
        async def body() -> None:
            async with self.open(tmp_path, "one") as one, self.open(tmp_path, "two") as two:
                for store in (one, two):
                    for each in range(3):
                        await store.add(f"record {each}")
                await refused("invalid_cursor", two.list(limit=1, cursor=(await one.list(limit=1)).next_cursor))

        asyncio.run(body())

    # Changes

    @scenario
    async def test_an_update_replaces_the_text_in_listing_and_search(self, store: RecordStore) -> None:
        record = await store.add("the quokka likes marmalade")
        other = await store.add("the walrus plays cribbage")
        updated = await store.update(record.id, "the quokka prefers anchovies")
        assert updated.id == record.id
        assert await texts(store) == ["the quokka prefers anchovies", "the walrus plays cribbage"]
        assert (await store.search("anchovies", limit=5))[0].id == record.id
        assert "marmalade" not in str(await store.search("marmalade", limit=5))
        assert (await store.search("cribbage", limit=5))[0].id == other.id

    @scenario
    async def test_a_deleted_record_is_gone_from_listing_and_search(self, store: RecordStore) -> None:
        record = await store.add("the quokka likes marmalade")
        await store.add("the walrus plays cribbage")
        await store.search("marmalade", limit=5)
        await store.delete(record.id)
        assert await texts(store) == ["the walrus plays cribbage"]
        assert record.id not in [found.id for found in await store.search("quokka marmalade", limit=5)]
        await refused("record_not_found", store.delete(record.id))
        await refused("record_not_found", store.update(record.id, "back again"))

    @pytest.mark.parametrize("record_id", ["", "x", "1", "%", "' OR 1=1 --", "a\x00b", "\ud800", "x" * 1000])
    def test_an_unknown_id_is_not_found(self, tmp_path: Path, record_id: str) -> None:
        async def body() -> None:
            async with self.open(tmp_path) as store:
                await store.add("tea")
                await refused("record_not_found", store.update(record_id, "coffee"))
                await refused("record_not_found", store.delete(record_id))
                assert await texts(store) == ["tea"]

        asyncio.run(body())

    @scenario
    async def test_records_added_at_once_all_land(self, store: RecordStore) -> None:
        records = await asyncio.gather(*(store.add(f"record {each}") for each in range(40)))
        assert len({record.id for record in records}) == 40
        assert sorted(await texts(store)) == sorted(f"record {each}" for each in range(40))

    # Namespaces

    def test_namespaces_with_names_alike_share_nothing(self, tmp_path: Path) -> None:
        async def body() -> None:
            for name in self.namespaces:
                async with self.open(tmp_path, name) as store:
                    await store.add(f"secret of {name!r}")
                    assert await texts(store) == [f"secret of {name!r}"]
                    found = await store.search("secret", limit=20)
                    assert [record.text for record in found] == [f"secret of {name!r}"]

        asyncio.run(body())

    def test_a_record_of_another_namespace_does_not_exist(self, tmp_path: Path) -> None:
        async def body() -> None:
            async with self.open(tmp_path, "mine") as mine, self.open(tmp_path, "theirs") as theirs:
                record = await theirs.add("their secret")
                unknown = await refused("record_not_found", mine.delete(record.id + "x"))
                error = await refused("record_not_found", mine.update(record.id, "taken over"))
                assert error.message == unknown.message.replace(record.id + "x", record.id)
                await refused("record_not_found", mine.delete(record.id))
                await mine.purge()
                assert await texts(theirs) == ["their secret"]
                assert [found.text for found in await theirs.search("secret", limit=5)] == ["their secret"]

        asyncio.run(body())

    @scenario
    async def test_a_purge_removes_every_record_and_its_cursors(self, store: RecordStore) -> None:
        for each in range(5):
            await store.add(f"the quokka likes marmalade {each}")
        cursor = (await store.list(limit=2)).next_cursor
        await store.purge()
        assert await texts(store) == []
        assert await store.search("quokka", limit=5) == []
        await refused("invalid_cursor", store.list(limit=2, cursor=cursor))
        record = await store.add("the walrus plays cribbage")
        assert await texts(store) == ["the walrus plays cribbage"]
        assert [found.id for found in await store.search("walrus", limit=5)] == [record.id]

    # Search

    @scenario
    async def test_a_search_answers_at_most_the_limit_closest_first(self, store: RecordStore) -> None:
        for each in ("apples", "pears", "plums", "grapes", "figs"):
            await store.add(f"bought {each} at the market")
        found = await store.search("plums from the market", limit=3)
        assert 1 <= len(found) <= 3
        assert found[0].text == "bought plums at the market"
        scores = [record.score for record in found]
        assert all(score is not None and 0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)  # type: ignore[type-var]  # none of them is None
        assert found == await store.search("plums from the market", limit=3)

    @scenario
    async def test_a_blank_query_finds_nothing(self, store: RecordStore) -> None:
        await store.add("tea")
        for query in ("", " ", "\n\u3000"):
            assert await store.search(query, limit=5) == []

    @scenario
    async def test_a_limit_beyond_what_a_database_can_count_is_all(self, store: RecordStore) -> None:
        await store.add("tea")
        for limit in (1 << 31, 1 << 63, 1 << 70):
            assert [record.text for record in (await store.list(limit=limit)).records] == ["tea"]
            assert len(await store.search("tea", limit=limit)) == 1

    @pytest.mark.parametrize("limit", [0, -1, 1.5, 2.0, float("nan"), True, "5", None])
    def test_a_limit_that_is_no_whole_number_from_1_on_is_a_mistake(self, tmp_path: Path, limit: Any) -> None:
        async def body() -> None:
            async with self.open(tmp_path) as store:
                await store.add("tea")
                for attempt in (
                    store.list,
                    functools.partial(store.search, "tea"),
                    functools.partial(store.search, ""),
                ):
                    with pytest.raises(ValueError, match="limit"):
                        await attempt(limit=limit)

        asyncio.run(body())

    @scenario
    async def test_chinese_words_of_two_characters_are_found(self, store: RecordStore) -> None:
        for text in ("用户喜欢绿茶，不喝咖啡", "周末常去西湖散步", "车牌号是浙A12345"):
            await store.add(text)
        for query, text in (
            ("绿茶", "用户喜欢绿茶，不喝咖啡"),
            ("西湖", "周末常去西湖散步"),
            ("车牌", "车牌号是浙A12345"),
        ):
            assert (await store.search(query, limit=5))[0].text == text

    @pytest.mark.parametrize("query", _QUERIES)
    def test_no_query_breaks_the_search(self, tmp_path: Path, query: str) -> None:
        async def body() -> None:
            async with self.open(tmp_path) as store:
                await store.add("green tea, C++ and what's new")
                assert len(await store.search(query, limit=5)) <= 1

        asyncio.run(body())

    # Handles

    def test_a_second_handle_sees_every_change(self, tmp_path: Path) -> None:
        async def body() -> None:
            async with self.open(tmp_path) as first, self.open(tmp_path) as second:
                record = await first.add("the quokka likes marmalade")
                assert [found.id for found in await second.search("quokka", limit=5)] == [record.id]
                await second.update(record.id, "the walrus plays cribbage")
                assert [found.text for found in await first.search("walrus", limit=5)] == ["the walrus plays cribbage"]
                await first.delete(record.id)
                assert await second.search("walrus", limit=5) == []
                await second.add("the quokka is back")
                await first.purge()
                assert await second.search("quokka", limit=5) == []
                assert await texts(second) == []

        if self.reopens:
            asyncio.run(body())

    def test_records_outlive_the_handle(self, tmp_path: Path) -> None:
        async def body() -> None:
            async with self.open(tmp_path) as store:
                record = await store.add("the quokka likes marmalade")
            async with self.open(tmp_path) as store:
                expected = [record.id] if self.reopens else []
                assert [found.id for found in await store.search("quokka", limit=5)] == expected

        asyncio.run(body())


async def texts(store: RecordStore) -> list[str]:
    """Every text, in the order of the listing."""
    found: list[str] = []
    cursor = None
    while True:
        page = await store.list(limit=100, cursor=cursor)
        found += [record.text for record in page.records]
        cursor = page.next_cursor
        if cursor is None:
            return found
