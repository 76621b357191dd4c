"""The versions of a store."""

from __future__ import annotations

from typing import Any

from memshelf.service.call import Call
from memshelf.service.operation import Operation
from memshelf.service.routes.paging import limit_of
from memshelf.service.wire import render
from memshelf.service.wire.answers import VersionAnswer, VersionPage
from memshelf.service.wire.requests import ListVersions, Nothing, ViewFull
from memshelf.stores.catalogue import Period
from memshelf.stores.model import Page
from memshelf.stores.versions import VersionFilter, Versions

__all__ = ["OPERATIONS", "rendered"]


def _versions(call: Call) -> Versions:
    return Versions(call.state.shelf, call.caller.workspace_id, call.path["memory_store_id"])


def rendered(call: Call, found: Page[Any]) -> Any:
    """A page of versions."""
    return render.page(found, lambda each: render.version(each, call.path["memory_store_id"], call.dialect))


async def _list(call: Call, query: ListVersions) -> Any:
    """List versions, the newest first"""
    full = query.view == "full"
    limit = limit_of(call, query.limit, full=full)
    where = VersionFilter(
        memory_id=query.memory_id,
        operation=query.operation,
        session_id=query.session_id,
        api_key_id=query.api_key_id,
        period=Period(query.created_at_gte, query.created_at_lte),
    )
    if query.service_account_id is not None:
        where = VersionFilter(memory_id="")
    return rendered(call, await _versions(call).page(limit=limit, where=where, page=query.page, content=full))


async def _retrieve(call: Call, query: ViewFull) -> Any:
    """Retrieve a version"""
    found = await _versions(call).retrieve(call.path["memory_version_id"])
    answer = render.version(found, call.path["memory_store_id"], call.dialect)
    return answer if query.view == "full" else {**answer, "content": None}


async def _redact(call: Call, body: Nothing) -> Any:
    """Erase the path and content of a version for good"""
    del body
    redacted = await _versions(call).redact(call.path["memory_version_id"], by=call.caller.key_id)
    return render.version(redacted, call.path["memory_store_id"], call.dialect)


_ALL = "/memory_stores/{memory_store_id}/memory_versions"
_ONE = f"{_ALL}/{{memory_version_id}}"

OPERATIONS = (
    Operation("GET", _ALL, _list, VersionPage, query=ListVersions, scoped="store_read"),
    Operation("GET", _ONE, _retrieve, VersionAnswer, query=ViewFull, scoped="store_read"),
    Operation("POST", f"{_ONE}/redact", _redact, VersionAnswer, body=Nothing),
)
