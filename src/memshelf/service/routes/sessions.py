"""Sessions, as far as memory needs them."""

from __future__ import annotations

from typing import Any

from memshelf.mounts.sessions import Attachment, Session, SessionFilter, Sessions
from memshelf.service.call import Call
from memshelf.service.errors import invalid_request
from memshelf.service.operation import Operation
from memshelf.service.routes.paging import limit_of
from memshelf.service.wire import render
from memshelf.service.wire.answers import DeletedSession, ResourcePage, SessionAnswer, SessionPage
from memshelf.service.wire.requests import CreateSession, ListResources, ListSessions, Nothing, UpdateSession
from memshelf.stores.rules import KEEP

__all__ = ["OPERATIONS", "answer", "sessions"]


def sessions(call: Call) -> Sessions:
    return Sessions(call.state.shelf, call.caller.workspace_id)


def answer(call: Call, session: Session) -> Any:
    return render.session(session, call.state.shelf.mint.clock())


async def _create(call: Call, body: CreateSession) -> Any:
    """Create a session that mounts memory stores"""
    agent = body.agent
    created = await sessions(call).create(
        prefix=call.dialect.session_prefix,
        agent_id=agent if isinstance(agent, str) else agent.id,
        agent_version=1 if isinstance(agent, str) else agent.version,
        environment_id=body.environment_id,
        attachments=[
            Attachment(each.memory_store_id, each.access or "read_write", each.instructions)
            for each in body.resources or ()
        ],
        title=body.title,
        metadata=body.metadata,
    )
    return answer(call, created)


async def _list(call: Call, query: ListSessions) -> Any:
    """List the sessions of the workspace, in the order of creation"""
    found = await sessions(call).page(
        limit=limit_of(call, query.limit),
        where=SessionFilter(
            store_id=query.memory_store_id,
            agent_id=query.agent_id if query.deployment_id is None else "",
            agent_version=query.agent_version,
            statuses=tuple(query.statuses),
            archived=query.include_archived,
            since=query.created_at_gte,
            until=query.created_at_lte,
            after=query.created_at_gt,
            before=query.created_at_lt,
        ),
        page=query.page,
        newest_first=query.order == "desc",
    )
    return render.page(found, lambda each: answer(call, each))


async def _retrieve(call: Call) -> Any:
    """Retrieve a session"""
    return answer(call, await sessions(call).retrieve(call.path["session_id"]))


async def _update(call: Call, body: UpdateSession) -> Any:
    """Change the title or metadata of a session"""
    given = body.model_fields_set
    changed = await sessions(call).update(
        call.path["session_id"],
        title=body.title if "title" in given else KEEP,
        metadata=body.metadata if "metadata" in given else KEEP,
    )
    return answer(call, changed)


async def _archive(call: Call, body: Nothing) -> Any:
    """Archive a session, for good: it no longer holds its memory stores"""
    del body
    return answer(call, await sessions(call).archive(call.path["session_id"]))


async def _delete(call: Call) -> Any:
    """Delete a session; what it wrote stays"""
    session_id = call.path["session_id"]
    await sessions(call).delete(session_id)
    return {"id": session_id, "type": "session_deleted"}


async def _resources(call: Call, query: ListResources) -> Any:
    """List what a session mounts, in the order of the request that created it"""
    session = await sessions(call).retrieve(call.path["session_id"])
    start = 0
    if query.page is not None:
        number = query.page.removeprefix("page_")
        if not number.isascii() or not number.isdecimal() or not 0 < int(number[:9]) < len(session.mounts):
            raise invalid_request("page: it is not a cursor of this listing.")
        start = int(number[:9])
    end = start + (query.limit or len(session.mounts))
    following = f"page_{end}" if end < len(session.mounts) else None
    return {"data": [render.mount(each) for each in session.mounts[start:end]], "next_page": following}


_ALL = "/sessions"
_ONE = "/sessions/{session_id}"

OPERATIONS = (
    Operation("POST", _ALL, _create, SessionAnswer, body=CreateSession),
    Operation("GET", _ALL, _list, SessionPage, query=ListSessions),
    Operation("GET", _ONE, _retrieve, SessionAnswer, scoped="session"),
    Operation("POST", _ONE, _update, SessionAnswer, body=UpdateSession),
    Operation("DELETE", _ONE, _delete, DeletedSession),
    Operation("POST", f"{_ONE}/archive", _archive, SessionAnswer, body=Nothing),
    Operation("GET", f"{_ONE}/resources", _resources, ResourcePage, query=ListResources, scoped="session"),
)
