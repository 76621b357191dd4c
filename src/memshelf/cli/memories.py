"""`memshelf memories`: the memories of one store."""

from __future__ import annotations

from urllib.parse import quote

import click

from memshelf.cli import render, times
from memshelf.cli.changes import content_of, content_option
from memshelf.cli.command import CommandGroup, TextCommand, confirmed, json_option, text, yes_option
from memshelf.cli.hosted import FORMAT, Api, extension, hosted, memory_argument, store_argument
from memshelf.errors import MemoryStoreError
from memshelf.mounted import Json

__all__ = ["memories"]


@click.group(cls=CommandGroup)
def memories() -> None:
    """Read and change the memories of a store.

    A MEMORY is named by its path, which begins with /, or by its id. --url and --key, or --data, say where the store
    is, as for `memshelf stores`.

    \b
    Examples:
      memshelf memories create Notes /prefs/tea.md "Likes green tea." --data ./data
      memshelf memories list Notes --data ./data
      memshelf memories view Notes /prefs/tea.md --data ./data
    """


@memories.command(name="list")
@json_option
@click.option("--recursive", "-r", is_flag=True, help="Also list what is below subdirectories.")
@click.option("--at", metavar="TIME", help="As it was at this time; an ISO 8601 time.")
@store_argument
@click.argument("prefix", default="/")
@hosted
async def list_memories(api: Api, store: str, prefix: str, *, recursive: bool, at: str | None, as_json: bool) -> None:
    """List the memories below PREFIX, which ends with /.

    \b
    Examples:
      memshelf memories list Notes
      memshelf memories list Notes /prefs/ --recursive --json
      memshelf memories list Notes --at 2026-05-01T12:00
    """
    path = await api.store(store)
    if at is not None:
        moment = times.parsed(at, "--at").isoformat()
        found = [item async for item in api.items(f"{extension(path)}/memories", at=moment, path_prefix=prefix)]
        rows = [
            [each["path"], str(each["content_size_bytes"]), times.shown(each["created_at"]), each["id"]]
            for each in found
        ]
    else:
        depth = 0 if recursive else 1
        found = [item async for item in api.items(f"{path}/memories", path_prefix=prefix, depth=depth)]
        rows = [
            [each["path"], str(each["content_size_bytes"]), times.shown(each["updated_at"]), each["memory_version_id"]]
            if each["type"] == "memory"
            else [each["path"], "", "", ""]
            for each in found
        ]
    if as_json:
        render.document({"memories": found})
    else:
        render.table(rows, header=("PATH", "SIZE", "CHANGED", "VERSION"), right=(1,), nothing="There are no memories.")


@memories.command()
@json_option
@store_argument
@memory_argument
@hosted
async def view(api: Api, store: str, memory: str, *, as_json: bool) -> None:
    """Print a memory byte for byte. On a terminal, control characters are shown escaped.

    \b
    Examples:
      memshelf memories view Notes /prefs/tea.md
    """
    found = await api.memory(await api.store(store), memory)
    if as_json:
        render.document(found)
    else:
        render.show(found["content"])


@memories.command(cls=TextCommand)
@json_option
@content_option
@click.argument("store", type=text)
@click.argument("path", type=text)
@click.argument("content", type=text, required=False)
@hosted
async def create(api: Api, store: str, path: str, content: str | None, *, source: str | None, as_json: bool) -> None:
    """Create a memory at a path that is free. The content is CONTENT, or that of --file, or else standard input.

    \b
    Examples:
      memshelf memories create Notes /prefs/tea.md "Likes green tea."
      memshelf memories create Notes /plan.md --file plan.md
    """
    body = {"path": path, "content": content_of(content, source, FORMAT.max_file_bytes)}
    created = await api.change("POST", f"{await api.store(store)}/memories", body)
    _show(created, "Created", as_json=as_json)


@memories.command(cls=TextCommand)
@json_option
@content_option
@click.option("--move-to", metavar="PATH", help="A new path, which must be free.")
@click.option("--expect", metavar="VERSION", help="Refuse if the memory is no longer at this version.")
@click.argument("store", type=text)
@click.argument("memory", type=text)
@click.argument("content", type=text, required=False)
@hosted
async def update(
    api: Api,
    store: str,
    memory: str,
    content: str | None,
    *,
    source: str | None,
    move_to: str | None,
    expect: str | None,
    as_json: bool,
) -> None:
    """Replace the content of a memory, move it, or both as one version.

    Refused if the memory changes in the meantime. With --move-to alone the content stays; otherwise it is CONTENT, or
    that of --file, or else standard input.

    \b
    Examples:
      memshelf memories update Notes /prefs/tea.md "Likes black tea."
      memshelf memories update Notes /prefs/tea.md --move-to /tea.md
    """
    body: Json = {} if move_to is None else {"path": move_to}
    if move_to is None or content is not None or source is not None:
        body["content"] = content_of(content, source, FORMAT.max_file_bytes)
        if (
            body["content"] == "" and content in (None, "-") and source is None
        ):  # whatever was to write there has failed
            raise click.UsageError("Standard input is empty. To empty the memory, give '' as its CONTENT.")
    path = await api.store(store)
    current = await api.memory(path, memory)
    _require(current, expect)
    body["precondition"] = {"type": "content_sha256", "content_sha256": current["content_sha256"]}
    updated = await api.change("POST", f"{path}/memories/{quote(current['id'], safe='')}", body)
    _show(updated, "Updated", as_json=as_json)


@memories.command()
@json_option
@yes_option
@click.option("--expect", metavar="VERSION", help="Refuse if the memory is no longer at this version.")
@store_argument
@memory_argument
@hosted
async def delete(api: Api, store: str, memory: str, *, yes: bool, expect: str | None, as_json: bool) -> None:
    """Delete a memory; its versions stay, unlike with `erase`. Refused if the memory changes in the meantime.

    Asks on a terminal; elsewhere, and with --json, say --yes.

    \b
    Examples:
      memshelf memories delete Notes /prefs/tea.md --yes
    """
    path = await api.store(store)
    current = await api.memory(path, memory)
    _require(current, expect)
    if not yes:
        confirmed(f"Delete {render.visible_line(current['path'])}?", as_json=as_json)
    deleted = await api.delete_memory(path, current)
    if as_json:
        render.document(deleted)
    else:
        render.line(f"Deleted {render.visible_line(current['path'])} (version {current['memory_version_id']})")


def _require(current: Json, expect: str | None) -> None:
    if expect is not None and current["memory_version_id"] != expect:
        raise MemoryStoreError(
            "version_mismatch", f"{current['path']} is no longer at version {expect}; nothing changed."
        )


def _show(memory: Json, done: str, *, as_json: bool) -> None:
    if as_json:
        render.document(memory)
    else:
        path, size, version = memory["path"], memory["content_size_bytes"], memory["memory_version_id"]
        render.line(f"{done} {render.visible_line(path)} ({render.counted(size, 'byte')}, version {version})")
