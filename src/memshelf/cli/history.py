"""`memshelf files history | diff | restore | redact | verify`: what a memory that keeps versions can tell."""

from __future__ import annotations

from dataclasses import asdict

import click

from memshelf.cli import render, times
from memshelf.cli.command import (
    asynchronous,
    confirmed,
    head_option,
    json_option,
    limit_option,
    memory_option,
    path_argument,
    yes_option,
)
from memshelf.cli.files import files
from memshelf.cli.memory import opened_with_history, origin
from memshelf.files import edits
from memshelf.files.diff import unified
from memshelf.files.model import Version
from memshelf.files.protocol import HistoryFileStore
from memshelf.mounted import Json

__all__ = ["by_option", "show_diff"]

_DIFF_COLOURS = {"+": "green", "-": "red", "@": "cyan"}


@files.command()
@memory_option
@json_option
@limit_option(50)
@click.option("--cursor", metavar="CURSOR", help="Continue from the cursor at which the previous page ended.")
@click.option("--since", metavar="TIME", help="Leave out what is older; an ISO 8601 time, such as 2026-05-01T12:00.")
@path_argument("path", required=False)
@asynchronous
async def history(memory: str, path: str, *, limit: int, cursor: str | None, since: str | None, as_json: bool) -> None:
    """List the versions of a memory, newest first, or of the files that stood at PATH.

    Only SQLite memories keep a history.

    \b
    Examples:
      memshelf files history --memory user.db
      memshelf files history prefs/tea.md --limit 10 --memory team.db#notes --json
    """
    after = times.parsed(since, "--since") if since is not None else None
    async with opened_with_history(memory) as store:
        page = await store.versions(path or None, since=after, limit=limit, cursor=cursor)
    if as_json:
        versions = [_version_json(version) for version in page.versions]
        render.document({"memory": memory, "versions": versions, "next_cursor": page.next_cursor})
        return
    rows = [_row(version) for version in page.versions]
    render.table(rows, header=("TIME", "OPERATION", "VERSION", "PATH", "BY"), nothing="There are no versions.")
    if page.next_cursor is not None:
        render.note(f"There are more: --cursor {page.next_cursor}")


@files.command()
@memory_option
@json_option
@click.argument("version")
@click.argument("other", required=False)
@asynchronous
async def diff(memory: str, version: str, other: str | None, *, as_json: bool) -> None:
    """Show what VERSION changed, as a unified diff; with two versions, how they differ.

    \b
    Examples:
      memshelf files diff VERSION --memory user.db
      memshelf files diff OLD NEW --memory user.db | less
    """
    async with opened_with_history(memory) as store:
        new = await store.read_version(version if other is None else other)
        old = await store.read_version(version) if other is not None else await _parent(store, new)
    text = unified(old, new)
    if as_json:
        before = _version_json(old) if old is not None else None
        render.document({"memory": memory, "from": before, "to": _version_json(new), "diff": text})
    else:
        show_diff(text)


def show_diff(text: str) -> None:
    """Print a unified diff, in colours on a terminal."""
    if not render.on_terminal():
        render.show(text)
        return
    for each in text.removesuffix("\n").split("\n"):
        render.line(render.paint(render.visible(each), _DIFF_COLOURS.get(each[:1])))


@files.command()
@memory_option
@json_option
@click.argument("version")
@asynchronous
async def restore(memory: str, version: str, *, as_json: bool) -> None:
    """Write the content of an old version back at its path. That is a new version: nothing is lost.

    Refused if the file changes in the meantime.

    \b
    Examples:
      memshelf files restore VERSION --memory user.db
    """
    async with opened_with_history(memory) as store:
        old = await store.read_version(version)
        current = await edits.find(store, old.path) if old.path is not None else None
        restored = await store.restore(
            version, expected=current.version if current is not None else None, origin=origin()
        )
    path, size = old.path or "", old.size or 0  # a version without either was refused
    if as_json:
        render.document({"memory": memory, "path": path, "version": restored, "size": size})
    else:
        render.line(f"Restored {render.visible_line(path)} ({render.counted(size, 'byte')}, version {restored})")


def _name(context: click.Context, parameter: click.Parameter, value: str | None) -> str:
    del context, parameter
    if value is None:
        return str(origin().principal_id)
    if not value.strip() or not value.isprintable():
        raise click.BadParameter("it is one or more printable characters")
    return value


by_option = click.option("--by", metavar="NAME", callback=_name, help="Who erases, if not you: kept with the version.")


@files.command()
@memory_option
@json_option
@by_option
@yes_option
@click.argument("version")
@asynchronous
async def redact(memory: str, version: str, *, by: str, yes: bool, as_json: bool) -> None:
    """Erase the path and content of an old version for good. What remains shows that it was erased, when and by whom.

    The current version of a file cannot be redacted: change or delete the file first, or `erase` it with all versions.
    Asks on a terminal; elsewhere, and with --json, say --yes.

    \b
    Examples:
      memshelf files redact VERSION --memory user.db
      memshelf files redact VERSION --by "Data protection" --memory user.db
    """
    async with opened_with_history(memory) as store:
        if not yes:
            found = await store.read_version(version)
            confirmed(f"Erase {_described(found)} for good?", as_json=as_json)
        redacted = await store.redact(version, by=by)
    if as_json:
        render.document({"memory": memory, "version": _version_json(redacted)})
    else:
        render.line(f"Redacted version {redacted.id}")


@files.command()
@memory_option
@json_option
@head_option
@asynchronous
async def verify(memory: str, head: str | None, *, as_json: bool) -> None:
    """Check that the history is whole: no version was altered, removed or reordered since it was written.

    Keep the head that is printed somewhere else, and give it to a later check: whoever can rewrite the file can forge a
    whole history, but none that leads through that head.

    \b
    Examples:
      memshelf files verify --memory user.db
      memshelf files verify --memory user.db --head 2c26b46b68ffc68ff99b453c1d30413413422d706483bfa0f98a5e886266e7ae
    """
    async with opened_with_history(memory) as store:
        found = await store.verify(head=head)
    if as_json:
        render.document({"memory": memory, "intact": found.intact, **asdict(found)})
    else:
        for problem in found.problems:
            render.line(render.visible_line(problem))
        render.line(
            f"{'Intact' if found.intact else 'Damaged'}: {render.counted(found.versions, 'version')}, head {found.head}"
        )
    if not found.intact:
        raise click.exceptions.Exit(1)


async def _parent(store: HistoryFileStore, version: Version) -> Version | None:
    return await store.read_version(version.parent_id) if version.parent_id is not None else None


def _row(version: Version) -> list[str]:
    path = "(redacted)" if version.redacted_at is not None else version.path or ""
    by = version.origin.principal_id or version.origin.run_id or ""
    return [times.shown(version.created_at), version.operation, version.id, path, by]


def _described(version: Version) -> str:
    path = render.visible_line(version.path) if version.path is not None else "(redacted)"
    return f"version {version.id} of {path}, {version.operation} {times.shown(version.created_at)}"


def _version_json(version: Version) -> Json:
    redacted = version.redacted_at
    return {
        "id": version.id,
        "file_id": version.file_id,
        "parent_id": version.parent_id,
        "operation": version.operation,
        "path": version.path,
        "size": version.size,
        "sha256": version.sha256,
        "origin": {
            "run_id": version.origin.run_id,
            "principal_id": version.origin.principal_id,
            "tool_call_id": version.origin.tool_call_id,
        },
        "created_at": version.created_at.isoformat(),
        "redacted_at": redacted.isoformat() if redacted is not None else None,
        "redacted_by": version.redacted_by,
    }
