"""`memshelf demo`: the command and its folder; the story is in `story`, which needs the extra `agent`."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import click

from memshelf.cli import render
from memshelf.cli.command import asynchronous, disk_paths, require_agent
from memshelf.cli.memory import disk_path, memories
from memshelf.files.backends.sqlite import SqliteFileStore
from memshelf.files.model import Version
from memshelf.presence import is_directory, is_file, stands

__all__ = ["STORYTELLER", "demo"]

STORYTELLER = "demo:conversation-"
"""What the names of those who write in the story begin with."""

_MARKER = ".memshelf-demo"
_DATABASE = "memory.db"


@click.command()
@click.option(
    "--folder",
    default="memshelf-demo",
    show_default=True,
    metavar="DIR",
    shell_complete=disk_paths,
    help="Where the demo keeps its memory: a new or empty folder, or one of an earlier demo, which starts afresh. "
    "Refused when somebody else has written to that memory.",
)
@asynchronous
async def demo(folder: str) -> None:
    """Watch conversations share a memory. It needs no key and no network.

    The agent loop, the tools and the store are the real ones; the model is scripted, and decides from what it is
    shown. What it is shown is printed as it is.

    \b
    Examples:
      memshelf demo
      memshelf demo --folder /tmp/memshelf-demo
    """
    require_agent()
    from memshelf.cli import story  # it loads the agent framework

    database = _folder(disk_path(folder)) / _DATABASE
    if earlier := _memories(database):
        await _require_own(database, earlier)
        render.note(f"Starting afresh: this replaces the memory of an earlier demo in {database}.")
    _remove(database)
    await story.tell(database)
    memory = shlex.quote(str(database))
    mounted = shlex.quote(f"user={database}")
    render.line(render.paint("What to do next", "cyan"))
    render.line(f"  memshelf files history prefs/me.md --memory {memory}")
    render.line(f"  memshelf files view prefs/me.md --memory {memory}")
    render.line(f"  memshelf chat --memory {mounted} --model openai-responses:gpt-5")
    render.line("The last one asks a real model, and needs its key: OPENAI_API_KEY for this one.")


def _folder(folder: Path) -> Path:
    """The demo's folder, new or of an earlier demo."""
    marker = folder / _MARKER
    if stands(folder) and not is_file(marker) and (not is_directory(folder) or any(folder.iterdir())):
        raise click.UsageError(f"{folder} holds something else. Name a new folder with --folder.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    marker.touch(mode=0o600)
    return folder


def _memories(database: Path) -> list[str]:
    return memories(database) if stands(database) else []


async def _require_own(database: Path, names: Sequence[str]) -> None:
    async for version in _versions(database, names):
        if not (version.origin.principal_id or "").startswith(STORYTELLER):
            raise click.UsageError(
                f"{database} holds what the demo did not write, such as version {version.id}, and starting afresh "
                "would erase it. Name another folder with --folder, or remove this one yourself."
            )


def _remove(database: Path) -> None:
    """Remove the memory of an earlier demo. Nothing else is ever removed."""
    for ending in ("", "-wal", "-shm"):
        database.with_name(f"{database.name}{ending}").unlink(missing_ok=True)


async def _versions(database: Path, names: Sequence[str]) -> AsyncIterator[Version]:
    for memory in names:
        async with SqliteFileStore(database, memory) as store:
            cursor: str | None = None
            while True:
                page = await store.versions(cursor=cursor)
                for version in page.versions:
                    yield version
                if (cursor := page.next_cursor) is None:
                    break
