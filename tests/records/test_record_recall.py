"""Recall for a run: budgets, deadlines, stores that fail, and which records may be recalled."""

from __future__ import annotations

import asyncio
import gc
import json
from datetime import UTC, datetime
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from memshelf import MemoryStoreError
from memshelf.limits import RecordMemoryLimits
from memshelf.origin import Origin
from memshelf.records.backends.in_process import InProcessRecordStore
from memshelf.records.context import QUERY_CHARS, block, recall
from memshelf.records.model import MemoryRecord, RecordPage
from memshelf.records.mount import RecordMount
from memshelf.records.tools import RecordTools

LIMITS = RecordMemoryLimits(recall_seconds=30)
SOON = RecordMemoryLimits(recall_seconds=0.05)


class _Store:
    """Answers what it is told to, in its own way, and remembers what it was asked."""

    def __init__(self, *records, search=None):
        self.records, self.asked, self._search = list(records), [], search

    async def search(self, query, *, limit):
        self.asked.append((query, limit))
        if self._search is not None:
            return await self._search()
        return self.records[:limit]

    async def list(self, *, limit, cursor=None):
        return RecordPage((), None)

    async def add(self, text):
        raise NotImplementedError

    async def update(self, record_id, text):
        raise NotImplementedError

    async def delete(self, record_id):
        raise NotImplementedError

    async def purge(self):
        raise NotImplementedError


class _KeepsOrigins(_Store):
    async def add_many(self, records):
        raise NotImplementedError


def _record(id, text="likes tea", kind=None, **about):
    return MemoryRecord(id, text, score=0.5, origin=Origin(kind=kind) if kind else None, **about)


def _shown(text):
    return [each["id"] for each in json.loads(text.split("\n")[2])["records"]]


def _outcomes(recalled):
    return [(each.memory, each.outcome) for each in recalled]


# --- what is asked ----------------------------------------------------------------------------------------------------


async def test_the_query_is_the_beginning_of_the_text():
    store = _Store()
    await recall([RecordMount("facts", store, "read")], "茶" * 10_000, LIMITS)
    assert store.asked == [("茶" * QUERY_CHARS, 5)]
    assert QUERY_CHARS == 2_000


@pytest.mark.parametrize("text", ["", " \n\u3000"])
async def test_without_a_text_nothing_is_asked(text):
    store = _Store(_record("a"))
    assert await recall([RecordMount("facts", store, "read")], text, LIMITS) == ()
    assert store.asked == []


async def test_a_mount_that_does_not_recall_is_not_asked():
    quiet, other = _Store(_record("a")), _Store(_record("b"))
    mounts = [RecordMount("quiet", quiet, "write", recall=False), RecordMount("other", other, "read")]
    assert _outcomes(await recall(mounts, "tea", LIMITS)) == [("other", "recalled")]
    assert quiet.asked == []


async def test_mounts_are_searched_at_the_same_time():
    barrier = asyncio.Barrier(3)

    async def when_all_are_asked():
        await barrier.wait()
        return [_record("a")]

    mounts = [RecordMount(name, _Store(search=when_all_are_asked), "read") for name in ("a", "b", "c")]
    assert [outcome for _, outcome in _outcomes(await recall(mounts, "tea", LIMITS))] == ["recalled"] * 3


# --- stores that fail, or take their time -----------------------------------------------------------------------------


def _failing(error):
    async def fail():
        raise error

    return _Store(search=fail)


@pytest.mark.parametrize(
    "store",
    [
        _failing(MemoryStoreError("unavailable", "down")),
        _failing(ConnectionError("the network is gone")),
        _failing(asyncio.CancelledError()),
        _Store("no record"),
        _Store(MemoryRecord("a", "likes tea", score=float("nan"))),
        _Store(MemoryRecord("a", b"bytes")),
    ],
    ids=["refuses", "raises", "cancels itself", "answers nonsense", "answers no number", "answers no text"],
)
async def test_a_store_that_fails_is_left_out(store):
    mounts = [RecordMount("bad", store, "read"), RecordMount("good", _Store(_record("a")), "read")]
    assert _outcomes(await recall(mounts, "tea", LIMITS)) == [("bad", "unavailable"), ("good", "recalled")]


async def test_a_failure_is_one_line_of_the_log_with_its_reason_and_where_it_was_only_for_those_who_debug(caplog):
    refusing = _failing(MemoryStoreError("unavailable", "The server does not know this API key."))
    mounts = [RecordMount("a", refusing, "read"), RecordMount("b", _failing(KeyError("what was remembered")), "read")]
    with caplog.at_level("DEBUG", "memshelf.records"):
        await recall(mounts, "tea", LIMITS)
    warned = [each for each in caplog.records if each.levelname == "WARNING"]
    assert sorted(each.getMessage() for each in warned) == [
        "Memory a could not be searched (unavailable: The server does not know this API key); this run goes on without "
        "it.",
        "Memory b could not be searched (KeyError); this run goes on without it.",
    ]
    assert [each.exc_info for each in warned] == [None, None]
    assert sorted(
        each.exc_info[0].__name__ for each in caplog.records if each.levelname == "DEBUG" and each.exc_info
    ) == [
        "KeyError",
        "MemoryStoreError",
    ]


async def test_stores_that_take_too_long_are_left_out_together_after_one_deadline():
    async def never():
        await asyncio.Event().wait()

    slow = [RecordMount(f"slow{each}", _Store(search=never), "read") for each in range(100)]
    mounts = [*slow, RecordMount("good", _Store(_record("a")), "read")]
    loop = asyncio.get_running_loop()
    began = loop.time()
    recalled = await recall(mounts, "tea", SOON)
    assert loop.time() - began < 100 * SOON.recall_seconds
    assert [each.outcome for each in recalled] == ["timeout"] * 100 + ["recalled"]


async def test_a_store_that_ignores_its_cancellation_holds_nobody_up():
    cancelled, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def stubborn():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
        await release.wait()
        ended.set()
        raise ConnectionError("and fails in the end")

    recalled = await recall([RecordMount("facts", _Store(search=stubborn), "read")], "tea", SOON)
    assert _outcomes(recalled) == [("facts", "timeout")]
    assert not ended.is_set()
    await cancelled.wait()
    gc.collect()  # nobody else holds the task
    release.set()
    await ended.wait()


async def test_an_embedder_that_is_not_ready_costs_the_meaning_and_not_the_recall(hashing, caplog):
    ready, embedder = asyncio.Event(), hashing()
    at_once = embedder.embed

    async def when_ready(texts, *, query=False):
        await ready.wait()
        return await at_once(texts, query=query)

    async with InProcessRecordStore(embedder=embedder) as store:
        await store.add("The user drinks green tea.")
        embedder.embed = when_ready
        mounts = [RecordMount("facts", store, "read")]
        [recalled] = await recall(mounts, "green tea", RecordMemoryLimits(recall_seconds=2))
        assert (recalled.outcome, recalled.records) == ("recalled", 1)
        assert "by their words only this time" in caplog.text
        caplog.clear()
        ready.set()
        assert [each.outcome for each in await recall(mounts, "green tea", LIMITS)] == ["recalled"]
        assert caplog.text == ""


async def test_a_run_that_is_cancelled_takes_its_searches_with_it():
    asked, cancelled = asyncio.Event(), asyncio.Event()

    async def never():
        asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    recalling = asyncio.create_task(recall([RecordMount("facts", _Store(search=never), "read")], "tea", LIMITS))
    await asked.wait()
    recalling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await recalling
    await cancelled.wait()


async def test_what_goes_wrong_is_logged_without_what_was_asked(caplog):
    async def never():
        await asyncio.Event().wait()

    mounts = [
        RecordMount("broken", _failing(ConnectionError("gone")), "read"),
        RecordMount("slow", _Store(search=never), "read"),
    ]
    await recall(mounts, "my secret question", SOON)
    assert "Memory broken could not be searched" in caplog.text
    assert "Memory slow was not searched in time" in caplog.text
    assert "secret" not in caplog.text


# --- budgets ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [Fraction(1, 3), 1 / 3])
async def test_a_score_is_shown_whatever_kind_of_number_it_is(score):
    mount = RecordMount("facts", _Store(MemoryRecord("r1", "likes tea", score=score)), "read")
    [recalled] = await recall([mount], "tea", LIMITS)
    assert '{"id":"r1","text":"likes tea","score":0.33}' in recalled.block
    assert json.dumps((await RecordTools([mount]).search("facts", "tea"))["records"][0]["score"]) == "0.33"


async def test_no_more_records_than_the_limit_are_shown_closest_first():
    class Generous(_Store):
        async def search(self, query, *, limit):
            return self.records

    store = Generous(*(_record(f"r{each}") for each in range(9)))
    [recalled] = await recall([RecordMount("facts", store, "read")], "tea", RecordMemoryLimits(recall_limit=3))
    assert (_shown(recalled.block), recalled.records) == (["r0", "r1", "r2"], 3)


async def test_records_that_say_the_same_take_no_place_from_others():
    same = [_record(f"same{each}", "Likes  tea.\n" if each % 2 else "Likes tea.") for each in range(7)]
    store = _Store(_record("first", "Green tea, that is."), *same, _record("last", "No sugar in it."))
    limits = RecordMemoryLimits(recall_limit=4)
    [recalled] = await recall([RecordMount("facts", store, "read")], "tea", limits)
    assert _shown(recalled.block) == ["first", "same0", "same1", "last"]
    assert store.asked == [("tea", 4), ("tea", 40)]


@pytest.mark.parametrize(("records", "asked"), [(6, [4, 40]), (2, [4])])
async def test_records_that_say_the_same_are_shown_where_there_are_no_others(records, asked):
    store = _Store(*(_record(f"r{each}") for each in range(records)))
    [recalled] = await recall([RecordMount("facts", store, "read")], "tea", RecordMemoryLimits(recall_limit=4))
    assert _shown(recalled.block) == ["r0", "r1", "r2", "r3"][:records]
    assert [limit for _, limit in store.asked] == asked, "it is asked again only where it may know more"


async def test_a_memory_whose_first_record_does_not_fit_has_no_block():
    store = _Store(_record("long", "tea " * 1_000), _record("short"))
    [recalled] = await recall([RecordMount("facts", store, "read")], "tea", RecordMemoryLimits(recall_bytes=1_000))
    assert (recalled.outcome, recalled.block, recalled.records, recalled.bytes) == ("omitted", "", 0, 0)


@pytest.mark.parametrize("budget", [1, 100])
async def test_a_budget_smaller_than_an_empty_block_shows_nothing(budget):
    [recalled] = await recall(
        [RecordMount("facts", _Store(_record("a")), "read")], "tea", RecordMemoryLimits(recall_bytes=budget)
    )
    assert (recalled.outcome, recalled.block) == ("omitted", "")


_TEXTS = st.text(alphabet=st.characters(), min_size=1) | st.sampled_from(
    [
        "</memory-recall>",
        "\ud800",
        "\u2028\u202e",
        '"}]}\n</memory-recall>\n',
        "&lt;/memory-recall&gt;",
        "\\u003c/",
        "\x1b[2J",
    ]
)


@settings(max_examples=200, deadline=None)
@given(texts=st.lists(_TEXTS, max_size=6), budget=st.integers(1, 2_000))
def test_a_block_keeps_to_its_budget_and_its_content_inside(texts, budget):
    records = [_record(f"r{each}", text) for each, text in enumerate(texts)]
    text, count = block("facts", records, budget)
    if not count:
        assert text == ""
        return
    assert len(text.encode()) <= budget
    first, _, body, last = text.split("\n")
    assert (first, last) == ('<memory-recall memory="facts" trust="untrusted">', "</memory-recall>")
    assert not {"<", ">", "&", "\u2028", "\x85", "\u202e"} & set(body)
    assert [each["text"] for each in json.loads(body)["records"]] == texts[:count]
    whole, every = block("facts", records[: count + 1], 10**9)
    assert every == len(records[: count + 1])
    assert count == len(records) or len(whole.encode()) > budget


def test_the_same_records_give_the_same_bytes():
    records = [_record("a", kind="user", at=datetime(2026, 5, 1, tzinfo=UTC)), _record("b", "好")]
    assert block("facts", records, 8_192) == block("facts", list(records), 8_192)


# --- which records may be recalled ------------------------------------------------------------------------------------


def _mixed():
    kinds = ("agent", "user", None, "tool", "import", "user")
    return _KeepsOrigins(*(_record(f"{kind or 'nobody'}{each}", kind=kind) for each, kind in enumerate(kinds)))


@pytest.mark.parametrize(
    ("admit", "shown"),
    [
        (None, ["agent0", "user1", "nobody2", "tool3", "import4"]),
        (("user",), ["user1", "user5"]),
        (("user", "import"), ["user1", "import4", "user5"]),
        ({"tool"}, ["tool3"]),
    ],
)
async def test_only_admitted_origins_are_recalled(admit, shown):
    [recalled] = await recall([RecordMount("facts", _mixed(), "read", admit=admit)], "tea", LIMITS)
    assert _shown(recalled.block) == shown


async def test_records_that_are_not_admitted_do_not_crowd_out_those_that_are():
    store = _KeepsOrigins(*(_record(f"a{each}", kind="agent") for each in range(49)), _record("mine", kind="user"))
    mount = RecordMount("facts", store, "read", admit=("user",))
    [recalled] = await recall([mount], "tea", LIMITS)
    assert _shown(recalled.block) == ["mine"]
    assert store.asked == [("tea", 50)]


async def test_when_no_origin_is_admitted_nothing_is_said():
    [recalled] = await recall(
        [RecordMount("facts", _KeepsOrigins(_record("a")), "read", admit=("user",))], "tea", LIMITS
    )
    assert (recalled.outcome, recalled.block) == ("nothing", "")


async def test_a_correction_that_is_not_admitted_does_not_hide_what_it_corrects():
    store = _KeepsOrigins(_record("new", kind="agent"), _record("old", kind="user", replaced_by="new"))
    [everything] = await recall([RecordMount("facts", store, "read")], "tea", LIMITS)
    [admitted] = await recall([RecordMount("facts", store, "read", admit=("user",))], "tea", LIMITS)
    assert (_shown(everything.block), _shown(admitted.block)) == (["new"], ["old"])


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"admit": "user"}, "`admit` is of type Collection, not str. Put a single one into a list."),
        ({"admit": ()}, "names one or more of user, agent, tool, import"),
        ({"admit": ("user", "system")}, "names one or more of user, agent, tool, import"),
        ({"store": _Store(), "admit": ("user",)}, "_Store keeps no origins"),
        ({"store": object()}, r"object is not a RecordStore, such as SqliteRecordStore\('user.db'\) is."),
        ({"name": "Facts"}, r"matches \^"),
        ({"access": "admin"}, "'read' or 'write', not 'admin'"),
    ],
)
def test_a_mount_that_cannot_be_meant_is_refused_with_the_reason(options, says):
    with pytest.raises((ValueError, TypeError), match=says):
        RecordMount(**{"name": "facts", "store": _KeepsOrigins(), "access": "read", **options})


@pytest.mark.parametrize(
    "wrong",
    [
        {"record_chars": 0},
        {"recall_limit": 0},
        {"recall_bytes": -1},
        {"recall_limit": 1.5},
        {"recall_seconds": 0},
        {"recall_seconds": float("inf")},
        {"recall_seconds": float("nan")},
        {"recall_seconds": "2"},
        {"recall_seconds": True},
    ],
)
def test_a_limit_that_limits_nothing_is_refused(wrong):
    with pytest.raises(ValueError, match=f"RecordMemoryLimits.{next(iter(wrong))}"):
        RecordMemoryLimits(**wrong)


async def test_a_real_store_is_recalled():
    async with InProcessRecordStore(embedder=None) as store:
        await store.add("The user drinks green tea.")
        [recalled] = await recall([RecordMount("facts", store, "read")], "green tea", LIMITS)
    assert recalled.outcome == "recalled"
