"""A question, as both scorers take it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from memshelf.embedding.text import EMBEDDED_CHARS
from memshelf.records.retrieval.days import Stretch
from memshelf.records.retrieval.index import RecordIndex
from memshelf.records.retrieval.terms import query_terms
from memshelf.records.retrieval.times import read_times

if TYPE_CHECKING:
    from memshelf.records.retrieval.vectors import Floats

__all__ = ["Meaning", "Question", "understand", "wall_clock"]

_MOST_TERMS = 256
_SOMEBODY = re.compile(
    r"\b(?:i|my|mine|we|our|ours|us|he|his|him|she|her|hers|they|them|their|users?)\b|(?<![帮给请])[我他她咱]|用户",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A question's vector, and how much it is like questions to a memory: about 1 for those, about -1 for others."""

    vector: Floats
    asked_of_memory: float


@dataclass(frozen=True, slots=True)
class Question:
    """`terms` are hashes with weights; `times` the days that the question names; `speaker` the id of the one speaker
    whom it names; `speaks_of_somebody` that it is about a person; `evidence` what else speaks for its being one to the
    memory, in the unit of the floor."""

    terms: dict[int, float]
    times: list[Stretch]
    speaker: int | None
    meaning: Meaning | None
    speaks_of_somebody: bool
    evidence: float = 0.0


def understand(
    text: str, index: RecordIndex, *, now: datetime, meaning: Meaning | None, evidence: float = 0.0
) -> Question:
    """The question in the first 2,000 characters of `text`, to the records of the index."""
    text = text[:EMBEDDED_CHARS]
    times = read_times(text, now.date(), _years(index, now))
    named = [number for name, number in index.speaker_names.items() if name in text.casefold()]
    terms = query_terms(text)
    return Question(
        dict(list(terms.items())[:_MOST_TERMS]),
        times,
        named[0] if len(named) == 1 else None,
        meaning,
        bool(named) or _SOMEBODY.search(text) is not None,
        evidence,
    )


def _years(index: RecordIndex, now: datetime) -> range:
    """The years that records are of: a date without a year may be in any of them."""
    if not len(index):
        return range(now.year, now.year + 1)
    first, last = index.days()
    newest = date.fromordinal(last).year
    return range(max(date.fromordinal(first).year, newest - 20), newest + 1)


def wall_clock(now: datetime | None, clock: datetime) -> datetime:
    """`now`, or the clock's time; without a zone it is UTC."""
    moment = now if now is not None else clock
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment
