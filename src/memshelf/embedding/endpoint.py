"""An embedder behind an OpenAI-compatible HTTP endpoint. Needs the extra `http`."""

from __future__ import annotations

import json
from collections.abc import Sequence

try:
    import httpx2
except ImportError as error:
    raise ImportError('An embedding endpoint needs an extra: pip install "memshelf[embed,http]"') from error

from memshelf.arguments import checked_argument, checked_number
from memshelf.embedding.batches import TOO_MUCH, Batches, TooMuchError
from memshelf.embedding.protocol import Vectors
from memshelf.errors import MemoryStoreError
from memshelf.net.answer import AnswerError, read_answer
from memshelf.net.servers import server_address, server_key

__all__ = ["EndpointEmbedder"]

_LONGEST_ANSWER = 64 * 1024 * 1024


class EndpointEmbedder:
    """`POST {base_url}/embeddings`, as OpenAI, Ollama, vLLM and many others answer it.

    `dimension` is how long its vectors are; an answer of another length, or of fewer vectors than texts, is
    `unavailable`, as is an endpoint that cannot be reached, answers an error, more than 64 MiB or compressed, or takes
    longer than `timeout` seconds for a request. `version` tells apart what the endpoint serves under one model name.
    Nothing is retried, except that an endpoint which refuses a request with several texts is asked for fewer at once.

    `ValueError` for what is no address or no key. With `http`, requests go through the caller's client, and stay open
    until the caller closes it.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        *,
        dimension: int,
        version: str = "",
        api_key: str | None = None,
        http: httpx2.AsyncClient | None = None,
        timeout: float = 10.0,
    ) -> None:
        self.model = checked_argument("model", model, str)
        self.version = checked_argument("version", version, str)
        self.dimension = checked_number("dimension", dimension)
        self._url = f"{server_address(base_url)}/embeddings"
        self._headers = {"Accept-Encoding": "identity"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {server_key(api_key)}"
        self._http = checked_argument("http", http, httpx2.AsyncClient, None)
        self._timeout = checked_argument("timeout", timeout, float, int)
        self._batches = Batches()

    async def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        del query  # the API has no word for it
        if self._http is not None:
            if self._http.is_closed:
                raise _unavailable("its client is closed")
            return await self._embed(self._http, texts)
        async with httpx2.AsyncClient() as http:
            return await self._embed(http, texts)

    async def _embed(self, http: httpx2.AsyncClient, texts: Sequence[str]) -> Vectors:
        try:
            return await self._batches.embed(texts, lambda batch: self._request(http, batch))
        except TooMuchError as error:
            raise _unavailable(str(error)) from None

    async def _request(self, http: httpx2.AsyncClient, texts: Sequence[str]) -> list[list[float]]:
        # Some servers refuse an empty text.
        body = {"model": self.model, "input": [text or " " for text in texts], "encoding_format": "float"}
        request = http.build_request("POST", self._url, json=body, headers=self._headers, timeout=self._timeout)
        try:
            status, data = await read_answer(http, request, seconds=self._timeout, most_bytes=_LONGEST_ANSWER)
        except httpx2.HTTPError as error:
            raise _unavailable(type(error).__name__) from error
        except AnswerError as error:
            raise _unavailable(str(error)) from error
        said = f"HTTP {status}, {len(data)} bytes"
        if status in TOO_MUCH:
            raise TooMuchError(said)
        if status != 200:
            raise _unavailable(said)
        try:
            items = json.loads(data)["data"]
            if all(item.get("index") is not None for item in items):  # else they are in the order of the texts
                items = sorted(items, key=lambda item: int(item["index"]))
            vectors = [[float(number) for number in item["embedding"]] for item in items]
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError) as error:
            raise _unavailable("its answer is not a list of embeddings") from error
        if len(vectors) != len(texts) or any(len(vector) != self.dimension for vector in vectors):
            raise _unavailable(f"it did not answer {len(texts)} vectors of {self.dimension} numbers")
        return vectors


def _unavailable(reason: str) -> MemoryStoreError:
    return MemoryStoreError("unavailable", f"The embedding endpoint could not do it ({reason}).")
