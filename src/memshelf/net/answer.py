"""Reading an answer without trusting how long it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

__all__ = ["AnswerError", "read_answer"]


class AnswerError(Exception):
    """An answer came that is not to be read. What the request did is not known."""


async def read_answer(client: httpx2.AsyncClient, request: httpx2.Request, *, most_bytes: int) -> tuple[int, bytes]:
    """Send a request; the status and the body of its answer. No redirect is followed.

    `AnswerError` when the body has more than `most_bytes` bytes, of which no more are read, or is compressed: what a
    few bytes unpack to has no bound. Ask for `accept-encoding: identity`.
    """
    response = await client.send(request, stream=True, follow_redirects=False)
    try:
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise AnswerError("The server's answer is compressed, though that was not asked for.")
        chunks, size = [], 0
        async for chunk in response.aiter_raw():
            chunks.append(chunk)
            size += len(chunk)
            if size > most_bytes:
                raise AnswerError(f"The server's answer has more than {most_bytes} bytes.")
        return response.status_code, b"".join(chunks)
    finally:
        await response.aclose()
