"""`memshelf workspace`: what is known about a user, in files that a person can read and edit."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import asdict
from typing import Any, Concatenate, ParamSpec, get_args

import click

from memshelf.cli import render, times
from memshelf.cli.command import TextCommand, confirmed, disk_paths, json_option, piped, text
from memshelf.cli.memory import disk_path, origin
from memshelf.errors import MemoryStoreError
from memshelf.limits import FileFormat
from memshelf.workspace.entries import EntryInfo, MemoryType
from memshelf.workspace.importing import import_memories
from memshelf.workspace.workspace import Workspace

__all__ = ["opened_workspace", "user_option", "workspace", "workspace_option"]

Params = ParamSpec("Params")

workspace_option = click.option(
    "--workspace",
    "-w",
    "directory",
    default=".memshelf/workspace",
    show_default=True,
    metavar="DIR",
    envvar="MEMSHELF_WORKSPACE",
    show_envvar=True,
    shell_complete=disk_paths,
    help="The directory of the workspace.",
)
user_option = click.option("--user", metavar="ID", help="Whose memory.  [default: default]")


def opened_workspace(directory: str, user: str | None) -> Workspace:
    """The workspace in a directory. A usage error for a user id that cannot be."""
    try:
        return Workspace(disk_path(directory), user)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--user") from None


def _on_workspace(
    command: Callable[Concatenate[Workspace, Params], Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    """Give a command the options that say which memory, and run it in an event loop with it."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        place = opened_workspace(kwargs.pop("directory"), kwargs.pop("user"))
        asyncio.run(command(place, *args, **kwargs))

    return workspace_option(user_option(run))


def _complete_file(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    del parameter
    try:
        place = opened_workspace(context.params["directory"], context.params.get("user"))
        entries = asyncio.run(place.list_entries())
    except (MemoryStoreError, OSError, click.ClickException):  # a shell that completes shows no errors
        return []
    return [entry.file for entry in entries if entry.file.startswith(incomplete)]


_file_argument = click.argument("file", type=text, shell_complete=_complete_file)
_limit_option = click.option(
    "--limit", "-n", type=click.IntRange(1, 1_000), default=5, show_default=True, help="At most so many."
)


@click.group()
def workspace() -> None:
    """Look at what is known about a user, and change it.

    A workspace is a directory of Markdown files, one folder a user: entries with an index (MEMORY.md), standing rules
    (AGENTS.md), conversations. Edit them with whatever you like; these commands find what you changed.

    \b
    Examples:
      memshelf workspace init
      memshelf workspace add "Python style" "Concise and typed." --type feedback
      memshelf workspace search "how should I write code?"
      memshelf workspace import ~/.claude/projects/app/memory
    """


@workspace.command()
@_on_workspace
async def init(place: Workspace) -> None:
    """Make the folders of a user, with an empty AGENTS.md for standing rules, and say where they are.

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
@_on_workspace
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
    given = content
    if given is None:
        given = piped("An entry", FileFormat().max_file_bytes, too_large="too_large", not_text="invalid_file")
    try:
        file = await place.write_memory_entry(
            title=title, content=given, memory_type=memory_type, description=description, origin=origin()
        )
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if as_json:
        render.document({"file": file})
    else:
        render.line(f"Stored {render.visible_line(file)}")


@workspace.command("list")
@json_option
@_on_workspace
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
@_file_argument
@_on_workspace
async def show(place: Workspace, file: str, *, as_json: bool) -> None:
    """Print an entry.

    \b
    Examples:
      memshelf workspace show feedback_python_style.md
    """
    entry = await place.read_entry(file)
    if as_json:
        render.document(asdict(entry))
    else:
        render.show(f"# {entry.title}\n\n{entry.content}")


@workspace.command(cls=TextCommand)
@json_option
@_limit_option
@click.option("--conversations", is_flag=True, help="Search what was said, in the conversation archive.")
@click.argument("query", type=text)
@_on_workspace
async def search(place: Workspace, query: str, *, limit: int, conversations: bool, as_json: bool) -> None:
    """Find the entries that QUERY is about, best first. Finding nothing is no failure.

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
    elif turns:
        rows = [(times.shown(turn.at), turn.session_id or "", turn.text) for turn in turns]
        render.table(rows, header=("TIME", "SESSION", "SAID"))
    elif render.on_terminal():
        render.note("Nothing was found.")


@workspace.command(cls=TextCommand)
@json_option
@_file_argument
@_on_workspace
async def forget(place: Workspace, file: str, *, as_json: bool) -> None:
    """Remove an entry, and its row of the index.

    \b
    Examples:
      memshelf workspace forget project_release_plan.md
    """
    await place.forget(file, origin=origin())
    _done("Forgot", file, as_json=as_json)


@workspace.command()
@json_option
@click.option("--cwd", default=".", show_default=True, metavar="DIR", shell_complete=disk_paths, help="Where you work.")
@_on_workspace
async def rules(place: Workspace, *, cwd: str, as_json: bool) -> None:
    """Print the standing rules: the user's AGENTS.md, then those of the repository down to --cwd, the nearest last.

    They are ordinary files: change them with an editor.

    \b
    Examples:
      memshelf workspace rules
      memshelf workspace rules --cwd src --json
    """
    found = await place.rules(disk_path(cwd))
    if as_json:
        render.document({"rules": [{"file": each.where, "text": each.text} for each in found]})
        return
    shown = [each for each in found if each.text.strip()]
    for each in shown:
        render.note(f"--- {render.visible_line(each.where)}")
        render.show(each.text)
    if not shown and render.on_terminal():
        where = render.visible_line(str(place.root))
        render.note(f"There are no rules. Write some into AGENTS.md in {where}.")


@workspace.command()
@json_option
@_on_workspace
async def candidates(place: Workspace, *, as_json: bool) -> None:
    """List the entries that were extracted automatically, to be promoted or rejected.

    \b
    Examples:
      memshelf workspace candidates
      memshelf workspace promote user_tea.md
    """
    _show(await place.candidates(), f"There are no candidates in {place.root}.", as_json=as_json)


@workspace.command(cls=TextCommand)
@json_option
@_file_argument
@_on_workspace
async def promote(place: Workspace, file: str, *, as_json: bool) -> None:
    """Confirm an entry that was extracted automatically.

    \b
    Examples:
      memshelf workspace promote user_tea.md
    """
    _done("Confirmed", await place.promote(file, origin=origin()), as_json=as_json)


@workspace.command(cls=TextCommand)
@json_option
@_file_argument
@_on_workspace
async def reject(place: Workspace, file: str, *, as_json: bool) -> None:
    """Remove an entry that was extracted automatically.

    \b
    Examples:
      memshelf workspace reject user_tea.md
    """
    await place.reject(file, origin=origin())
    _done("Rejected", file, as_json=as_json)


@workspace.command("import")
@json_option
@click.option("--replace", is_flag=True, help="Let an entry of the source take the place of one with the same title.")
@click.argument("source", metavar="FOLDER", shell_complete=disk_paths)
@_on_workspace
async def import_(place: Workspace, source: str, *, replace: bool, as_json: bool) -> None:
    """Copy entries and rules from FOLDER: an Agentica workspace, with all its users, or a folder with MEMORY.md and
    entries beside it, as Claude Code keeps it, for --user.

    FOLDER stays as it is. To import it again changes nothing. Conversations are not copied.

    \b
    Examples:
      memshelf workspace import ~/.agentica/workspace
      memshelf workspace import ~/.claude/projects/app/memory --user ann
    """
    report = await import_memories(disk_path(source), place, replace=replace)
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
    render.line(f"Imported: {added} added, {present} were there already, {len(report.left)} left alone")


@workspace.command()
@json_option
@workspace_option
def users(directory: str, *, as_json: bool) -> None:
    """List the users who have a memory in the workspace.

    \b
    Examples:
      memshelf workspace users --workspace ~/notes
    """
    found = asyncio.run(opened_workspace(directory, None).list_users())
    if as_json:
        render.document({"users": found})
        return
    for user in found:
        render.line(render.visible_line(user))
    if not found and render.on_terminal():
        render.note(f"There are no users in {render.visible_line(directory)}.")


@workspace.command("delete-user")
@json_option
@workspace_option
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.argument("user")
def delete_user(user: str, directory: str, *, yes: bool, as_json: bool) -> None:
    """Remove everything that is kept of a user: entries, rules, conversations.

    \b
    Examples:
      memshelf workspace delete-user ann
      memshelf workspace delete-user ann --yes --json
    """
    place = opened_workspace(directory, user)
    if not yes:
        question = f"Remove all memory of {render.visible_line(user)}?"
        confirmed(question, as_json=as_json, instead="--yes removes the user without asking")
    if not asyncio.run(place.delete_user(user, confirm=True)):
        raise MemoryStoreError("not_found", f"There is no memory of {user}.")
    _done("Removed", user, as_json=as_json)


def _show(entries: Sequence[EntryInfo], nothing: str, *, as_json: bool) -> None:
    if as_json:
        render.document({"entries": [asdict(entry) for entry in entries]})
    elif entries:
        rows = [(entry.memory_type, _marked(entry), entry.title, entry.hook) for entry in entries]
        render.table(rows, header=("TYPE", "FILE", "TITLE", "DESCRIPTION"))
    elif render.on_terminal():
        render.note(render.visible_line(nothing))


def _marked(entry: EntryInfo) -> str:
    return f"{entry.file} (candidate)" if entry.source == "auto" and render.on_terminal() else entry.file


def _done(what: str, subject: str, *, as_json: bool) -> None:
    if as_json:
        render.document({what.lower(): subject})
    else:
        render.line(f"{what} {render.visible_line(subject)}")
