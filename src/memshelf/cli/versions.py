"""`memshelf versions`: what the memories of a store were."""

from __future__ import annotations

from urllib.parse import quote

import click

from memshelf.cli import render, times
from memshelf.cli.command import CommandGroup, asynchronous, confirmed, json_option, limit_option, yes_option
from memshelf.cli.history import show_diff
from memshelf.cli.hosted import Api, extension, hosted, store_argument
from memshelf.cli.serve import (
    data_option,
    database_option,
    keep_recent_option,
    keep_versions_option,
    opened_engine,
    retention_of,
)
from memshelf.errors import MemoryStoreError
from memshelf.mounted import Json
from memshelf.stores import retention as stored
from memshelf.stores.shelf import Shelf

__all__ = ["versions"]


@click.group(cls=CommandGroup)
def versions() -> None:
    """Show, compare, restore and erase the versions of a store's memories.

    --url and --key, or --data, say where the store is, as for `memshelf stores`.

    \b
    Examples:
      memshelf versions list Notes --data ./data
      memshelf versions diff Notes VERSION --data ./data
      memshelf versions redact Notes VERSION --data ./data
      memshelf versions expire --keep-versions 90 --data ./data --dry-run
    """


@versions.command(name="list")
@json_option
@click.option("--memory", metavar="MEMORY", help="Of this memory: a path that it has now, or its id.")
@click.option("--operation", type=click.Choice(["created", "modified", "deleted"]), help="Of this kind.")
@click.option("--session", metavar="ID", help="That this session wrote.")
@click.option("--by-key", metavar="ID", help="That were written with this API key.")
@click.option("--since", metavar="TIME", help="Leave out what is older; an ISO 8601 time.")
@click.option("--until", metavar="TIME", help="Leave out what is newer.")
@limit_option(50, 10_000)
@store_argument
@hosted
async def list_versions(
    api: Api,
    store: str,
    *,
    memory: str | None,
    operation: str | None,
    session: str | None,
    by_key: str | None,
    since: str | None,
    until: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """List the versions of a store, the newest first.

    \b
    Examples:
      memshelf versions list Notes --memory /prefs/tea.md
      memshelf versions list Notes --session sesn_0199 --since 2026-05-01 --json
    """
    path = await api.store(store)
    query = {
        "memory_id": (await api.memory(path, memory))["id"] if memory is not None and memory[:1] == "/" else memory,
        "operation": operation,
        "session_id": session,
        "api_key_id": by_key,
        "created_at[gte]": times.parsed(since, "--since").isoformat() if since is not None else None,
        "created_at[lte]": times.parsed(until, "--until").isoformat() if until is not None else None,
    }
    found = [version async for version in api.items(f"{path}/memory_versions", most=limit, **query)]
    if as_json:
        render.document({"versions": found})
        return
    rows = [_row(version) for version in found]
    render.table(rows, header=("TIME", "OPERATION", "VERSION", "PATH", "BY"), nothing="There are no versions.")


@versions.command()
@json_option
@store_argument
@click.argument("version")
@hosted
async def view(api: Api, store: str, version: str, *, as_json: bool) -> None:
    """Print the content of a version byte for byte.

    \b
    Examples:
      memshelf versions view Notes VERSION
    """
    found = await api.get(_one(await api.store(store), version))
    if as_json:
        render.document(found)
    elif found["content"] is None:
        gone = "redacted" if found["redacted_at"] is not None else "the deletion of a memory"
        raise MemoryStoreError("not_found", f"Version {version} has no content: it is {gone}.")
    else:
        render.show(found["content"])


@versions.command()
@json_option
@store_argument
@click.argument("version")
@click.argument("other", required=False)
@hosted
async def diff(api: Api, store: str, version: str, other: str | None, *, as_json: bool) -> None:
    """Show what VERSION changed, as a unified diff; with two versions, how they differ.

    \b
    Examples:
      memshelf versions diff Notes VERSION
      memshelf versions diff Notes OLD NEW | less
    """
    found = await api.get(f"{extension(_one(await api.store(store), version))}/diff", to=other)
    if as_json:
        render.document({name: found[name] for name in ("from_version_id", "to_version_id", "diff")})
    else:
        show_diff(found["diff"])


@versions.command()
@json_option
@store_argument
@click.argument("version")
@hosted
async def restore(api: Api, store: str, version: str, *, as_json: bool) -> None:
    """Restore a memory to what it was at a version, as a new version. A deleted memory comes back under a new id.

    \b
    Examples:
      memshelf versions restore Notes VERSION
    """
    restored = await api.change("POST", f"{extension(_one(await api.store(store), version))}/restore", {})
    if as_json:
        render.document(restored)
        return
    path, size = render.visible_line(restored["path"]), restored["content_size_bytes"]
    render.line(f"Restored {path} ({render.counted(size, 'byte')}, version {restored['memory_version_id']})")


@versions.command()
@json_option
@yes_option
@store_argument
@click.argument("version")
@hosted
async def redact(api: Api, store: str, version: str, *, yes: bool, as_json: bool) -> None:
    """Erase the path and content of a version for good. What remains shows that it was erased, when and by whom.

    The current version of a memory cannot be redacted: change or delete the memory first, or erase it with all versions
    by `memshelf memories erase`. Asks on a terminal; elsewhere, and with --json, say --yes.

    \b
    Examples:
      memshelf versions redact Notes VERSION --yes
    """
    path = _one(await api.store(store), version)
    if not yes:
        found = await api.get(path, view="basic")
        shown = render.visible_line(found["path"]) if found["path"] is not None else "(redacted)"
        confirmed(f"Erase version {version} of {shown} for good?", as_json=as_json)
    redacted = await api.change("POST", f"{path}/redact", {})
    if as_json:
        render.document(redacted)
    else:
        render.line(f"Redacted version {redacted['id']}")


@versions.command()
@data_option
@database_option
@json_option
@keep_versions_option
@keep_recent_option
@click.option("--dry-run", is_flag=True, help="Only count what would be erased.")
@yes_option
@click.argument("store", metavar="[STORE_ID]", required=False)
@asynchronous
async def expire(
    data: str | None,
    database: str | None,
    store: str | None,
    *,
    keep_versions: int | None,
    keep_recent: int | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> None:
    """Erase for good the versions that stopped being current long ago, as `memshelf serve --keep-versions` does.

    What remains of them is what remains of redacted ones. It works on the data itself, in all workspaces or for
    STORE_ID alone, while a service may run; ended in the midst, it goes on when it is run again. Asks on a terminal;
    elsewhere, and with --json, say --yes.

    \b
    Examples:
      memshelf versions expire --keep-versions 90 --data ./data --dry-run
      memshelf versions expire --keep-versions 90 --keep-recent 3 --data ./data --yes
    """
    retention = retention_of(keep_versions, keep_recent)
    if retention is None:
        raise click.UsageError("Say for how many days versions are kept: --keep-versions DAYS.")
    if not dry_run and not yes:
        question = f"Erase for good the versions that stopped being current over {retention.days} days ago?"
        confirmed(question, as_json=as_json, instead="say --dry-run or --yes")
    found: list[Json] = []
    async with opened_engine(data, database) as engine:
        async for id, each in stored.expire(Shelf(engine), retention, store_id=store, dry_run=dry_run):
            found.append({"store": id, "versions": each.versions, "bytes": each.bytes})
            if not as_json:
                render.line(f"{id}: {render.counted(each.versions, 'version')}, {render.counted(each.bytes, 'byte')}")
    if as_json:
        render.document({"dry_run": dry_run, "stores": found})
    else:
        total = sum(each["versions"] for each in found)
        render.line(f"{'Would erase' if dry_run else 'Erased'} {render.counted(total, 'version')}")


def _one(store: str, version: str) -> str:
    return f"{store}/memory_versions/{quote(version, safe='')}"


def _row(version: Json) -> list[str]:
    path = "(redacted)" if version["redacted_at"] is not None else version["path"] or ""
    author = version["created_by"] or {}
    by = next((value for name, value in author.items() if name != "type"), "")
    when = times.shown(version["created_at"])
    return [when, version["operation"], version["id"], path, by]
