"""What the path of a request names."""

from __future__ import annotations

from memshelf.mounts.sessions import Sessions
from memshelf.service.call import Call
from memshelf.stores.catalogue import Stores
from memshelf.stores.memories import Memories
from memshelf.stores.versions import Versions

__all__ = ["require_there"]


async def require_there(call: Call) -> None:
    """`not_found` unless the workspace has the store, memory, version or session that the path names."""
    shelf, workspace_id, path = call.state.shelf, call.caller.workspace_id, call.path
    if "session_id" in path:
        await Sessions(shelf, workspace_id).retrieve(path["session_id"])
    if "memory_store_id" not in path:
        return
    store_id = path["memory_store_id"]
    if "memory_id" in path:
        await Memories(shelf, workspace_id, store_id).retrieve(path["memory_id"], content=False)
    elif "memory_version_id" in path:
        await Versions(shelf, workspace_id, store_id).retrieve(path["memory_version_id"])
    else:
        await Stores(shelf, workspace_id).retrieve(store_id)
