"""`memshelf workspace`: what is known about a user, in files that a person can read and edit."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from memshelf.cli import render, times
from memshelf.cli.command import CommandGroup, TextCommand, disk_paths, json_option, limit_option, question
from memshelf.cli.memory import disk_path
from memshelf.cli.workspace_place import (
    entry_file,
    existing_workspace,
    file_argument,
    named_user,
    on_new_workspace,
    on_workspace,
    require_folder,
    require_user,
    workspace_option,
)
from memshelf.workspace.entries import EntryInfo
from memshelf.workspace.rules import RuleFile

if TYPE_CHECKING:
    from memshelf.workspace.workspace import Workspace

__all__ = ["workspace"]


@click.group(cls=CommandGroup)
def workspace() -> None:
    """Show what is known about a user, and change it.

    A workspace is a directory of Markdown files, one folder a user: entries with an index (MEMORY.md), standing rules
    (AGENTS.md), conversations. Edit them with whatever you like; these commands find what you changed.

    \b
    Examples:
      memshelf workspace init
      memshelf workspace add "Python style" "Concise and typed." --type feedback
      memshelf workspace search "how should I write code?"
      memshelf workspace import ~/.claude/projects/app/memory
    """


@workspace.command("list")
@json_option
@on_workspace
async def list_(place: Workspace, *, as_json: bool) -> None:
    """List the entries, the newest first.

    \b
    Examples:
      memshelf workspace list
      memshelf workspace list --user ann --json
    """
    _show(await place.list_entries(), f"There are no entries in {place.root}.", as_json=as_json)


@workspace.command(cls=TextCommand)
@json_option
@file_argument
@on_workspace
async def show(place: Workspace, file: str, *, as_json: bool) -> None:
    """Print an entry. ENTRY is its file or, if no other has it, its title.

    \b
    Examples:
      memshelf workspace show feedback_python_style.md
      memshelf workspace show "Python style"
    """
    entry = await place.read_entry(await entry_file(place, file))
    if as_json:
        render.document(asdict(entry))
    else:
        render.show(f"# {entry.title}\n\n{entry.content}")


@workspace.command(cls=TextCommand)
@json_option
@limit_option(5)
@click.option("--conversations", is_flag=True, help="Search what was said, in the conversation archive.")
@click.argument("query", type=question)
@on_workspace
async def search(place: Workspace, query: str, *, limit: int, conversations: bool, as_json: bool) -> None:
    """Find the entries that QUERY is about, best first. Finding nothing is not a failure.

    \b
    Examples:
      memshelf workspace search "how should I write code?"
      memshelf workspace search 喜欢吃什么 --user ann
      memshelf workspace search deadline --conversations
    """
    if conversations:
        await _search_conversations(place, query, limit, as_json=as_json)
    else:
        _show(await place.search(query, limit), f"Nothing was found in {place.root}.", as_json=as_json)


async def _search_conversations(place: Workspace, query: str, limit: int, *, as_json: bool) -> None:
    turns = await place.search_conversations(query, limit)
    if as_json:
        found = [
            {
                "file": turn.file,
                "at": turn.at.isoformat(),
                "session_id": turn.session_id,
                "messages": [{"role": speaker, "content": said} for speaker, said in turn.messages],
            }
            for turn in turns
        ]
        render.document({"conversations": found})
    else:
        rows = [(times.shown(turn.at), turn.session_id or "", turn.text) for turn in turns]
        render.table(rows, header=("TIME", "SESSION", "SAID"), nothing="Nothing was found.")


@workspace.command()
@json_option
@click.option("--cwd", default=".", show_default=True, metavar="DIR", shell_complete=disk_paths, help="Where you work.")
@on_new_workspace
async def rules(place: Workspace, *, cwd: str, as_json: bool) -> None:
    """Print the standing rules: the user's AGENTS.md, then those of the repository down to --cwd, the nearest last.

    They are ordinary files: change them with an editor. One that is no UTF-8 text, or has more than 64 KiB, is left out
    of what an agent is told: that is said, and the exit code is 1.

    \b
    Examples:
      memshelf workspace rules
      memshelf workspace rules --cwd src --json
    """
    if named_user() is not None:  # else those of the repository may be all that there is
        await require_user(place)
    folder = disk_path(cwd)
    os.scandir(folder).close()  # the system's own words when it is not there
    found = await place.rules(folder)
    if not found:
        require_folder(str(place.path))
    left_out = [each for each in found if each.problem]
    if as_json:
        told = [{"file": each.where, "text": each.text} for each in found if not each.problem]
        render.document(
            {"rules": told, "left_out": [{"file": each.where, "reason": each.problem} for each in left_out]}
        )
    else:
        _show_rules(place, found)
    if left_out:
        raise click.exceptions.Exit(1)


def _show_rules(place: Workspace, found: Sequence[RuleFile]) -> None:
    shown = [each for each in found if each.text.strip()]
    for each in shown:
        render.note(f"--- {render.visible_line(each.where)}")
        render.show(each.text)
    if not found:
        where = render.visible_line(str(place.root))
        render.empty(f"There are no rules. Write some into AGENTS.md in {where}.")


@workspace.command()
@json_option
@on_workspace
async def candidates(place: Workspace, *, as_json: bool) -> None:
    """List the entries that were extracted automatically, to be promoted or rejected.

    \b
    Examples:
      memshelf workspace candidates
      memshelf workspace promote user_tea.md
    """
    _show(await place.candidates(), f"There are no candidates in {place.root}.", as_json=as_json)


@workspace.command()
@json_option
@workspace_option
def users(directory: str, *, as_json: bool) -> None:
    """List the users who have a memory in the workspace.

    \b
    Examples:
      memshelf workspace users --workspace ~/notes
    """
    found = asyncio.run(existing_workspace(directory, None).list_users())
    if as_json:
        render.document({"users": found})
        return
    for user in found:
        render.line(render.visible_line(user))
    if not found:
        render.empty(f"There are no users in {render.visible_line(directory)}.")


def _show(entries: Sequence[EntryInfo], nothing: str, *, as_json: bool) -> None:
    if as_json:
        render.document({"entries": [asdict(entry) for entry in entries]})
    else:
        rows = [(entry.memory_type, _marked(entry), entry.title, entry.hook) for entry in entries]
        render.table(rows, header=("TYPE", "FILE", "TITLE", "DESCRIPTION"), nothing=render.visible_line(nothing))


def _marked(entry: EntryInfo) -> str:
    return f"{entry.file} (candidate)" if entry.source == "auto" and render.on_terminal() else entry.file
