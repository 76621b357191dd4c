"""What operators ask: is the process alive, can it serve, what did it do. No key is needed, and nothing is told of what
is stored."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response

from memshelf.errors import MemoryStoreError
from memshelf.service.call import call_of

__all__ = ["router"]

router = APIRouter()

_READING = ["GET", "HEAD"]
_READY_SECONDS = 5.0


@router.api_route("/healthz", methods=_READING)
async def healthz(request: Request) -> dict[str, str]:
    """The process answers."""
    call_of(request.scope).route = "/healthz"
    return {"status": "ok"}


@router.api_route("/readyz", methods=_READING)
async def readyz(request: Request, response: Response) -> dict[str, str]:
    """The database answers as well, and the service is not ending; else 503."""
    call = call_of(request.scope)
    call.route = "/readyz"
    status = "ending" if call.state.ending else "ok"
    if status == "ok":
        try:
            async with asyncio.timeout(_READY_SECONDS):
                engine = call.state.shelf.engine
                engine.generation()
                await engine.read(lambda transaction: transaction.fetch_one("SELECT id FROM workspaces LIMIT 1"))
        except (MemoryStoreError, TimeoutError):
            status = "database unavailable"
    response.status_code = 200 if status == "ok" else 503
    return {"status": status}


@router.api_route("/metrics", methods=_READING)
async def metrics(request: Request) -> Response:
    """Counters of this process, in the text format of Prometheus."""
    call = call_of(request.scope)
    call.route = "/metrics"
    return Response(call.state.metrics.render(), media_type="text/plain; version=0.0.4")
