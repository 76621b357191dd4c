"""The contract of an embedder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Embedder", "Vectors"]

Vectors: TypeAlias = "Sequence[Sequence[float]] | NDArray[np.floating]"
"""One vector a text."""


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors whose directions are close when their meanings are.

    `model`, `version` and `dimension` name what made a vector. They are kept beside every vector that is stored, and
    vectors are only ever compared when all three agree: change `version` whenever the same text may come out as
    another vector.
    """

    @property
    def model(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        """One vector for each text, in order; not necessarily of length 1.

        `query` says that the texts are questions to stored ones, for models that tell the two apart. The event loop
        goes on meanwhile. Long texts may be cut. `unavailable` when the model cannot be had now.
        """
        ...
