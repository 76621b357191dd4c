"""The entry point: the commands, and how every failure ends."""

from __future__ import annotations

import io
import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType

import click
from click.shell_completion import shell_complete

from memshelf import __version__
from memshelf.cli import render
from memshelf.cli.completion import COMPLETION_VARIABLE, PROGRAM
from memshelf.errors import ErrorCode, MemoryStoreError
from memshelf.files.tools import failure
from memshelf.limits import FileFormat
from memshelf.mounted import Json

__all__ = ["cli", "main"]

REFUSED, USAGE, UNAVAILABLE, INTERRUPTED, BROKEN_PIPE = 1, 2, 3, 130, 141

_UNAVAILABLE: frozenset[ErrorCode] = frozenset({"unknown_memory", "unavailable", "memory_deleted", "write_unconfirmed"})
_ADVICE: dict[ErrorCode, str] = {
    "not_found": "List what there is with `memshelf files ls --recursive`.",
    "already_exists": "Change that file with `edit` or `append`, or choose another path.",
    "version_mismatch": "Look at the file with `view`, and decide again.",
    "no_match": "Look at the file with `view`, and decide again.",
}

_OTHER_LOCALE = "Use a UTF-8 locale, such as LC_ALL=C.UTF-8, or set PYTHONUTF8=1."


class _Commands(click.Group):
    """Loads a command when it is asked for: whoever lists files waits for neither vectors nor a service."""

    _homes = MappingProxyType(
        {
            # The others add their commands to the first one's.
            "files": ("files", "changes", "history", "archives", "erase"),
            "search": ("search",),
            "records": ("records", "record_transfer"),
            "workspace": ("workspace", "workspace_changes"),
            "chat": ("chat",),
            "mcp": ("mcp",),
            "threads": ("threads",),
            "demo": ("demo",),
            "serve": ("serve",),
            "keys": ("keys",),
            "verify": ("serve",),
            "stores": ("stores", "archives", "mirror"),
            "memories": ("memories", "archives", "erase"),
            "versions": ("versions",),
            "completion": ("completion",),
        }
    )

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(self._homes)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._homes:
            for name in self._homes:  # click suggests a command that it has
                if (command := self.get_command(ctx, name)) is not None:
                    self.commands[name] = command
            return None
        modules = [import_module(f"memshelf.cli.{home}") for home in self._homes[cmd_name]]
        found: click.Command = getattr(modules[0], cmd_name)
        return found


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name=PROGRAM, message="%(prog)s %(version)s")
def cli() -> None:
    """One memory for every agent.

    \b
    Examples:
      memshelf demo
      memshelf chat --memory user=.memory/user --model openai-responses:gpt-5
      memshelf files ls --memory .memory/user
      memshelf search "what does she drink?" --memory .memory/user
      memshelf records search "what does she drink?" --memory user.db
      memshelf mcp --memory user=.memory/user
      memshelf serve --data ./data
      memshelf stores list --data ./data
      eval "$(memshelf completion bash)"

    \b
    Exit codes:
      0    done
      1    refused: the memory said no, and nothing changed; or verify found damage
      2    the command line is wrong
      3    the memory, a folder, the model or an extra is not there, or cannot be used now
      130  interrupted
      141  whoever read the output has stopped
    """


def main(args: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code. Errors are short lines on standard error, never a traceback."""
    _open_what_is_closed()
    typed = [os.fsencode(arg).decode(errors="surrogateescape") for arg in sys.argv[1:]] if args is None else args
    for stream, errors in ((sys.stdin, "replace"), (sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, io.TextIOWrapper):  # memory is UTF-8, whatever the locale says
            stream.reconfigure(encoding="utf-8", errors=errors)
    with _warnings_on_one_line():
        try:
            return _run(list(typed))
        except BrokenPipeError:
            _discard_output()
            return BROKEN_PIPE


def _open_what_is_closed() -> None:
    """Whoever starts a program may have closed its standard streams: then there is nothing to read, output is a failed
    write rather than a success, and notes go nowhere."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), "r")
    if sys.stdout is None:
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _run(arguments: list[str]) -> int:
    as_json = "--json" in arguments[: arguments.index("--") if "--" in arguments else None]
    try:
        if instruction := os.environ.get(COMPLETION_VARIABLE):
            return shell_complete(cli, {}, PROGRAM, COMPLETION_VARIABLE, instruction)
        with cli.make_context(PROGRAM, arguments) as context:
            cli.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as end:
        return end.exit_code
    except (KeyboardInterrupt, click.Abort) as end:
        if sys.stderr.isatty():
            render.note("")  # the terminal's own ^C stands alone
        for told in end.args:
            render.note(told)
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return USAGE
    except click.UsageError as error:
        said = " ".join(error.format_message().split())  # click puts choices on lines of their own
        _report("usage", said, _see_help(error), {}, as_json=as_json)
        return USAGE
    except click.ClickException as error:
        _report("unavailable", error.format_message(), None, {}, as_json=as_json)
        return error.exit_code
    except MemoryStoreError as error:
        shown = failure(error, FileFormat())
        advice = _ADVICE.get(error.code) if arguments[:1] in (["files"], ["chat"]) else None
        notes = getattr(error, "__notes__", [])
        _report(error.code, error.message, "\n".join(filter(None, [advice, *notes])), shown, as_json=as_json)
        return UNAVAILABLE if error.code in _UNAVAILABLE else REFUSED
    except UnicodeEncodeError as error:
        name = error.object[error.start : error.end]
        if error.encoding == "utf-8":  # then it is no matter of the locale
            if not any(name in argument for argument in arguments):
                raise
            _report("usage", f"Arguments are UTF-8 text; what has {name!r} in it is not.", None, {}, as_json=as_json)
            return USAGE
        _report("unavailable", f"This locale cannot name {name!r} on the disk.", _OTHER_LOCALE, {}, as_json=as_json)
        return UNAVAILABLE
    except BrokenPipeError:
        raise
    except OSError as error:
        _discard_unwritable_output()
        _report("unavailable", _reason(error), None, {}, as_json=as_json)
        return UNAVAILABLE
    return 0


def _report(code: str, message: str, advice: str | None, shown: Json, *, as_json: bool) -> None:
    if as_json:
        render.document({"error": code, "message": message, **shown})
    render.note(f"error: {code}: {render.visible_line(message)}")
    if advice:
        render.note(advice)


def _see_help(error: click.UsageError) -> str | None:
    return f"See `{error.ctx.command_path} --help`." if error.ctx is not None else None


def _reason(error: OSError) -> str:
    reason = error.strerror or str(error)
    return f"{error.filename}: {reason}." if error.filename is not None else f"{reason}."


def _discard_unwritable_output() -> None:
    try:
        sys.stdout.flush()
    except OSError:
        _discard_output()


def _discard_output() -> None:
    """Let what is still buffered go nowhere, so that the interpreter does not stumble over it when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Once(logging.Filter):
    """A warning is said once, though each turn of a chat reads the same files several times. An error is one each time,
    as those of a server that runs for days."""

    def __init__(self) -> None:
        super().__init__()
        self._said: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        if record.levelno >= logging.ERROR:
            return True
        said = record.getMessage()
        new = said not in self._said
        self._said.add(said)
        return new


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"{record.levelname.lower()}: {record.getMessage().partition(chr(10))[0]}"


@contextmanager
def _warnings_on_one_line() -> Iterator[None]:
    """The library's warnings go to standard error without the traceback that comes with them; so does what an event
    loop has to say when it is interrupted again while it ends."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    handler.addFilter(_Once())
    loggers = [logging.getLogger(name) for name in ("memshelf", "asyncio")]
    for logger in loggers:
        logger.addHandler(handler)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(handler)
