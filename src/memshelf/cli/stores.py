"""`memshelf stores`: the memory stores of a service."""

from __future__ import annotations

import click

from memshelf.cli import render, times
from memshelf.cli.command import (
    CommandGroup,
    TextCommand,
    confirmed,
    head_option,
    json_option,
    limit_option,
    question,
    text,
    yes_option,
)
from memshelf.cli.hosted import Api, extension, hosted, store_argument
from memshelf.mounted import Json

__all__ = ["stores"]


@click.group(cls=CommandGroup)
def stores() -> None:
    """Create, show, search, archive and delete the memory stores of a service.

    Every command works on a service, with --url and --key, or on the data of one on this machine, with --data; a
    service may run on it meanwhile. A STORE is named by its id, or by its name if no other store has it.

    \b
    Examples:
      memshelf stores create Notes --url http://127.0.0.1:8080 --key KEY
      memshelf stores list --data ./data
      memshelf stores search Notes "green tea" --data ./data
    """


_metadata_option = click.option(
    "--metadata", "pairs", metavar="KEY=VALUE", multiple=True, help="A pair of metadata; may be given more than once."
)


@stores.command(name="list")
@json_option
@click.option("--archived", is_flag=True, help="Also list archived stores.")
@hosted
async def list_stores(api: Api, *, archived: bool, as_json: bool) -> None:
    """List the stores, the newest first.

    \b
    Examples:
      memshelf stores list --data ./data
      memshelf stores list --archived --json
    """
    found = [store async for store in api.items("/v1/memory_stores", include_archived=str(archived).lower())]
    if as_json:
        render.document({"stores": found})
        return
    rows = [[times.shown(store["created_at"]), store["id"], _state(store), store["name"]] for store in found]
    render.table(rows, header=("CREATED", "ID", "STATE", "NAME"), nothing="There are no stores.")


@stores.command()
@json_option
@click.option("--description", default="", help="What it holds, for agents that mount it.")
@_metadata_option
@click.argument("name")
@hosted
async def create(api: Api, name: str, *, description: str, pairs: tuple[str, ...], as_json: bool) -> None:
    """Create a store.

    \b
    Examples:
      memshelf stores create Notes --description "What the team decided" --metadata team=tea
    """
    body = {"name": name, "description": description, "metadata": _pairs(pairs)}
    store = await api.change("POST", "/v1/memory_stores", body)
    _show(store, f"Created store {store['id']}", as_json=as_json)


@stores.command()
@json_option
@store_argument
@hosted
async def show(api: Api, store: str, *, as_json: bool) -> None:
    """Show the fields of a store.

    \b
    Examples:
      memshelf stores show Notes
    """
    found = await api.get(await api.store(store))
    if as_json:
        render.document(found)
        return
    rows = [[name, str(found[name])] for name in ("id", "name", "description")]
    rows += [[name, times.shown(found[name])] for name in ("created_at", "updated_at", "archived_at") if found[name]]
    rows += [[f"metadata {key}", value] for key, value in found["metadata"].items()]
    render.table(rows, header=("FIELD", "VALUE"), whole=True)


@stores.command()
@json_option
@click.option("--name", help="A new name.")
@click.option("--description", help="A new description; an empty one removes it.")
@_metadata_option
@store_argument
@hosted
async def update(
    api: Api, store: str, *, name: str | None, description: str | None, pairs: tuple[str, ...], as_json: bool
) -> None:
    """Change a store's name, description or metadata. What you do not give is kept; KEY= removes a key.

    \b
    Examples:
      memshelf stores update Notes --name "Team notes" --metadata team=
    """
    body: Json = {} if name is None else {"name": name}
    if description is not None:
        body["description"] = description
    if pairs:
        body["metadata"] = {key: value or None for key, value in _pairs(pairs).items()}
    if not body:
        raise click.UsageError("Say what to change: --name, --description or --metadata.")
    changed = await api.change("POST", await api.store(store), body)
    _show(changed, f"Updated store {changed['id']}", as_json=as_json)


@stores.command()
@json_option
@yes_option
@store_argument
@hosted
async def archive(api: Api, store: str, *, yes: bool, as_json: bool) -> None:
    """Archive a store for good: it can be read, and no longer written or mounted.

    Asks on a terminal; elsewhere, and with --json, say --yes.

    \b
    Examples:
      memshelf stores archive Notes --yes
    """
    path = await api.store(store)
    if not yes:
        confirmed(f"Archive store {render.visible_line(store)} for good?", as_json=as_json)
    archived = await api.change("POST", f"{path}/archive")
    _show(archived, f"Archived store {archived['id']}", as_json=as_json)


@stores.command()
@json_option
@yes_option
@store_argument
@hosted
async def delete(api: Api, store: str, *, yes: bool, as_json: bool) -> None:
    """Delete a store with its memories and all their versions, for good.

    Asks on a terminal; elsewhere, and with --json, say --yes.

    \b
    Examples:
      memshelf stores delete memstore_0199 --yes
    """
    path = await api.store(store)
    if not yes:
        question = f"Delete store {render.visible_line(store)} with all its memories and versions for good?"
        confirmed(question, as_json=as_json)
    deleted = await api.change("DELETE", path)
    _show(deleted, f"Deleted store {deleted['id']}", as_json=as_json)


@stores.command(cls=TextCommand)
@json_option
@limit_option(20, 100)
@click.option(
    "--prefix", metavar="PREFIX", default="/", show_default=True, help="Only below this path, such as /notes/."
)
@click.argument("store", type=text)
@click.argument("query", type=question)
@hosted
async def search(api: Api, store: str, query: str, *, limit: int, prefix: str, as_json: bool) -> None:
    """Find the memories that have a word of QUERY, the best match first. Finding nothing is not a failure.

    \b
    Examples:
      memshelf stores search Notes "green tea"
      memshelf stores search Notes 绿茶 --prefix /prefs/ --json
    """
    path = extension(await api.store(store))
    found = await api.get(f"{path}/search", query=query, limit=limit, path_prefix=prefix)
    if as_json:
        render.document({"hits": found["data"]})
        return
    for hit in found["data"]:
        place = render.paint(render.visible_line(hit["memory"]["path"]), "magenta")
        if hit["line"] is None:
            render.line(place)
        else:
            render.line(f"{place}:{hit['line']}:{render.visible_line(hit['excerpt'])}")
    if not found["data"]:
        render.empty("Nothing was found.")


@stores.command()
@json_option
@yes_option
@click.option("--session", metavar="ID", help="What this session wrote.")
@click.option("--by-key", metavar="ID", help="What was written with this API key, outside of sessions.")
@click.option("--user", metavar="ID", help="What this user wrote.")
@click.option("--since", metavar="TIME", required=True, help="Since when; an ISO 8601 time.")
@store_argument
@hosted
async def undo(
    api: Api,
    store: str,
    *,
    session: str | None,
    by_key: str | None,
    user: str | None,
    since: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Undo what one author wrote in a store since a time. What others changed afterwards is kept.

    Asks on a terminal; elsewhere, and with --json, say --yes.

    \b
    Examples:
      memshelf stores undo Notes --session sesn_0199 --since 2026-05-01T12:00
    """
    authors: list[Json] = []
    for type, field, id in (
        ("session_actor", "session_id", session),
        ("api_actor", "api_key_id", by_key),
        ("user_actor", "user_id", user),
    ):
        if id is not None:
            authors.append({"type": type, field: id})
    if len(authors) != 1:
        raise click.UsageError("Say whose changes: one of --session, --by-key and --user.")
    moment = times.parsed(since, "--since")
    path = extension(await api.store(store))
    if not yes:
        confirmed(f"Take back what they wrote since {times.shown(moment)}?", as_json=as_json)
    undone = await api.change("POST", f"{path}/undo", {"actor": authors[0], "since": moment.isoformat()})
    if as_json:
        render.document({"undone": undone["data"]})
        return
    for each in undone["data"]:
        shown = each["memory"]["path"] if each["memory"] is not None else each["memory_id"]
        reason = f": {each['reason']}" if each["reason"] else ""
        render.line(render.visible_line(f"{each['outcome']}\t{shown}{reason}").replace("\\t", "\t"))
    if not undone["data"]:
        render.empty("There was nothing to undo.")


@stores.command()
@json_option
@head_option
@store_argument
@hosted
async def verify(api: Api, store: str, head: str | None, *, as_json: bool) -> None:
    """Check that the history of a store is whole. Keep the head that is printed somewhere else, and give it to a later
    check, so that nobody can have written the whole history anew.

    \b
    Examples:
      memshelf stores verify Notes --url http://127.0.0.1:8080
    """
    found = await api.get(f"{extension(await api.store(store))}/verify", head=head)
    if as_json:
        render.document({name: found[name] for name in ("intact", "versions", "head", "problems")})
    else:
        for problem in found["problems"]:
            render.line(render.visible_line(problem))
        state = "Intact" if found["intact"] else "Damaged"
        render.line(f"{state}: {render.counted(found['versions'], 'version')}, head {found['head']}")
    if not found["intact"]:
        raise click.exceptions.Exit(1)


def _show(answer: Json, done: str, *, as_json: bool) -> None:
    if as_json:
        render.document(answer)
    else:
        render.line(done)


def _pairs(given: tuple[str, ...]) -> dict[str, str]:
    pairs = {}
    for each in given:
        key, mark, value = each.partition("=")
        if not key or not mark:
            raise click.BadParameter(f"{each!r} is not KEY=VALUE.", param_hint="--metadata")
        pairs[key] = value
    return pairs


def _state(store: Json) -> str:
    return "archived" if store["archived_at"] is not None else "active"
