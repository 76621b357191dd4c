"""The versions of memories: what one held, what changed, going back to it, and erasing it."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from memshelf.console.api import Json, RefusedError
from memshelf.console.diff import Difference, compared
from memshelf.console.page import Page, Visit
from memshelf.console.routes.stores import store_of
from memshelf.console.text import path_query

__all__ = ["PAGES"]


async def _version_of(visit: Visit, id: str | None = None) -> Json:
    return await visit.api.get("memory_stores", visit.path["store"], "memory_versions", id or visit.path["version"])


async def _memory_of(visit: Visit, version: Json) -> Json | None:
    """The memory that a version is of, as it is now; `None` when there is none any more."""
    try:
        return await visit.api.get("memory_stores", visit.path["store"], "memories", version["memory_id"])
    except RefusedError as refusal:
        if refusal.status != 404:
            raise
        return None


def _redacted(*versions: Json) -> bool:
    return any(each.get("redacted_at") is not None for each in versions)


async def _difference(old: Json | None, new: Json) -> Difference | None:
    """`None` when one of the two is redacted."""
    if _redacted(new, *([old] if old is not None else [])):
        return None
    before = (old["content"] or "") if old is not None else ""
    return await asyncio.to_thread(compared, before, new["content"] or "")


async def _before(visit: Visit, version: Json) -> Json | None:
    """The version of the same memory before this one."""
    found = await visit.api.get(
        "memory_stores",
        visit.path["store"],
        "memory_versions",
        memory_id=version["memory_id"],
        **{"created_at[lte]": version["created_at"]},
    )
    ids = [each["id"] for each in found["data"]]
    earlier = ids[ids.index(version["id"]) + 1 :] if version["id"] in ids else []
    return await _version_of(visit, earlier[0]) if earlier else None


async def _version(visit: Visit) -> Response:
    store, version = await store_of(visit), await _version_of(visit)
    memory = await _memory_of(visit, version)
    current = memory is not None and memory["memory_version_id"] == version["id"]
    return visit.render("version.html", store=store, version=version, memory=memory, current=current)


async def _diff(visit: Visit) -> Response:
    store = await store_of(visit)
    if not visit.query("to"):
        return visit.go(f"/stores/{store['id']}/history")
    new = await _version_of(visit, visit.query("to"))
    old = await _version_of(visit, visit.query("from")) if visit.query("from") else await _before(visit, new)
    if old is not None and old["created_at"] > new["created_at"]:
        old, new = new, old
    return visit.render("diff.html", store=store, old=old, new=new, difference=await _difference(old, new))


async def _restore(visit: Visit) -> Response:
    store, version = await store_of(visit), await _version_of(visit)
    memory = await _memory_of(visit, version)
    problem = None
    if visit.form is not None:
        seen = visit.form.get("sha256")
        expected = {"precondition": {"type": "content_sha256", "content_sha256": seen}} if seen else {}
        where = ("memshelf", "memory_stores", store["id"], "memory_versions", version["id"], "restore")
        try:
            restored = await visit.api.post(*where, body=expected)
        except RefusedError as refusal:
            problem = refusal
            memory = await _memory_of(visit, version)
        else:
            return visit.go(f"/stores/{store['id']}/memories/{restored['id']}", "versions.restored")
    difference = await _difference(memory, version) if memory is not None and not _redacted(version) else None
    return visit.render(
        "restore.html", problem=problem, store=store, version=version, memory=memory, difference=difference
    )


async def _redact(visit: Visit) -> Response:
    store, version = await store_of(visit), await _version_of(visit)
    if visit.form is None:
        return visit.render("redact.html", store=store, version=version, unsure=False)
    if visit.form.get("sure") != "yes":
        return visit.render("redact.html", 400, store=store, version=version, unsure=True)
    try:
        await visit.api.post("memory_stores", store["id"], "memory_versions", version["id"], "redact")
    except RefusedError as refusal:
        return visit.render("redact.html", problem=refusal, store=store, version=version, unsure=False)
    return visit.go(f"/stores/{store['id']}/history?{path_query(memory=version['memory_id'])}", "versions.redacted")


_ONE = "/stores/{store}/versions/{version}"

PAGES = (
    Page("/stores/{store}/diff", _diff),
    Page(_ONE, _version),
    Page(f"{_ONE}/restore", _restore, forms=True),
    Page(f"{_ONE}/redact", _redact, forms=True),
)
