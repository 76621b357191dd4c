"""Asking a provider for as many vectors at once as it gives."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

__all__ = ["TOO_MUCH", "Batches", "TooMuchError"]

Vector = TypeVar("Vector")

_MOST = 64

TOO_MUCH = frozenset({400, 413, 422})
"""The statuses with which providers refuse more texts than they take at once; some take ten."""


class TooMuchError(Exception):
    """A request was refused, perhaps since it had too many texts."""


class Batches:
    """How many texts a provider takes at once, as far as it is known. Begins with 64."""

    def __init__(self) -> None:
        self._most = _MOST

    async def embed(
        self, texts: Sequence[str], request: Callable[[Sequence[str]], Awaitable[Sequence[Vector]]]
    ) -> list[Vector]:
        """The vectors of all texts, by `request`s of as many as the provider takes.

        After a `TooMuchError` it is asked for half as many, then and from now on. One for a single text, which has
        nothing to do with their number, is raised.
        """
        vectors: list[Vector] = []
        begun_with, at = self._most, 0
        while batch := texts[at : at + self._most]:
            try:
                vectors += await request(batch)
            except TooMuchError:
                if len(batch) == 1:
                    self._most = begun_with
                    raise
                self._most = len(batch) // 2
            else:
                at += len(batch)
        return vectors
