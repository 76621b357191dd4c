"""Rolling up a listing of paths: what lies deeper than asked for is one item, its directory. Pure functions."""

from __future__ import annotations

__all__ = ["after_directory", "after_file", "rolled_up"]


def rolled_up(path: str, directory: str, depth: int) -> str | None:
    """The directory that stands for a file more than `depth` levels below `directory`; `None` for one that is listed
    itself. A depth of 0 lists every file."""
    levels = path[len(directory) :].split("/", depth) if depth else [path]
    return f"{directory}{'/'.join(levels[:depth])}/" if len(levels) > depth > 0 else None


# Paths are compared byte by byte, and no path has a control character: the least text that follows a path, and
# everything that could stand before the next one, is the path and such a character.


def after_file(path: str) -> str:
    """The least text that is greater than the path and not greater than the next one."""
    return f"{path}\x01"


def after_directory(directory: str) -> str:
    """The least text that is greater than everything below the directory: "0" follows "/"."""
    return f"{directory[:-1]}0"
