"""Every number of the mix, in one place. `bench/records.py` measures them; docs/architecture.md says what did not help.

Scores are in the unit of one rare word of the question found in a record. The words lead where the question shares
several with a record, as in conversations and logs; where it shares none or one, as with facts asked for in other
words, the vectors do.
"""

from __future__ import annotations

import math

SATURATION, LENGTH_WEIGHT = 1.2, 0.6
"""BM25's k1 and b, over records; a passage of a conversation and a whole one are weighed alike."""

DENSE, DENSE_IN_THREAD = 0.12, 0.1
"""A standard deviation of closeness in meaning. A turn on its own says little of what it is about."""

DENSITY, DENSITY_AT_FLOOR = 0.4, 0.3
"""How much closeness to other records counts against closeness to the question: what is close to everything."""

NEIGHBOUR_MEANING = 0.7
"""The turns beside a turn, in what it means."""

SENTENCE = 0.5
"""The best sentence of a record with several, against the whole of it."""

AFTER_QUESTION, AFTER_TURN = 1.0, 0.1
"""The share of the score of the turn before: most, when that one asks and this one answers."""

MISSPELT = 0.7
"""A word that differs in one letter from one of the question, which no record has as it is written there."""

PASSAGE, THREAD = 1.0, 0.6
"""Words found within two turns of a turn, and anywhere in its thread."""

PASSAGE_REACH = 2

ASKING, SPEAKER = -0.1, 0.1
"""A turn that asks rather than tells, and one of the only speaker that the question names."""

TIME, NAMED = 0.85, 1.5
"""A record of just the day that the question names, and one that names such a day itself, whenever it was noted."""

DOUBT, CAUTION = 2.0, 1.3
"""How many rare words must match before words alone are trusted, and how much less a half-trusted match counts."""

IN_THREAD = 0.67
"""Brings the scores of turns, which have more parts, to those of single records."""

QUESTIONS_ALIKE = 0.5
"""How much of what all questions share is taken out of a question's vector."""

RIDGE = 3.0
"""How far the examples of `background` are smoothed over; from 1 to 10 it makes little difference."""

ASKED_OF_MEMORY, COVERED, SPEAKS_OF_SOMEBODY, IN_TIME, FLOOR = 0.15, 0.1, 0.06, 0.16, 0.16
"""A question recalls nothing if no record is close to it, and it is like general knowledge and small talk rather than
like questions to a memory (`judgement`); both in cosines of the bundled model. Words of the question that a record has
count for it, and a little that it speaks of somebody ("my", "the user", "他") or of a time that records are of, unless
it is about something else that none tells."""

BESIDE_THE_POINT = 0.1
"""How much less close a sentence of a message counts that is less like a question to a memory than another one."""

ASIDE = 0.4
"""How much less the time counts that a sentence names beside one that asks: "I'm cooking tonight", then the question.
It may also be the time that the question is about: counting no such time at all cost LifeBench two points."""

COVERED_ENOUGH, WORDS_ENOUGH = 0.5, 2
"""A record that has half of the words of the question, by rarity, or two of them, is an answer in any case; so is one
of the day that it names in full, and one that names a day of those that it is for, if it is for nothing else."""

REPLACED = 1.0
"""How far a record falls behind the one that replaces it."""

WHOLE, WHOLE_FROM = 0.8, 0.5
"""A record with all the words of the question, by rarity, and from which share on it counts. Who names a thing, or has
its number, means that record, however close to the question others are. Not for turns: there, words are of the talk."""

CLOSE, CLOSE_FROM = 2.0, 0.6
"""A record that says the same, as in another language, and from which cosine on it counts. Few questions do."""

LONGEST = 8.0
"""How many rare words a question can be made of before more of them make each count for less."""

CANDIDATES = 100
"""How many records the slower parts of the mix look at."""

_USUAL = 1.6
"""BM25 of one word found once in a record of usual length, in units of its rarity."""


def rarity(records: int, holding: int) -> float:
    """What it says that a record holds a word that `holding` of all records hold."""
    return math.log(1 + max(0.0, records - holding + 0.5) / (holding + 0.5))


def scale(reachable: float, records: int) -> float:
    """Brings BM25 to the mix. A long question can match more, and then says more; but not in proportion.

    A very long one is for the most part chatter around the question, which takes nothing from what does match.
    """
    rare = (SATURATION + 1) * math.log(1 + records)
    return 1 / math.sqrt(min(reachable, LONGEST * rare) * rare) if reachable else 0.0


def trust(best: float, reachable: float, records: int) -> float:
    """How far words alone are trusted, from 0 to 1: if they cover the question, or if many of them match."""
    covered = min(1.0, best / reachable * (SATURATION + 1) / _USUAL) if reachable else 0.0
    return float((1 - (1 - covered) * math.exp(-best / _USUAL / math.log(1 + records) / DOUBT)) ** CAUTION)
