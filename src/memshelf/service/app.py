"""The service as an ASGI application."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeAlias

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from memshelf import __version__
from memshelf.service.call import call_of
from memshelf.service.door import API_PREFIXES, Door
from memshelf.service.errors import ApiError, envelope, internal_error, no_such_path
from memshelf.service.openapi import described
from memshelf.service.operation import Operation
from memshelf.service.retention import expiring
from memshelf.service.router import Router
from memshelf.service.routes import extensions, files, history, memories, probes, sessions, stores, versions
from memshelf.service.state import ServiceState

__all__ = ["OPERATIONS", "Beside", "create_app"]

OPERATIONS: tuple[Operation, ...] = (
    *stores.OPERATIONS,
    *memories.OPERATIONS,
    *versions.OPERATIONS,
    *sessions.OPERATIONS,
    *extensions.OPERATIONS,
    *files.OPERATIONS,
    *history.OPERATIONS,
)

Beside: TypeAlias = Mapping[str, Callable[[ASGIApp], ASGIApp]]
"""What else is served, by the path where it begins: how it is made, of the API that it is a client of."""


def create_app(state: ServiceState, beside: Beside | None = None) -> ASGIApp:
    """The API below each of `API_PREFIXES`, `/healthz`, `/readyz`, `/metrics` and `/openapi.json`, and what is
    `beside`. While it runs, versions expire as the configuration says; when it shuts down, it closes the engine."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        async with expiring(state):
            yield
        if state.meanings is not None:
            await state.meanings.aclose()
        await state.shelf.engine.aclose()

    app = FastAPI(
        title="memshelf",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        exception_handlers={HTTPException: _refused, Exception: _crashed},
    )
    document = described(OPERATIONS)
    app.openapi = lambda: document  # type: ignore[method-assign]  # how FastAPI is told of another description
    app.include_router(probes.router)
    elsewhere = _Elsewhere(app)
    door = Door(Router(OPERATIONS, API_PREFIXES[0]), elsewhere, state)
    for path, make in (beside or {}).items():
        elsewhere.apps[path] = make(door)
    return door


class _Elsewhere:
    """What is not the API: the applications below their paths, and else the probes."""

    def __init__(self, probes: ASGIApp) -> None:
        self.apps: dict[str, ASGIApp] = {}
        self._probes = probes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            for path, app in self.apps.items():
                if scope["path"] == path or scope["path"].startswith(f"{path}/"):
                    call_of(scope).route = path
                    await app({**scope, "root_path": path}, receive, send)
                    return
        await self._probes(scope, receive, send)


async def _crashed(request: Request, error: Exception) -> Response:
    del error  # it is raised again, and logged at the door
    return JSONResponse(envelope(internal_error(), call_of(request.scope).request_id), 500)


async def _refused(request: Request, error: Any) -> Response:  # the type that FastAPI declares is wider
    """What the router refuses: a path that there is not, or a method of one."""
    call = call_of(request.scope)
    if error.status_code == 404:
        refusal = no_such_path()
    else:
        refusal = ApiError(error.status_code, "invalid_request_error", str(error.detail))
    return JSONResponse(envelope(refusal, call.request_id), error.status_code, error.headers)
