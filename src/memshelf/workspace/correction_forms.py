"""What is known of a language to tell a user's corrections by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeAlias

__all__ = ["CorrectionForms", "Forms", "any_of", "any_word"]

Forms: TypeAlias = Sequence[tuple[str, str]]
"""What users say, each with a pattern that finds it and what is like it."""


def any_of(*patterns: str) -> str:
    return "(?:" + "|".join(patterns) + ")"


def any_word(patterns: str) -> str:
    """Any of the patterns between spaces."""
    return any_of(*patterns.split())


class CorrectionForms:
    """Patterns of one language, to be searched in one sentence."""

    def __init__(
        self,
        *,
        clause: str,
        leads: str,
        asks: str,
        instructs: Forms,
        corrects: Forms,
        none: str,
        once: str,
        lasting: str,
        reaction: str,
        puts: str,
        forbids: str,
        forbidden: str,
    ) -> None:
        self.leads = _compiled(f"^(?:{leads})+")
        """What a sentence may begin with, and says nothing."""
        self.asks = _compiled(f"^(?:{asks})")
        """What makes a question of what is none."""
        self.instructs = _compiled(clause + any_of(*(pattern for _, pattern in instructs)))
        """How an assistant is to work, whatever the task: at the beginning of a clause."""
        self.corrects = _compiled("^" + any_of(*(pattern for _, pattern in corrects)))
        """What was wrong, and how it should be: at the beginning of the sentence."""
        self.none = _compiled(none)
        """Questions, suppositions, what somebody else said, texts to be written."""
        self.once = _compiled(once)
        """What makes an instruction one for the present task."""
        self.lasting = _compiled(lasting)
        """What makes an instruction one for all tasks to come."""
        self.reaction = _compiled(reaction)
        """What rejects an answer and says nothing of how it should be."""
        self.puts = _compiled(puts)
        """What a rule may be put with and be the same."""
        self.forbids = _compiled(forbids)
        self.forbidden = forbidden
        """What forbids, and the word of it that stands for all."""
        self.examples = (
            *((said, clause + any_of(pattern)) for said, pattern in instructs),
            *((said, "^" + any_of(pattern)) for said, pattern in corrects),
        )
        """What users say, each with its pattern."""


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
