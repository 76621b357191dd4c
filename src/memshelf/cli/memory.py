"""Which memory a command speaks of, and opening it."""

from __future__ import annotations

import asyncio
import os
import pwd
import sqlite3
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import click

from memshelf.arguments import address_in
from memshelf.cli import render
from memshelf.errors import MemoryStoreError
from memshelf.files.backends.directory import DirectoryFileStore
from memshelf.files.backends.sqlite import SqliteFileStore
from memshelf.files.mount import FileMount
from memshelf.files.protocol import HistoryFileStore
from memshelf.origin import Origin
from memshelf.presence import is_directory, is_file, stands
from memshelf.service.data import DATABASE_NAME, has_data
from memshelf.storage.sqlite_connection import error_kind, may_write, reason, require_not_emptied

__all__ = [
    "Mounted",
    "Place",
    "Store",
    "disk_path",
    "existing_folder",
    "exists",
    "locate",
    "memories",
    "opened",
    "opened_with_history",
    "origin",
    "require",
    "require_room",
    "say_where",
    "some_of",
    "store_of",
]

Store = DirectoryFileStore | SqliteFileStore

_SQLITE_HEADER = b"SQLite format 3\x00"
_MOST_NAMED = 10
_SQLITE_SUFFIXES = (".db", ".sqlite", ".sqlite3")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a memory is kept. `text` is how the user named it; `memory` its name inside a SQLite file."""

    text: str
    kind: Literal["directory", "sqlite"]
    path: Path
    memory: str = "default"


@dataclass(frozen=True, slots=True)
class Mounted:
    """A memory of a chat, and where the user said that it is kept."""

    place: Place
    mount: FileMount


def disk_path(argument: str) -> Path:
    """The path that a user typed. Arguments are read as UTF-8, whatever the encoding of the system's own names.

    A `~` at its beginning is the home of the user: not every shell replaces it behind a `=`, or in a variable. The
    address of a server is no folder, but a usage error, which does not repeat it, as it may have a password.
    """
    if not argument:
        raise click.UsageError("A path is empty; give a file or a folder, such as `.` for the current one.")
    if address := address_in(argument):
        raise click.UsageError(f"{address} is the address of a server; a path on this machine is meant here.")
    path = Path(os.path.expanduser(os.fsdecode(argument.encode(errors="surrogateescape"))))
    return path.absolute() if str(path).startswith("~") else path  # `./~` is no home


def existing_folder(argument: str, what: str, advice: str) -> Path:
    """The folder that a user typed, which is a `what`. `unknown_memory`, with advice, when there is no such folder."""
    folder = disk_path(argument)
    if is_directory(folder):
        return folder
    if stands(folder):
        raise MemoryStoreError("unknown_memory", f"{argument} is no {what}: it is not a folder.")
    error = MemoryStoreError("unknown_memory", f"There is no {what} at {argument}.")
    error.add_note(advice)
    raise error


def locate(text: str) -> Place:
    """The memory that `PATH` or `PATH#NAME` names.

    A directory is a memory by itself. An existing file is one if it is a SQLite database, and may hold several, told
    apart by `#NAME`. What does not exist yet is a database if its name ends in .db, .sqlite or .sqlite3, else a
    directory. An existing path that contains `#` is taken whole. `unknown_memory` for any other file.
    """
    if not text:
        raise click.BadParameter("it is empty; give a directory or a SQLite file", param_hint="--memory")
    path = disk_path(text)
    if is_directory(path):
        _require_no_service(text, path)
        return Place(text, "directory", path)
    marks = [at for at, sign in enumerate(text) if sign == "#"] if not stands(path) else []
    for at in reversed(marks):
        if _is_sqlite(base := disk_path(text[:at])):
            if not text[at + 1 :]:
                raise click.BadParameter(f"nothing follows the # of {text!r}; give PATH#NAME", param_hint="--memory")
            return Place(text, "sqlite", base, text[at + 1 :])
    if _is_sqlite(path):
        return Place(text, "sqlite", path)
    if stands(path):
        raise MemoryStoreError(
            "unknown_memory", f"{text} is no memory: it is neither a directory nor a SQLite database."
        )
    return Place(text, "directory", path)


def _require_no_service(text: str, folder: Path) -> None:
    if has_data(folder) and _holds(folder / DATABASE_NAME, "workspaces"):
        error = MemoryStoreError("unknown_memory", f"{text} is no memory, but holds the stores of a service.")
        error.add_note(f"`memshelf stores list --data {text}` lists them.")
        raise error


def _is_sqlite(path: Path) -> bool:
    if not stands(path):
        return path.suffix.lower() in _SQLITE_SUFFIXES
    if not is_file(path):
        return False
    with path.open("rb") as file:
        head = file.read(len(_SQLITE_HEADER))
    return head == _SQLITE_HEADER or (not head and path.suffix.lower() in _SQLITE_SUFFIXES)


@asynccontextmanager
async def opened(text: str, *, create: bool = False) -> AsyncIterator[Store]:
    """The store of the memory `text`. One that does not exist is `unknown_memory`, unless it may be created."""
    place = locate(text)
    if not create:
        require(place)
    new = create and not exists(place)
    store, interrupted = store_of(place), False
    try:
        yield store
        if new:  # the path may be a slip
            render.note(render.visible_line(f"New memory: there was none at {text}."))
    except asyncio.CancelledError:
        interrupted = True  # closing would wait for what is under way, and that may wait for another process
        raise
    except MemoryStoreError as error:
        if error.code == "not_found" and isinstance(store, HistoryFileStore):
            error.add_note("Versions of files that are gone: `memshelf files history`.")
        elif isinstance(error.__cause__, PermissionError):
            error.add_note(f"Check who owns {text}, and everything in it, and who may read and write there.")
        elif place.kind == "sqlite":
            say_where(error, str(place.path))
        raise
    finally:
        if not interrupted:
            await store.aclose()


@asynccontextmanager
async def opened_with_history(text: str, *, create: bool = False) -> AsyncIterator[SqliteFileStore]:
    """The same, for commands that need a history; a directory is a usage error."""
    async with opened(text, create=create) as store:
        if not isinstance(store, HistoryFileStore):
            raise click.UsageError(
                f"{text} is a directory, and directories keep no history. Keep the memory in SQLite instead, such as "
                "--memory memory.db, or put the directory under version control."
            )
        yield store


def store_of(place: Place) -> Store:
    """The store of a memory, which creates it with the first change. `unknown_memory` for a foreign database."""
    if place.kind == "directory":
        return DirectoryFileStore(place.path)
    if stands(place.path) and place.path.stat().st_size:
        memories(place.path)
    try:
        return SqliteFileStore(place.path, place.memory)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--memory") from None


def require(place: Place) -> None:
    """`unknown_memory` when there is none. Looking for it creates nothing, which a store might."""
    names: list[str] = []
    if not stands(place.path):
        missing = f"There is no memory at {place.text}."
    elif place.kind == "sqlite" and place.memory not in (names := memories(place.path)):
        missing = f"{place.path} holds no memory {place.memory}. It holds: {some_of(names)}."
    else:
        return
    error = MemoryStoreError("unknown_memory", missing)
    if place.kind == "sqlite" and names and _holds(place.path, "workspaces"):
        error.add_note(f"It belongs to a service: `memshelf stores list --data {place.path.parent}`.")
        raise error
    error.add_note("Check --memory; `memshelf files create` makes a new memory.")
    if place.kind == "sqlite" and not names and _holds(place.path, "records"):
        error.add_note("It holds records, which are no files: `memshelf records list`.")
    raise error


def require_room(place: Place) -> None:
    """`unavailable` when a memory that does not exist yet could not be made where it is to be. Nothing is created."""
    path = place.path.absolute()
    if os.path.lexists(path):
        return
    above = next(each for each in path.parents if os.path.lexists(each))
    if not is_directory(above):
        raise MemoryStoreError("unavailable", f"{place.text} cannot be made: {above} is not a folder.")
    if not may_write(above, os.W_OK | os.X_OK):
        raise MemoryStoreError("unavailable", f"{place.text} cannot be made: the folder {above} cannot be written.")


def exists(place: Place) -> bool:
    """Whether there is a memory; what cannot be looked at counts as one."""
    try:
        require(place)
    except MemoryStoreError as error:
        return error.code != "unknown_memory"
    return True


def some_of(names: Sequence[str]) -> str:
    """What a file holds, for a refusal of a few lines."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "") or "none"


def say_where(refused: MemoryStoreError, path: str) -> None:
    """Let the refusal of a SQLite database say which one it is, and what to do when it is damaged."""
    cause = refused.__cause__
    if isinstance(cause, sqlite3.Error) and error_kind(cause) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        refused.add_note(f"{path} is damaged: restore it from a backup.")
    elif refused.code in ("unavailable", "write_unconfirmed") and path not in refused.message:
        refused.add_note(f"The database is {path}.")


def memories(path: Path) -> list[str]:
    """The memories that a SQLite file holds."""
    require_not_emptied(str(path))
    try:
        # Not read-only: SQLite could not tidy up the files that reading a write-ahead log puts beside the database.
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            return [name for (name,) in connection.execute("SELECT name FROM memories ORDER BY name")]
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_ERROR:  # there is no such table
            raise MemoryStoreError("unknown_memory", f"{path} is a database that holds no memories.") from None
        raise MemoryStoreError("unavailable", f"{path} cannot be read: {reason(error, str(path))}.") from error
    except sqlite3.DatabaseError as error:
        refused = MemoryStoreError("unavailable", f"{path} cannot be read: {error}.")
        refused.__cause__ = error
        say_where(refused, str(path))
        raise refused from error


def _holds(path: Path, table: Literal["records", "workspaces"]) -> bool:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as connection:
            return connection.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None  # noqa: S608  # names
    except sqlite3.Error:  # a foreign database, or one that is busy: what is said without it is true
        return False


def origin() -> Origin:
    """What changes made here are attributed to: the operating system's user."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:  # a user id without an entry, as containers have
        name = str(uid)
    return Origin(principal_id=f"cli:{name}")
