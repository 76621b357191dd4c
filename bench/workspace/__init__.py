"""Workspaces: what recall finds in both languages, beside Agentica, and what it costs among thousands of entries.

`memories.jsonl` and `queries.jsonl` were written for this benchmark: entries as an agent keeps them, and questions as
users put them, a third of which are about nothing that is kept. `corrections.jsonl` are replies of users to an answer,
half of them corrections: the patterns were made with those of the part `tuning`, and without those held out.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from pathlib import Path

from bench.measure import Ratio, median_async, show, show_figures
from bench.peers import AGENTICA_RECALL, ask
from bench.raw import synced_file
from bench.workspace.figures import KINDS, figure
from memshelf import Workspace
from memshelf.workspace.corrections import correction_in

__all__ = ["run"]

HERE = Path(__file__).parent
ENTRIES = 5_000
MEMORIES = [json.loads(line) for line in (HERE / "memories.jsonl").read_text().splitlines()]
QUERIES = [json.loads(line) for line in (HERE / "queries.jsonl").read_text().splitlines()]
REPLIES = [json.loads(line) for line in (HERE / "corrections.jsonl").read_text().splitlines()]
COLUMNS = ("", "MRR, English", "MRR, Chinese", "unrelated: nothing")


async def run(place: Path) -> None:
    for described, what in ((True, "with descriptions"), (False, "without descriptions")):
        rows = []
        for name, embedder in (("by words and meaning", "default"), ("by words", None)):
            workspace = Workspace(place / f"{what} {name}", durable=False, embedder=embedder)  # type: ignore[arg-type]
            rows.append((f"memshelf, {name}", *await _quality(workspace, described=described)))
        theirs = [
            ask("agentica==1.5.0", "3.11", AGENTICA_RECALL, str(HERE), str(int(described)), kind) for kind in KINDS
        ]
        if None not in theirs:
            rows.append(("Agentica 1.5.0", *(f"{each:.2f}" for each in theirs if each is not None)))
        show_figures(f"Workspace recall, {len(MEMORIES)} entries and {len(QUERIES)} questions, {what}", COLUMNS, rows)
    show_figures(f"Corrections among {len(REPLIES)} replies", ("", "replies", "precision", "recall"), _corrections())
    show(f"Workspace of {ENTRIES:,} entries", await _speed(place / "many"))


async def _quality(workspace: Workspace, *, described: bool) -> list[str]:
    contents = {}
    for each in MEMORIES:
        description = each["description"] if described else ""
        await workspace.write_memory_entry(each["title"], each["content"], each["type"], description)
        contents[each["content"]] = each["id"]
    found = [[contents[entry.content] for entry in await workspace.search(query["q"])] for query in QUERIES]
    return [f"{figure(QUERIES, found, kind):.2f}" for kind in KINDS]


def _corrections() -> list[tuple[str, ...]]:
    rows = []
    for part in ("held-out", "tuning"):
        for lang, name in (("en", "English"), ("zh", "Chinese")):
            replies = [each for each in REPLIES if (each["part"], each["lang"]) == (part, lang)]
            seen = [each for each in replies if correction_in(each["text"]) is not None]
            right = sum(each["correction"] for each in seen)
            corrections = sum(each["correction"] for each in replies)
            rows.append(
                (f"{name}, {part}", f"{len(replies)}", f"{right / len(seen):.2f}", f"{right / corrections:.2f}")
            )
    return rows


async def _speed(place: Path) -> list[Ratio]:
    chance = random.Random(1)
    words = [f"word{number}" for number in range(3_000)]

    def text(count: int) -> str:
        return " ".join(words[min(int(chance.paretovariate(0.7)), len(words)) - 1] for _ in range(count))

    workspace = Workspace(place, durable=False, embedder=None)
    started = time.perf_counter()
    for number in range(ENTRIES):
        await workspace.write_memory_entry(f"Fact {number}", f"{text(60)} zebra{number}", "project", text(6))
    building = (time.perf_counter() - started) / ENTRIES
    write = await median_async(lambda each: workspace.write_memory_entry(f"New {each}", text(60), "user"), 101)
    rewrite = await median_async(lambda each: workspace.write_memory_entry("New 1", f"{each} {text(60)}", "user"), 101)
    await workspace.search("zebra1")
    first = await median_async(lambda _: Workspace(place, durable=False, embedder=None).search("zebra1 word9"), 3)
    short, usual, long = "zebra77", f"what about {text(12)}?", f"zebra5 {text(20_000)}"
    rare = await median_async(lambda _: workspace.get_relevant_memories(short), 51)
    recall = await median_async(lambda _: workspace.get_relevant_memories(usual), 51)
    endless = await median_async(lambda _: workspace.get_relevant_memories(long), 51)
    search = await median_async(lambda _: workspace.search(usual), 51)
    bare = await median_async(lambda each: _bare(place / f"bare-{each}", text(60)), 101)
    durable = Workspace(place, embedder=None)
    await durable.search("zebra1")
    synced = await median_async(lambda each: durable.write_memory_entry(f"Safe {each}", text(60), "user"), 101)
    raw = synced_file(place / "raw")
    shutil.rmtree(place)
    return [
        Ratio("write an entry", write, bare, "two bare files", "under 2 ms"),
        Ratio("write it again", rewrite, bare, "two bare files", "under 2 ms"),
        Ratio("write, over all", building, bare, "two bare files", "under 2 ms"),
        Ratio("durable write", synced, write + raw, "without, and one synced file", "near 1x"),
        Ratio("recall, a rare word", rare, bare, "two bare files", "under 10 ms"),
        Ratio("recall, a usual question", recall, bare, "two bare files", "under 10 ms"),
        Ratio(f"recall, {len(long) // 1000} KB of text", endless, recall, "a usual question", "no growth"),
        Ratio("search", search, recall, "a usual question", "under 15 ms"),
        Ratio("first search of a process", first, recall, "a later one", "under 300 ms"),
    ]


async def _bare(path: Path, text: str) -> None:
    for name in ("a", "b"):
        path.with_suffix(f".{name}").write_text(text)
