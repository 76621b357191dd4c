"""HTTP/1.1 for clients that are slow, send too much or something else: uvicorn's protocol, with limits of time and size
and our errors."""

from __future__ import annotations

import asyncio
from typing import Any

import httptools
from pydantic_core import to_json
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from memshelf.service.body import HERE
from memshelf.service.config import ServiceConfig
from memshelf.service.errors import ApiError, envelope, invalid_request
from memshelf.storage.ids import Mint

__all__ = ["protocol_for"]


def protocol_for(config: ServiceConfig, mint: Mint) -> type[HttpToolsProtocol]:
    """The protocol of a service with these limits, as uvicorn wants it: a class that it makes instances of."""

    class Protocol(_LimitedProtocol):
        head_bytes = config.head_bytes
        head_seconds = config.header_seconds
        send_seconds = config.send_seconds
        ids = mint

    return Protocol


_FRAMING = 8
"""So many bytes more than a body has may come with it: sizes of chunks."""


class _LimitedProtocol(HttpToolsProtocol):
    head_bytes: int
    head_seconds: float
    send_seconds: float
    ids: Mint

    def __init__(self, *args: Any, **options: Any) -> None:  # what uvicorn passes
        super().__init__(*args, **options)
        self._head_timer: asyncio.TimerHandle | None = None
        self._rest_timer: asyncio.TimerHandle | None = None
        self._complete = True
        self._in_head = False
        self._read = 0
        """How many bytes came since the last message was complete; all but what is body belong to heads."""
        self._body = 0
        self._answering: RequestResponseCycle | None = None
        """The request that is being answered; `cycle` is the last that came, which may have to wait for it."""
        self._again = b""
        """The head of a request that asks for another protocol, without asking for it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        super().connection_made(transport)
        self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timers()
        self.pipeline.clear()
        if self._answering is not None:  # or what is left of its answer would be an error, and logged as one
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        while True:
            self._read += len(data)
            try:
                self.parser.feed_data(data)
                break
            except httptools.HttpParserUpgrade as upgrade:
                # The parser takes what follows the head, also a body, for another protocol. We speak no other, and the
                # request stays a request: clients that would like HTTP/2 ask for it with the first one.
                data, self._again, self._read = self._again + data[upgrade.args[0] :], b"", 0
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
            except httptools.HttpParserError:
                self.send_400_response("")
                return
        if self._in_head and self._head_timer is None:  # most heads come whole, and need no timer
            self._head_timer = self.loop.call_later(self.head_seconds, self._head_is_late)
        # The parser keeps what it has of a line, and uvicorn every header, also those after a body in chunks.
        if self._read - self._body > self.head_bytes + _FRAMING * self._body:
            message = f"The head of a request has at most {self.head_bytes} bytes."
            self._refuse("431 Request Header Fields Too Large", ApiError(431, "request_too_large", message))

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        super().on_body(body)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._complete = False
        self._in_head = True

    def on_headers_complete(self) -> None:
        self._in_head = False
        method = self.parser.get_method()
        if self.parser.should_upgrade() and method != b"CONNECT":
            lines = [b"%s %s HTTP/%s" % (method, self.url, self.parser.get_http_version().encode())]
            lines += [name + b": " + value for name, value in self.headers if name != b"upgrade"]
            self._again = b"\r\n".join((*lines, b"", b""))
            return
        self._stop_timers()
        super().on_headers_complete()
        if not self.pipeline:
            self._answering = self.cycle
        # What follows a body in chunks is no header: it would pass by whoever looked at the head, such as a proxy. The
        # request keeps the list that it has.
        self.headers = []

    def on_message_complete(self) -> None:
        if self._again:
            return
        self._complete = True
        self._read = self._body = 0
        self.scope[HERE] = True  # type: ignore[literal-required]  # a server may add keys
        super().on_message_complete()

    def on_response_complete(self) -> None:
        if self.pipeline:
            self._answering = self.pipeline[-1][0]  # the next
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
        del msg
        message = "This is no valid HTTP/1.1 request. In a URL, anything but ASCII is percent-encoded."
        self._refuse("400 Bad Request", invalid_request(message))

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
