"""The memories of a store: where they are, what they hold, and changing that."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import Response

from memshelf.console.api import Json, RefusedError
from memshelf.console.diff import compared
from memshelf.console.page import Page, Visit
from memshelf.console.routes.stores import store_of
from memshelf.console.text import line_ends, path_query, with_line_ends

__all__ = ["PAGES", "crumbs", "prefix_of"]

_A_PAGE = 100
_CHANGED = "memory_precondition_failed_error"


def crumbs(prefix: str) -> list[tuple[str, str]]:
    """Each folder on the way to a prefix: its name, and its own prefix."""
    names = [name for name in prefix.split("/") if name]
    return [(name, f"/{'/'.join(names[: at + 1])}/") for at, name in enumerate(names)]


def prefix_of(visit: Visit) -> str:
    """The folder that the address names, however it is written."""
    inner = visit.query("prefix").strip("/")
    return f"/{inner}/" if inner else "/"


async def _tree(visit: Visit) -> Response:
    store, prefix = await store_of(visit), prefix_of(visit)
    page = visit.query("page") or None
    found = await visit.api.get(
        "memory_stores", store["id"], "memories", path_prefix=prefix, depth=1, limit=_A_PAGE, page=page
    )
    return visit.render("store.html", store=store, prefix=prefix, crumbs=crumbs(prefix), found=found)


async def _create(visit: Visit) -> Response:
    if visit.form is None:
        store = await store_of(visit)
        return visit.render("memory_new.html", store=store, path=prefix_of(visit), content="", gone=False)
    path, content = visit.form.get("path").strip(), visit.form.get("content")
    try:
        made = await visit.api.post(
            "memory_stores", visit.path["store"], "memories", body={"path": path, "content": content}
        )
    except RefusedError as refusal:
        store = await store_of(visit)
        return visit.render("memory_new.html", problem=refusal, store=store, path=path, content=content, gone=False)
    return visit.go(f"/stores/{visit.path['store']}/memories/{made['id']}", "memory.created")


async def _memory_of(visit: Visit) -> Json:
    return await visit.api.get("memory_stores", visit.path["store"], "memories", visit.path["memory"])


def _at(memory: Json) -> str:
    return f"/stores/{memory['memory_store_id']}/memories/{memory['id']}"


def _parts(memory: Json) -> dict[str, Any]:  # what templates of a memory show
    folder, _, name = memory["path"].rpartition("/")
    return {"memory": memory, "name": name, "crumbs": crumbs(folder), "line_ends": line_ends(memory["content"])}


async def _memory(visit: Visit) -> Response:
    return visit.render("memory.html", store=await store_of(visit), **_parts(await _memory_of(visit)))


async def _edit(visit: Visit) -> Response:
    store, memory = await store_of(visit), None
    try:
        memory = await _memory_of(visit)
    except RefusedError as refusal:
        if visit.form is None or refusal.status != 404:
            raise
        path, content = visit.form.get("path"), visit.form.get("content")
        return visit.render("memory_new.html", 404, store=store, path=path, content=content, gone=True)
    if visit.form is None:
        return visit.render("edit.html", store=store, content=memory["content"], conflict=None, **_parts(memory))
    typed = visit.form.get("content")
    seen = visit.form.get("sha256")
    body = {
        "content": with_line_ends(typed, memory["content"]),
        "precondition": {"type": "content_sha256", "content_sha256": seen},
    }
    try:
        await visit.api.post("memory_stores", store["id"], "memories", memory["id"], body=body)
    except RefusedError as refusal:
        if refusal.type == _CHANGED:
            memory = await _memory_of(visit)
            conflict = await asyncio.to_thread(compared, memory["content"], with_line_ends(typed, memory["content"]))
            return visit.render("edit.html", 409, store=store, content=typed, conflict=conflict, **_parts(memory))
        # The hash stays the one that was seen: what somebody else wrote meanwhile is not to be overwritten.
        parts = _parts({**memory, "content_sha256": seen})
        return visit.render("edit.html", problem=refusal, store=store, content=typed, conflict=None, **parts)
    return visit.go(_at(memory), "memory.saved")


async def _move(visit: Visit) -> Response:
    store, memory = await store_of(visit), await _memory_of(visit)
    if visit.form is None:
        return visit.render("move.html", store=store, path=memory["path"], **_parts(memory))
    path = visit.form.get("path").strip()
    try:
        await visit.api.post("memory_stores", store["id"], "memories", memory["id"], body={"path": path})
    except RefusedError as refusal:
        return visit.render("move.html", problem=refusal, store=store, path=path, **_parts(memory))
    return visit.go(_at(memory), "memory.moved")


async def _delete(visit: Visit) -> Response:
    store, memory = await store_of(visit), await _memory_of(visit)
    if visit.form is None:
        return visit.render("memory_delete.html", store=store, **_parts(memory))
    try:
        await visit.api.delete(
            "memory_stores",
            store["id"],
            "memories",
            memory["id"],
            expected_content_sha256=visit.form.get("sha256"),
        )
    except RefusedError as refusal:
        return visit.render("memory_delete.html", problem=refusal, store=store, **_parts(await _memory_of(visit)))
    folder = memory["path"].rpartition("/")[0]
    asked = path_query(prefix=f"{folder}/" if folder else "")
    return visit.go(f"/stores/{store['id']}{'?' + asked if asked else ''}", "memory.deleted")


_ONE = "/stores/{store}/memories/{memory}"

PAGES = (
    Page("/stores/{store}", _tree),
    Page("/stores/{store}/memories", _create, forms=True),
    Page(_ONE, _memory),
    Page(f"{_ONE}/edit", _edit, forms=True),
    Page(f"{_ONE}/move", _move, forms=True),
    Page(f"{_ONE}/delete", _delete, forms=True),
)
