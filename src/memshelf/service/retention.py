"""Letting versions expire while the service runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from memshelf.errors import MemoryStoreError
from memshelf.service.state import ServiceState
from memshelf.stores.retention import Retention, expire

__all__ = ["expiring", "keep_expiring"]

_log = logging.getLogger("memshelf.service")

_EVERY = 86_400.0
_AGAIN = 900.0


@asynccontextmanager
async def expiring(state: ServiceState) -> AsyncIterator[None]:
    """Let versions expire as the configuration says, meanwhile. At the end a run is left where it is: the next one
    goes on."""
    retention = state.config.retention
    if retention is None:
        yield
        return
    task = asyncio.create_task(keep_expiring(state, retention), name="memshelf-retention")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.wait([task])


async def keep_expiring(
    state: ServiceState, retention: Retention, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
) -> None:
    """Now and once a day, for ever; after a run that failed, in a quarter of an hour. Each run is counted and logged,
    without what expired."""
    while True:
        done = await _run(state, retention)
        state.metrics.retention_runs["done" if done else "failed"] += 1
        await sleep(_EVERY if done else _AGAIN)


async def _run(state: ServiceState, retention: Retention) -> bool:
    began, versions, stores = state.clock(), 0, 0
    try:
        async for _, expired in expire(state.shelf, retention):
            versions += expired.versions
            stores += 1
            state.metrics.versions_expired += expired.versions
    except MemoryStoreError as error:
        _log.warning("retention failed", extra={"facts": {"code": error.code, "versions": versions, "stores": stores}})
        return False
    except Exception as error:  # noqa: BLE001  # a mistake here must not end what is to run for ever, nor pass unseen
        _log.error("crash", extra={"facts": {"task": "retention"}}, exc_info=error)
        return False
    facts = {"versions": versions, "stores": stores, "ms": round((state.clock() - began) * 1000)}
    _log.info("versions expired", extra={"facts": facts})
    return True
