"""The session log, and what is done with a history before each request."""

from __future__ import annotations

import gc
import os
from pathlib import Path

from pydantic_ai import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)

from bench.measure import Ratio, median_sync, show
from memshelf import SessionLog, WorkingMemory
from memshelf.agent.capabilities.message_shape import ModelMessageShape
from memshelf.agent.capabilities.session_rows import messages_of, rows_of
from memshelf.agent.capabilities.summaries import kept_from, latest
from memshelf.threads.rows import Row
from memshelf.threads.window import first_kept, window

__all__ = ["run"]

ROWS = 100_000
TURNS = 3_000
TEXT = "an ordinary message of a conversation, as a person or a model would write it, 也有中文。 " * 2


async def run(place: Path) -> None:
    gc.disable()  # 100,000 dictionaries make collections that are no work of ours
    try:
        show(f"Session log, {ROWS:,} rows", _log(place))
        show(f"History, {TURNS:,} turns", _history())
    finally:
        gc.enable()


def _log(place: Path) -> list[Ratio]:
    log = SessionLog("s1", place / "sessions", durable=False)
    append = median_sync(lambda each: log.append("user", f"{each} {TEXT}"), 5_000)
    descriptor = os.open(place / "bare", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    line = (f"{TEXT}" * 2).encode() + b"\n"
    bare = median_sync(lambda _: os.write(descriptor, line), 5_000)
    durable = SessionLog("s2", place / "sessions")
    synced = median_sync(lambda each: durable.append("user", f"{each} {TEXT}"), 30)
    bare_synced = median_sync(lambda _: (os.write(descriptor, line), os.fsync(descriptor)), 30)
    os.close(descriptor)
    log.extend([_row(number) for number in range(ROWS - 5_000)])
    load = median_sync(lambda _: log.load(), 3)
    search = median_sync(lambda _: log.search("99 message 中文"), 1)
    short = SessionLog("s3", place / "sessions", durable=False)
    short.extend([_row(number) for number in range(1_000)])
    for each in (log, short):
        each.boundary("a summary")
        each.extend([_row(number) for number in range(20)])
    resume, resume_short = median_sync(lambda _: log.load(), 101), median_sync(lambda _: short.load(), 101)
    return [
        Ratio("append a row", append, bare, "one bare write", "under 50 us"),
        Ratio("append a row, durable", synced, bare_synced, "one bare write and sync", "near 1x"),
        Ratio(f"load {ROWS:,} rows", load, 1, "1 s", "at most 1x"),
        Ratio("resume from the last boundary", resume, resume_short, "the same behind 1,000 rows", "1x"),
        Ratio(f"search {ROWS:,} rows", search, 1, "1 s", ""),
    ]


def _row(number: int) -> Row:
    return {"type": "assistant" if number % 2 else "user", "content": f"{number} {TEXT}", "run_id": "r"}


def _history() -> list[Ratio]:
    history = [message for number in range(TURNS) for message in _turn(number)]
    memory, shape = WorkingMemory(), ModelMessageShape()

    def assembled(turns: int | None, tokens: int | None) -> float:
        def assemble(_: int) -> object:
            shown = window(history, shape, turns=turns, tokens=tokens, tool_result_tokens=memory.tool_result_tokens)
            return kept_from(history, shown.start) if shown.start else list(history)

        return median_sync(assemble, 51)

    rows = [row for message in history[-400:] for row in rows_of(message)]
    replay = median_sync(lambda _: messages_of(rows), 11)
    return [
        Ratio("the last 5 turns", assembled(5, None), 5e-3, "5 ms", "at most 1x"),
        Ratio("all turns", assembled(None, None), 5e-3, "5 ms", "at most 1x"),
        Ratio("what 20,000 tokens have room for", assembled(None, 20_000), 5e-3, "5 ms", "at most 1x"),
        Ratio("what 100,000 tokens have room for", assembled(None, 100_000), 5e-3, "5 ms", "at most 1x"),
        Ratio(
            "at most 200 messages",
            median_sync(lambda _: first_kept(history, shape, 200), 51),
            5e-3,
            "5 ms",
            "at most 1x",
        ),
        Ratio(
            "looking for a summary that is not there",
            median_sync(lambda _: latest(history), 51),
            5e-3,
            "5 ms",
            "at most 1x",
        ),
        Ratio("400 messages from their rows", replay, 400 * 50e-6, "50 us a message", ""),
    ]


def _turn(number: int) -> list[ModelMessage]:
    return [
        ModelRequest([UserPromptPart(f"{number} {TEXT}")], run_id=str(number)),
        ModelResponse([TextPart(TEXT)], run_id=str(number)),
    ]
