"""What an agent is, as data."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Any

import pydantic_ai
from pydantic import model_validator

__all__ = ["AgentSpec"]


class AgentSpec(pydantic_ai.AgentSpec):
    """Pydantic AI's own specification, which passes over a field that it does not know, such as `modle`. Here that is a
    `ValueError` that names the field and the closest one."""

    @model_validator(mode="before")
    @classmethod
    def _of_known_fields(cls, given: Any) -> Any:  # Any: whatever is to be a specification
        known = {field.alias or name for name, field in cls.model_fields.items()}
        for name in given if isinstance(given, dict) else ():
            if name not in known:
                meant = get_close_matches(str(name), known, 1)
                raise ValueError(
                    f"AgentSpec has no field {name!r}." + (f" Did you mean {meant[0]!r}?" if meant else "")
                )
        return given
