"""A memory from a plain folder of Markdown, and to one."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import click

from memshelf.cli import render
from memshelf.errors import MemoryStoreError
from memshelf.files import edits
from memshelf.files.protocol import FileStore
from memshelf.mounted import Json
from memshelf.origin import Origin
from memshelf.presence import is_directory, is_file, stands
from memshelf.storage.private import make_private

__all__ = ["export_folder", "import_folder", "show_import"]

_MOST_FILE_BYTES = 16_777_216
_MARKDOWN = (".md", ".markdown")


@dataclass(slots=True)
class FolderImport:
    """What became of each file, by its path in the memory."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    refused: list[Json] = field(default_factory=list)
    others: int = 0
    """Files that are no Markdown, which were not asked for."""


async def import_folder(store: FileStore, folder: Path, *, every: bool, origin: Origin) -> FolderImport:
    """Create or update a file for each Markdown file of a folder, or with `every` for each file; what the folder
    lacks stays. Hidden files and symbolic links are passed over. A file that is refused or cannot be read does not stop
    the others."""
    done = FolderImport()
    names: dict[str, str] = {}
    for path, place in _files(folder, done):
        if not every and place.suffix.lower() not in _MARKDOWN:
            done.others += 1
            continue
        if names.setdefault(unicodedata.normalize("NFC", path), path) != path:
            reason = "Another file of the folder has this name, composed otherwise."
            done.refused.append({"path": path, "error": "already_exists", "message": reason})
            continue
        try:
            await _import_file(store, path, _text(place), origin, done)
        except OSError as error:
            done.refused.append(_unreadable(path, error))
        except MemoryStoreError as error:
            if error.code in ("unavailable", "memory_deleted", "write_unconfirmed", "store_archived", "memory_full"):
                raise
            done.refused.append({"path": path, "error": error.code, "message": error.message})
    return done


async def _import_file(store: FileStore, path: str, text: str, origin: Origin, done: FolderImport) -> None:
    current = await edits.find(store, path)
    if current is None:
        await store.write(path, text, expected=None, origin=origin)
        done.created.append(path)
    elif current.text == text:
        done.unchanged.append(path)
    else:
        await store.write(path, text, expected=current.version, origin=origin)
        done.updated.append(path)


def _unreadable(path: str, error: OSError) -> Json:
    return {"path": path, "error": "unavailable", "message": f"It cannot be read: {error.strerror}."}


def _files(folder: Path, done: FolderImport) -> Iterator[tuple[str, Path]]:
    if not is_directory(folder):
        raise click.UsageError(f"{folder} is no folder.")

    def unreadable(error: OSError) -> None:
        done.refused.append(_unreadable(f"{Path(error.filename).relative_to(folder).as_posix()}/", error))

    for parent, directories, names in os.walk(folder, onerror=unreadable):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        for name in sorted(names):
            place = Path(parent, name)
            if not name.startswith(".") and is_file(place) and not place.is_symlink():
                yield place.relative_to(folder).as_posix(), place


def _text(place: Path) -> str:
    if place.stat().st_size > _MOST_FILE_BYTES:
        raise MemoryStoreError("too_large", f"It has more than {_MOST_FILE_BYTES} bytes.")
    data = place.read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise MemoryStoreError("invalid_file", f"It is not UTF-8 text, in line {line}.") from None


def show_import(done: FolderImport, *, as_json: bool) -> None:
    """Print what came of it; the exit code is 1 when a file was refused."""
    if done.others:
        render.note(f"Passed over, as not Markdown: {render.counted(done.others, 'file')}; --all imports them too.")
    if as_json:
        render.document(
            {
                "created": done.created,
                "updated": done.updated,
                "unchanged": done.unchanged,
                "refused": done.refused,
            }
        )
    else:
        for each in done.refused:
            render.note(render.visible_line(f"{each['path']}: {each['error']}: {each['message']}"))
        counts = f"{len(done.created)} created, {len(done.updated)} updated, {len(done.unchanged)} unchanged"
        render.line(f"Imported: {counts}, {len(done.refused)} refused")
    if done.refused:
        raise click.exceptions.Exit(1)


async def export_folder(store: FileStore, folder: Path) -> int:
    """Write every file into a folder that is new or empty, for its user only to read; how many there are. What fails
    leaves the folder empty."""
    _make(folder)
    entries, places, made = await store.list(), list[Path](), list[Path]()
    try:
        for entry in entries:
            file = await store.read(entry.path)
            places.append(_inside(folder, file.path))
            with _new(places[-1]) as out:
                made.append(places[-1])  # any other file that is there is somebody else's
                out.write(file.text.encode())
                out.flush()
                os.fsync(out.fileno())
    except BaseException:
        _take_back(folder, places, made)
        raise
    return len(entries)


def _inside(folder: Path, path: str) -> Path:
    place = folder.joinpath(*path.split("/"))
    if ".." in place.parts[len(folder.parts) :]:  # a server may answer anything
        raise MemoryStoreError("unavailable", "The server answered with a path that leaves the folder.")
    return place


def _take_back(folder: Path, places: list[Path], made: list[Path]) -> None:
    for place in made:
        with suppress(OSError):
            place.unlink()
    for directory in sorted(
        {each for place in places for each in place.parents if folder in each.parents}, reverse=True
    ):
        with suppress(OSError):  # somebody else's files are in it
            directory.rmdir()


def _make(folder: Path) -> None:
    if stands(folder) and (not is_directory(folder) or any(folder.iterdir())):
        raise click.UsageError(f"{folder} is not empty: export to a new folder.")
    make_private(str(folder))


def _new(place: Path) -> IO[bytes]:
    make_private(str(place.parent))
    return open(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
