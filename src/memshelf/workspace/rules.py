"""Standing rules: the user's AGENTS.md, and those of a repository down to the working directory."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

__all__ = ["RuleFile", "repository_rules"]

_LONGEST = 65_536


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The text of an AGENTS.md, and where it stands."""

    where: str
    text: str


def repository_rules(cwd: Path, name: str) -> list[RuleFile]:
    """The rules of the repository that a directory belongs to, from its root down, the nearest last.

    Without a `.git` above, only the directory's own. A file that is not UTF-8, no regular file or over 64 KiB is left
    out, as is a link that leads out of the repository.
    """
    try:
        cwd = cwd.absolute()
    except OSError:  # the working directory was removed
        return []
    above = [cwd, *cwd.parents]
    root = next((directory for directory in above if os.path.exists(directory / ".git")), cwd)
    chain = [directory for directory in reversed(above) if directory == root or root in directory.parents]
    return [found for directory in chain if (found := _read(directory / name, root)) is not None]


def _read(path: Path, root: Path) -> RuleFile | None:
    try:
        if not path.resolve().is_relative_to(root.resolve()):
            return None
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, RuntimeError, ValueError):  # missing, unreadable, links in a circle, or no path at all
        return None
    with open(fd, "rb") as file:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return None
        data = file.read(_LONGEST + 1)
    try:
        return RuleFile(str(path), data.decode()) if len(data) <= _LONGEST else None
    except UnicodeDecodeError:
        return None
