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
_MOST_READ = 10
_ACTORS = {
    "session": ("session_actor", "session_id"),
    "key": ("api_actor", "api_key_id"),
    "user": ("user_actor", "user_id"),
}
_FILTERS = ("memory", "operation", "kind", "actor", "since", "until")


async def _history(visit: Visit) -> Response:
    store = await store_of(visit)
    asked = {name: visit.query(name).strip() for name in _FILTERS}
    found, problem = None, None
    try:
        found = await _changes(visit, asked)
    except RefusedError as refusal:
        problem = refusal
    return visit.render("history.html", store=store, asked=asked, found=found, problem=problem)


async def _changes(visit: Visit, asked: dict[str, str]) -> Json:
    """A page of the versions that were asked for. No parameter of the API leaves what a user wrote: that is picked from
    so many pages of all, and there may be more when none of it was on them."""
    page, actor = visit.query("page") or None, asked["actor"]
    if asked["kind"] != "user" or not actor:
        return await _versions(visit, asked, page)
    wrote = []
    for _ in range(_MOST_READ):
        found = await _versions(visit, asked, page)
        wrote += [each for each in found["data"] if each["created_by"] == _named("user", actor)]
        page = found["next_page"]
        if page is None or len(wrote) >= _A_PAGE:
            break
    return {"data": wrote, "next_page": page}


async def _versions(visit: Visit, asked: dict[str, str], page: str | None) -> Json:
    kind, actor = asked["kind"], asked["actor"]
    return await visit.api.get(
        "memory_stores",
        visit.path["store"],
        "memory_versions",
        limit=_A_PAGE,
        page=page,
        memory_id=asked["memory"] or None,
        operation=asked["operation"] or None,
        **({_ACTORS[kind][1]: actor} if actor and kind in ("session", "key") else {}),
        **_period(asked),
    )


def _named(kind: str, actor: str) -> dict[str, str]:
    """An actor, as the API names one. A kind that is none goes to the API as it is, which says so."""
    type, field = _ACTORS.get(kind, (kind, "user_id"))
    return {"type": type, field: actor}


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
        body = {"actor": _named(kind, actor), "since": moment(since) or since}
        try:
            done = await visit.api.post("memshelf", "memory_stores", store["id"], "undo", body=body)
        except RefusedError as refusal:
            return visit.render("undo.html", problem=refusal, store=store, asked=asked, found=None)
        return visit.render("undone.html", store=store, asked=asked, done=done["data"])
    found: Json | None = None
    problem = None
    if actor and since and kind in _ACTORS:
        try:
            found = await _changes(visit, asked)
        except RefusedError as refusal:
            problem = refusal
    return visit.render("undo.html", problem=problem, store=store, asked=asked, found=found)


PAGES = (
    Page("/stores/{store}/history", _history),
    Page("/stores/{store}/moment", _moment),
    Page("/stores/{store}/undo", _undo, forms=True),
)
