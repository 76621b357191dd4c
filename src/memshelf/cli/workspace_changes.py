"""`memshelf workspace init | add | forget | promote | reject | import | delete-user`: the commands that change it."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, get_args

import click

from memshelf.cli import render
from memshelf.cli.command import TextCommand, confirmed, disk_paths, json_option, text, typed_or_piped, yes_option
from memshelf.cli.memory import disk_path, origin
from memshelf.cli.workspace import workspace
from memshelf.cli.workspace_place import (
    entry_file,
    existing_workspace,
    file_argument,
    named_user,
    on_new_workspace,
    on_workspace,
    say_if_new,
    saying_where,
    user_option,
    workspace_option,
)
from memshelf.errors import MemoryStoreError
from memshelf.limits import FileFormat
from memshelf.workspace.entries import MemoryType

if TYPE_CHECKING:
    from memshelf.workspace.workspace import Workspace

__all__: list[str] = []


@workspace.command()
@on_new_workspace
async def init(place: Workspace) -> None:
    """Create the folders of a user, with an empty AGENTS.md for standing rules, and say where they are.

    \b
    Examples:
      memshelf workspace init
      memshelf workspace init --workspace ~/notes --user ann
    """
    place.initialize()
    render.line(render.visible_line(str(place.root)))


@workspace.command(cls=TextCommand)
@json_option
@click.option(
    "--type",
    "-t",
    "memory_type",
    type=click.Choice(get_args(MemoryType)),
    default="user",
    show_default=True,
    help="What it is about.",
)
@click.option("--description", "-d", default="", metavar="TEXT", help="The words by which it will be looked for.")
@click.argument("title", type=text)
@click.argument("content", type=text, required=False)
@on_new_workspace
async def add(
    place: Workspace, title: str, content: str | None, *, memory_type: str, description: str, as_json: bool
) -> None:
    """Store an entry: CONTENT, or else standard input. The same TITLE and type again updates it.

    \b
    Examples:
      memshelf workspace add "Python style" "Concise and typed." --type feedback -d "python coding style"
      memshelf workspace add 饮食 不吃辣，喜欢喝茶 --user ann
      memshelf workspace add "Release plan" --type project < plan.md
    """
    most = FileFormat().max_file_bytes
    given = typed_or_piped(content, "An entry", most, too_large="too_large", not_text="invalid_file")
    await say_if_new(place)
    try:
        before = {each.file for each in await place.list_entries()}
        file = await place.write_memory_entry(
            title=title, content=given, memory_type=memory_type, description=description, origin=origin()
        )
    except UnicodeEncodeError:  # the user's directory has a name that this locale cannot write
        raise
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        render.document({"file": file, "updated": file in before})
    else:
        render.line(f"{'Updated' if file in before else 'Stored'} {render.visible_line(file)}")


@workspace.command(cls=TextCommand)
@json_option
@file_argument
@on_workspace
async def forget(place: Workspace, file: str, *, as_json: bool) -> None:
    """Remove an entry, and its row of the index. ENTRY is its file or, if no other has it, its title.

    \b
    Examples:
      memshelf workspace forget project_release_plan.md
      memshelf workspace forget "Release plan"
    """
    file = await entry_file(place, file)
    await place.forget(file, origin=origin())
    _done("Forgot", file, as_json=as_json)


@workspace.command(cls=TextCommand)
@json_option
@file_argument
@on_workspace
async def promote(place: Workspace, file: str, *, as_json: bool) -> None:
    """Confirm an entry that was extracted automatically. ENTRY is its file or, if no other has it, its title.

    \b
    Examples:
      memshelf workspace promote user_tea.md
    """
    file = await entry_file(place, file)
    _done("Confirmed", await place.promote(file, origin=origin()), as_json=as_json)


@workspace.command(cls=TextCommand)
@json_option
@file_argument
@on_workspace
async def reject(place: Workspace, file: str, *, as_json: bool) -> None:
    """Remove an entry that was extracted automatically. ENTRY is its file or, if no other has it, its title.

    \b
    Examples:
      memshelf workspace reject user_tea.md
    """
    file = await entry_file(place, file)
    await place.reject(file, origin=origin())
    _done("Rejected", file, as_json=as_json)


@workspace.command("import")
@json_option
@click.option("--replace", is_flag=True, help="Let an entry of the source take the place of one with the same title.")
@click.argument("source", metavar="FOLDER", shell_complete=disk_paths)
@on_new_workspace
async def import_(place: Workspace, source: str, *, replace: bool, as_json: bool) -> None:
    """Copy entries and rules from FOLDER: an Agentica workspace, with all its users, or a folder with MEMORY.md and
    entries beside it, as Claude Code keeps it, for --user.

    FOLDER stays as it is. To import it again changes nothing. Conversations and experiences are not copied.

    \b
    Examples:
      memshelf workspace import ~/.agentica/workspace
      memshelf workspace import ~/.claude/projects/app/memory --user ann
    """
    from memshelf.workspace.importing import has_users, import_memories

    folder = disk_path(source)
    os.scandir(folder).close()  # the system's own words when it is not there, as of a file
    if has_users(folder) and named_user() is not None:
        raise click.UsageError(
            "FOLDER is a workspace, whose users are all imported under their own ids. To import the memory of one of "
            f"them, give the folder of that user, which is in {source}/users."
        )
    report = await import_memories(folder, place, replace=replace)
    if as_json:
        render.document(
            {
                "imported": report.imported,
                "unchanged": report.unchanged,
                "shortened": report.shortened,
                "left": [{"entry": entry, "reason": reason} for entry, reason in report.left],
            }
        )
        return
    for entry in report.shortened:
        render.note(f"Shortened: {render.visible_line(entry)}; what was cut from its title stands in the content.")
    for entry, reason in report.left:
        render.note(f"Left alone: {render.visible_line(entry)}: {render.visible_line(reason)}")
    added, present = len(report.imported), len(report.unchanged)
    render.line(f"Imported: {added} added, {render.present(present)}, {len(report.left)} left alone")


@workspace.command("delete-user")
@json_option
@workspace_option
@user_option
@yes_option
@click.argument("named", metavar="[USER]", required=False)
def delete_user(named: str | None, user: str | None, directory: str, *, yes: bool, as_json: bool) -> None:
    """Remove everything that is kept about a user: entries, rules, conversations. Say USER or --user USER.

    Asks on a terminal; elsewhere, and with --json, say --yes.

    \b
    Examples:
      memshelf workspace delete-user ann
      memshelf workspace delete-user --user ann --yes --json
    """
    if named is not None and user not in (None, named):
        raise click.UsageError("USER and --user name two users; give one.")
    user = named if named is not None else user
    if user is None:
        raise click.UsageError("Say whose memory: USER, or --user USER.")
    place = existing_workspace(directory, user)
    if not yes:
        question = f"Remove all memory of {render.visible_line(user)}?"
        confirmed(question, as_json=as_json)
    with saying_where(place):
        found = asyncio.run(place.delete_user(user, confirm=True))
    if not found:
        raise MemoryStoreError("not_found", f"There is no memory of {user}.")
    _done("Removed", user, as_json=as_json)


def _done(what: str, subject: str, *, as_json: bool) -> None:
    if as_json:
        render.document({what.lower(): subject})
    else:
        render.line(f"{what} {render.visible_line(subject)}")
