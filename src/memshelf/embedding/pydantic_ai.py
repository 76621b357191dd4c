"""Any embedder of Pydantic AI as one of memshelf's. Needs the extra `agent`."""

from __future__ import annotations

from collections.abc import Sequence

try:
    import pydantic_ai.embeddings as framework
    from pydantic_ai.exceptions import AgentRunError, ModelHTTPError, UserError
except ImportError as error:
    raise ImportError('A Pydantic AI embedder needs an extra: pip install "memshelf[agent,embed]"') from error

from memshelf.arguments import checked_argument, checked_number
from memshelf.embedding.batches import TOO_MUCH, Batches, TooMuchError
from memshelf.embedding.protocol import Vectors
from memshelf.errors import MemoryStoreError

__all__ = ["PydanticAIEmbedder"]


class PydanticAIEmbedder:
    """A `pydantic_ai.Embedder`, whose vectors are `dimension` long; one of another length is `unavailable`.

    `version` tells apart what a provider serves under one model name.
    """

    def __init__(self, embedder: framework.Embedder, *, dimension: int, version: str = "") -> None:
        self._embedder = checked_argument("embedder", embedder, framework.Embedder)
        self.dimension = checked_number("dimension", dimension)
        self.version = checked_argument("version", version, str)
        self._batches = Batches()

    @property
    def model(self) -> str:
        model = self._embedder.model
        return model if isinstance(model, str) else f"{model.system}:{model.model_name}"

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        try:
            vectors = await self._batches.embed(texts, lambda batch: self._request(batch, query=query))
        except (AgentRunError, UserError, TooMuchError) as error:
            reason = type(error.__cause__ or error).__name__
            raise MemoryStoreError("unavailable", f"The embedder could not do it ({reason}).") from error
        if len(vectors) != len(texts) or any(len(vector) != self.dimension for vector in vectors):
            raise MemoryStoreError(
                "unavailable", f"The embedder did not answer {len(texts)} vectors of {self.dimension} numbers."
            )
        return vectors

    async def _request(self, texts: Sequence[str], *, query: bool) -> Sequence[Sequence[float]]:
        try:
            result = await self._embedder.embed(list(texts), input_type="query" if query else "document")
        except ModelHTTPError as error:
            if error.status_code in TOO_MUCH:
                raise TooMuchError from error
            raise
        return result.embeddings
