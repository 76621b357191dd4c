"""The history of a store: every change, the store as it was, and taking back what one wrote."""

from __future__ import annotations

from starlette.responses import Response

from memshelf.console.api import Json, RefusedError
from memshelf.console.page import Page, Visit
from memshelf.console.routes.memories import crumbs, prefix_of
from memshelf.console.routes.stores import store_of
from memshelf.console.text import moment

__all__ = ["PAGES"]

_A_PAGE = 50
_ACTORS = {"session": "session_id", "key": "api_key_id", "user": "user_id"}
_FILTERS = ("memory", "operation", "kind", "actor", "since", "until")


async def _history(visit: Visit) -> Response:
    store = await store_of(visit)
    asked = {name: visit.query(name).strip() for name in _FILTERS}
    found, problem = None, None
    try:
        found = await _versions(visit, asked)
    except RefusedError as refusal:
        problem = refusal
    return visit.render("history.html", store=store, asked=asked, found=found, problem=problem)


async def _versions(visit: Visit, asked: dict[str, str]) -> Json:
    return await visit.api.get(
        "memory_stores",
        visit.path["store"],
        "memory_versions",
        limit=_A_PAGE,
        page=visit.query("page") or None,
        memory_id=asked["memory"] or None,
        operation=asked["operation"] or None,
        **_by(asked["kind"], asked["actor"]),
        **_period(asked),
    )


def _by(kind: str, actor: str) -> dict[str, object]:
    """The parameter of a listing that leaves what one actor wrote. Of users the API has none."""
    return {_ACTORS[kind]: actor} if actor and kind in ("session", "key") else {}


def _period(asked: dict[str, str]) -> dict[str, object]:
    """A time that is none goes to the API as it is, which says so."""
    return {
        f"created_at[{bound}]": (moment(asked[name]) or asked[name]) or None
        for name, bound in (("since", "gte"), ("until", "lte"))
    }


async def _moment(visit: Visit) -> Response:
    store, prefix, typed = await store_of(visit), prefix_of(visit), visit.query("time").strip()
    found, problem = None, None
    if typed:
        try:
            found = await visit.api.get(
                "memshelf",
                "memory_stores",
                store["id"],
                "memories",
                at=moment(typed) or typed,
                path_prefix=prefix,
                limit=_A_PAGE,
                page=visit.query("page") or None,
            )
        except RefusedError as refusal:
            problem = refusal
    return visit.render(
        "moment.html", store=store, prefix=prefix, crumbs=crumbs(prefix), time=typed, found=found, problem=problem
    )


async def _undo(visit: Visit) -> Response:
    store = await store_of(visit)
    form = visit.form
    kind, actor, since = (
        (form.get(name) if form is not None else visit.query(name)).strip() for name in ("kind", "actor", "since")
    )
    asked = {**dict.fromkeys(_FILTERS, ""), "kind": kind, "actor": actor, "since": since}
    if form is not None and form.get("sure") == "yes":
        named = {"session": "session_actor", "key": "api_actor", "user": "user_actor"}.get(kind, kind)
        body = {
            "actor": {"type": named, _ACTORS.get(kind, "user_id"): actor},
            "since": moment(since) or since,
        }
        try:
            done = await visit.api.post("memshelf", "memory_stores", store["id"], "undo", body=body)
        except RefusedError as refusal:
            return visit.render("undo.html", problem=refusal, store=store, asked=asked, found=None, preview=False)
        return visit.render("undone.html", store=store, asked=asked, done=done["data"])
    found: Json | None = None
    problem = None
    if actor and since and kind in ("session", "key"):
        try:
            found = await _versions(visit, asked)
        except RefusedError as refusal:
            problem = refusal
    return visit.render(
        "undo.html",
        problem=problem,
        store=store,
        asked=asked,
        found=found,
        preview=bool(actor and since and problem is None),
    )


PAGES = (
    Page("/stores/{store}/history", _history),
    Page("/stores/{store}/moment", _moment),
    Page("/stores/{store}/undo", _undo, forms=True),
)
