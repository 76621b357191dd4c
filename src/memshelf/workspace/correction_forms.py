"""What is known of a language to tell a user's corrections by."""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["CorrectionForms"]


class CorrectionForms:
    """Patterns of one language, to be searched in one sentence."""

    def __init__(
        self,
        *,
        leads: str,
        asks: str,
        instructs: Iterable[str],
        corrects: Iterable[str],
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
        self.instructs = _compiled("|".join(instructs))
        """How an assistant is to work, whatever the task."""
        self.corrects = _compiled("|".join(corrects))
        """What was wrong, and how it should be."""
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


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
