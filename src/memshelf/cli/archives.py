"""Archives as files: `memshelf stores export | import`, and the same for SQLite memories and for folders."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Iterator
from typing import IO, Any

import click

from memshelf.cli import render
from memshelf.cli.carried import file_argument, force_option, new_file, readable_file
from memshelf.cli.command import asynchronous, disk_paths, json_option, memory_option
from memshelf.cli.files import files
from memshelf.cli.folder import export_folder, import_folder, show_import
from memshelf.cli.hosted import Api, extension, hosted, store_argument
from memshelf.cli.memories import memories
from memshelf.cli.memory import disk_path, opened, opened_with_history, origin
from memshelf.cli.serve import data_option, database_option, opened_engine
from memshelf.cli.stores import stores
from memshelf.errors import MemoryStoreError
from memshelf.files import archive
from memshelf.files.archive import Header, Json
from memshelf.files.backends.sql.archive import Imported
from memshelf.files.format import validate_path
from memshelf.limits import FileFormat, StoreLimits
from memshelf.presence import is_directory
from memshelf.stores.archive import import_store, require_store, valid_path
from memshelf.stores.shelf import Shelf

__all__: list[str] = []

_PAGE = 50

_every_option = click.option("--all", "every", is_flag=True, help="Every file of UTF-8 text, not only Markdown.")
_folder_argument = click.argument("folder", shell_complete=disk_paths)


@stores.command(name="export")
@json_option
@force_option
@store_argument
@file_argument
@hosted
async def export_store(api: Api, store: str, file: str, *, force: bool, as_json: bool) -> None:
    """Write a store with its whole history into an archive: FILE, or - for standard output.

    A name that ends in .gz compresses it. Redacted versions have no content in it either.

    \b
    Examples:
      memshelf stores export Notes notes.memshelf.gz --data ./data
    """
    path = await api.store(store)
    about = await api.get(path)
    fields = ("id", "name", "description", "metadata", "created_at", "updated_at", "archived_at")

    async def pages() -> AsyncIterator[tuple[Json, list[Json]]]:
        after = 0
        while True:
            page = await api.get(f"{extension(path)}/history", after=after, limit=_PAGE)
            yield page, page["data"]
            if not page["data"]:
                return
            if (last := page["data"][-1]["seq"]) <= after:
                raise MemoryStoreError("unavailable", "The server's history does not go on.")
            after = last

    versions = await _write(file, pages(), {name: about[name] for name in fields}, force=force)
    _show_exported(file, versions, as_json=as_json)


@stores.command(name="import")
@json_option
@data_option
@database_option
@click.option("--workspace", metavar="NAME", default="default", show_default=True, help="Created if it does not exist.")
@file_argument
@asynchronous
async def import_(file: str, *, data: str | None, database: str | None, workspace: str, as_json: bool) -> None:
    """Import the store of an archive into local data, under its own id, with its history, its ids and its authors.

    Imported again, it changes nothing; a later archive of the same store adds what is new. A damaged archive is
    refused as a whole. Only the data itself takes an import, as whoever imports says who wrote what.

    \b
    Examples:
      memshelf stores import notes.memshelf.gz --data ./data
    """
    from memshelf.service.accounts import Accounts

    with readable_file(file) as read:
        with read() as whole:
            checked = archive.checked(whole, valid_path)
        require_store(checked, StoreLimits())
        async with opened_engine(data, database, create=True) as engine:
            workspace_id = await Accounts(engine).make_workspace(workspace)
            store, imported = await import_store(Shelf(engine), workspace_id, checked, lambda: _versions(read, checked))
    if as_json:
        render.document({"store": store.id, "added": imported.added, "present": imported.present})
    else:
        _show_imported(f"Imported store {store.id}", imported)


@files.command(name="export")
@memory_option
@json_option
@force_option
@click.option("--folder", "as_folder", is_flag=True, help="Write the files as they are now into a new folder instead.")
@file_argument
@asynchronous
async def export_memory(memory: str, file: str, *, force: bool, as_folder: bool, as_json: bool) -> None:
    """Write a memory with its whole history into an archive: FILE, or - for standard output (SQLite memories).

    A name that ends in .gz compresses it. With --folder, any memory becomes a plain folder, without history.

    \b
    Examples:
      memshelf files export user.memshelf.gz --memory user.db
      memshelf files export --folder ./notes --memory user.db
    """
    if as_folder:
        async with opened(memory) as store:
            count = await export_folder(store, disk_path(file))
        _show_folder(file, count, as_json=as_json)
        return
    async with opened_with_history(memory) as kept:

        async def pages() -> AsyncIterator[tuple[Json, list[Json]]]:
            after = 0
            while True:
                head, created_at, versions = await kept.history(after, _PAGE)
                about: Json = {
                    "epoch": head.epoch, "created_at": created_at, "head_seq": head.seq, "head": head.link.hex()
                }  # fmt: skip
                yield about, [archive.version_json(version) for version in versions]
                if not versions:
                    return
                after = versions[-1].stored.facts.seq

        count = await _write(file, pages(), None, force=force)
    _show_exported(file, count, as_json=as_json)


@files.command(name="import")
@memory_option
@json_option
@_every_option
@file_argument
@asynchronous
async def import_memory(memory: str, file: str, *, every: bool, as_json: bool) -> None:
    """Import an archive into a SQLite memory, with its history; or a folder of Markdown into any memory.

    An archive that is imported again changes nothing, and a later one of the same memory adds what is new; another
    history than the memory's is refused. From a folder, files are created and updated, and none is deleted.

    \b
    Examples:
      memshelf files import user.memshelf.gz --memory copy.db
      memshelf files import ./notes --memory user.db
    """
    if is_directory(disk_path(file)):
        async with opened(memory, create=True) as store:
            done = await import_folder(store, disk_path(file), every=every, origin=origin())
        show_import(done, as_json=as_json)
        return
    with readable_file(file) as read:
        with read() as whole:
            checked = archive.checked(whole, lambda path: validate_path(path, FileFormat(path_bytes=1_024)))
        async with opened_with_history(memory, create=True) as kept:
            imported = await kept.import_versions(checked, lambda: _versions(read, checked))
    if as_json:
        render.document({"memory": memory, "added": imported.added, "present": imported.present})
    else:
        _show_imported("Imported", imported)


@memories.command(name="export")
@json_option
@store_argument
@_folder_argument
@hosted
async def export_memories(api: Api, store: str, folder: str, *, as_json: bool) -> None:
    """Write the memories of a store as they are now into a new folder of plain files.

    \b
    Examples:
      memshelf memories export Notes ./notes
    """
    async with api.files(await api.store(store)) as found:
        count = await export_folder(found, disk_path(folder))
    _show_folder(folder, count, as_json=as_json)


@memories.command(name="import")
@json_option
@_every_option
@store_argument
@_folder_argument
@hosted
async def import_memories(api: Api, store: str, folder: str, *, every: bool, as_json: bool) -> None:
    """Create and update memories from the Markdown files of a folder. None is deleted.

    \b
    Examples:
      memshelf memories import Notes ./notes
    """
    async with api.files(await api.store(store)) as found:
        done = await import_folder(found, disk_path(folder), every=every, origin=origin())
    show_import(done, as_json=as_json)


async def _write(file: str, pages: AsyncIterator[tuple[Json, list[Json]]], store: Json | None, *, force: bool) -> int:
    """Write the pages of a history, up to where it stands at the first of them; how many versions that is."""
    with new_file(file, force=force) as out:
        hash = hashlib.sha256()
        first: Json | None = None
        written = 0
        async for about, versions in pages:
            if first is None:
                first = about
                header = Header(about["epoch"], about["created_at"], store)
                _put(out, hash, archive.header_json(header))
            elif about["epoch"] != first["epoch"]:
                raise MemoryStoreError("unavailable", "The memory was purged meanwhile; export it again.")
            for version in versions:
                if version["seq"] <= first["head_seq"]:
                    _put(out, hash, version)
                    written += 1
            if written >= first["head_seq"]:
                break
        if first is None or written != first["head_seq"]:
            raise MemoryStoreError("unavailable", "The history has gaps: see `verify`.")
        out.write(archive.line_of(archive.end_json(written, bytes.fromhex(first["head"]), hash.hexdigest())))
    return written


def _put(out: IO[bytes], hash: Any, value: Json) -> None:
    line = archive.line_of(value)
    hash.update(line)
    out.write(line)


def _versions(read: Any, checked: archive.Checked) -> Iterator[archive.Archived]:
    with read() as whole:
        yield from archive.versions_of(whole, checked)


def _show_exported(file: str, versions: int, *, as_json: bool) -> None:
    if file == "-":
        return
    if as_json:
        render.document({"file": file, "versions": versions})
    else:
        render.line(f"Exported {render.counted(versions, 'version')} to {render.visible_line(file)}")


def _show_imported(what: str, imported: Imported) -> None:
    render.line(f"{what}: {render.counted(imported.added, 'version')} added, {render.present(imported.present)}")


def _show_folder(folder: str, count: int, *, as_json: bool) -> None:
    if as_json:
        render.document({"folder": folder, "files": count})
    else:
        render.line(f"Exported {render.counted(count, 'file')} to {render.visible_line(folder)}")
