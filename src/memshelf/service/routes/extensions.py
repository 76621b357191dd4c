"""What memshelf offers beyond the platforms' API, all of it below `/memshelf`: going back, searching, comparing,
verifying, and what the host of an agent needs for a session."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from memshelf.files.diff import unified
from memshelf.mounts.note import prompt_note
from memshelf.service.call import Call
from memshelf.service.errors import invalid_request
from memshelf.service.operation import Operation
from memshelf.service.routes.memories import composed
from memshelf.service.routes.paging import limit_of
from memshelf.service.routes.sessions import answer, sessions
from memshelf.service.routes.versions import rendered
from memshelf.service.wire import render
from memshelf.service.wire.answers import (
    Diff,
    MemoryAnswer,
    PromptNote,
    Report,
    SearchAnswer,
    SessionAnswer,
    TokenAnswer,
    Undo,
    VersionPage,
)
from memshelf.service.wire.requests import (
    DiffQuery,
    MomentQuery,
    Nothing,
    RestoreVersion,
    SearchQuery,
    SetStatus,
    UndoActor,
    UndoChanges,
    VerifyQuery,
    ViewBasic,
)
from memshelf.stores.history import Author, History
from memshelf.stores.memories import memories_at
from memshelf.stores.rules import checked_prefix
from memshelf.stores.search import Search
from memshelf.stores.shelf import StoreAccess
from memshelf.stores.verification import Verification
from memshelf.stores.versions import Versions

__all__ = ["OPERATIONS"]

_EXCERPT_CHARS = 240


def _history(call: Call) -> History:
    return History(call.state.shelf, call.caller.workspace_id, call.path["memory_store_id"])


async def _restore(call: Call, query: ViewBasic, body: RestoreVersion) -> Any:
    """Make a memory what it was at a version, as a new version"""
    restored = await _history(call).restore(
        call.path["memory_version_id"],
        expected_sha256=body.precondition.content_sha256 if body.precondition is not None else None,
        origin=call.origin,
    )
    return render.memory(restored, content=query.view == "full")


async def _undo(call: Call, body: UndoChanges) -> Any:
    """Take back everything that one actor wrote since a time"""
    undone = await _history(call).undo(_author(body.actor), body.since, origin=call.origin)
    return {
        "type": "memshelf_undo",
        "data": [
            {
                "memory_id": each.memory_id,
                "outcome": each.outcome,
                "reason": each.reason,
                "memory": render.memory(each.memory, content=False) if each.memory is not None else None,
            }
            for each in undone
        ],
    }


def _author(actor: UndoActor) -> Author:
    ids = {"session_actor": actor.session_id, "api_actor": actor.api_key_id, "user_actor": actor.user_id}
    id = ids.pop(actor.type)
    if id is None or any(other is not None for other in ids.values()):
        raise invalid_request("actor: it has exactly the id that goes with its type.")
    if actor.type == "session_actor":
        return Author("session", id)
    # In one dialect, who calls the API is a user whose id is the key's.
    return Author("api_key" if actor.type == "api_actor" or id.startswith(render.KEY_PREFIX) else "user", id)


async def _moment(call: Call, query: MomentQuery) -> Any:
    """List a memory store as it was at a time, in byte-wise path order"""
    full = query.view == "full"
    found = await _history(call).at(
        query.at,
        limit=limit_of(call, query.limit, full=full),
        prefix=composed(call, query.path_prefix),
        page=query.page,
        content=full,
    )
    return rendered(call, found)


async def _search(call: Call, query: SearchQuery) -> Any:
    """Search the paths and contents of a memory store, the best match first"""
    if query.by == "meaning":
        return await _search_by_meaning(call, query)
    search = Search(call.state.shelf, call.caller.workspace_id, call.path["memory_store_id"])
    hits = await search.search(query.query, limit=query.limit, prefix=composed(call, query.path_prefix))
    return {
        "type": "memshelf_search",
        "data": [
            {
                "memory": render.memory(hit.memory, content=False),
                "score": hit.score,
                "line": hit.line,
                "excerpt": hit.excerpt,
            }
            for hit in hits
        ],
    }


async def _search_by_meaning(call: Call, query: SearchQuery) -> Any:
    from memshelf.service.meaning import Meanings  # it loads NumPy

    shelf, workspace_id, store_id = call.state.shelf, call.caller.workspace_id, call.path["memory_store_id"]
    if call.state.meanings is None:
        call.state.meanings = Meanings(shelf)
    directory = checked_prefix(composed(call, query.path_prefix), shelf.limits)
    hits = await call.state.meanings.search(workspace_id, store_id, query.query, limit=query.limit, directory=directory)
    live = await StoreAccess(shelf, workspace_id, store_id).read(
        partial(memories_at, version_ids=[hit.version for hit in hits])
    )
    return {
        "type": "memshelf_search",
        "data": [
            {
                "memory": render.memory(live[hit.version], content=False),
                "score": round(hit.score, 4),
                "line": hit.line,
                "excerpt": hit.text[:_EXCERPT_CHARS],
            }
            for hit in hits
            if hit.version in live  # else it was changed or deleted meanwhile
        ],
    }


async def _diff(call: Call, query: DiffQuery) -> Any:
    """Show what a version changed, or the way from it to another, as a unified diff"""
    versions = Versions(call.state.shelf, call.caller.workspace_id, call.path["memory_store_id"])
    old, new = await versions.pair(call.path["memory_version_id"], query.to)
    return {
        "type": "memshelf_diff",
        "from_version_id": old.id if old is not None else None,
        "to_version_id": new.id,
        "diff": await asyncio.to_thread(unified, old, new),
    }


async def _verify(call: Call, query: VerifyQuery) -> Any:
    """Check the hash chain of a memory store's whole history"""
    store_id = call.path["memory_store_id"]
    found = await Verification(call.state.shelf, call.caller.workspace_id, store_id).verify(query.head)
    return {
        "type": "memshelf_verification",
        "intact": found.intact,
        "versions": found.versions,
        "head": found.head,
        "problems": list(found.problems),
    }


async def _set_status(call: Call, body: SetStatus) -> Any:
    """Say whether a session runs, is idle or has ended"""
    return answer(call, await sessions(call).set_status(call.path["session_id"], body.status))


async def _create_token(call: Call, body: Nothing) -> Any:
    """Create a token by which an agent acts as the session, on the stores that it mounts"""
    del body
    session_id = call.path["session_id"]
    token = await call.state.accounts.create_token(call.caller.workspace_id, session_id)
    return {"type": "memshelf_session_token", "session_id": session_id, "token": token}


async def _prompt_note(call: Call) -> Any:
    """Say what to tell the agent of its mounts, for its system prompt"""
    session = await sessions(call).retrieve(call.path["session_id"])
    return {"type": "memshelf_prompt_note", "text": prompt_note(session.mounts)}


_STORE = "/memshelf/memory_stores/{memory_store_id}"
_VERSION = f"{_STORE}/memory_versions/{{memory_version_id}}"
_SESSION = "/memshelf/sessions/{session_id}"

OPERATIONS = (
    Operation("POST", f"{_VERSION}/restore", _restore, MemoryAnswer, query=ViewBasic, body=RestoreVersion),
    Operation("GET", f"{_VERSION}/diff", _diff, Diff, query=DiffQuery, scoped="store_read"),
    Operation("POST", f"{_STORE}/undo", _undo, Undo, body=UndoChanges),
    Operation("GET", f"{_STORE}/memories", _moment, VersionPage, query=MomentQuery, scoped="store_read"),
    Operation("GET", f"{_STORE}/search", _search, SearchAnswer, query=SearchQuery, scoped="store_read"),
    Operation("GET", f"{_STORE}/verify", _verify, Report, query=VerifyQuery),
    Operation("POST", f"{_SESSION}/status", _set_status, SessionAnswer, body=SetStatus),
    Operation("POST", f"{_SESSION}/token", _create_token, TokenAnswer, body=Nothing),
    Operation("GET", f"{_SESSION}/prompt_note", _prompt_note, PromptNote, scoped="session"),
)
