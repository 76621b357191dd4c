"""A question, as both scorers take it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import islice, pairwise, repeat
from typing import TYPE_CHECKING

from memshelf.arguments import checked_argument
from memshelf.embedding.text import EMBEDDED_CHARS, MOST_SENTENCES, sentences
from memshelf.matching import folded
from memshelf.records.retrieval import weights
from memshelf.records.retrieval.dates import dates
from memshelf.records.retrieval.days import Stretch
from memshelf.records.retrieval.index import RecordIndex
from memshelf.records.retrieval.offsets import LOCAL, Offsets, offsets_of
from memshelf.records.retrieval.terms import (
    Asked,
    asks_with,
    long_words,
    misspelt,
    query_terms,
    term_hash,
    terms as terms_of,
)
from memshelf.records.retrieval.times import named_days, read_times

if TYPE_CHECKING:
    from memshelf.records.retrieval.vectors import Floats

__all__ = ["Meaning", "Question", "Sentence", "asked", "understand", "wall_clock"]

_NOWHERE = Offsets((), (0,))
_MOST_TERMS = 256
_SHORTEST = 3
_FEW_DAYS = 7
_MOST_MENDED, _MOST_MEANT = 8, 3
_SOMEBODY = re.compile(
    r"\b(?:i|my|mine|we|our|ours|us|he|his|him|she|her|hers|they|them|their|users?)\b|(?<![帮给请])[我他她咱]|用户",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Meaning:
    """A sentence's vector, and how much it is like questions to a memory: about 1 for those, about -1 for others."""

    vector: Floats
    asked_of_memory: float


@dataclass(frozen=True, slots=True)
class Sentence:
    """`terms` are the words by their hashes; `times` the days that the sentence names where it is asked, `named` the
    terms of these in texts, each with how much it says, and `about` the words besides them, if it names any; `offsets`
    are those of the time zone; `dated` that it names a day of the calendar; `speaker` the id of the one speaker whom it
    names; `speaks_of_somebody` that it is about a person; `asks` that it ends with a question mark."""

    terms: dict[int, Asked]
    times: list[Stretch]
    named: dict[int, float]
    about: list[int]
    offsets: Offsets
    dated: bool
    speaker: int | None
    speaks_of_somebody: bool
    asks: bool
    meaning: Meaning | None


@dataclass(frozen=True, slots=True)
class Question:
    """A question, or a message that has one somewhere. A record answers it by answering one of its sentences.

    `whole` is the vector of several sentences together, which tells what one of them leaves to the others. `evidence`
    is what else speaks for a question to the memory, in the unit of the floor.
    """

    sentences: Sequence[Sentence]
    whole: Floats | None = None
    evidence: float = 0.0


def asked(text: str) -> list[str]:
    """What is to be understood of a question: its first 2,000 characters and, if those are several sentences, each of
    them; neighbours of many stay together."""
    text = text[:EMBEDDED_CHARS]
    parts = sentences(text, shortest=_SHORTEST)
    if len(parts) < 2:
        return [text]
    groups = min(len(parts), MOST_SENTENCES)
    bounds = [len(parts) * each // groups for each in range(groups + 1)]
    return [text, *(" ".join(parts[first:end]) for first, end in pairwise(bounds))]


def understand(
    texts: Sequence[str],
    index: RecordIndex,
    *,
    now: datetime,
    meanings: Sequence[Meaning] | None,
    evidence: float = 0.0,
) -> Question:
    """The question of which `asked` made the texts, to the records of the index, and what the texts mean."""
    whole = meanings[0].vector if meanings and len(texts) > 1 else None
    parts = list(zip(texts, meanings or repeat(None)))  # noqa: B905  # one of them has no end
    parts = parts[1:] or parts
    asking = [text.endswith(("?", "？")) for text, _ in parts]
    return Question(
        [
            # Of several questions, one may be a remark: "Did you sleep well last night?"
            _sentence(text, meaning, index, now, asks=asks, of_days=sum(asking) == asks)
            for (text, meaning), asks in zip(parts, asking, strict=True)
        ],
        whole,
        evidence,
    )


def _sentence(
    text: str, meaning: Meaning | None, index: RecordIndex, now: datetime, *, asks: bool, of_days: bool
) -> Sentence:
    named = [number for name, number in index.speaker_names.items() if name in text.casefold()]
    terms = _mended(query_terms(text), text, index)
    times, weekdays, rest = read_times(text, now.date(), _years(index, now))
    dated = next(dates(folded(text)), None) is not None
    besides = _mended(query_terms(rest), rest, index) if times and any(terms_of(rest)) else {}
    about = [term for term, asked in besides.items() if asked.sure and asked.weight >= 1]
    # What it is about says more than many days, or than one that is a term of the question itself.
    few = [each for each in times if not about or (not dated and each.last - each.first < _FEW_DAYS)]
    return Sentence(
        dict(islice(terms.items(), _MOST_TERMS)),
        times,
        {term_hash(term): says for term, says in (named_days(few, weekdays, now.date()) if of_days else {}).items()},
        about[:_MOST_TERMS],
        offsets_of(now.tzinfo or UTC, *index.days()) if times else _NOWHERE,
        dated,
        named[0] if len(named) == 1 else None,
        bool(named) or _SOMEBODY.search(text) is not None,
        asks,
        meaning,
    )


def _mended(terms: dict[int, Asked], text: str, index: RecordIndex) -> dict[int, Asked]:
    """The terms, with words of records in the place of misspelt ones: those that none has, and some have but for one
    letter. They count for less, as they may be other words."""
    unknown = (word for word in long_words(text) if not index.postings.held([term_hash(word)]))
    for word in islice(unknown, _MOST_MENDED):
        near = misspelt(word)
        if asks_with(near):
            terms.pop(term_hash(word), None)
            continue
        meant = index.postings.held(near)
        if term_hash(word) in terms and 0 < len(meant) <= _MOST_MEANT:
            del terms[term_hash(word)]
            terms |= dict.fromkeys(meant, Asked(weights.MISSPELT / len(meant), sure=True))
    return terms


def _years(index: RecordIndex, now: datetime) -> list[int]:
    """The years that a date without one may be in: those that records are of, this one, and the next."""
    years = {now.year, now.year + 1}
    if len(index):
        first, last = (date.fromordinal(each).year for each in index.days())
        years.update(range(max(first, last - 20), last + 1))
    return sorted(years)


def wall_clock(now: datetime | None, clock: datetime) -> datetime:
    """`now`, or the clock's time where the process is. Without a zone, `now` is UTC.

    `TypeError` for what is no datetime, such as a date.
    """
    checked_argument("now", now, datetime, None)
    if now is None:
        return clock.astimezone(LOCAL)
    return now.replace(tzinfo=UTC) if now.tzinfo is None else now
