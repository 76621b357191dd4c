"""Reading an answer without trusting how long it is, or how long it takes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from memshelf.errors import MemoryStoreError

if TYPE_CHECKING:
    import httpx2

__all__ = ["AnswerError", "read_answer"]


class AnswerError(Exception):
    """There is no answer that can be read. What the request did is not known."""


async def read_answer(
    client: httpx2.AsyncClient, request: httpx2.Request, *, seconds: float, most_bytes: int
) -> tuple[int, bytes]:
    """Send a request; the status and the body of its answer. No redirect is followed.

    `AnswerError` when all of it takes longer than `seconds`, when the body has more than `most_bytes` bytes, of which
    no more are read, or when it is compressed: what a few bytes unpack to has no bound. Ask for
    `accept-encoding: identity`. `unavailable` for a client that is closed.
    """
    if client.is_closed:
        said = "The HTTP client is closed; nothing changed. Open the store again, or give it a client that is open."
        raise MemoryStoreError("unavailable", said)
    try:
        async with asyncio.timeout(seconds):
            response = await client.send(request, stream=True, follow_redirects=False)
            try:
                return response.status_code, await _body(response, most_bytes)
            finally:
                await response.aclose()
    except TimeoutError:
        raise AnswerError(f"The server did not answer within {seconds:g} seconds.") from None


async def _body(response: httpx2.Response, most_bytes: int) -> bytes:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        raise AnswerError("The server's answer is compressed, though that was not asked for.")
    chunks, size = [], 0
    async for chunk in response.aiter_bytes():  # not raw: some transports answer with what is read already
        chunks.append(chunk)
        size += len(chunk)
        if size > most_bytes:
            raise AnswerError(f"The server's answer has more than {most_bytes} bytes.")
    return b"".join(chunks)
