"""Which part of a history is shown and kept, and what stays in a compaction: rules over any kind of message."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given, strategies as st

from memshelf import CompressionManager, WorkingMemory
from memshelf.threads.compaction import cut
from memshelf.threads.window import Window, first_kept, window


@dataclass(frozen=True)
class Message:
    """`u` begins a turn, `a` a round, `t` is the result of the calls of the `a` before it, `n` is a notice."""

    kind: str
    size: int = 10


class Shape:
    def starts_turn(self, message):
        return message.kind == "u"

    def starts_round(self, message):
        return message.kind == "a"

    def tokens(self, message):
        return message.size

    def over(self, message, tool_result_tokens):
        return max(message.size - tool_result_tokens, 0) if message.kind == "t" else 0

    def lines(self, message, tool_result_tokens):
        return [(message.kind, str(message.size))]


SHAPE = Shape()
TURN = st.builds(
    lambda rounds, size: [
        Message("u", size),
        *[m for r in rounds for m in (Message("a"), Message("t", r))],
        Message("a"),
    ],
    st.lists(st.integers(1, 300), max_size=4),
    st.integers(1, 100),
)
HISTORIES = st.builds(
    lambda turns, rounds: [m for turn in turns for m in turn] + [Message("u"), *rounds],
    st.lists(TURN, max_size=6),
    st.lists(st.integers(1, 300), max_size=4).map(
        lambda sizes: [m for s in sizes for m in (Message("a"), Message("t", s))]
    ),
)


def _history(kinds: str):
    return [Message(kind) for kind in kinds]


def _window(history, turns=None, tokens=None, limit=50):
    return window(history, SHAPE, turns=turns, tokens=tokens, tool_result_tokens=limit)


# --- window -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("turns", "start"), [(None, 0), (0, 6), (1, 4), (2, 2), (3, 0), (99, 0)])
def test_so_many_turns_before_the_current_one_are_shown(turns, start):
    assert _window(_history("uauauau"), turns) == Window(start, 6)


def test_a_result_never_loses_its_call():
    history = _history("uatatauata")
    assert _window(history, 0) == Window(6, 6)
    assert _window(history, 1) == Window(0, 6)


def test_what_stands_before_the_first_turn_goes_with_it():
    assert _window(_history("nauau"), None).start == 0
    assert _window(_history("nauau"), 1).start == 2


@pytest.mark.parametrize(("tokens", "start"), [(70, 0), (69, 2), (50, 2), (49, 4), (30, 4), (29, 6), (10, 6)])
def test_turns_are_left_out_whole_until_the_rest_has_room(tokens, start):
    assert _window(_history("uauauau"), None, tokens).start == start


def test_the_newest_turn_is_shown_even_if_it_has_no_room():
    history = [*_history("uau"), Message("a"), Message("t", 500)]
    shown = _window(history, None, 5)
    assert (shown.start, shown.shorten_current) == (2, True)


def test_over_long_results_are_shortened_before_a_turn_is_left_out():
    history = [Message("u"), Message("a"), Message("t", 500), Message("a"), Message("u")]
    assert _window(history, None, 540) == Window(0, 4)
    assert _window(history, None, 539) == Window(0, 4, shorten_earlier=True)
    assert _window(history, None, 90) == Window(0, 4, shorten_earlier=True)
    assert _window(history, None, 89) == Window(4, 4, shorten_earlier=True)


@given(HISTORIES, st.none() | st.integers(0, 5), st.none() | st.integers(1, 800))
def test_a_window_is_whole_turns_within_its_limits_and_never_smaller_than_it_must_be(history, turns, tokens):
    shown = _window(history, turns, tokens)
    assert shown.start == 0 or history[shown.start].kind == "u"
    assert history[shown.current].kind == "u"
    assert all(message.kind != "u" for message in history[shown.current + 1 :])
    starts = [index for index, message in enumerate(history) if message.kind == "u"]
    earlier = [index for index in starts if shown.start <= index < shown.current]
    assert turns is None or len(earlier) <= turns

    def size(start):
        parts = [history[start : shown.current], history[shown.current :]]
        flags = [shown.shorten_earlier, shown.shorten_current]
        return sum(m.size - flag * SHAPE.over(m, 50) for part, flag in zip(parts, flags, strict=True) for m in part)

    if tokens is not None and shown.start != shown.current:
        assert size(shown.start) <= tokens
    if tokens is not None and shown.start and (turns is None or len(earlier) < turns):
        assert size(starts[starts.index(shown.start) - 1]) > tokens


# --- what is kept -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "start"), [(7, 0), (6, 2), (5, 2), (4, 4), (3, 4), (2, 6), (1, 6)])
def test_the_oldest_turns_leave_whole(most, start):
    assert first_kept(_history("uauauau"), SHAPE, most) == start


def test_the_newest_turn_stays_however_long_it_is():
    assert first_kept(_history("uauatatat"), SHAPE, 3) == 2


# --- compaction -------------------------------------------------------------------------------------------------------


def _kept(history, budget):
    kept = cut(history, SHAPE, budget)
    return None if kept is None else (kept.input, kept.tail)


def test_the_current_turn_stays():
    assert _kept(_history("uatauauat"), 1_000) == (6, 7)
    assert _kept(_history("uau"), 1_000) == (2, 3)


def test_of_a_turn_that_is_too_long_its_input_and_newest_rounds_stay():
    history = _history("uauatatat")
    assert _kept(history, 50) == (2, 5)
    assert _kept(history, 49) == (2, 7)
    assert _kept(history, 1) == (2, 7)


def test_notices_between_an_input_and_its_first_round_stay_with_them():
    assert _kept(_history("uaunat"), 1_000) == (2, 3)


@pytest.mark.parametrize("kinds", ["u", "uat", "un", "", "aa", "n"])
def test_where_nothing_can_go_there_is_no_cut(kinds):
    assert _kept(_history(kinds), 1_000) is None


@given(HISTORIES, st.integers(1, 2_000))
def test_a_cut_keeps_whole_rounds_and_no_more_than_it_must(history, budget):
    kept = cut(history, SHAPE, budget)
    if kept is None:
        return
    assert history[kept.input].kind == "u"
    assert all(message.kind != "u" for message in history[kept.input + 1 :])
    tail = history[kept.tail :]
    assert not tail or tail[0].kind == "a"
    rounds = [index for index in range(kept.input + 1, len(history)) if history[index].kind == "a"]
    if kept.tail != kept.input + 1:
        size = sum(m.size for m in [history[kept.input], *history[rounds[rounds.index(kept.tail) - 1] :]])
        assert size > budget
        assert kept.tail == rounds[-1] or sum(m.size for m in [history[kept.input], *tail]) <= budget


class Summaries:
    """Answers with one after the other, and remembers what it was asked."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []

    async def __call__(self, previous, lines):
        self.asked.append((previous, "".join(kind for kind, _ in lines)))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _compact(manager, summaries, used=900, **options):
    return manager.auto_compact(_history("uauau"), summaries, thread="t", used=used, window=1_000, **options)


async def test_a_compaction_is_due_at_its_threshold_and_not_before():
    manager, summaries = CompressionManager(SHAPE), Summaries("  so far  ")
    assert await _compact(manager, summaries, used=899) is None
    compaction = await _compact(manager, summaries, used=900)
    assert (compaction.summary, compaction.cut.input) == ("so far", 4)
    assert summaries.asked == [(None, "uaua")]


async def test_a_summary_that_tells_all_that_goes_is_used_without_asking_a_model():
    summaries = Summaries()
    compaction = await _compact(CompressionManager(SHAPE), summaries, summary="known", summarised=4)
    assert (compaction.summary, summaries.asked) == ("known", [])


async def test_a_summary_that_tells_less_is_brought_up_to_date():
    summaries = Summaries("new")
    compaction = await _compact(CompressionManager(SHAPE), summaries, summary="known", summarised=2)
    assert (compaction.summary, summaries.asked) == ("new", [("known", "ua")])


async def test_rounds_of_the_current_turn_that_have_to_go_are_told():
    summaries = Summaries("new")
    history = [*_history("uau"), *[Message(kind, 300) for kind in "atat"]]
    compaction = await CompressionManager(SHAPE).auto_compact(
        history, summaries, thread="t", used=1_000, window=1_000, summary="known", summarised=2
    )
    assert (compaction.cut.input, compaction.cut.tail, summaries.asked) == (2, 5, [("known", "at")])


@pytest.mark.parametrize("failure", [RuntimeError("down"), TimeoutError(), "", "  \n "])
async def test_failures_are_answered_with_nothing_and_after_three_in_a_row_it_stops_trying(failure):
    manager, summaries = CompressionManager(SHAPE), Summaries(*[failure] * 4, "by force", failure)
    for _ in range(6):
        assert await _compact(manager, summaries) is None
    assert len(summaries.asked) == 3
    assert await manager.auto_compact(_history("uau"), summaries, thread="other", used=9, window=9) is None
    assert len(summaries.asked) == 4
    assert (await _compact(manager, summaries, force=True)).summary == "by force"
    assert await _compact(manager, summaries) is None
    assert len(summaries.asked) == 6


async def test_where_nothing_can_go_no_model_is_asked():
    summaries = Summaries()
    assert await CompressionManager(SHAPE).auto_compact(_history("u"), summaries, thread="t", used=9, window=9) is None
    assert summaries.asked == []


async def test_a_summary_that_is_too_long_is_shortened():
    summaries = Summaries("word " * 5_000)
    compaction = await _compact(CompressionManager(SHAPE, summary_tokens=100), summaries)
    assert "characters left out" in compaction.summary
    assert len(compaction.summary) < 600


@pytest.mark.parametrize("options", [{"threshold": 0}, {"threshold": 1.1}, {"max_failures": 0}, {"summary_tokens": 0}])
def test_a_compaction_out_of_range_is_refused(options):
    with pytest.raises(ValueError, match=r"threshold|at least 1"):
        CompressionManager(SHAPE, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"max_messages": 0},
        {"max_tokens": 0},
        {"max_tokens": 1.5},
        {"tool_result_tokens": True},
        {"summary_tokens": None},
        {"summary_seconds": 0},
    ],
)
def test_a_working_memory_out_of_range_is_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        WorkingMemory(**options)
