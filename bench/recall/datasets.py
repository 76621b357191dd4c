"""Questions with known evidence, one JSON object a line."""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bench.recall.distractors import distractors

__all__ = ["Dataset", "Query", "Record", "facts", "load"]


@dataclass(frozen=True, slots=True)
class Record:
    id: str
    text: str
    at: datetime | None = None
    thread: str | None = None


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    evidence: frozenset[str]
    kind: str
    now: datetime | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Scopes are searched one by one; a question belongs to one of them."""

    name: str
    scopes: dict[str, tuple[list[Record], list[Query]]]


def load(path: Path, name: str | None = None) -> Dataset:
    scopes: dict[str, tuple[list[Record], list[Query]]] = {}
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", newline="\n") as lines:
        meta = json.loads(next(lines))
        for line in lines:
            item = json.loads(line)
            records, queries = scopes.setdefault(item["scope"], ([], []))
            if item["type"] == "record":
                records.append(Record(item["id"], item["text"], _time(item.get("time")), item.get("session")))
            else:
                evidence = frozenset(item["evidence"])
                queries.append(Query(item["text"], evidence, item.get("kind", "-"), _time(item.get("time"))))
    return Dataset(name or meta["name"], scopes)


def facts(noise: int = 0, file: str = "facts") -> Dataset:
    """The set in `facts.jsonl` or `more_facts.jsonl`, among `noise` facts that answer nothing."""
    name = file.replace("_", " ")
    ours = load(Path(__file__).parent / f"{file}.jsonl", f"{name} among {noise:,} others" if noise else name)
    for records, _ in ours.scopes.values():
        records += [Record(f"d{number}", text) for number, text in enumerate(distractors(noise))]
    return ours


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    return datetime.fromisoformat(f"{text}-28" if len(text) == 7 else text)
