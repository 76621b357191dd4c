"""`memshelf files`: read and change the files of one memory."""

from __future__ import annotations

import sys

import click

from memshelf.cli import render
from memshelf.cli.command import (
    CommandGroup,
    TextCommand,
    WholeNumberIn,
    asynchronous,
    json_option,
    memory_option,
    path_argument,
    text,
)
from memshelf.cli.memory import Store, opened, opened_with_history
from memshelf.errors import MemoryStoreError
from memshelf.files import edits
from memshelf.files.format import validate_directory, validate_path
from memshelf.files.model import FileText
from memshelf.files.mount import FileMount
from memshelf.files.tools import FileTools, file_json, listing
from memshelf.limits import FileFormat, FileMemoryLimits
from memshelf.mounted import Json

__all__ = ["files"]

_MOUNT = "memory"


@click.group(cls=CommandGroup)
def files() -> None:
    """Read and change the files of one memory.

    A memory is a directory of text files, or a SQLite file, which also keeps every version. Each change is checked
    against the file as it is at that moment, whatever agents do meanwhile.

    \b
    Examples:
      memshelf files create prefs/tea.md "Likes green tea." --memory .memory/user
      memshelf files ls --memory .memory/user
      memshelf files history --memory team.db#notes
    """


@files.command()
@memory_option
@json_option
@click.option("--recursive", "-r", is_flag=True, help="List the files of subdirectories as well.")
@path_argument("directory", required=False)
@asynchronous
async def ls(memory: str, directory: str, *, recursive: bool, as_json: bool) -> None:
    """List one directory of a memory: each file with its size, version and description.

    \b
    Examples:
      memshelf files ls --memory .memory/user
      memshelf files ls prefs/ --memory team.db#notes --json
      memshelf files ls -r --memory .memory/user | grep tea
    """
    async with opened(memory) as store:
        listed = await _listing(store, directory, recursive=recursive)
    _show_listing({"memory": memory, **listed}, as_json=as_json)


@files.command()
@memory_option
@json_option
@click.option("--at", metavar="VERSION", help="Print this version instead; PATH is not needed then (SQLite memories).")
@path_argument("path", required=False)
@asynchronous
async def view(memory: str, path: str, *, at: str | None, as_json: bool) -> None:
    """Print a file byte for byte, or list a directory.

    On a terminal, control characters in the content are shown escaped.

    \b
    Examples:
      memshelf files view prefs/tea.md --memory .memory/user
      memshelf files view prefs/tea.md --memory .memory/user --json
      memshelf files view --at VERSION --memory user.db
      memshelf files view prefs/tea.md --at VERSION --memory user.db
    """
    if at is not None:
        await _view_version(memory, at, path, as_json=as_json)
        return
    async with opened(memory) as store:
        file = await edits.find(store, path) if path and not path.endswith("/") else None
        listed = await _listing(store, path) if file is None else {}
    if file is None:
        _show_listing({"memory": memory, **listed}, as_json=as_json)
    else:
        _show_file(memory, file, as_json=as_json)


async def _view_version(memory: str, version_id: str, path: str, *, as_json: bool) -> None:
    async with opened_with_history(memory) as store:
        version = await store.read_version(version_id)
    if version.path is None or version.text is None:
        gone = "redacted" if version.redacted_at is not None else "the deletion of a file"
        raise MemoryStoreError("not_found", f"Version {version_id} has no content: it is {gone}.")
    if path and validate_path(path) != version.path:
        raise MemoryStoreError("not_found", f"Version {version_id} is not of {path}, but of {version.path}.")
    _show_file(memory, FileText(version.path, version.text, version.id), as_json=as_json)


@files.command(cls=TextCommand)
@memory_option
@json_option
@click.option("--regex", "-E", is_flag=True, help="PATTERN is a regular expression.")
@click.option("--case-sensitive", "-s", is_flag=True, help="Distinguish upper and lower case.")
@click.option(  # without -n, which numbers lines in other greps
    "--limit", type=WholeNumberIn(1, 10_000), default=200, show_default=True, metavar="N", help="At most this many."
)
@click.argument("pattern", type=text)
@path_argument("path", required=False)
@asynchronous
async def grep(
    memory: str, pattern: str, path: str, *, regex: bool, case_sensitive: bool, limit: int, as_json: bool
) -> None:
    """Find the lines that contain PATTERN, in the whole memory or under PATH.

    Finding nothing is not a failure: the exit code is 0.

    \b
    Examples:
      memshelf files grep 绿茶 --memory .memory/user
      memshelf files grep -E '^- (tea|coffee)' prefs/ --memory user.db
    """
    async with opened(memory) as store:
        found = await _tools(store).grep(_MOUNT, pattern, path, regex=regex, case_sensitive=case_sensitive, limit=limit)
        if not found["matches"]:
            await _listing(store, path)  # a path that does not exist is an error, not an empty answer
    found.pop("hint", None)  # it names the model's tools
    if as_json:
        render.document({**found, "memory": memory})
        return
    for match in found["matches"]:
        place = f"{render.paint(render.visible_line(match['path']), 'magenta')}:{match['line']}"
        render.line(f"{place}:{render.visible(match['text'])}")
    if not found["matches"]:
        render.empty("Nothing was found.")
    if found["truncated"]:
        render.note(f"Only the first {limit} lines are shown; see --limit.")


def _tools(store: Store) -> FileTools:
    # A terminal or a pipe takes what was asked for, however much it is.
    return FileTools([FileMount(_MOUNT, store, "read")], FileMemoryLimits(result_bytes=sys.maxsize))


async def _listing(store: Store, path: str, *, recursive: bool = False) -> Json:
    """What is in the directory `path`, or the one file at `path`: shaped as the view tool shapes a directory."""
    directory = validate_directory(path if path == "" or path.endswith("/") else f"{path}/")
    entries = [entry for entry in await store.list() if f"{entry.path}/".startswith(directory)]
    if directory and not entries:
        raise MemoryStoreError("not_found", f"{path} does not exist.")
    if not recursive and entries and f"{entries[0].path}/" != directory:
        return listing(directory, entries)
    files = [
        {"path": entry.path, "description": entry.description, "size": entry.size, "version": entry.version}
        for entry in entries
    ]
    return {"path": directory, "directories": [], "files": files}


def _show_listing(listed: Json, *, as_json: bool) -> None:
    if as_json:
        render.document(listed)
        return
    rows = [[each["path"], "", "", render.counted(each["files"], "file")] for each in listed["directories"]]
    rows += [[each["path"], str(each["size"]), each["version"], each["description"] or ""] for each in listed["files"]]
    if not rows:
        render.empty("The memory is empty.")
    elif render.on_terminal():  # a version leaves no room for the description, and people rarely need it
        rows = [[path, size, description] for path, size, _, description in rows]
        render.table(rows, header=("PATH", "SIZE", "DESCRIPTION"), right=(1,))
    else:
        render.table(rows)


def _show_file(memory: str, file: FileText, *, as_json: bool) -> None:
    if as_json:
        whole = FileFormat(max_file_bytes=len(file.text.encode()) + 1)
        render.document({"memory": memory, **file_json(file, whole)})
    else:
        render.show(file.text)
