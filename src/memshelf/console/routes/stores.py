"""Memory stores: the list of them, and what can be done with one as a whole."""

from __future__ import annotations

import json
import unicodedata

from starlette.responses import Response

from memshelf.console.api import Json, RefusedError
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
        known = json.dumps({name: store[name] for name in ("name", "description", "metadata")})
        return _shown(visit, store, known, store["name"], store["description"], list(store["metadata"].items()))
    form = visit.form
    name, description, known = form.get("name").strip(), form.get("description"), form.get("known")
    pairs = list(zip(form.every("key"), form.every("value"), strict=False))
    try:
        body = _changes(known, name, description, {key: value for key, value in pairs if key})
        await visit.api.post("memory_stores", visit.path["store"], body=body)
    except RefusedError as refusal:
        return _shown(visit, await store_of(visit), known, name, description, pairs, problem=refusal)
    return visit.go(f"/stores/{visit.path['store']}/settings", "settings.saved")


def _changes(known: str, name: str, description: str, metadata: dict[str, str]) -> Json:
    """From what the form began with to what it says: what others changed meanwhile stays."""
    try:
        before = json.loads(known)
        pairs: dict[str, object] = dict(before["metadata"])
    except (ValueError, TypeError, LookupError, RecursionError):  # no form of ours
        before, pairs = {}, {}
    body: Json = {"metadata": {key: None for key in pairs if key not in metadata}}
    body["metadata"] |= {key: value for key, value in metadata.items() if value != _in_a_form(pairs.get(key))}
    if name != str(before.get("name")).strip():
        body["name"] = name
    if description != _in_a_form(before.get("description")):
        body["description"] = description
    return body


def _in_a_form(text: object) -> object:
    """A text as a form has it, which knows one kind of line end."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if isinstance(text, str) else None


def _shown(
    visit: Visit,
    store: Json,
    known: str,
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
        known=known,
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
