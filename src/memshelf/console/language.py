"""What the console says, in each language."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Literal, TypeAlias

from markupsafe import Markup, escape

__all__ = ["LANGUAGES", "Language", "catalogue", "chosen", "message"]

Language: TypeAlias = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


@cache
def catalogue(language: Language) -> dict[str, str]:
    """Every message by its name, such as `stores.title`."""
    text = files(__package__).joinpath("messages", f"{language}.toml").read_text(encoding="utf-8")
    return {
        f"{section}.{name}": message
        for section, messages in tomllib.loads(text).items()
        for name, message in messages.items()
    }


def message(language: Language, name: str, **values: object) -> Markup:
    """A message with its values, as HTML: whatever a value is, it is shown as text."""
    return escape(catalogue(language)[name]).format(**values)


def chosen(asked: str | None, remembered: str | None, accepted: str) -> Language:
    """The language that was asked for, or was chosen before, or that the browser likes best; else English."""
    for name in (asked, remembered):
        if name in LANGUAGES:
            return name
    ranked = sorted(enumerate(accepted.split(",")), key=lambda each: (-_weight(each[1]), each[0]))
    for _, each in ranked:
        name = each.partition(";")[0].strip().partition("-")[0].lower()
        if name in LANGUAGES and _weight(each) > 0:
            return name
    return "en"


def _weight(accepted: str) -> float:
    _, _, weight = accepted.partition(";q=")
    try:
        return float(weight) if weight else 1.0
    except ValueError:
        return 0.0
