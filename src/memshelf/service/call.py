"""One request on its way through the service."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json
from starlette.types import Message, Receive, Scope, Send

from memshelf.origin import Origin
from memshelf.service.accounts import Caller
from memshelf.service.dialect import ANTHROPIC, Dialect
from memshelf.service.errors import ApiError, envelope

if TYPE_CHECKING:
    from memshelf.service.state import ServiceState

__all__ = ["Call", "call_of"]

_KEY = "memshelf.call"


@dataclass(slots=True)
class Call:
    """A request, who makes it, and what is known of its answer. `route` is the template that its path matched, `path`
    the parameters in it."""

    state: ServiceState
    scope: Scope
    receive: Receive
    request_id: str
    headers: Mapping[bytes, bytes]
    dialect: Dialect = ANTHROPIC
    signed_in: Caller | None = None
    path: Mapping[str, str] = field(default_factory=dict)
    route: str = "unmatched"
    status: int = 0
    reply_headers: dict[str, str] = field(default_factory=dict)

    @property
    def caller(self) -> Caller:
        assert self.signed_in is not None  # noqa: S101  # no request without a caller comes to an operation
        return self.signed_in

    @property
    def origin(self) -> Origin:
        """Whom a change is attributed to: the session, or else the user or the key."""
        if self.caller.session_id is not None:
            return Origin(session_id=self.caller.session_id)
        if self.caller.user is not None:
            return Origin(principal_id=self.caller.user)
        return Origin(api_key_id=self.caller.key_id)

    async def reply(self, send: Send, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        """Answer with JSON."""
        await self.send(send, status, to_json(body), "application/json", headers)

    async def send(
        self, send: Send, status: int, data: bytes, kind: str, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status = status
        named = [
            (b"content-type", kind.encode()),
            (b"content-length", str(len(data)).encode()),
            (b"request-id", self.request_id.encode()),
        ]
        for more in (self.reply_headers, headers):
            if more:
                named += ((name.encode("latin-1"), value.encode("latin-1")) for name, value in more.items())
        await send({"type": "http.response.start", "status": status, "headers": named})
        await send({"type": "http.response.body", "body": data if self.scope["method"] != "HEAD" else b""})

    def watched(self, send: Send) -> Send:
        """Send an answer that is made elsewhere, where `call_of` finds this, with the request's id."""
        self.scope[_KEY] = self  # not for every request: what holds itself is freed late

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status = message["status"]
                headers = list(message["headers"])  # some names stand more than once, such as set-cookie
                if all(name != b"request-id" for name, _ in headers):
                    headers.append((b"request-id", self.request_id.encode()))
                message["headers"] = headers
            await send(message)

        return sending

    async def refuse(self, send: Send, error: ApiError) -> None:
        await self.reply(send, error.status, envelope(error, self.request_id), error.headers)


def call_of(scope: Scope) -> Call:
    call: Call = scope[_KEY]
    return call
