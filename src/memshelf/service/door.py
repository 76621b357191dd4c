"""The outermost layer: gives each request an id and a caller, holds it to its rate, counts it and logs it."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from memshelf.errors import MemoryStoreError
from memshelf.service import logs
from memshelf.service.call import Call
from memshelf.service.dialect import dialect_of, require_headers
from memshelf.service.errors import ApiError, answer_to
from memshelf.service.state import ServiceState

__all__ = ["API_PREFIXES", "Door"]

API_PREFIXES = ("/v1", "/api/agent/managed/v1")
"""The API is the same below each of these."""

_ROOTS = tuple(f"{prefix}/" for prefix in API_PREFIXES)
_READING = ("GET", "HEAD", "OPTIONS")


class Door:
    """What is not below `API_PREFIXES` passes without a key."""

    def __init__(self, app: ASGIApp, state: ServiceState) -> None:
        self._app = app
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state = self._state
        mint = state.shelf.mint
        call = Call(state, scope, receive, mint.id("req", mint.now()), dict(scope["headers"]))
        started = state.clock()
        state.metrics.in_flight += 1
        try:
            if scope["path"].startswith(_ROOTS):
                await self._serve(call, send)
            else:
                await self._app(scope, receive, call.watched(send))
        finally:
            state.metrics.in_flight -= 1
            seconds = state.clock() - started
            state.metrics.count(scope["method"], call.route, call.status, seconds)
            _log(call, seconds)

    async def _serve(self, call: Call, send: Send) -> None:
        try:
            await self._let_in(call)
        except ApiError as error:
            await call.refuse(send, error)
        except MemoryStoreError as error:
            await call.refuse(send, answer_to(error, call.dialect))
        else:
            await self._app(call.scope, call.receive, send)

    async def _let_in(self, call: Call) -> None:
        call.dialect = dialect_of(call.headers)
        call.signed_in = caller = await self._state.gate.caller(call.headers)
        limiter = self._state.reads if call.scope["method"] in _READING else self._state.writes
        if limiter is not None:
            allowance = limiter.take(caller.session_id or caller.key_id)
            call.reply_headers.update(allowance.headers)
            if allowance.retry_after is not None:
                raise ApiError(429, "rate_limit_error", "Too many requests with this API key; slow down.")
        if self._state.config.strict_headers:
            require_headers(call.dialect, call.headers, memory="/memory_stores" in call.scope["path"])


def _log(call: Call, seconds: float) -> None:
    if not logs.access.isEnabledFor(20):
        return
    facts: dict[str, object] = {
        "request_id": call.request_id,
        "method": call.scope["method"],
        "route": call.route,
        "status": call.status,
        "ms": round(seconds * 1000, 2),
    }
    if call.signed_in is not None:
        facts["workspace_id"] = call.signed_in.workspace_id
        facts["key_id"] = call.signed_in.key_id
    logs.access.info("request", extra={"facts": facts})
