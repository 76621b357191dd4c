"""The files of memories as resources: `memshelf://user/prefs/language.md` is a file of the memory `user`."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote, unquote

from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    Completion,
    ListResourcesResult,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from memshelf.errors import ErrorCode, MemoryStoreError
from memshelf.files.model import FileEntry, in_order
from memshelf.files.mount import FileMount

__all__ = ["FileResources"]

_SCHEME = "memshelf://"
_PAGE = 500
_MOST_COMPLETED = 100  # of the protocol
_OURS: frozenset[ErrorCode] = frozenset({"unavailable", "memory_deleted"})

_TEMPLATE = ResourceTemplate(
    name="memory-file",
    title="A file of a memory",
    uri_template=f"{_SCHEME}{{memory}}/{{+path}}",
    description="The file at this path of the memory of this name.",
)


class FileResources:
    """The files of the mounts, as far as they can be listed; a memory that cannot be read is an error."""

    templates = (_TEMPLATE,)

    def __init__(self, mounts: Sequence[FileMount]) -> None:
        self._mounts = {mount.name: mount for mount in mounts}

    async def page(self, cursor: str | None) -> ListResourcesResult:
        """Files memory by memory, in path order. The cursor is the last one listed: it stays good when others change
        the memories meanwhile."""
        memory, after = self._named(cursor) if cursor else ("", "")
        names, found = list(self._mounts), list[Resource]()
        for name in names[names.index(memory) if memory else 0 :]:
            for entry in in_order(await self._list(name)):
                if name == memory and entry.path.encode() <= after.encode():
                    continue
                if len(found) == _PAGE:
                    return ListResourcesResult(resources=found, next_cursor=found[-1].uri)
                found.append(
                    Resource(
                        uri=_uri(name, entry.path),
                        name=f"{name}/{entry.path}",
                        description=entry.description or None,
                        mime_type=_mime_type(entry.path),
                        size=entry.size,
                    )
                )
        return ListResourcesResult(resources=found)

    async def read(self, uri: str) -> ReadResourceResult:
        memory, path = self._named(uri)
        try:
            file = await self._mounts[memory].store.read(path)
        except MemoryStoreError as error:
            raise _refused(error, uri) from error
        contents = TextResourceContents(uri=uri, mime_type=_mime_type(path), text=file.text)
        return ReadResourceResult(contents=[contents])

    async def completed(self, argument: str, typed: str, memory: str | None) -> Completion:
        """The memories, or the paths of one, that begin with what was typed."""
        if argument == "memory":
            values = [name for name in self._mounts if name.startswith(typed)]
        elif argument == "path" and memory in self._mounts:
            values = [entry.path for entry in in_order(await self._list(memory)) if entry.path.startswith(typed)]
        else:
            values = []
        return Completion(values=values[:_MOST_COMPLETED], total=len(values), has_more=len(values) > _MOST_COMPLETED)

    async def _list(self, memory: str) -> list[FileEntry]:
        try:
            return await self._mounts[memory].store.list()
        except MemoryStoreError as error:
            raise _refused(error, f"{_SCHEME}{memory}/") from error

    def _named(self, uri: str) -> tuple[str, str]:
        memory, _, path = uri.removeprefix(_SCHEME).partition("/")
        if not uri.startswith(_SCHEME) or memory not in self._mounts:
            known = ", ".join(f"{_SCHEME}{name}/" for name in self._mounts)
            raise MCPError(INVALID_PARAMS, f"No such resource. They begin with {known or 'nothing: there are none'}.")
        return memory, unquote(path)


def _uri(memory: str, path: str) -> str:
    return f"{_SCHEME}{memory}/{quote(path)}"


def _mime_type(path: str) -> str:
    return "text/markdown" if path.lower().endswith((".md", ".markdown")) else "text/plain"


def _refused(error: MemoryStoreError, uri: str) -> MCPError:
    code = INTERNAL_ERROR if error.code in _OURS else INVALID_PARAMS
    return MCPError(code, f"{error.code}: {error.message}", {"uri": uri})
