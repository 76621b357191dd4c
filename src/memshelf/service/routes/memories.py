"""The memories of a store."""

from __future__ import annotations

import unicodedata
from typing import Any

from memshelf.service.call import Call
from memshelf.service.errors import invalid_request
from memshelf.service.operation import Operation
from memshelf.service.routes.paging import limit_of
from memshelf.service.wire import render
from memshelf.service.wire.answers import DeletedMemory, MemoryAnswer, MemoryPage
from memshelf.service.wire.requests import CreateMemory, DeleteMemory, ListMemories, UpdateMemory, ViewBasic, ViewFull
from memshelf.stores.memories import Memories

__all__ = ["OPERATIONS", "composed"]


def _memories(call: Call) -> Memories:
    return Memories(call.state.shelf, call.caller.workspace_id, call.path["memory_store_id"])


def composed(call: Call, path: str) -> str:
    """A path in the form that is stored: one dialect wants NFC from the client, the other makes it so."""
    return unicodedata.normalize("NFC", path) if call.dialect.zhipu else path


async def _create(call: Call, query: ViewBasic, body: CreateMemory) -> Any:
    """Create a memory at a path that is free"""
    created = await _memories(call).create(composed(call, body.path), body.content, origin=call.origin)
    return render.memory(created, content=query.view == "full")


async def _list(call: Call, query: ListMemories) -> Any:
    """List memories, and the prefixes that stand for deeper ones, in byte-wise path order"""
    if query.depth > call.dialect.most_levels:
        raise invalid_request(f"depth: it must be between 0 and {call.dialect.most_levels}.")
    full = query.view == "full"
    found = await _memories(call).page(
        limit=limit_of(call, query.limit, full=full),
        prefix=composed(call, query.path_prefix),
        depth=query.depth,
        page=query.page,
        content=full,
    )
    return render.page(found, render.memory_item)


async def _retrieve(call: Call, query: ViewFull) -> Any:
    """Retrieve a memory"""
    full = query.view == "full"
    return render.memory(await _memories(call).retrieve(call.path["memory_id"], content=full), content=full)


async def _update(call: Call, query: ViewBasic, body: UpdateMemory) -> Any:
    """Change the content or the path of a memory, or both in one version"""
    changed = await _memories(call).update(
        call.path["memory_id"],
        content=body.content,
        path=composed(call, body.path) if body.path is not None else None,
        expected_sha256=body.precondition.content_sha256 if body.precondition is not None else None,
        origin=call.origin,
    )
    return render.memory(changed, content=query.view == "full")


async def _delete(call: Call, query: DeleteMemory) -> Any:
    """Delete a memory; its versions stay"""
    memory_id = call.path["memory_id"]
    await _memories(call).delete(memory_id, expected_sha256=query.expected_content_sha256, origin=call.origin)
    return {"id": memory_id, "type": "memory_deleted"}


_ALL = "/memory_stores/{memory_store_id}/memories"
_ONE = f"{_ALL}/{{memory_id}}"

OPERATIONS = (
    Operation("GET", _ONE, _retrieve, MemoryAnswer, query=ViewFull, scoped="store_read"),
    Operation("POST", _ONE, _update, MemoryAnswer, query=ViewBasic, body=UpdateMemory, scoped="store_write"),
    Operation("DELETE", _ONE, _delete, DeletedMemory, query=DeleteMemory, scoped="store_write"),
    Operation("GET", _ALL, _list, MemoryPage, query=ListMemories, scoped="store_read"),
    Operation(
        "POST", _ALL, _create, MemoryAnswer, query=ViewBasic, body=CreateMemory, scoped="store_write", creates=True
    ),
)
