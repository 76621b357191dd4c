"""Requests to a mem0 server, and what their answers mean. Nothing is sent twice."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from memshelf.errors import MemoryStoreError
from memshelf.net.answer import AnswerError, read_answer
from memshelf.net.egress import EgressRefusedError, httpx2
from memshelf.records.backends.mem0.dialect import Request

__all__ = ["Answer", "Connection", "UnreadableError", "unconfirmed"]

_MOST_ANSWER_BYTES = 8 * 1024 * 1024


class UnreadableError(Exception):
    """What came back, if anything did, does not say what the request did."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A 2xx or 4xx answer. `value` is its JSON, `None` for an empty body or a 4xx."""

    status: int
    value: Any  # JSON has many types


class Connection:
    """A mem0 server, reached through a client that somebody else opens and closes."""

    def __init__(
        self, client: httpx2.AsyncClient, base_url: str, headers: Mapping[str, str], *, timeout: float
    ) -> None:
        self._client = client
        self._base = base_url
        self._headers = {**headers, "accept": "application/json", "accept-encoding": "identity"}
        self._timeout = timeout

    async def read(self, request: Request, *, absent: tuple[int, ...] = ()) -> Any:
        """The JSON of an answer; `None` for the statuses of `absent`. `unavailable`."""
        try:
            answer = await self._send(request)
        except UnreadableError as unreadable:
            raise MemoryStoreError("unavailable", str(unreadable)) from None
        if answer.status in absent:
            return None
        if answer.status >= 400:
            raise _refused(answer.status)
        return answer.value

    async def write(self, request: Request) -> Answer:
        """A 2xx or 404 answer. `unavailable` when the server refused; `write_unconfirmed` when it is not known whether
        it did."""
        try:
            answer = await self._send(request)
        except UnreadableError as unreadable:
            raise unconfirmed(str(unreadable)) from None
        if answer.status >= 400 and answer.status != 404:
            raise _refused(answer.status)
        return answer

    async def _send(self, request: Request) -> Answer:
        headers, content = dict(self._headers), None
        if request.body is not None:
            headers["content-type"] = "application/json"
            content = json.dumps(request.body, ensure_ascii=False, separators=(",", ":")).encode()
        sent = self._client.build_request(
            request.method, f"{self._base}{request.path}", params=request.query, headers=headers, content=content
        )
        try:
            status, data = await read_answer(self._client, sent, seconds=self._timeout, most_bytes=_MOST_ANSWER_BYTES)
        except EgressRefusedError as refused:
            raise MemoryStoreError(
                "unavailable",
                f"{refused} Nothing was sent. To reach a server of your own, open the store with a client: http=...",
            ) from None
        except AnswerError as error:
            raise UnreadableError(str(error)) from None
        except httpx2.HTTPError as error:
            # A failure to connect is no exception: what a caller's client did before it gave up is not known here.
            raise UnreadableError(f"The server could not be asked ({type(error).__name__}).") from None
        return _judged(status, data)


def _judged(status: int, data: bytes) -> Answer:
    if 400 <= status < 500:
        return Answer(status, None)
    if 300 <= status < 400:
        raise UnreadableError(f"The server answered with a redirect ({status}), which is not followed.")
    if not 200 <= status < 300:
        raise UnreadableError(f"The server failed with status {status}.")
    try:
        return Answer(status, json.loads(data) if data else None)
    except (ValueError, RecursionError):
        raise UnreadableError("The server's answer is not JSON.") from None


def _refused(status: int) -> MemoryStoreError:
    reason = " It does not let this API key do that: check the key." if status in (401, 403) else ""
    return MemoryStoreError("unavailable", f"The server refused with status {status}; nothing changed.{reason}")


def unconfirmed(reason: str) -> MemoryStoreError:
    return MemoryStoreError(
        "write_unconfirmed", f"{reason} The change may or may not have been made; search before making it again."
    )
