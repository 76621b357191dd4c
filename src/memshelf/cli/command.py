"""What every command shares: the memory option, `--json`, one event loop, completion of paths."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Callable, Coroutine
from importlib import import_module
from typing import Any, ParamSpec

import click
from click.shell_completion import CompletionItem

from memshelf.cli import render
from memshelf.cli.memory import opened
from memshelf.errors import MemoryStoreError

__all__ = ["Unavailable", "asynchronous", "confirmed", "json_option", "memory_option", "path_argument", "require_agent"]

Params = ParamSpec("Params")


class Unavailable(click.ClickException):
    """Something besides a memory is not there or cannot be used now: a model, a thread, an extra."""

    exit_code = 3


memory_option = click.option(
    "--memory",
    "-m",
    required=True,
    metavar="PATH",
    envvar="MEMSHELF_MEMORY",
    show_envvar=True,
    type=click.Path(),
    help="A directory, or a SQLite file; PATH#NAME names one memory of several in a SQLite file.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")


def asynchronous(command: Callable[Params, Coroutine[Any, Any, None]]) -> Callable[Params, None]:
    """Run a command's coroutine in an event loop of its own."""

    @functools.wraps(command)
    def run(*args: Params.args, **kwargs: Params.kwargs) -> None:
        asyncio.run(command(*args, **kwargs))

    return run


def require_agent() -> None:
    """The agent framework can be imported, or an error names the extra that brings it."""
    try:
        import_module("memshelf.agent")
    except ModuleNotFoundError as error:
        raise Unavailable(str(error)) from None


def confirmed(question: str, *, as_json: bool, instead: str) -> None:
    """Ask on the terminal, and end the command on a no. Without one, and for JSON, it is a usage error: `instead`."""
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(f"There is nobody to ask: {instead}.")
    if not click.confirm(question, err=True):
        render.note("Nothing changed.")
        raise click.exceptions.Exit(1)


def path_argument(name: str, *, required: bool = True) -> Callable[[Callable[Params, None]], Callable[Params, None]]:
    """A path inside the memory; the shell completes it from what the memory holds."""
    return click.argument(name, required=required, default=None if required else "", shell_complete=_complete_path)


def _complete_path(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    del parameter
    memory = context.params.get("memory")
    if not memory:
        return []
    try:
        paths = asyncio.run(_paths(memory))
    except (MemoryStoreError, OSError, click.ClickException):  # a shell that completes shows no errors
        return []
    return [CompletionItem(path) for path in paths if path.startswith(incomplete)]


async def _paths(memory: str) -> list[str]:
    async with opened(memory) as store:
        return [entry.path for entry in await store.list()]
