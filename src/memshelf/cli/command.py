"""What every command shares: the memory option, `--json`, one event loop, completion of paths."""

from __future__ import annotations

import asyncio
import functools
import re
import signal
import sys
import unicodedata
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ParamSpec

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from memshelf.cli import render
from memshelf.cli.memory import disk_path, opened
from memshelf.errors import ErrorCode, MemoryStoreError
from memshelf.files.chain import checked_head

__all__ = [
    "CommandGroup",
    "TextCommand",
    "Unavailable",
    "WholeNumber",
    "WholeNumberIn",
    "agrees",
    "asynchronous",
    "confirmed",
    "disk_paths",
    "in_words_of_options",
    "json_option",
    "limit_option",
    "memory_option",
    "one_of",
    "path_argument",
    "question",
    "require_agent",
    "text",
    "typed_or_piped",
    "yes_option",
]

Params = ParamSpec("Params")

_REMOVING, _SHOWING = ("rm", "delete", "forget", "revoke"), ("view", "show")
_SYNONYMS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("delete", "del", "remove", "rm", "forget"), _REMOVING),
    **dict.fromkeys(("cat", "get", "read", "show", "view"), _SHOWING),
    **dict.fromkeys(("dir", "list", "ls"), ("ls", "list")),
    **dict.fromkeys(("move", "rename"), ("mv",)),
    **dict.fromkeys(("add", "new", "write"), ("add", "create")),
    **dict.fromkeys(("find", "grep", "search"), ("search", "grep")),
    **dict.fromkeys(("change", "edit", "update"), ("edit", "update", "add")),
}
"""The commands that are most likely meant by a name that a group does not have."""


class Unavailable(click.ClickException):
    """Something besides a memory is not there or cannot be used now: a model, a thread, an extra."""

    exit_code = 3


def disk_paths(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The shell completes a path on the disk."""
    del context, parameter
    return [CompletionItem(incomplete, type="file")]


_WHOLE = re.compile("-?[0-9]+")


class WholeNumber(click.types.IntParamType):
    """Digits, and maybe a minus before them: Python's `int` takes `1_0`, ` 10 ` and `１０`, too."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and _WHOLE.fullmatch(value) is None:
            self.fail(f"{value!r} is no whole number.", param, ctx)
        return super().convert(value, param, ctx)


class WholeNumberIn(WholeNumber, click.IntRange):
    """The same within a range."""


memory_option = click.option(
    "--memory",
    "-m",
    required=True,
    metavar="PATH",
    envvar="MEMSHELF_MEMORY",
    show_envvar=True,
    shell_complete=disk_paths,
    help="A directory, or a SQLite file; PATH#NAME names one memory of several in a SQLite file.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask.")


def limit_option(default: int, most: int = 1_000) -> Callable[[Callable[Params, Any]], Callable[Params, Any]]:
    """How many things a command shows."""
    return click.option(
        "--limit",
        "-n",
        type=WholeNumberIn(1, most),
        default=default,
        show_default=True,
        metavar="N",
        help="At most this many.",
    )


def _head(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    del context, parameter
    try:
        return checked_head(value) if value is not None else None
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


head_option = click.option(
    "--head", metavar="HEAD", callback=_head, help="A head noted earlier, which the history must lead through still."
)


class CommandGroup(click.Group):
    """A group that knows what is meant by a usual name that it does not have; click suggests what is spelt alike."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in self.commands and not ctx.resilient_parsing:
            meant = next((name for name in _SYNONYMS.get(args[0], ()) if name in self.commands), None)
            if meant is not None:
                raise click.UsageError(f"No such command {args[0]!r}. Did you mean {meant!r}?", ctx)
        return super().resolve_command(ctx, args)


class TextCommand(click.Command):
    """A command whose arguments may be Markdown: what starts like a list (`- `) or frontmatter (`---`) is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        # No argument of a process can hold a NUL, so that it marks these on their way past the option parser.
        try:
            return super().parse_args(ctx, [f"\0{arg}" if arg.startswith(("- ", "---")) else arg for arg in args])
        except click.NoSuchOption as error:
            hint = "Put -- before text that starts with a dash"
            if any("--file" in parameter.opts for parameter in self.params):
                hint += "; content can also come from --file"
            raise click.UsageError(f"{error.format_message()} {hint}.", ctx) from None


def typed_or_piped(
    content: str | None, what: str, most: int, *, too_large: ErrorCode, not_text: ErrorCode, source: str | None = None
) -> str:
    """The text that was typed. Without one, or for `-`, that on standard input or in the file `source`, at most so many
    bytes. `what` names it in a refusal."""
    if content == "-":
        source = "-"
    elif content is not None:
        return content
    if source is not None and source != "-":
        with disk_path(source).open("rb") as file:
            data = file.read(most + 1)
    elif source is None and sys.stdin.isatty():
        raise click.UsageError("There is no text: give it as an argument, or on standard input.")
    else:
        data = sys.stdin.buffer.read(most + 1)
    if len(data) > most:
        raise MemoryStoreError(too_large, f"{what} has at most {most} bytes; this has more. Nothing changed.")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise MemoryStoreError(not_text, f"{what} is UTF-8 text; this is not. Nothing changed.") from None


def text(argument: str) -> str:
    """The type of the arguments of a `TextCommand`."""
    return argument.removeprefix("\0")


def question(argument: str) -> str:
    """The type of an argument that is searched for. A blank one is most likely a variable that was never set."""
    asked = text(argument)
    if not asked.strip():
        raise click.BadParameter("it is blank; say what to look for")
    return asked


@contextmanager
def in_words_of_options(**options: str) -> Iterator[None]:
    """Let what a parameter cannot be, a `ValueError`, be a usage error that names the option it came from."""
    try:
        yield
    except ValueError as error:
        said = str(error)
        for parameter, option in options.items():
            said = re.sub(rf"\b{parameter}\b", option, said)
        raise click.UsageError(said) from None


def one_of(options: Mapping[str, str | None], wanted: str) -> tuple[str, str]:
    """The name and value of the one option that is given; what is typed goes before what the environment says. A usage
    error, `wanted`, for none or several."""
    given = {name: value for name, value in options.items() if value is not None}
    if len(given) > 1:
        source = click.get_current_context().get_parameter_source
        given = {name: value for name, value in given.items() if source(name) is ParameterSource.COMMANDLINE}
    if len(given) != 1:
        raise click.UsageError(wanted)
    return next(iter(given.items()))


def asynchronous(command: Callable[Params, Coroutine[Any, Any, None]]) -> Callable[Params, None]:
    """Run a command's coroutine in an event loop of its own."""

    @functools.wraps(command)
    def run(*args: Params.args, **kwargs: Params.kwargs) -> None:
        asyncio.run(command(*args, **kwargs))

    return run


def require_agent() -> None:
    """Load the agent framework, or fail with the name of the extra that brings it."""
    try:
        import_module("memshelf.agent")
    except ModuleNotFoundError as error:
        raise Unavailable(str(error)) from None
    import pydantic_ai

    pydantic_ai.BANNER_ENABLED = False  # what stands on the terminal is ours


def confirmed(question: str, *, as_json: bool, instead: str = "say --yes") -> None:
    """Ask on the terminal, and end the command on a no. Without one, and for JSON, it is a usage error: `instead`."""
    if as_json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise click.UsageError(f"There is nobody to ask: {instead}.")
    with _interruptible():
        agreed = agrees(question)
    if not agreed:
        render.note("Nothing changed.")
        raise click.exceptions.Exit(1)


_ANSWERS = {**dict.fromkeys(("y", "yes", "是"), True), **dict.fromkeys(("n", "no", "否"), False)}


def agrees(question: str) -> bool:
    """Ask on the terminal until there is a yes or a no, in English or in Chinese; nothing is a no."""
    prompt = f"{question} [y/N]"
    return bool(click.prompt(prompt, default="n", show_default=False, value_proc=_answered, err=True))


def _answered(typed: str) -> bool:
    # As an input method types them, too.
    answer = _ANSWERS.get(unicodedata.normalize("NFKC", typed).strip().lower())
    if answer is None:
        raise click.UsageError("say y or n, 是 or 否")
    return answer


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C interrupt what waits for a person: inside an event loop it would only mark the task as cancelled."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def path_argument(name: str, *, required: bool = True) -> Callable[[Callable[Params, None]], Callable[Params, None]]:
    """A path inside the memory; the shell completes it from what the memory holds."""
    return click.argument(
        name, required=required, type=text, default=None if required else "", shell_complete=_complete_path
    )


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
