"""What recall keeps of a record's text beside the text itself."""

from __future__ import annotations

import re
from dataclasses import dataclass

from memshelf.embedding.text import passages
from memshelf.records.retrieval.terms import pack

__all__ = ["ANALYSIS", "Analysis", "analyse"]

ANALYSIS = 12
"""The version of everything below and of `terms`: a record analysed by another one is analysed again."""

_SPEAKER = re.compile(r"^([^\s\0:：\[\]]{1,20}(?: [^\s\0:：\[\]]{1,20}){0,2})\s?[:：]\s*(?=\S)")
_CAPTION = re.compile(r"\s*\[[^\]]*\]\s*$")


@dataclass(frozen=True, slots=True)
class Analysis:
    """`terms` are packed; `speaker` is the label before the text of a conversation's turn, in lower case; `asks` says
    that a turn ends with a question; `passages` are what to embed."""

    terms: bytes
    speaker: str | None
    asks: bool
    passages: list[str]


def analyse(text: str, *, turn: bool) -> Analysis:
    """`turn`: the text is a turn of a conversation, where a leading "Name:" says who speaks.

    The name moves a vector a long way, and says nothing of what was said; so it is not embedded.
    """
    label = _SPEAKER.match(text) if turn else None
    body = text[label.end() :] if label is not None else text
    return Analysis(
        pack(text),
        label[1].casefold() if label is not None else None,
        turn and _CAPTION.sub("", body).rstrip().endswith(("?", "？")),
        passages(body),
    )
