"""What is only looked at: searches, the sessions that mount a store, and whether its history holds."""

from __future__ import annotations

from starlette.responses import Response

from memshelf.console.api import RefusedError
from memshelf.console.page import Page, Visit
from memshelf.console.routes.memories import prefix_of
from memshelf.console.routes.stores import store_of

__all__ = ["PAGES"]

_HITS = 50


async def _search(visit: Visit) -> Response:
    store, prefix = await store_of(visit), prefix_of(visit)
    asked = visit.query("query").strip()
    by = "meaning" if visit.query("by") == "meaning" else "words"
    hits, problem = None, None
    if asked:
        try:
            found = await visit.api.get(
                "memshelf", "memory_stores", store["id"], "search", query=asked, by=by, path_prefix=prefix, limit=_HITS
            )
            hits = found["data"]
        except RefusedError as refusal:
            problem = refusal
    return visit.render("search.html", store=store, prefix=prefix, asked=asked, by=by, hits=hits, problem=problem)


async def _sessions(visit: Visit) -> Response:
    store = await store_of(visit)
    archived = visit.query("archived") == "1"
    found = await visit.api.get(
        "sessions",
        memory_store_id=store["id"],
        include_archived="true" if archived else "false",
        page=visit.query("page") or None,
    )
    for session in found["data"]:
        session["mount"] = next(each for each in session["resources"] if each["memory_store_id"] == store["id"])
    return visit.render("sessions.html", store=store, found=found, archived=archived)


async def _verify(visit: Visit) -> Response:
    store = await store_of(visit)
    head = visit.query("head").strip()
    report, problem = None, None
    if visit.query("check") == "1":
        try:
            report = await visit.api.get("memshelf", "memory_stores", store["id"], "verify", head=head or None)
        except RefusedError as refusal:
            problem = refusal
    return visit.render("verify.html", store=store, head=head, report=report, problem=problem)


PAGES = (
    Page("/stores/{store}/search", _search),
    Page("/stores/{store}/sessions", _sessions),
    Page("/stores/{store}/verify", _verify),
)
