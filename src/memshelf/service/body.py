"""Reading the body of a request, within its limits of size and time."""

from __future__ import annotations

import asyncio

from starlette.types import Receive

from memshelf.service.call import Call
from memshelf.service.errors import ApiError, ended, invalid_request

__all__ = ["HERE", "ClientGoneError", "read_body"]

HERE = "memshelf.here"
"""Is in the scope of a request whose body has come."""

_DRAINED_BYTES = 67_108_864
"""So much of a body that is too large is read and dropped, so that the client can read the answer."""

_CLOSE = {"connection": "close"}


class ClientGoneError(Exception):
    """The client closed the connection before the request was complete: nobody waits for an answer."""


async def read_body(call: Call) -> bytes:
    """The whole body of JSON, `b""` when there is none.

    413 for one over the limit, 408 for one that does not come in time, 415 for another type than JSON.
    """
    config = call.state.config
    try:
        if HERE in call.scope:  # a timer costs more than to read what is there
            body = await _whole(call.receive, config.body_bytes, _declared(call))
        else:
            async with asyncio.timeout(config.body_seconds):
                body = await _whole(call.receive, config.body_bytes, _declared(call))
    except TimeoutError:
        message = f"The body of the request did not arrive within {config.body_seconds:g} seconds."
        raise ApiError(408, "timeout_error", message, headers=_CLOSE) from None
    except asyncio.CancelledError:  # as in the door, but nothing is begun yet
        raise ended(changing=False) from None
    if body:
        kind = call.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json" and not (kind.startswith(b"application/") and kind.endswith(b"+json")):
            raise ApiError(415, "invalid_request_error", "content-type: the body is application/json.")
        encoding = call.headers.get(b"content-encoding", b"identity").lower()
        if encoding != b"identity":
            raise ApiError(415, "invalid_request_error", "content-encoding: the body is not compressed.")
    return body


def _declared(call: Call) -> int:
    length = call.headers.get(b"content-length", b"0")
    if not length.isdigit():
        raise invalid_request("content-length: it is a whole number.")
    return int(length)


async def _whole(receive: Receive, most: int, declared: int) -> bytes:
    if declared > _DRAINED_BYTES:
        raise _too_large(most, close=True)
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        chunk = message.get("body", b"")
        size += len(chunk)
        if size > _DRAINED_BYTES:
            raise _too_large(most, close=True)
        if size <= most:
            chunks.append(chunk)
        else:
            chunks.clear()
        if not message.get("more_body", False):
            break
    if size > most:
        raise _too_large(most, close=False)
    return b"".join(chunks)


def _too_large(most: int, *, close: bool) -> ApiError:
    message = f"The body of a request has at most {most} bytes."
    return ApiError(413, "request_too_large", message, headers=_CLOSE if close else {})
