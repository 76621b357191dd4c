"""The history of a store as archives hold it: memshelf's own, below `/memshelf`."""

from __future__ import annotations

from typing import Any

from memshelf.files.archive import version_json
from memshelf.service.call import Call
from memshelf.service.operation import Operation
from memshelf.service.wire.history import HistoryAnswer, HistoryQuery
from memshelf.stores.archive import PastOf

__all__ = ["OPERATIONS"]


async def _history(call: Call, query: HistoryQuery) -> Any:
    """Read the versions of a memory store in order, with the hash chain that proves them"""
    past = PastOf(call.state.shelf, call.caller.workspace_id, call.path["memory_store_id"])
    head, created_at, versions = await past.page(query.after, query.limit)
    return {
        "type": "memshelf_history",
        "epoch": head.epoch,
        "created_at": created_at,
        "head_seq": head.seq,
        "head": head.link.hex(),
        "data": [version_json(version) for version in versions],
    }


OPERATIONS = (
    Operation("GET", "/memshelf/memory_stores/{memory_store_id}/history", _history, HistoryAnswer, query=HistoryQuery),
)
