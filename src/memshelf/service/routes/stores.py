"""Memory stores."""

from __future__ import annotations

import unicodedata
from typing import Any

from memshelf.service.call import Call
from memshelf.service.errors import invalid_request
from memshelf.service.operation import Operation
from memshelf.service.routes.paging import limit_of
from memshelf.service.wire import render
from memshelf.service.wire.answers import DeletedStore, StoreAnswer, StorePage
from memshelf.service.wire.requests import CreateStore, ListStores, Nothing, UpdateStore
from memshelf.stores.catalogue import Period, Stores
from memshelf.stores.rules import KEEP

__all__ = ["OPERATIONS"]


def _stores(call: Call) -> Stores:
    return Stores(call.state.shelf, call.caller.workspace_id)


async def _create(call: Call, body: CreateStore) -> Any:
    """Create a memory store"""
    _check_name(call, body.name)
    return render.store(await _stores(call).create(body.name, body.description or "", body.metadata))


async def _list(call: Call, query: ListStores) -> Any:
    """List the memory stores of the workspace, the newest first"""
    found = await _stores(call).page(
        limit=limit_of(call, query.limit),
        page=query.page,
        period=Period(query.created_at_gte, query.created_at_lte),
        archived=query.include_archived,
    )
    return render.page(found, render.store)


async def _retrieve(call: Call) -> Any:
    """Retrieve a memory store"""
    return render.store(await _stores(call).retrieve(call.path["memory_store_id"]))


async def _update(call: Call, body: UpdateStore) -> Any:
    """Change the name, description or metadata of a memory store"""
    given = body.model_fields_set
    if body.name is not None:
        _check_name(call, body.name)
    changed = await _stores(call).update(
        call.path["memory_store_id"],
        name=body.name if body.name is not None else KEEP,
        description=(body.description or "") if "description" in given else KEEP,
        metadata=body.metadata if "metadata" in given else KEEP,
    )
    return render.store(changed)


async def _archive(call: Call, body: Nothing) -> Any:
    """Archive a memory store, for good"""
    del body
    return render.store(await _stores(call).archive(call.path["memory_store_id"]))


async def _delete(call: Call) -> Any:
    """Delete a memory store with all memories and versions"""
    store_id = call.path["memory_store_id"]
    await _stores(call).delete(store_id)
    return {"id": store_id, "type": "memory_store_deleted"}


def _check_name(call: Call, name: str) -> None:
    if call.dialect.zhipu and any(unicodedata.category(char) == "Cf" for char in name):
        raise invalid_request("name: it has no format characters.")


_ALL = "/memory_stores"
_ONE = "/memory_stores/{memory_store_id}"

OPERATIONS = (
    Operation("POST", _ALL, _create, StoreAnswer, body=CreateStore, creates=True),
    Operation("GET", _ALL, _list, StorePage, query=ListStores),
    Operation("GET", _ONE, _retrieve, StoreAnswer, scoped="store_read"),
    Operation("POST", _ONE, _update, StoreAnswer, body=UpdateStore),
    Operation("DELETE", _ONE, _delete, DeletedStore),
    Operation("POST", f"{_ONE}/archive", _archive, StoreAnswer, body=Nothing),
)
