"""`memshelf demo`: the command and its folder; the story is in `story`, which needs the extra `agent`."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from memshelf.cli import render
from memshelf.cli.command import asynchronous, disk_paths, require_agent
from memshelf.cli.memory import disk_path

__all__ = ["demo"]

_MARKER = ".memshelf-demo"
_DATABASE = "memory.db"


@click.command()
@click.option(
    "--folder",
    default="memshelf-demo",
    show_default=True,
    metavar="DIR",
    shell_complete=disk_paths,
    help="Where the demo keeps its memory: a new or empty folder, or one of an earlier demo, which starts afresh.",
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

    database = _fresh(disk_path(folder)) / _DATABASE
    await story.tell(database)
    memory = shlex.quote(str(database))
    mounted = shlex.quote(f"user={database}")
    render.line(render.paint("What to do next", "cyan"))
    render.line(f"  memshelf files history prefs/me.md --memory {memory}")
    render.line(f"  memshelf files view prefs/me.md --memory {memory}")
    render.line(f"  memshelf chat --memory {mounted} --model openai-responses:gpt-5")
    render.line("The last one asks a real model, and needs its key: OPENAI_API_KEY for this one.")


def _fresh(folder: Path) -> Path:
    """The demo's folder without the memory of an earlier demo. Nothing else is ever removed."""
    marker = folder / _MARKER
    if folder.exists() and not marker.is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise click.UsageError(f"{folder} holds something else. Name a new folder with --folder.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    marker.touch(mode=0o600)
    for name in (_DATABASE, f"{_DATABASE}-wal", f"{_DATABASE}-shm"):
        (folder / name).unlink(missing_ok=True)
    return folder
