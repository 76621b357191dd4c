"""Capabilities of which an agent has one."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.capabilities import AbstractCapability
from typing_extensions import override

__all__ = ["SingleCapability"]


class SingleCapability(AbstractCapability[object]):
    """A capability of which an agent has at most one, made of objects that a specification in JSON cannot name."""

    @classmethod
    @override
    def get_serialization_name(cls) -> str | None:
        return None

    @classmethod
    @override
    def combine(cls, capabilities: Sequence[AbstractCapability[object]]) -> AbstractCapability[object]:
        raise ValueError(f"An agent has {len(capabilities)} {cls.__name__} objects; it can have one.")
