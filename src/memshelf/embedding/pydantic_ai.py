"""Any embedder of Pydantic AI as one of memshelf's. Needs the extra `agent`."""

from __future__ import annotations

from collections.abc import Sequence

try:
    import pydantic_ai.embeddings as framework
    from pydantic_ai.exceptions import AgentRunError, UserError
except ImportError as error:
    raise ImportError('A Pydantic AI embedder needs an extra: pip install "memshelf[agent,embed]"') from error

from memshelf.arguments import checked_argument
from memshelf.embedding.protocol import Vectors
from memshelf.errors import MemoryStoreError

__all__ = ["PydanticAIEmbedder"]


class PydanticAIEmbedder:
    """A `pydantic_ai.Embedder`, whose vectors are `dimension` long; one of another length is `unavailable`.

    `version` tells apart what a provider serves under one model name.
    """

    def __init__(self, embedder: framework.Embedder, *, dimension: int, version: str = "") -> None:
        self._embedder = checked_argument("embedder", embedder, framework.Embedder)
        self.dimension, self.version = checked_argument("dimension", dimension, int), version

    @property
    def model(self) -> str:
        model = self._embedder.model
        return model if isinstance(model, str) else f"{model.system}:{model.model_name}"

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        if not texts:
            return []
        try:
            result = await self._embedder.embed(list(texts), input_type="query" if query else "document")
        except (AgentRunError, UserError) as error:
            raise MemoryStoreError("unavailable", f"The embedder could not do it ({type(error).__name__}).") from error
        vectors = result.embeddings
        if len(vectors) != len(texts) or any(len(vector) != self.dimension for vector in vectors):
            raise MemoryStoreError(
                "unavailable", f"The embedder did not answer {len(texts)} vectors of {self.dimension} numbers."
            )
        return vectors
