"""`memshelf files erase` and `memshelf memories erase`: forget a file with all that its history holds of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import quote

import click

from memshelf.cli import render
from memshelf.cli.changes import of_a_file
from memshelf.cli.command import asynchronous, confirmed, json_option, memory_option, path_argument, yes_option
from memshelf.cli.files import files
from memshelf.cli.history import by_option
from memshelf.cli.hosted import Api, hosted, memory_argument, store_argument
from memshelf.cli.memories import memories
from memshelf.cli.memory import opened, origin
from memshelf.errors import MemoryStoreError
from memshelf.files import edits
from memshelf.files.format import validate_path
from memshelf.files.protocol import HistoryFileStore
from memshelf.mounted import Json

__all__: list[str] = []

_AT_ONCE = 100
_PAGE = 1_000
_FEW = 50
_OUT_OF_REACH = "Not erased: exports, backups, what chats and logs have shown, and other files that say the same."


@dataclass(frozen=True, slots=True)
class _Held:
    """What erasing needs to know of a version. `path` is `None` once it is redacted."""

    id: str
    file: str
    path: str | None
    deleted: bool
    redacted: bool


@dataclass(slots=True)
class _Doomed:
    """What is to be erased, and `kept`, the paths at which files stand now that are not."""

    first: list[str] = field(default_factory=list)
    last: list[str] = field(default_factory=list)
    """The versions that were asked for by name: whoever is stopped in the midst finds the rest by them again."""
    files: set[str] = field(default_factory=set)
    paths: set[str] = field(default_factory=set)
    kept: set[str] = field(default_factory=set)


def _doomed(history: Iterable[_Held], named: Callable[[_Held], bool], path: str) -> _Doomed:
    """From a history, newest first: the files with a version that is named, unless they stand elsewhere than at `path`
    by now."""
    found, newest = _Doomed(), dict[str, _Held]()
    versions = list(history)
    for version in reversed(versions):
        newest[version.file] = version
    for file in {version.file for version in versions if named(version)}:
        last = newest[file]
        if last.deleted or last.path is None or last.path == path:
            found.files.add(file)
        else:
            found.kept.add(last.path)
    for version in reversed(versions):
        if version.file in found.files and not version.redacted:
            (found.last if named(version) else found.first).append(version.id)
            found.paths.update([version.path] if version.path is not None else ())
    return found


async def _erase(
    path: str,
    named: Callable[[_Held], bool],
    history: Callable[[], Awaitable[Sequence[_Held]]],
    newest: Callable[[], Awaitable[Sequence[_Held]]],
    remove: Callable[[], Awaitable[Any]] | None,
    redact: Callable[[str], Awaitable[Any]],
    *,
    yes: bool,
    as_json: bool,
) -> _Doomed:
    """Ask, `remove` what stands at the path, and `redact` every version of what stood there. Where nothing is left to
    redact, one of the `newest` versions is redacted again: that removes what a process that was killed has left."""
    found = _doomed(await history(), named, path)
    shown = render.visible_line(path)
    if not found.first and not found.last:
        again = next((each.id for each in await newest() if each.redacted), None)
        if again is not None:
            await redact(again)
    if not found.files:
        if found.kept:
            places = render.visible_line(", ".join(sorted(found.kept)))
            raise MemoryStoreError("not_found", f"What stood at {path} stands at {places} now; erase that.")
        raise MemoryStoreError(
            "not_found", f"The history knows of nothing at {path}: it is erased already, or was never there."
        )
    if not yes:
        others = sorted(found.paths - {path})
        also = f", which also stood at {render.visible_line(', '.join(others))}," if others else ""
        count = render.counted(len(found.first) + len(found.last), "version")
        confirmed(f"Erase {shown}{also} with its whole history ({count}) for good?", as_json=as_json)
    if remove is not None:
        await remove()
        kept = found.kept
        found = _doomed([each for each in await history() if each.file in found.files], named, path)
        found.kept = kept
    try:
        for versions in (found.first, found.last):
            for start in range(0, len(versions), _AT_ONCE):
                await _all(redact, versions[start : start + _AT_ONCE])
    except MemoryStoreError as error:
        error.add_note(f"{shown} is deleted, and not all of it erased. Run the command again.")
        raise
    return found


async def _all(redact: Callable[[str], Awaitable[Any]], versions: Sequence[str]) -> None:
    """Redact versions together: a database is rewritten once for all of them."""
    for done in await asyncio.gather(*map(redact, versions), return_exceptions=True):
        if isinstance(done, BaseException):
            raise done


def _show(where: Json, path: str, found: _Doomed, *, as_json: bool) -> None:
    versions, kept = found.first + found.last, sorted(found.kept)
    if as_json:
        render.document({**where, "path": path, "versions": versions, "paths": sorted(found.paths), "kept": kept})
    else:
        render.line(f"Erased {render.visible_line(path)} ({render.counted(len(versions), 'version')})")
    for each in kept:
        render.note(f"Kept: {render.visible_line(each)}, which stood there once.")
    render.note(_OUT_OF_REACH)


@files.command()
@memory_option
@json_option
@by_option
@yes_option
@path_argument("path")
@asynchronous
async def erase(memory: str, path: str, *, by: str, yes: bool, as_json: bool) -> None:
    """Erase a file for good: delete it if it is there, and redact all its versions, at whatever paths they stood.

    So it goes with files that stood at PATH before and are deleted. One that was moved away, and is still there, is
    kept and named. What remains shows that versions were erased, when and by whom. Exports, backups and what others
    were shown are out of reach. Asks on a terminal; elsewhere, and with --json, say --yes.

    \b
    Examples:
      memshelf files erase prefs/tea.md --memory user.db
      memshelf files erase prefs/tea.md --by "Data protection" --yes --memory user.db
    """
    async with opened(memory) as store, of_a_file(store, path):
        if not isinstance(store, HistoryFileStore):
            raise click.UsageError(
                f"{memory} is a directory, which keeps no history: `memshelf files rm` deletes all that it has of a "
                "file. What version control and backups keep of it is out of reach."
            )
        path = validate_path(path)
        file = await edits.find(store, path)
        remove = partial(store.delete, path, expected=file.version, origin=origin()) if file is not None else None
        found = await _erase(
            path,
            lambda version: version.path == path,
            partial(_history, store, path),
            partial(_history, store, None, _FEW),
            remove,
            partial(store.redact, by=by),
            yes=yes,
            as_json=as_json,
        )
    _show({"memory": memory}, path, found, as_json=as_json)


async def _history(store: HistoryFileStore, path: str | None, most: int | None = None) -> list[_Held]:
    found: list[_Held] = []
    cursor = None
    while True:
        page = await store.versions(path, limit=most or _PAGE, cursor=cursor)
        for each in page.versions:
            redacted = each.redacted_at is not None
            found.append(_Held(each.id, each.file_id, each.path, each.operation == "deleted", redacted))
        if (cursor := page.next_cursor) is None or len(found) == most:
            return found


@memories.command("erase")
@json_option
@yes_option
@store_argument
@memory_argument
@hosted
async def erase_memory(api: Api, store: str, memory: str, *, yes: bool, as_json: bool) -> None:
    """Erase a memory for good: delete it if it is there, and redact all its versions, at whatever paths they stood.

    With a path, so it goes with memories that stood there before and are deleted; one that was moved away, and is still
    there, is kept and named. What remains shows that versions were erased, when and by whom. Exports, backups and what
    others were shown are out of reach. Asks on a terminal; elsewhere, and with --json, say --yes.

    \b
    Examples:
      memshelf memories erase Notes /prefs/tea.md --data ./data
      memshelf memories erase Notes mem_0199 --yes --data ./data
    """
    place = await api.store(store)
    try:
        current = await api.memory(place, memory)
    except MemoryStoreError as error:
        if error.code != "not_found":
            raise
        current = None
    by_id = memory if memory.startswith("mem_") else None
    path = current["path"] if current is not None else memory
    found = await _erase(
        path,
        lambda version: version.file == by_id if by_id is not None else version.path == path,
        partial(_by_id, api, place, by_id) if by_id is not None else partial(_by_path, api, place, path),
        partial(_by_id, api, place, by_id, _FEW),
        partial(api.delete_memory, place, current) if current is not None else None,
        lambda version: api.change("POST", f"{place}/memory_versions/{quote(version, safe='')}/redact", {}),
        yes=yes,
        as_json=as_json,
    )
    _show({"memory": memory}, path, found, as_json=as_json)


async def _by_path(api: Api, store: str, path: str) -> list[_Held]:
    """The versions of what stood at a path; of all, from a server that finds none by a path."""
    async with api.files(store) as files:
        if isinstance(files, HistoryFileStore):
            try:
                found = await _history(files, path.removeprefix("/"))
            except MemoryStoreError as error:
                if error.code != "invalid_path":
                    raise
                return []  # nothing can have stood there
            return [replace(each, path=f"/{each.path}") if each.path is not None else each for each in found]
    return await _by_id(api, store, None)


async def _by_id(api: Api, store: str, memory_id: str | None, most: int | None = None) -> list[_Held]:
    """The versions of one memory, or of all."""
    return [
        _Held(
            each["id"], each["memory_id"], each["path"], each["operation"] == "deleted", each["redacted_at"] is not None
        )
        async for each in api.items(f"{store}/memory_versions", most=most, memory_id=memory_id)
    ]
