"""The seven tools through which a model reads and changes its memories, free of any framework.

A door (an agent, an MCP server) binds them to a model: it offers `FILE_TOOLS`, calls `FileTools.view` and so on,
returns the result as JSON, and turns a `MemoryStoreError` into the JSON of `failure`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from typing import Literal, TypeAlias

from memshelf.errors import ErrorCode, MemoryStoreError
from memshelf.files import edits, grep
from memshelf.files.edits import find, find_text
from memshelf.files.format import validate_directory, validate_path
from memshelf.files.model import FileEntry, FileText, GrepMatch, in_order
from memshelf.files.mount import FileMount
from memshelf.files.protocol import FileStore, SearchableFileStore
from memshelf.limits import FileFormat, FileMemoryLimits
from memshelf.mounted import Json, MemoryTool, chosen, reached
from memshelf.origin import Origin
from memshelf.untrusted import encode, size

__all__ = ["FILE_TOOLS", "MOST_LINES", "FileTool", "FileToolKey", "FileTools", "failure", "listing", "selected"]

FileToolKey: TypeAlias = Literal["view", "grep", "create", "edit", "append", "move", "delete"]
FileTool: TypeAlias = MemoryTool[FileToolKey]

MOST_LINES = 200
"""How many lines one call finds at most."""

_WITH_CURRENT: frozenset[ErrorCode] = frozenset(
    {
        "already_exists",
        "ambiguous_match",
        "conflict_retries_exhausted",
        "no_match",
        "not_found",
        "version_mismatch",
    }
)


_TOOLS: tuple[FileTool, ...] = (
    MemoryTool("file", "view", "read", "List one directory of a memory, or read one file together with its version."),
    MemoryTool("file", "grep", "read", "Find the lines of a memory's files that contain a text, in any letter case."),
    MemoryTool("file", "create", "write", "Create a file in a memory, at a path that is still free."),
    MemoryTool("file", "edit", "write", "Replace a text that occurs exactly once in a memory file by another."),
    MemoryTool("file", "append", "write", "Add text at the end of a memory file, on a new line."),
    MemoryTool("file", "move", "write", "Move or rename a memory file to a path that is still free."),
    MemoryTool("file", "delete", "write", "Delete a memory file, if it is still at the version that you viewed."),
)
FILE_TOOLS: dict[FileToolKey, FileTool] = {tool.key: tool for tool in _TOOLS}


def selected(tools: Collection[FileToolKey] | None) -> tuple[FileTool, ...]:
    """The tools named, in their usual order; all of them for `None`. `ValueError` for an unknown name."""
    return chosen(FILE_TOOLS, tools)


class FileTools:
    """The tools over a set of mounts.

    Every call checks again that the memory is mounted (`unknown_memory`) and that its access allows the tool
    (`forbidden`). Results are JSON values; a refusal is raised as `MemoryStoreError`.
    """

    def __init__(self, mounts: Sequence[FileMount], limits: FileMemoryLimits | None = None) -> None:
        self._mounts = {mount.name: mount for mount in mounts}
        self._limits = limits or FileMemoryLimits()

    async def view(self, memory: str, path: str = "") -> Json:
        """One level of a directory (`""`, or a path that ends in `/` or names only a directory), or one file.

        Of a directory with more entries than fit into a result, those at the end are left out: `truncated`.
        """
        store, format = self._store(memory, "view"), self._limits.format
        directory = path if path == "" or path.endswith("/") else f"{path}/"
        directory = validate_directory(directory, format)
        if directory != path and (file := await find(store, path)) is not None:
            return {"memory": memory, **file_json(file, format)}
        listed = listing(directory, in_order(await store.list()))
        if directory and not listed["directories"] and not listed["files"]:
            raise _missing(path, memory)
        room = self._limits.result_bytes
        directories, room = _within(room, listed["directories"])
        files, _ = _within(room, listed["files"])
        if left := len(listed["directories"]) + len(listed["files"]) - len(directories) - len(files):
            listed |= {"directories": directories, "files": files, "truncated": True}
            listed["hint"] = f"{left} more entries are here. Find files among them with memory_file_grep."
        return {"memory": memory, **listed}

    async def grep(
        self,
        memory: str,
        pattern: str,
        path: str = "",
        *,
        regex: bool = False,
        case_sensitive: bool = False,
        limit: int = 50,
    ) -> Json:
        """Lines that contain `pattern`, under a directory (or of one file), as many as fit into a result."""
        store, format = self._store(memory, "grep"), self._limits.format
        directory = path if path == "" or path.endswith("/") else f"{path}/"
        directory = validate_directory(directory, format)
        if directory != path and (file := await find(store, path)) is not None:
            compiled = grep.Pattern.compile(pattern, regex=regex, case_sensitive=case_sensitive)
            found, more = await asyncio.to_thread(grep.search, [file], compiled, limit)
        elif isinstance(store, SearchableFileStore):
            found, more = await store.search(
                pattern, regex=regex, case_sensitive=case_sensitive, path=directory, limit=limit
            )
        else:
            compiled = grep.Pattern.compile(pattern, regex=regex, case_sensitive=case_sensitive)
            paths = [entry.path for entry in in_order(await store.list()) if entry.path.startswith(directory)]
            found, more = await _scan(store, paths, compiled, limit)
        matches = [{"path": match.path, "line": match.line, "text": match.text} for match in found]
        shown, _ = _within(self._limits.result_bytes, matches)
        result: Json = {"memory": memory, "matches": shown, "truncated": more or len(shown) < len(matches)}
        if not found:
            result["hint"] = (
                "No line matches. Try a shorter text or other words, or read the index with "
                f'memory_file_view(memory="{memory}").'
            )
        return result

    async def create(self, memory: str, path: str, content: str, *, origin: Origin) -> Json:
        store, limits = self._store(memory, "create"), self._limits
        written = await edits.create(
            store, path, content, origin=origin, format=limits.format, retries=limits.write_retries
        )
        return _written(memory, written)

    async def edit(self, memory: str, path: str, old_string: str, new_string: str, *, origin: Origin) -> Json:
        store, limits = self._store(memory, "edit"), self._limits
        written = await edits.edit(
            store, path, old_string, new_string, origin=origin, format=limits.format, retries=limits.write_retries
        )
        return _written(memory, written)

    async def append(self, memory: str, path: str, content: str, *, origin: Origin) -> Json:
        store, limits = self._store(memory, "append"), self._limits
        written = await edits.append(
            store, path, content, origin=origin, format=limits.format, retries=limits.write_retries
        )
        return _written(memory, written)

    async def move(self, memory: str, source: str, destination: str, *, origin: Origin) -> Json:
        store, limits = self._store(memory, "move"), self._limits
        written = await edits.move(
            store, source, destination, origin=origin, format=limits.format, retries=limits.write_retries
        )
        return {
            "memory": memory,
            "source": validate_path(source, limits.format),
            "destination": written.path,
            "version": written.version,
        }

    async def delete(self, memory: str, path: str, version: str, *, origin: Origin) -> Json:
        store = self._store(memory, "delete")
        path = validate_path(path, self._limits.format)
        try:
            await store.delete(path, expected=version, origin=origin)
        except MemoryStoreError as error:
            if error.code == "version_mismatch" and error.current is None:
                raise _missing(path, memory) from None
            raise
        return {"memory": memory, "path": path, "deleted": True}

    def _store(self, memory: str, key: FileToolKey) -> FileStore:
        return reached(self._mounts, memory, FILE_TOOLS[key]).store


def failure(error: MemoryStoreError, format: FileFormat) -> Json:
    """A refusal as the model sees it. `current` stands there for the codes that show the file as it is now."""
    shown: Json = {"error": error.code, "message": error.message}
    if error.code in _WITH_CURRENT:
        shown["current"] = file_json(error.current, format) if error.current is not None else None
    return shown


def file_json(file: FileText, format: FileFormat) -> Json:
    """A file for the model, cut when a lowered limit left it larger than files may be."""
    data = file.text.encode()
    shown: Json = {"path": file.path, "version": file.version, "size": len(data), "content": file.text}
    if len(data) > format.max_file_bytes:
        shown |= {"content": data[: format.max_file_bytes].decode(errors="ignore"), "truncated": True}
    return shown


def listing(directory: str, entries: Sequence[FileEntry]) -> Json:
    """One level of a directory as the model sees it."""
    counts: dict[str, int] = {}
    files: list[Json] = []
    for entry in entries:
        if not entry.path.startswith(directory):
            continue
        below, nested, _ = entry.path[len(directory) :].partition("/")
        if nested:
            child = f"{directory}{below}/"
            counts[child] = counts.get(child, 0) + 1
        else:
            files.append(
                {
                    "path": entry.path,
                    "description": entry.description,
                    "size": entry.size,
                    "version": entry.version,
                }
            )
    directories = [{"path": path, "files": count} for path, count in sorted(counts.items(), key=_by_path)]
    return {"path": directory, "directories": directories, "files": files}


def _within(room: int, items: Sequence[Json]) -> tuple[list[Json], int]:
    """The items that have room as JSON, from the first on, and what room they leave: none when there are more."""
    for at, item in enumerate(items):
        taken = size(encode(item)) + 1
        if taken > room:
            return list(items[:at]), 0
        room -= taken
    return list(items), room


def _by_path(item: tuple[str, int]) -> bytes:
    return item[0].encode()


async def _scan(
    store: FileStore, paths: Sequence[str], pattern: grep.Pattern, limit: int
) -> tuple[list[GrepMatch], bool]:
    # Files are read a few at a time, so that a common word does not read the whole memory.
    found: list[GrepMatch] = []
    allowance = grep.Allowance()
    for start in range(0, len(paths), 32):
        texts = [text for path in paths[start : start + 32] if (text := await find_text(store, path)) is not None]
        matches, more = await asyncio.to_thread(grep.search, texts, pattern, limit - len(found), allowance)
        found += matches
        if more:
            return found, True
    return found, False


def _written(memory: str, written: edits.Written) -> Json:
    return {"memory": memory, "path": written.path, "version": written.version, "size": written.size}


def _missing(path: str, memory: str) -> MemoryStoreError:
    return MemoryStoreError(
        "not_found", f'{path} does not exist. List the files with memory_file_view(memory="{memory}").'
    )
