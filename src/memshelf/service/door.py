"""The outermost layer: gives each request an id and a caller, holds it to its rate, counts it and logs it; and for the
API, finds the operation and sends what it answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from starlette.types import ASGIApp, Receive, Scope, Send

from memshelf.errors import MemoryStoreError
from memshelf.service import logs
from memshelf.service.body import ClientGoneError
from memshelf.service.call import Call
from memshelf.service.dialect import dialect_of, require_headers
from memshelf.service.errors import ApiError, answer_to, ended, internal_error
from memshelf.service.router import Router
from memshelf.service.state import ServiceState

__all__ = ["API_PREFIXES", "Door"]

API_PREFIXES = ("/v1", "/api/agent/managed/v1")
"""The API is the same below each of these."""

_PREFIXES = tuple(prefix.split("/") for prefix in API_PREFIXES)
_READING = ("GET", "HEAD", "OPTIONS")
_CLIENT_GONE = 499


class Door:
    """What is not below `API_PREFIXES` goes to `elsewhere`, without a key."""

    def __init__(self, api: Router, elsewhere: ASGIApp, state: ServiceState) -> None:
        self._api = api
        self._elsewhere = elsewhere
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._elsewhere(scope, receive, send)
            return
        state = self._state
        requests = state.requests
        call = Call(state, scope, receive, requests.id("req", requests.now()), _headers(scope))
        started = state.clock()
        state.metrics.in_flight += 1
        try:
            path = _below_prefix(_segments(scope))
            if path is not None:
                await self._serve(call, path, send)
            else:
                await self._pass_on(call, scope, receive, send)
        finally:
            state.metrics.in_flight -= 1
            seconds = state.clock() - started
            state.metrics.count(scope["method"], call.route, call.status, seconds)
            state.log.request(call, seconds)

    async def _pass_on(self, call: Call, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._elsewhere(scope, receive, call.watched(send))
        except Exception as error:  # noqa: BLE001  # it is answered; the server would log it with what it quotes
            logs.crashed(error, call.request_id)

    async def _serve(self, call: Call, path: Sequence[str], send: Send) -> None:
        try:
            call.dialect = dialect_of(call.headers)
            await self._let_in(call)
            resource, call.path = self._api.find(path)
            call.route = resource.route
            operation = resource.operation(call.scope["method"])
            answer = await operation.answer_call(call)
        except ApiError as error:
            await call.refuse(send, error)
        except MemoryStoreError as error:
            refusal = answer_to(error, call.dialect)
            if path[0] == "memshelf" and error.code == "unavailable":  # our own clients learn that nothing was begun
                refusal.details["memshelf_code"] = error.code
            await call.refuse(send, refusal)
        except ClientGoneError:
            call.status = _CLIENT_GONE
        except asyncio.CancelledError:  # when the service ends, and the time to finish is over
            await call.refuse(send, ended(changing=call.scope["method"] not in _READING))
        except Exception as error:  # noqa: BLE001  # the client gets an answer, whatever went wrong
            logs.crashed(error, call.request_id)
            await call.refuse(send, internal_error())
        else:
            await call.reply(send, call.dialect.created if operation.creates else 200, answer)

    async def _let_in(self, call: Call) -> None:
        self._state.shelf.engine.generation()  # `unavailable` when the database's file was removed under us
        call.signed_in = caller = await self._state.gate.caller(call.headers)
        limiter = self._state.reads if call.scope["method"] in _READING else self._state.writes
        if limiter is not None:
            allowance = limiter.take(caller.session_id or caller.key_id)
            call.reply_headers.update(allowance.headers)
            if allowance.retry_after is not None:
                raise ApiError(429, "rate_limit_error", "Too many requests with this API key; slow down.")
        if self._state.config.strict_headers:
            require_headers(call.dialect, call.headers, memory="/memory_stores" in call.scope["path"])


def _headers(scope: Scope) -> Mapping[bytes, bytes]:
    """The headers by name. One that stands on several lines is one list, unless they say the same; white space around a
    value is not part of it."""
    lines: Sequence[tuple[bytes, bytes]] = scope["headers"]
    headers = {name: value.strip() for name, value in lines}
    if len(headers) < len(lines):
        said: dict[bytes, dict[bytes, None]] = {}
        for name, value in lines:
            said.setdefault(name, {})[value.strip()] = None
        headers = {name: b", ".join(values) for name, values in said.items()}
    return headers


def _segments(scope: Scope) -> list[str]:
    """The segments of the path. An encoded `/` is a character of its segment: an id that has one is not two."""
    raw: bytes | None = scope.get("raw_path")
    if raw is None or b"%" not in raw:
        path: str = scope["path"]
        return path.split("/")
    return [unquote(segment) for segment in raw.decode("latin-1").split("/")]


def _below_prefix(segments: list[str]) -> list[str] | None:
    """The segments that follow the API's prefix; `None` for a path elsewhere."""
    for prefix in _PREFIXES:
        if segments[: len(prefix)] == prefix and len(segments) > len(prefix):
            return segments[len(prefix) :]
    return None
