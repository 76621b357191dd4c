"""`memshelf files create | edit | append | mv | rm`: the commands that change a memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import click

from memshelf.cli import render
from memshelf.cli.command import (
    TextCommand,
    asynchronous,
    confirmed,
    disk_paths,
    json_option,
    memory_option,
    path_argument,
    text,
    typed_or_piped,
    yes_option,
)
from memshelf.cli.files import files
from memshelf.cli.memory import Store, opened, origin
from memshelf.errors import MemoryStoreError
from memshelf.files import edits
from memshelf.files.format import validate_directory, validate_path
from memshelf.limits import FileMemoryLimits

__all__ = ["content_of", "content_option", "of_a_file"]

_LIMITS = FileMemoryLimits()

content_option = click.option(
    "--file",
    "-f",
    "source",
    metavar="FILE",
    shell_complete=disk_paths,
    help="Read the content from this file; - is standard input.",
)


@files.command(cls=TextCommand)
@memory_option
@json_option
@content_option
@click.argument("path", type=text)
@click.argument("content", type=text, required=False)
@asynchronous
async def create(memory: str, path: str, content: str | None, *, source: str | None, as_json: bool) -> None:
    """Create a file at a path that is free. Creates the memory too if there is none yet.

    The content is CONTENT, or the bytes of --file, or else standard input. CONTENT may start with --- or with "- ", as
    frontmatter and lists do; before any other dash, put -- or use --file.

    \b
    Examples:
      memshelf files create prefs/tea.md "Likes green tea." --memory .memory/user
      memshelf files create notes/plan.md --file plan.md --memory user.db
      date | memshelf files create log.md --memory user.db
    """
    added = content_of(content, source)
    async with opened(memory, create=True) as store:
        written = await edits.create(
            store, path, added, origin=origin(), format=_LIMITS.format, retries=_LIMITS.write_retries
        )
    _show_written(memory, written, "Created", as_json=as_json)


@files.command(cls=TextCommand)
@memory_option
@json_option
@path_argument("path")
@click.argument("old", type=text)
@click.argument("new", type=text)
@asynchronous
async def edit(memory: str, path: str, old: str, new: str, *, as_json: bool) -> None:
    """Replace OLD, which must occur exactly once in the file, with NEW.

    Refused when OLD does not occur, or occurs more than once. An empty NEW removes OLD. Put -- before arguments that
    start with a dash, unless a space follows it, as in a list.

    \b
    Examples:
      memshelf files edit prefs/tea.md "green tea" "black tea" --memory .memory/user
      memshelf files edit prefs/tea.md "- no sugar" "- one sugar" --memory user.db
    """
    async with opened(memory) as store:
        try:
            written = await edits.edit(
                store, path, old, new, origin=origin(), format=_LIMITS.format, retries=_LIMITS.write_retries
            )
        except MemoryStoreError as error:
            if error.code == "no_match" and error.current is not None and "\r\n" in error.current.text:
                error.add_note("This file has CRLF line ends: OLD must have them too where it spans lines.")
            raise
    _show_written(memory, written, "Edited", as_json=as_json)


@files.command(cls=TextCommand)
@memory_option
@json_option
@content_option
@path_argument("path")
@click.argument("content", type=text, required=False)
@asynchronous
async def append(memory: str, path: str, content: str | None, *, source: str | None, as_json: bool) -> None:
    """Add text at the end of a file that exists, on a new line.

    The text is CONTENT, or the bytes of --file, or else standard input.

    \b
    Examples:
      memshelf files append prefs/tea.md "No sugar." --memory .memory/user
      git log -1 --format=%s | memshelf files append decisions.md --memory team.db
    """
    added = content_of(content, source)
    async with opened(memory) as store:
        written = await edits.append(
            store, path, added, origin=origin(), format=_LIMITS.format, retries=_LIMITS.write_retries
        )
    _show_written(memory, written, "Appended to", as_json=as_json)


@files.command()
@memory_option
@json_option
@path_argument("source")
@path_argument("destination")
@asynchronous
async def mv(memory: str, source: str, destination: str, *, as_json: bool) -> None:
    """Move or rename a file to a path that is free. A DESTINATION that ends in / keeps the file's name.

    \b
    Examples:
      memshelf files mv tea.md prefs/tea.md --memory .memory/user
      memshelf files mv notes/2023.md archive/ --memory user.db
    """
    if destination.endswith("/"):
        destination += source.rpartition("/")[2]
    async with opened(memory) as store, of_a_file(store, source):
        if validate_path(source) == validate_path(destination):
            raise click.UsageError("SOURCE and DESTINATION are the same path.")
        moved = await edits.move(
            store, source, destination, origin=origin(), format=_LIMITS.format, retries=_LIMITS.write_retries
        )
    if as_json:
        source = validate_path(source)
        render.document({"memory": memory, "source": source, "destination": moved.path, "version": moved.version})
    else:
        render.line(
            f"Moved {render.visible_line(source)} to {render.visible_line(moved.path)} (version {moved.version})"
        )


@files.command()
@memory_option
@json_option
@yes_option
@click.option("--version", metavar="VERSION", help="Delete only this version, without asking.")
@path_argument("path")
@asynchronous
async def rm(memory: str, path: str, *, yes: bool, version: str | None, as_json: bool) -> None:
    """Delete a file, if it is still at the version that was shown. A SQLite memory keeps its versions: see `erase`.

    Asks on a terminal; elsewhere, and with --json, say --yes, or name the --version.

    \b
    Examples:
      memshelf files rm prefs/tea.md --memory .memory/user
      memshelf files rm prefs/tea.md --version VERSION --memory user.db
    """
    async with opened(memory) as store, of_a_file(store, path):
        path = validate_path(path)
        if version is None:
            file = await edits.find(store, path)
            if file is None:
                raise _missing(path)
            version = file.version
            if not yes:
                size = render.counted(len(file.text.encode()), "byte")
                question = f"Delete {render.visible_line(path)} ({size}, version {version})?"
                confirmed(question, as_json=as_json, instead="say --yes, or name the --version to delete")
        await _delete(store, path, version)
    if as_json:
        render.document({"memory": memory, "path": path, "deleted": True})
    else:
        render.line(f"Deleted {render.visible_line(path)} (version {version})")


@asynccontextmanager
async def of_a_file(store: Store, path: str) -> AsyncIterator[None]:
    """Say so when there is no such file because the path is that of a directory."""
    try:
        yield
    except MemoryStoreError as error:
        if error.code in ("not_found", "invalid_path"):
            await _refuse_directory(store, path)
        raise


async def _refuse_directory(store: Store, path: str) -> None:
    directory = validate_directory(path if path.endswith("/") else f"{path}/")
    below = [entry.path for entry in await store.list() if entry.path.startswith(directory)]
    if below:
        shown = render.visible_line(directory)
        error = MemoryStoreError(
            "invalid_path", f"{shown} is a directory, and only files can be moved, deleted or erased; nothing changed."
        )
        error.add_note(f"Name each of its files ({len(below)}): `memshelf files ls --recursive {shown}`.")
        raise error


async def _delete(store: Store, path: str, version: str) -> None:
    try:
        await store.delete(path, expected=version, origin=origin())
    except MemoryStoreError as error:
        if error.code == "version_mismatch" and error.current is None:
            raise _missing(path) from None
        raise


def content_of(content: str | None, source: str | None, most: int = _LIMITS.format.max_file_bytes) -> str:
    """The text to store: the argument, the file, or standard input, at most as long as a file may be, in bytes."""
    if content is not None and source is not None:
        raise click.UsageError("Give the content as an argument or with --file, not both.")
    return typed_or_piped(content, "A memory file", most, too_large="too_large", not_text="invalid_file", source=source)


def _show_written(memory: str, written: edits.Written, verb: str, *, as_json: bool) -> None:
    if as_json:
        result = {"memory": memory, "path": written.path, "version": written.version, "size": written.size}
        render.document(result)
    else:
        path = render.visible_line(written.path)
        render.line(f"{verb} {path} ({render.counted(written.size, 'byte')}, version {written.version})")


def _missing(path: str) -> MemoryStoreError:
    return MemoryStoreError("not_found", f"{path} does not exist; nothing changed.")
