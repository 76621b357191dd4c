"""Memory stores: the list of them, and what can be done with one as a whole."""

from __future__ import annotations

import json
import unicodedata

from starlette.responses import Response

from memshelf.console.api import Json, RefusedError
from memshelf.console.form import Form
from memshelf.console.page import Page, Visit

__all__ = ["PAGES", "store_of"]

_A_PAGE = 50
_BLANK_PAIRS = 2
_MOST_PAIRS = 16


async def store_of(visit: Visit) -> Json:
    return await visit.api.get("memory_stores", visit.path["store"])


async def _list(visit: Visit) -> Response:
    archived = visit.query("archived") == "1"
    found = await visit.api.get(
        "memory_stores",
        limit=_A_PAGE,
        page=visit.query("page") or None,
        include_archived="true" if archived else "false",
    )
    return visit.render("stores.html", found=found, archived=archived)


async def _create(visit: Visit) -> Response:
    if visit.form is None:
        return visit.render("store_new.html", name="", description="")
    name, description = visit.form.get("name").strip(), visit.form.get("description")
    try:
        store = await visit.api.post("memory_stores", body={"name": name, "description": description})
    except RefusedError as refusal:
        return visit.render("store_new.html", problem=refusal, name=name, description=description)
    return visit.go(f"/stores/{store['id']}", "stores.created")


async def _settings(visit: Visit) -> Response:
    if visit.form is None:
        store = await store_of(visit)
        return _shown(visit, store, store["name"], store["description"], list(store["metadata"].items()))
    name, description = visit.form.get("name").strip(), visit.form.get("description")
    pairs = list(zip(visit.form.every("key"), visit.form.every("value"), strict=False))
    try:
        await visit.api.post(
            "memory_stores",
            visit.path["store"],
            body={"name": name, "description": description, "metadata": _patch(visit.form, pairs)},
        )
    except RefusedError as refusal:
        return _shown(visit, await store_of(visit), name, description, pairs, problem=refusal)
    return visit.go(f"/stores/{visit.path['store']}/settings", "settings.saved")


def _patch(form: Form, pairs: list[tuple[str, str]]) -> dict[str, str | None]:
    """From the metadata that the form began with to what it says: what others changed meanwhile stays."""
    try:
        known = json.loads(form.get("known"))
    except ValueError:
        known = {}
    if not isinstance(known, dict):
        known = {}
    wanted = {key: value for key, value in pairs if key}
    changed: dict[str, str | None] = {key: value for key, value in wanted.items() if known.get(key) != value}
    return {**{key: None for key in known if key not in wanted}, **changed}


def _shown(
    visit: Visit,
    store: Json,
    name: str,
    description: str,
    pairs: list[tuple[str, str]],
    problem: RefusedError | None = None,
) -> Response:
    rows = [pair for pair in pairs if pair[0] or pair[1]]
    rows += [("", "")] * max(0, min(_BLANK_PAIRS, _MOST_PAIRS - len(rows)))
    return visit.render(
        "settings.html",
        store=store,
        name=name,
        description=description,
        pairs=rows,
        problem=problem,
    )


async def _archive(visit: Visit) -> Response:
    store = await store_of(visit)
    if visit.form is None:
        return visit.render("archive.html", store=store)
    try:
        await visit.api.post("memory_stores", store["id"], "archive")
    except RefusedError as refusal:
        return visit.render("archive.html", problem=refusal, store=store)
    return visit.go(f"/stores/{store['id']}", "settings.archived")


async def _delete(visit: Visit) -> Response:
    store = await store_of(visit)
    if visit.form is None:
        return visit.render("store_delete.html", store=store, wrong=False)
    typed = unicodedata.normalize("NFC", visit.form.get("confirm")).strip()
    if typed not in (unicodedata.normalize("NFC", store["name"]).strip(), store["id"]):  # not every name can be typed
        return visit.render("store_delete.html", 400, store=store, wrong=True)
    try:
        await visit.api.delete("memory_stores", store["id"])
    except RefusedError as refusal:
        return visit.render("store_delete.html", problem=refusal, store=store, wrong=False)
    return visit.go("/stores", "stores.deleted")


PAGES = (
    Page("/stores", _list),
    Page("/stores/new", _create, forms=True),
    Page("/stores/{store}/settings", _settings, forms=True),
    Page("/stores/{store}/archive", _archive, forms=True),
    Page("/stores/{store}/delete", _delete, forms=True),
)
