"""Embedders behind an HTTP endpoint, and those of Pydantic AI."""

from __future__ import annotations

import gzip
import json

import httpx2
import pytest
from pydantic_ai.embeddings import Embedder as FrameworkEmbedder, TestEmbeddingModel
from pydantic_ai.exceptions import ModelHTTPError

from memshelf import MemoryStoreError
from memshelf.embedding.endpoint import EndpointEmbedder
from memshelf.embedding.protocol import Embedder
from memshelf.embedding.pydantic_ai import PydanticAIEmbedder


def _endpoint(answer, **options) -> tuple[EndpointEmbedder, list[httpx2.Request]]:
    requests: list[httpx2.Request] = []

    def handle(request: httpx2.Request) -> httpx2.Response:
        requests.append(request)
        return answer(json.loads(request.content)["input"])

    http = httpx2.AsyncClient(transport=httpx2.MockTransport(handle))
    return EndpointEmbedder("http://127.0.0.1:9/v1/", "some-model", dimension=2, http=http, **options), requests


def _items(texts) -> list[dict]:
    return [{"index": at, "embedding": [float(len(text)), 1.0]} for at, text in enumerate(texts)]


def _good(texts) -> httpx2.Response:
    return httpx2.Response(200, json={"data": _items(texts)[::-1]})


async def test_vectors_come_in_the_order_of_the_texts():
    embedder, requests = _endpoint(_good, api_key="key")
    assert isinstance(embedder, Embedder)
    texts = ["t" * (each % 50 + 1) for each in range(150)]
    assert await embedder.embed(texts) == [[float(len(text)), 1.0] for text in texts]
    assert [len(json.loads(request.content)["input"]) for request in requests] == [64, 64, 22]
    assert {str(request.url) for request in requests} == {"http://127.0.0.1:9/v1/embeddings"}
    assert {request.headers["authorization"] for request in requests} == {"Bearer key"}
    assert json.loads(requests[0].content)["model"] == "some-model"
    assert await embedder.embed([]) == []


@pytest.mark.parametrize("unnumbered", [{}, {"index": None}, {"index": 0}])
async def test_an_answer_without_numbers_is_in_the_order_of_the_texts(unnumbered):
    def answer(texts):
        items = [{"embedding": item["embedding"], **unnumbered} for item in _items(texts)]
        return httpx2.Response(200, json={"data": items})

    embedder, _ = _endpoint(answer)
    assert await embedder.embed(["a", "bb", "c"]) == [[1.0, 1.0], [2.0, 1.0], [1.0, 1.0]]


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_an_endpoint_that_takes_few_texts_at_once_is_asked_for_so_many(status):
    embedder, requests = _endpoint(lambda texts: _good(texts) if len(texts) <= 10 else httpx2.Response(status))
    texts = ["t" * (each % 50 + 1) for each in range(30)]
    for asked in ([30, 15, 7, 7, 7, 7, 2], [7, 7, 7, 7, 2]):
        requests.clear()
        assert await embedder.embed(texts) == [[float(len(text)), 1.0] for text in texts]
        assert [len(json.loads(request.content)["input"]) for request in requests] == asked


async def test_an_endpoint_that_refuses_every_text_is_unavailable_and_asked_for_as_many_the_next_time():
    refuses = True
    embedder, requests = _endpoint(lambda texts: httpx2.Response(400) if refuses else _good(texts))
    with pytest.raises(MemoryStoreError, match="HTTP 400"):
        await embedder.embed(["a"] * 64)
    assert [len(json.loads(request.content)["input"]) for request in requests] == [64, 32, 16, 8, 4, 2, 1]
    refuses = False
    assert len(await embedder.embed(["a"] * 64)) == 64
    assert len(requests) == 8


@pytest.mark.parametrize(
    ("address", "options", "name"),
    [
        ("127.0.0.1:9/v1", {}, "base_url"),
        ("http://ann:pw@127.0.0.1/v1", {}, "base_url"),
        ("http://127.0.0.1:9/v1", {"api_key": "pw\n"}, "api_key"),
    ],
)
def test_an_address_or_a_key_that_is_none_is_refused_when_the_embedder_is_made(address, options, name):
    with pytest.raises(ValueError, match=f"^{name} is") as refused:
        EndpointEmbedder(address, "some-model", dimension=2, **options)
    assert "pw" not in str(refused.value)


@pytest.mark.parametrize(
    "answer",
    [
        lambda texts: httpx2.Response(500, json={"data": _items(texts)}),
        lambda texts: httpx2.Response(302, headers={"location": "http://127.0.0.1:9/else"}),
        lambda texts: httpx2.Response(200, content=b"<html>"),
        lambda texts: httpx2.Response(200, json=[]),
        lambda texts: httpx2.Response(200, json={"data": _items(texts)[1:]}),
        lambda texts: httpx2.Response(200, json={"data": [{"index": 0, "embedding": [1.0]} for _ in texts]}),
        lambda texts: httpx2.Response(200, json={"data": [{"index": 0, "embedding": "x"} for _ in texts]}),
        lambda texts: httpx2.Response(200, content=b"[" * 200_000),
        lambda texts: httpx2.Response(200, content=b'{"data": [{"index": 1e999}, {"index": 0}]}'),
        lambda texts: httpx2.Response(200, content=b" " * (64 * 1024 * 1024 + 1)),
        lambda texts: httpx2.Response(200, headers={"content-encoding": "gzip"}, content=gzip.compress(b"{}")),
    ],
    ids=[
        "error",
        "redirect",
        "no JSON",
        "no data",
        "too few",
        "too short",
        "no numbers",
        "deep",
        "endless",
        "long",
        "compressed",
    ],
)
async def test_an_answer_that_is_no_list_of_vectors_is_unavailable(answer):
    embedder, _ = _endpoint(answer)
    with pytest.raises(MemoryStoreError) as caught:
        await embedder.embed(["a", "b"])
    assert caught.value.code == "unavailable"


async def test_an_endpoint_that_nobody_serves_is_unavailable():
    with pytest.raises(MemoryStoreError) as caught:
        await EndpointEmbedder("http://127.0.0.1:9", "some-model", dimension=2).embed(["a"])
    assert caught.value.code == "unavailable"


async def test_an_embedder_of_pydantic_ai_is_one_of_ours():
    embedder = PydanticAIEmbedder(FrameworkEmbedder(TestEmbeddingModel(dimensions=8)), dimension=8, version="1")
    assert isinstance(embedder, Embedder)
    assert (embedder.model, embedder.version, embedder.dimension) == ("test:test", "1", 8)
    assert [list(row) for row in await embedder.embed(["a", "b"], query=True)] == [[1.0] * 8] * 2
    assert await embedder.embed([]) == []
    assert PydanticAIEmbedder(FrameworkEmbedder("openai:some-model"), dimension=8).model == "openai:some-model"


async def test_an_embedder_of_pydantic_ai_that_fails_or_answers_other_vectors_is_unavailable():
    class Failing(TestEmbeddingModel):
        async def embed(self, inputs, *, input_type, settings=None):
            raise ModelHTTPError(503, "some-model")

    short = FrameworkEmbedder(TestEmbeddingModel(dimensions=4))
    for embedder in (
        PydanticAIEmbedder(FrameworkEmbedder(Failing()), dimension=8),
        PydanticAIEmbedder(short, dimension=8),
    ):
        with pytest.raises(MemoryStoreError) as caught:
            await embedder.embed(["a"])
        assert caught.value.code == "unavailable"


async def test_an_embedder_of_pydantic_ai_is_asked_for_as_many_texts_as_it_takes():
    class Small(TestEmbeddingModel):
        async def embed(self, inputs, *, input_type, settings=None):
            asked.append(len(inputs))
            if len(inputs) > most:
                raise ModelHTTPError(400, "some-model")
            return await super().embed(inputs, input_type=input_type, settings=settings)

    asked: list[int] = []
    most = 10
    embedder = PydanticAIEmbedder(FrameworkEmbedder(Small(dimensions=8)), dimension=8)
    assert len(await embedder.embed(["a"] * 100)) == 100
    assert asked[:3] == [64, 32, 16]
    assert set(asked[3:]) == {8, 4}
    most = 0
    with pytest.raises(MemoryStoreError, match="ModelHTTPError"):
        await embedder.embed(["a"])
