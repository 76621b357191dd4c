"""HTTP/1.1 for clients that are slow or send something else: uvicorn's protocol, with time limits and our errors."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_core import to_json
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from memshelf.service.config import ServiceConfig
from memshelf.service.errors import ApiError, envelope, invalid_request
from memshelf.storage.ids import Mint

__all__ = ["protocol_for"]


def protocol_for(config: ServiceConfig, mint: Mint) -> type[HttpToolsProtocol]:
    """The protocol of a service with these time limits, as uvicorn wants it: a class that it makes instances of."""

    class Protocol(_TimedProtocol):
        head_seconds = config.header_seconds
        send_seconds = config.send_seconds
        ids = mint

    return Protocol


class _TimedProtocol(HttpToolsProtocol):
    head_seconds: float
    send_seconds: float
    ids: Mint

    def __init__(self, *args: Any, **options: Any) -> None:  # what uvicorn passes
        super().__init__(*args, **options)
        self._head_timer: asyncio.TimerHandle | None = None
        self._rest_timer: asyncio.TimerHandle | None = None
        self._complete = True

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._complete = False
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def on_headers_complete(self) -> None:
        self._stop_timers()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._complete = True
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        # An answer may come before the body that it refuses has: then the rest of it is read, but not for ever.
        if self._rest_timer is None and (not self._complete or self.transport.get_write_buffer_size()):
            self._rest_timer = self.loop.call_later(self.send_seconds, self._rest_is_late)

    def _stop_timers(self) -> None:
        for timer in (self._head_timer, self._rest_timer):
            if timer is not None:
                timer.cancel()
        self._head_timer = self._rest_timer = None

    def _head_is_late(self) -> None:
        self._head_timer = None
        message = f"The head of the request did not arrive within {self.head_seconds:g} seconds."
        self._refuse("408 Request Timeout", ApiError(408, "timeout_error", message))

    def _rest_is_late(self) -> None:
        self._rest_timer = None
        if not self._complete or self.transport.get_write_buffer_size():
            self.transport.abort()

    def send_400_response(self, msg: str) -> None:
        self._refuse("400 Bad Request", invalid_request(msg))

    def _refuse(self, status: str, error: ApiError) -> None:
        if self.transport.is_closing():
            return
        request_id = self.ids.id("req", self.ids.now())
        body = to_json(envelope(error, request_id))
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n"
            f"request-id: {request_id}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()
