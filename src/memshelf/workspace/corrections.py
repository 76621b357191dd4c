"""Whether a user corrects an assistant, in English or Chinese, and what they say. Pure functions.

Few false alarms matter more than all corrections: what is taken for one is shown to a model in later sessions.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from memshelf.workspace.correction_forms import CorrectionForms

__all__ = ["correction_in", "is_lasting", "rule_in"]

_LOOKED_AT, _LESSON_CHARS, _LESSON_SENTENCES = 2_000, 300, 3
_LONG = 600
"""A text of more characters was probably pasted: a correction stands in its first three sentences, or is none."""

_SHORTEST = 8
"""A lesson has this many letters, of which a Chinese character counts as three: "that's wrong" teaches nothing."""

_NOT_THE_USERS = re.compile(r"```.*?(?:```|\Z)|^>.*$", re.DOTALL | re.MULTILINE)
_QUOTED = re.compile(
    r"`[^`\n]{1,200}`|\"[^\"\n]{1,200}\"|“[^”\n]{1,200}”|「[^」\n]{1,200}」|(?<!\w)'[^'\n]{1,200}'(?!\w)"
)
_SENTENCE = re.compile(r"[^.!?。！？\n]+(?:\.(?=\w)[^.!?。！？\n]*)*[.!?。！？]*")
_QUESTION = re.compile(r"[?？][\"'”」)]*\s*$")
_BETWEEN_CHINESE = re.compile(r"(?<=[\u4e00-\u9fff]) | (?=[\u4e00-\u9fff])")


def correction_in(text: str) -> str | None:
    """What the user says in correcting the assistant, with what belongs to it; `None` if they do not.

    Questions, suppositions, quotations, and what somebody else is said to have said are no corrections, nor is one that
    says nothing of how it should be.
    """
    looked_at = _NOT_THE_USERS.sub("\n", text[:_LOOKED_AT])
    sentences = [each for each in _SENTENCE.findall(looked_at) if each.strip()]
    for at, sentence in enumerate(sentences[:_LESSON_SENTENCES] if len(text) > _LONG else sentences):
        if _corrects(sentence):
            lesson = _lesson(sentences[at : at + _LESSON_SENTENCES])
            if lesson is not None:
                return lesson
    return None


def is_lasting(lesson: str) -> bool:
    """Whether somebody says that it holds from then on: "from now on", 以后."""
    return any(forms.lasting.search(lesson) for forms in _forms())


def rule_in(lesson: str) -> str:
    """The rule, however it is put: without "please" and "from now on", and with one word for "never" and "don't"."""
    for forms in _forms():
        lesson = forms.forbids.sub(f" {forms.forbidden} ", forms.puts.sub(" ", lesson))
    return _BETWEEN_CHINESE.sub("", " ".join(lesson.split()))


@cache
def _forms() -> tuple[CorrectionForms, ...]:
    # To compile the patterns takes longer than all else that a workspace loads, and few workspaces learn.
    from memshelf.workspace.chinese_corrections import CHINESE
    from memshelf.workspace.english_corrections import ENGLISH

    return ENGLISH, CHINESE


def _corrects(sentence: str) -> bool:
    said = _QUOTED.sub("□", sentence[:_LESSON_CHARS]).replace("’", "'").strip()
    bare = said.rstrip(".!。！?？ ")
    for forms in _forms():
        bare = forms.leads.sub("", bare)
    told = bare
    for forms in _forms():
        told = forms.asks.sub("", told)
    if told == bare and (_QUESTION.search(sentence) or any(forms.none.search(bare) for forms in _forms())):
        return False
    if any(forms.corrects.search(told) for forms in _forms()):
        return True
    return any(forms.instructs.search(told) for forms in _forms()) and not any(
        forms.once.search(told) for forms in _forms()
    )


def _lesson(sentences: list[str]) -> str | None:
    """The correction, and what follows while that says little; `None` if nothing does."""
    kept = ""
    for sentence in sentences:
        if kept and _teaches(kept):
            break
        kept = f"{kept} {sentence.strip()}" if kept.isascii() else kept + sentence.strip()
    kept = " ".join(kept.split())[:_LESSON_CHARS]
    return kept if _teaches(kept) else None


def _teaches(text: str) -> bool:
    for forms in _forms():
        text = forms.reaction.sub("", text)
    return _weight(text) >= _SHORTEST


def _weight(text: str) -> int:
    return sum(1 if each.isascii() else 3 for each in text if each.isalnum())
