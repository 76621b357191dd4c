"""Which workspace a command speaks of, and whose memory in it."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click
from click.core import ParameterSource

from memshelf.cli import render
from memshelf.cli.command import disk_paths, text
from memshelf.cli.memory import disk_path, existing_folder, some_of
from memshelf.errors import MemoryStoreError
from memshelf.presence import stands
from memshelf.workspace.entries import folded

if TYPE_CHECKING:
    from memshelf.workspace.workspace import Workspace

__all__ = [
    "entry_file",
    "existing_workspace",
    "file_argument",
    "named_user",
    "on_new_workspace",
    "on_workspace",
    "opened_workspace",
    "require_folder",
    "require_user",
    "say_if_new",
    "saying_where",
    "user_option",
    "users_without",
    "workspace_option",
]

Params = ParamSpec("Params")
Command = Callable[Concatenate["Workspace", Params], Coroutine[Any, Any, None]]

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
    from memshelf.workspace.workspace import Workspace  # it loads NumPy, for which no help needs to wait

    if not directory:
        raise click.BadParameter("it is empty; give a directory", param_hint="--workspace")
    if user == "":  # in a script most often a variable that is not set, which must not lead to anybody's memory
        raise click.BadParameter("it is empty; leave it out for the default user", param_hint="--user")
    try:
        place = Workspace(disk_path(directory), user)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--user") from None
    if stands(disk_path(directory)):
        require_folder(directory)
    return place


def existing_workspace(directory: str, user: str | None) -> Workspace:
    """The same, of a directory that exists, else `unknown_memory`."""
    place = opened_workspace(directory, user)
    require_folder(directory)
    return place


def require_folder(directory: str) -> None:
    """`unknown_memory` when there is no such workspace."""
    existing_folder(directory, "workspace", "Check --workspace; `memshelf workspace add` makes a new one.")


def named_user() -> str | None:
    """Whom `--user` of the command that runs names, if anybody."""
    user: str | None = click.get_current_context().params.get("user")
    return user


def named_directory() -> bool:
    """Whether somebody says where the workspace is."""
    source = click.get_current_context().get_parameter_source("directory")
    return source is not ParameterSource.DEFAULT


async def users_without(place: Workspace) -> list[str] | None:
    """Who has a memory where the user has none; `None` if the user has one, or if nobody has any and none is named."""
    users = await place.list_users()
    return None if place.user_id in users or not (users or named_user()) else users


async def require_user(place: Workspace) -> None:
    """`unknown_memory` for a user who has no memory, unless nobody has any and none is named."""
    if (users := await users_without(place)) is None:
        return
    error = MemoryStoreError(
        "unknown_memory", f"{place.path} holds no memory of {place.user_id}. Users that it knows: {some_of(users)}."
    )
    error.add_note("Check --user and --workspace; `memshelf workspace add` makes a new user.")
    raise error


async def say_if_new(place: Workspace) -> None:
    """Nobody is refused for being new, but the name or the path may be a slip."""
    with suppress(MemoryStoreError):  # of a workspace that cannot be looked at, the command itself tells
        if (users := await users_without(place)) is not None:
            user, known = place.user_id, some_of(users)
            said = f"New user {user}: {place.path} holds no memory of {user} yet. Users that it knows: {known}."
            render.note(render.visible_line(said))
        elif named_directory() and place.path is not None and not stands(place.path):
            render.note(render.visible_line(f"New workspace: there is none in {place.path} yet."))


@contextmanager
def saying_where(place: Workspace) -> Iterator[None]:
    """Let a refusal of the system say which workspace it is of."""
    try:
        yield
    except MemoryStoreError as error:
        if error.code == "unavailable" and str(place.path) not in error.message:
            error.add_note(f"The workspace is {place.path}.")
        raise


def on_workspace(command: Command[Params]) -> Callable[..., None]:
    """Give a command the options that say which memory, and run it in an event loop with it. It must exist."""
    return _with(command, new=False)


def on_new_workspace(command: Command[Params]) -> Callable[..., None]:
    """The same, for a command to which a workspace or a user that does not exist is an empty one."""
    return _with(command, new=True)


def _with(command: Command[Params], *, new: bool) -> Callable[..., None]:
    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        where = kwargs.pop("directory"), kwargs.pop("user")
        place = opened_workspace(*where) if new else existing_workspace(*where)

        async def run() -> None:
            with saying_where(place):
                if not new:
                    await require_user(place)
                await command(place, *args, **kwargs)

        asyncio.run(run())

    return workspace_option(user_option(run))


async def entry_file(place: Workspace, named: str) -> str:
    """The file of the entry that is named by it or, if no other has it, by its title. `not_found` for a title of none;
    a file that is not there is left to the command."""
    try:
        return (await place.read_entry(named)).file
    except MemoryStoreError as error:
        if error.code not in ("not_found", "invalid_path"):
            raise
        is_file = error.code == "not_found"
    files = [each.file for each in await place.list_entries() if each.title == folded(named)]
    if len(files) > 1:
        raise click.UsageError(f"{len(files)} entries have the title {named}; give a file: {', '.join(files)}.")
    if not files and not is_file:
        missing = MemoryStoreError("not_found", f"There is no entry with the title {named}, nor a file of that name.")
        missing.add_note("`memshelf workspace list` lists the entries with their files and titles.")
        raise missing
    return files[0] if files else named


def _complete_file(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    del parameter
    try:
        place = opened_workspace(context.params["directory"], context.params.get("user"))
        entries = asyncio.run(place.list_entries())
    except (MemoryStoreError, OSError, click.ClickException):  # a shell that completes shows no errors
        return []
    return [entry.file for entry in entries if entry.file.startswith(incomplete)]


file_argument = click.argument("file", metavar="ENTRY", type=text, shell_complete=_complete_file)
