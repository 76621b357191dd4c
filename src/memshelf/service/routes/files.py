"""A store as a file memory, for clients that are `FileStore`s: memshelf's own, below `/memshelf`.

Each operation is a call of `StoreFiles`. Compare-and-swap is by version, the origin of a change comes with it, and a
refusal carries its code and the file as it is now.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from memshelf.errors import MemoryStoreError
from memshelf.files.model import Changes
from memshelf.origin import Origin
from memshelf.service.call import Call
from memshelf.service.errors import answer_to, invalid_request, status_of
from memshelf.service.operation import Operation
from memshelf.service.subject import require_there
from memshelf.service.wire import files as wire
from memshelf.service.wire.render import KEY_PREFIX
from memshelf.service.wire.requests import Nothing
from memshelf.stores.files import StoreFiles
from memshelf.stores.model import NoSuchStoreError

__all__ = ["OPERATIONS"]

Handler = Callable[..., Awaitable[Any]]


def _files(call: Call) -> StoreFiles:
    return StoreFiles(call.state.shelf, call.caller.workspace_id, call.path["memory_store_id"])


def _telling(handler: Handler) -> Handler:
    """Have every refusal carry its code."""

    @wraps(handler)
    async def tell(call: Call, *arguments: Any) -> Any:
        try:
            try:
                return await handler(call, *arguments)
            except MemoryStoreError as error:
                if status_of(error) == 400:
                    await require_there(call)
                raise
        except MemoryStoreError as error:
            refusal = answer_to(error, call.dialect)
            if isinstance(error, NoSuchStoreError):  # a file that is not there is another matter
                error = MemoryStoreError("memory_deleted", error.message)
            refusal.details.update(wire.refusal_json(error))
            raise refusal from None

    return tell


def _origin(call: Call, given: wire.ClientOrigin) -> Origin:
    return dataclasses.replace(
        call.origin, run_id=given.run_id, principal_id=given.principal_id, tool_call_id=given.tool_call_id
    )


def _changed(version: str) -> Any:
    return {"type": "memshelf_change", "version": version}


@_telling
async def _list(call: Call, query: wire.FilesQuery) -> Any:
    """List every file with its version, size and description, in byte-wise path order"""
    found = await _files(call).entries(query.known)
    if found is None:
        return {"type": "memshelf_files", "cursor": query.known, "data": None}
    cursor, entries = found
    return {
        "type": "memshelf_files",
        "cursor": cursor,
        "data": [
            {"path": entry.path, "version": entry.version, "size": entry.size, "description": entry.description}
            for entry in entries
        ],
    }


@_telling
async def _read(call: Call, query: wire.FileQuery) -> Any:
    """Read the file at a path"""
    return {"type": "memshelf_file", **wire.file_json(await _files(call).file(query.path))}


@_telling
async def _write(call: Call, body: wire.WriteFile) -> Any:
    """Create a file, or replace the version of it that is expected"""
    origin = _origin(call, body.origin)
    return _changed(
        await _files(call).put(body.path, body.text, expected=body.expected, origin=origin, change_id=body.change_id)
    )


@_telling
async def _move(call: Call, body: wire.MoveFile) -> Any:
    """Rename the version of a file that is expected"""
    origin = _origin(call, body.origin)
    return _changed(
        await _files(call).move(
            body.source, body.destination, expected=body.expected, origin=origin, change_id=body.change_id
        )
    )


@_telling
async def _delete(call: Call, body: wire.DeleteFile) -> Any:
    """Delete the version of a file that is expected"""
    origin = _origin(call, body.origin)
    return _changed(
        await _files(call).delete(body.path, expected=body.expected, origin=origin, change_id=body.change_id)
    )


@_telling
async def _restore(call: Call, body: wire.RestoreFile) -> Any:
    """Write the content of a version back at its path, as a new version"""
    origin = _origin(call, body.origin)
    return _changed(
        await _files(call).restore(body.version_id, expected=body.expected, origin=origin, change_id=body.change_id)
    )


@_telling
async def _purge(call: Call, body: Nothing) -> Any:
    """Remove every file and every version of a store, and keep the store"""
    del body
    await _files(call).purge()
    return {"type": "memshelf_purged"}


@_telling
async def _changes(call: Call, query: wire.ChangesQuery) -> Any:
    """Tell which paths changed after a cursor"""
    found = await _files(call).changes(query.since)
    paths = list(found.paths) if isinstance(found, Changes) else None
    return {"type": "memshelf_changes", "cursor": found.cursor, "paths": paths}


@_telling
async def _grep(call: Call, query: wire.GrepQuery) -> Any:
    """Find the lines that match a pattern"""
    matches, more = await _files(call).search(
        query.pattern,
        regex=query.regex,
        case_sensitive=query.case_sensitive,
        path=query.path,
        limit=query.limit,
    )
    return {"type": "memshelf_matches", "data": [wire.match_json(match) for match in matches], "more": more}


@_telling
async def _versions(call: Call, query: wire.FileVersionsQuery) -> Any:
    """List versions with content, the newest first: of the store, or of the files that stood at a path"""
    page = await _files(call).versions(query.path, query.since, query.limit, query.cursor)
    return {
        "type": "memshelf_file_versions",
        "data": [wire.file_version_json(version) for version in page.versions],
        "next_cursor": page.next_cursor,
    }


@_telling
async def _version(call: Call, query: wire.FoundQuery) -> Any:
    """Find a version by its id, or by the change or the tool call that wrote it"""
    files = _files(call)
    if query.version_id is not None:
        found = await files.version(query.version_id)
    elif query.change_id is not None:
        found = await files.change(query.change_id)
    elif query.run_id is not None and query.tool_call_id is not None:
        call_made = await files.replayed(Origin(run_id=query.run_id, tool_call_id=query.tool_call_id))
        return _found(call_made)
    else:
        raise invalid_request("version_id: give it, or change_id, or run_id and tool_call_id.")
    return _found(found)


def _found(version: Any) -> Any:
    return {
        "type": "memshelf_file_version",
        "version": wire.file_version_json(version) if version is not None else None,
    }


@_telling
async def _redact(call: Call, body: wire.RedactFileVersion) -> Any:
    """Erase the path and content of a version for good, in the name of whom the client says"""
    if body.by.startswith(KEY_PREFIX):
        raise invalid_request(f"by: what starts with {KEY_PREFIX} is the id of a key, and no one's name.")
    return _found(await _files(call).redact(body.version_id, by=body.by))


_ALL = "/memshelf/memory_stores/{memory_store_id}/files"

OPERATIONS = (
    Operation("GET", _ALL, _list, wire.FilesAnswer, query=wire.FilesQuery, scoped="store_read"),
    Operation("GET", f"{_ALL}/content", _read, wire.FileAnswer, query=wire.FileQuery, scoped="store_read"),
    Operation("GET", f"{_ALL}/changes", _changes, wire.ChangesAnswer, query=wire.ChangesQuery, scoped="store_read"),
    Operation("GET", f"{_ALL}/grep", _grep, wire.GrepAnswer, query=wire.GrepQuery, scoped="store_read"),
    Operation(
        "GET", f"{_ALL}/versions", _versions, wire.FileVersionPage, query=wire.FileVersionsQuery, scoped="store_read"
    ),
    Operation("GET", f"{_ALL}/version", _version, wire.FoundAnswer, query=wire.FoundQuery, scoped="store_read"),
    Operation("POST", f"{_ALL}/write", _write, wire.ChangedAnswer, body=wire.WriteFile, scoped="store_write"),
    Operation("POST", f"{_ALL}/move", _move, wire.ChangedAnswer, body=wire.MoveFile, scoped="store_write"),
    Operation("POST", f"{_ALL}/delete", _delete, wire.ChangedAnswer, body=wire.DeleteFile, scoped="store_write"),
    Operation("POST", f"{_ALL}/restore", _restore, wire.ChangedAnswer, body=wire.RestoreFile, scoped="store_write"),
    Operation("POST", f"{_ALL}/redact", _redact, wire.FoundAnswer, body=wire.RedactFileVersion),
    Operation("POST", f"{_ALL}/purge", _purge, wire.PurgedAnswer, body=Nothing),
)
