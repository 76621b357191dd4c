"""Record memory: what recall finds, and how fast.

Data sets are read from a folder beside the repository if it is there, or from the one that `python -m bench
records:FOLDER` names: files `*.jsonl.gz` of records and of questions with known evidence. They are never copied.
"""

from __future__ import annotations

import asyncio
import resource
import sys
import time
from pathlib import Path

import numpy as np

from bench.measure import Ratio, show, show_figures
from bench.recall.datasets import Dataset, facts, load
from bench.recall.distractors import distractors
from bench.recall.figures import COLUMNS, Figures, cells, evaluate
from bench.recall.messages import in_messages
from bench.recall.rankers import RANKERS
from memshelf.embedding.bundled import BundledEmbedder
from memshelf.embedding.protocol import Vectors
from memshelf.records.backends.sqlite import SqliteRecordStore
from memshelf.records.model import NewRecord

__all__ = ["run"]

DATA = Path(__file__).parent.parent.parent / "shared" / "data" / "recall"
PARAPHRASED = ("en>en", "zh>en", "zh>zh", "en>zh")
QUESTIONS = [
    f"does {name} know {what}?" for name in ("Olivia", "Samir", "Noor") for what in ("the new logo", "Mill Lane")
]
QUESTIONS += [f"{name}推荐了什么{what}？" for name in ("赵敏", "李强", "陈雪") for what in ("菜", "地方")]


async def run(place: Path, data: Path | None = None) -> None:
    ours = [facts(noise, file) for file in ("facts", "more_facts") for noise in (0, 3_000)]
    messages = [in_messages(facts(0, file), sentences) for file in ("facts", "more_facts") for sentences in (2, 5)]
    for dataset in (*ours, *messages, *_datasets(data or DATA)):
        await _quality(dataset)
    for records in (10_000, 100_000):
        await _speed(place, records)


def _datasets(folder: Path) -> list[Dataset]:
    found = [load(path) for path in sorted(folder.glob("*.jsonl.gz"))]
    if not found:
        print(f"\n(no data sets in {folder})")
    return found


async def _quality(dataset: Dataset) -> None:
    rows: list[tuple[str, ...]] = []
    for name, ranker in RANKERS.items():
        kinds = await evaluate(dataset, ranker)
        unrelated = kinds.pop("unrelated", None)
        judged = PARAPHRASED if PARAPHRASED[0] in kinds else tuple(kinds)
        rows.append(cells(name, Figures([each for kind in judged for each in kinds[kind].places])))
        if name == "memshelf":
            if len(kinds) > 1:
                rows += [cells(f"{name}, {kind}", figures) for kind, figures in sorted(kinds.items())]
            if unrelated is not None:
                asked, answered = len(unrelated.places), unrelated.answered
                rows.append((f"{name}, unrelated: nothing for {asked - answered}", str(asked), *[""] * 5))
    show_figures(f"Recall: {dataset.name}", COLUMNS, rows)


class _Stored(BundledEmbedder):
    """The bundled model for questions, and random vectors for the records, which would take minutes."""

    def __init__(self) -> None:
        self._random = np.random.default_rng(1)
        self._topics = self._random.normal(size=(200, self.dimension))

    async def embed(self, texts: list[str], *, query: bool = False) -> Vectors:  # type: ignore[override]
        if query:
            return await super().embed(texts, query=True)
        return self._topics[self._random.integers(0, 200, len(texts))] + self._random.normal(
            scale=0.8, size=(len(texts), self.dimension)
        )


async def _speed(place: Path, records: int) -> None:
    database = place / f"records-{records}.db"
    texts = distractors(min(records, 8_000))
    async with SqliteRecordStore(database, embedder=_Stored(), durable=False) as store:
        for at in range(0, records, 5_000):
            await store.add_many(NewRecord(text=f"{texts[n % len(texts)]} {n}") for n in range(at, at + 5_000))
    await BundledEmbedder().embed(["warm"])
    before = _resident()
    async with SqliteRecordStore(database, embedder=BundledEmbedder()) as store:
        started = time.perf_counter()
        await store.search("warm up", limit=5)
        start = time.perf_counter() - started
        grown = _resident() - before
        recalls = await _each(lambda n: store.search(QUESTIONS[n % len(QUESTIONS)], limit=5), 120)
        blocked = await _longest_block(store)
        adds = await _each(lambda n: store.add(f"Olivia likes number {n}."), 60)
        usual, huge = "green tea at the market " * 84, "green tea at the market " * 4_200
        long = await _in_turn(lambda: store.search(huge, limit=5), lambda: store.search(usual, limit=5))
        wide = await _in_turn(lambda: store.add(huge[:100_000]), lambda: store.add(usual[:2_000]))
    at = f", {records:,} records"
    small = records <= 10_000
    show(
        f"Records{at}",
        [
            Ratio("recall, median", np.median(recalls), 5e-3 if small else 25e-3, "the aim", "at most 1x"),
            Ratio("recall, 95 of 100", np.percentile(recalls, 95), 15e-3 if small else 50e-3, "the aim", "at most 1x"),
            Ratio("add, durable, median", np.median(adds), 5e-3, "the aim", "at most 1x"),
            Ratio("start", start, 1.0, "the aim", "at most 1x"),
            Ratio("event loop blocked, longest", blocked, 20e-3, "the aim", "at most 1x"),
            Ratio("100 KB question", np.median(long[0]), np.median(long[1]), "one of 2,000 characters", "at most 1.2x"),
            Ratio("100 KB record", np.median(wide[0]), np.median(wide[1]), "one of 2,000 characters", "at most 1.2x"),
        ],
    )
    print(f"  memory: {grown / 1e6:.0f} MB for {records * 2_048 / 1e6:.0f} MB of vectors")


async def _each(work, rounds: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    taken = []
    for each in range(rounds):
        started = time.perf_counter()
        await work(each)
        taken.append(time.perf_counter() - started)
    return np.array(taken)


async def _in_turn(first, second, rounds: int = 10) -> np.ndarray:  # type: ignore[no-untyped-def]
    """Both of a ratio while the machine is the same, whatever else it does."""
    taken = [[(await _each(lambda _, work=work: work(), 1))[0] for work in (first, second)] for _ in range(rounds)]
    return np.array(taken).T


async def _longest_block(store: SqliteRecordStore) -> float:
    longest, done = 0.0, False

    async def watch() -> None:
        nonlocal longest
        while not done:
            started = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - started - 0.001)

    watching = asyncio.create_task(watch())
    for question in QUESTIONS * 3:
        await store.search(question, limit=5)
    done = True
    await watching
    return longest


def _resident() -> int:
    if sys.platform == "linux":
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
