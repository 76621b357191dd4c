"""The API as the console calls it: in the same process, through the ASGI application, with the user's key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from starlette.types import ASGIApp, Message

__all__ = ["Api", "Json", "KeyRefusedError", "RefusedError"]

Json = dict[str, Any]  # JSON has many types

_HEADERS = [  # with these, a service that is strict about protocol headers answers as well
    (b"anthropic-version", b"2023-06-01"),
    (b"anthropic-beta", b"managed-agents-2026-04-01"),
    (b"content-type", b"application/json"),
]


class RefusedError(Exception):
    """What the API answers when it does not do what it is asked: its status, and what its envelope says."""

    def __init__(self, status: int, type: str, message: str, retry_after: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.type = type
        self.message = message
        self.retry_after = retry_after


class KeyRefusedError(RefusedError):
    """The API does not know the key, or not any more."""


class Api:
    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._key = key

    async def get(self, *path: str, **query: object) -> Json:
        """What is at the path that these segments are, below `/v1`. Parameters that are `None` are left out."""
        return await self._call("GET", path, query)

    async def post(self, *path: str, body: Mapping[str, object] | None = None) -> Json:
        return await self._call("POST", path, {}, body)

    async def delete(self, *path: str, **query: object) -> Json:
        return await self._call("DELETE", path, query)

    async def _call(
        self, method: str, segments: tuple[str, ...], query: Mapping[str, object], body: object = None
    ) -> Json:
        path = "/".join(("/v1", *(quote(each, safe="") for each in segments)))
        data = b"" if body is None else json.dumps(body).encode()
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": "/".join(("/v1", *segments)),
            "raw_path": path.encode(),
            "root_path": "",
            "query_string": urlencode({name: value for name, value in query.items() if value is not None}).encode(),
            "headers": [
                *_HEADERS,
                (b"authorization", b"Bearer " + self._key.encode()),
                (b"content-length", str(len(data)).encode()),
            ],
            "client": None,
            "server": None,
        }
        sent: list[Message] = [{"type": "http.request", "body": data, "more_body": False}]
        status, headers, chunks = 500, dict[bytes, bytes](), list[bytes]()

        async def receive() -> Message:
            if sent:
                return sent.pop()
            await asyncio.Event().wait()  # nobody goes away before the answer
            raise AssertionError

        async def send(message: Message) -> None:
            nonlocal status, headers
            if message["type"] == "http.response.start":
                status, headers = message["status"], dict(message["headers"])
            else:
                chunks.append(message.get("body", b""))

        await self._app(scope, receive, send)
        answer: Json = json.loads(b"".join(chunks))
        if status < 400:
            return answer
        refusal = KeyRefusedError if status == 401 else RefusedError
        retry_after = headers.get(b"retry-after")
        error = answer["error"]
        raise refusal(status, error["type"], error["message"], retry_after.decode() if retry_after else None)
