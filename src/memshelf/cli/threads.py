"""The threads of `memshelf chat`: one private JSON file each, held by one process at a time."""

from __future__ import annotations

import fcntl
import os
import re
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import click
from pydantic import BaseModel, ConfigDict, ValidationError

from memshelf.agent.state import HarnessState
from memshelf.cli.command import Unavailable

__all__ = ["Thread", "ThreadFile", "held", "thread_name"]

_NAME = re.compile(r"[^\W_][\w.-]{0,47}")
_PRIVATE = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


class Thread(BaseModel):
    """What is kept of one thread: the conversation, and what it has seen of each memory. The two belong together."""

    model_config = ConfigDict(frozen=True)

    format_version: Literal[1] = 1
    state: HarnessState | None = None
    cursors: dict[str, str] = {}


def thread_name(name: str) -> str:
    """A thread's name in NFC: letters of any script, digits, `.`, `-` and `_`, at most 48 characters."""
    name = unicodedata.normalize("NFC", name)
    if _NAME.fullmatch(name) is None:
        raise click.BadParameter(
            f"{name!r} is no thread name: a letter or digit, then at most 47 of letters, digits, '.', '-' and '_'",
            param_hint="--thread",
        )
    return name


class ThreadFile:
    """The file of a thread that this process holds; from `held`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> Thread | None:
        """The thread, or `None` when it is new."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return Thread.model_validate_json(data)
        except ValidationError as error:  # its own text would show the conversation
            raise Unavailable(f"{self.path} cannot be read as a thread: {error.errors()[0]['msg']}") from None

    def save(self, thread: Thread) -> None:
        """Replace the file whole: after a crash at any instant it holds this thread or the one before."""
        staged = self.path.with_name(f"{self.path.name}.new")  # only the holder of the thread writes there
        descriptor = os.open(staged, _PRIVATE | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(thread.model_dump_json().encode())
            file.flush()
            os.fsync(file.fileno())
        staged.replace(self.path)
        directory = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


@contextmanager
def held(directory: Path, name: str) -> Iterator[ThreadFile]:
    """Hold a thread. Another process that holds it is refused; the system releases the thread of one that dies."""
    for each in reversed([directory, *directory.parents]):
        each.mkdir(mode=0o700, exist_ok=True)
    ignore = directory / ".gitignore"
    if not ignore.exists():
        ignore.write_text("*\n")  # conversations are private; version control is not the place for them
    with _locked(directory / f"{name}.lock", name):
        yield ThreadFile(directory / f"{name}.json")


@contextmanager
def _locked(path: Path, name: str) -> Iterator[None]:
    while True:
        lock = os.open(path, _PRIVATE, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Unavailable(f"Thread {name} is in use by another process.") from None
            if not _is_at(lock, path):
                continue  # its holder removed it between our opening and locking it
            try:
                yield
            finally:
                path.unlink(missing_ok=True)
            return
        finally:
            os.close(lock)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False
