"""`memshelf mcp`: memories for clients of the Model Context Protocol, which start this command themselves."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from memshelf.cli import render
from memshelf.cli.command import Unavailable, disk_paths, in_words_of_options
from memshelf.cli.memory import origin, require_room
from memshelf.cli.mounts import mounted, named, place_of, say_what_is_new
from memshelf.errors import MemoryStoreError
from memshelf.files.mount import FileMount
from memshelf.presence import stands

if TYPE_CHECKING:
    from memshelf.records.mount import RecordMount
    from memshelf.workspace.workspace import Workspace

__all__ = ["mcp"]


@click.command()
@click.option(
    "--memory",
    "-m",
    "memories",
    multiple=True,
    metavar="NAME=PATH[:read|:write]",
    help="Mount a file memory under a name; repeatable. PATH is a directory or a SQLite file (PATH#NAME). Writable "
    "unless it ends in :read.",
)
@click.option(
    "--records",
    "-r",
    multiple=True,
    metavar="NAME=PATH[:read|:write]",
    help="Mount a record memory under a name; repeatable. PATH is a SQLite file (PATH#NAMESPACE).",
)
@click.option(
    "--store",
    "-s",
    "stores",
    multiple=True,
    metavar="NAME=STORE[:read|:write]",
    help="Mount a store of the service at --url under a name; repeatable. STORE is its id, memstore_...",
)
@click.option("--url", metavar="URL", envvar="MEMSHELF_URL", show_envvar=True, help="The service with these stores.")
@click.option("--key", metavar="KEY", envvar="MEMSHELF_KEY", show_envvar=True, help="An API key of the service.")
@click.option(
    "--workspace",
    "-w",
    "directory",
    metavar="DIR",
    shell_complete=disk_paths,
    help="Serve the workspace in this directory: what is known about the user, and standing rules.",
)
@click.option("--user", metavar="ID", help="Whose workspace memory.  [default: default]")
def mcp(
    memories: Sequence[str],
    records: Sequence[str],
    stores: Sequence[str],
    url: str | None,
    key: str | None,
    directory: str | None,
    user: str | None,
) -> None:
    """Serve memories to a client of the Model Context Protocol.

    The client starts this command and speaks to it on its standard input and output; it ends with the client. Write
    absolute paths into the client's settings, as it may start the command in any folder.

    \b
    Examples:
      memshelf mcp --memory user=/path/to/memory
      memshelf mcp --memory user=/path/to/user.db --records facts=/path/to/user.db
      memshelf mcp --workspace /path/to/notes --user ann
      memshelf mcp --store team=memstore_0123:read --url https://memory.example.com
    """
    if not (memories or records or stores or directory):
        raise click.UsageError(
            "There is no memory. Give --memory NAME=PATH, --records NAME=PATH, --store NAME=STORE or --workspace DIR."
        )
    if user is not None and directory is None:
        raise click.UsageError("--user goes with --workspace DIR.")
    if stores and not (url and key):
        raise click.UsageError("--store needs the service: --url URL, and its key in the variable MEMSHELF_KEY.")
    try:
        import_module("memshelf.mcp")
    except ModuleNotFoundError as error:
        raise Unavailable(str(error)) from None
    workspace = None
    if directory is not None:
        from memshelf.cli.workspace_place import opened_workspace  # it loads the search of entries

        workspace = opened_workspace(directory, user)
    places = [mounted(each, ("README.md",)) for each in memories]
    say_what_is_new(places)
    files = [each.mount for each in places]
    files += [_store(each, str(url), str(key)) for each in stores]
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _end)
    try:
        asyncio.run(_serve(files, [_records(each) for each in records], workspace))
    except* BrokenPipeError:  # the client has gone, and nobody is left to tell
        pass


def _end(number: int, _: FrameType | None) -> NoReturn:
    """At once: Python would wait for the thread that waits for the client. What was acknowledged is kept."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    os._exit(128 + number)  # the first process of a container: there, the system ignores what is not handled


def _records(given: str) -> RecordMount:
    from memshelf.records.backends.sqlite import SqliteRecordStore  # it loads NumPy, which other commands do not need
    from memshelf.records.mount import RecordMount

    each = named(given, "--records", "NAME=PATH, such as facts=facts.db")
    place = place_of(each, given, "--records", lambda place: stands(place.path))
    if place.kind != "sqlite":
        raise click.BadParameter(
            f"records are kept in a SQLite file, such as facts.db, and {each.text} is none", param_hint="--records"
        )
    if each.access == "read" and not stands(place.path):
        raise MemoryStoreError("unknown_memory", f"There is no memory at {each.text}.")
    require_room(place)
    try:
        return RecordMount(each.name, SqliteRecordStore(place.path, place.memory), each.access or "write")
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--records") from None


def _store(given: str, url: str, key: str) -> FileMount:
    each = named(given, "--store", "NAME=STORE, such as team=memstore_0123")
    try:
        from memshelf.files.backends.http import MemoryStoreFileStore
    except ModuleNotFoundError as error:
        raise Unavailable(str(error)) from None
    with in_words_of_options(base_url="--url", api_key="--key", store="--store"):
        return FileMount(each.name, MemoryStoreFileStore(url, key, each.text), each.access or "write")


async def _serve(files: Sequence[FileMount], records: Sequence[RecordMount], workspace: Workspace | None) -> None:
    from memshelf.mcp.server import mcp_server
    from memshelf.mcp.stdio import serve

    async with AsyncExitStack() as opened:
        for store in [*(mount.store for mount in files), *(mount.store for mount in records), workspace]:
            if isinstance(store, AbstractAsyncContextManager):
                opened.push_async_exit(store)
        try:
            server = mcp_server(files, records, workspace, origin=origin())
        except ValueError as error:
            raise click.UsageError(str(error)) from None
        if sys.stdin.isatty():
            render.note(
                "This is for an MCP client, which starts it by itself: see `memshelf mcp --help`. Ctrl-C ends it."
            )
        await serve(server)
