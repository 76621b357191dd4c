"""Standing rules: the user's AGENTS.md, and those of a repository down to the working directory."""

from __future__ import annotations

import asyncio
import logging
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from memshelf.errors import MemoryStoreError
from memshelf.files.edits import find
from memshelf.files.protocol import FileStore

__all__ = ["RuleFile", "repository_rules", "stored_rules", "warn_of_problems"]

_LONGEST = 65_536
_NO_TEXT = f"it is not UTF-8 text of at most {_LONGEST} bytes; save it as that"
_NO_FILE = "it is a link, a directory or a device; put a text file in its place"
_LEADS_OUT = "it is a link that leads out of the repository; put a text file in its place"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The text of an AGENTS.md, and where it stands. One with a `problem`, which says what to do, has no text."""

    where: str
    text: str
    problem: str = ""


def warn_of_problems(files: Iterable[RuleFile]) -> None:
    """Say in the log which rules nobody is told of, and why."""
    for each in files:
        if each.problem:
            _log.warning("Agents are not told the rules in %s: %s.", each.where, each.problem)


async def stored_rules(store: FileStore, name: str, where: str, *, on_disk: bool) -> RuleFile | None:
    """The rules of a user, which are in a store; `None` when there are none. `unavailable`."""
    try:
        found = await find(store, name)
    except MemoryStoreError as error:
        if error.code == "invalid_path":
            return RuleFile(where, "", _NO_FILE)
        if error.code != "invalid_file":
            raise
        return RuleFile(where, "", _NO_TEXT)
    if found is not None:
        fits = len(found.text.encode(errors="replace")) <= _LONGEST
        return RuleFile(where, found.text) if fits else RuleFile(where, "", _NO_TEXT)
    # To a store, a directory is no file that is in the way, but none.
    blocked = on_disk and await asyncio.to_thread(os.path.isdir, where)
    return RuleFile(where, "", _NO_FILE) if blocked else None


def repository_rules(cwd: Path, name: str) -> list[RuleFile]:
    """The rules of the repository that a directory belongs to, from its root down, the nearest last.

    Without a `.git` above, only the directory's own. A file that is not UTF-8, no regular file or over 64 KiB has a
    `problem`, as has a link that leads out of the repository.
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
        if not _stands(path):
            return None
        if not path.resolve().is_relative_to(root.resolve()):
            return RuleFile(str(path), "", _LEADS_OUT)
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            regular = stat.S_ISREG(os.fstat(fd).st_mode)
            data = _content(fd) if regular else b""
        finally:
            os.close(fd)
    except OSError as error:
        return RuleFile(str(path), "", f"it cannot be read ({error.strerror}); see to it that it can")
    except (RuntimeError, ValueError):  # links in a circle, or no path at all
        return None
    if not regular:
        return RuleFile(str(path), "", _NO_FILE)
    try:
        return RuleFile(str(path), data.decode()) if len(data) <= _LONGEST else RuleFile(str(path), "", _NO_TEXT)
    except UnicodeDecodeError:
        return RuleFile(str(path), "", _NO_TEXT)


def _stands(path: Path) -> bool:
    try:
        os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _content(fd: int) -> bytes:
    data = b""
    while len(data) <= _LONGEST and (more := os.read(fd, _LONGEST + 1 - len(data))):
        data += more
    return data
