"""The files of memories as resources: `memshelf://user/prefs/language.md` is a file of the memory `user`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from contextlib import suppress
from typing import TypeVar
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
from memshelf.untrusted import sound

__all__ = ["FileResources"]

_SCHEME = "memshelf"
_PAGE = 500
_SECONDS = 10  # as for `memory_context`
_ECHOED_CHARS = 300
_MOST_COMPLETED = 100  # of the protocol
_OURS: frozenset[ErrorCode] = frozenset({"unavailable", "memory_deleted"})

_log = logging.getLogger(__name__)

T = TypeVar("T")

_TEMPLATE = ResourceTemplate(
    name="memory-file",
    title="A file of a memory",
    uri_template=f"{_SCHEME}://{{memory}}/{{+path}}",
    description="The file at this path of the memory of this name.",
)


class FileResources:
    """The files of the mounts, as far as they can be listed."""

    templates = (_TEMPLATE,)

    def __init__(self, mounts: Sequence[FileMount]) -> None:
        self._mounts = {mount.name: mount for mount in mounts}

    async def page(self, cursor: str | None) -> ListResourcesResult:
        """Files memory by memory, in path order. The cursor is the last one listed: it stays good when others change
        the memories meanwhile."""
        memory, after = self._named(cursor) if cursor else ("", "")
        names, found = list(self._mounts), list[Resource]()
        rest = names[names.index(memory) if memory else 0 :]
        for files in await asyncio.gather(*(self._files(name, after if name == memory else "") for name in rest)):
            found += files
            if len(found) > _PAGE:
                return ListResourcesResult(resources=found[:_PAGE], next_cursor=found[_PAGE - 1].uri)
        return ListResourcesResult(resources=found)

    async def read(self, uri: str) -> ReadResourceResult:
        memory, path = self._named(uri)
        try:
            file = await _answered(memory, self._mounts[memory].store.read(path))
        except MemoryStoreError as error:
            raise _refused(error, uri) from error
        contents = TextResourceContents(uri=uri, mime_type=_mime_type(path), text=sound(file.text))
        return ReadResourceResult(contents=[contents])

    async def completed(self, argument: str, typed: str, memory: str | None) -> Completion:
        """The memories, or the paths of one, that begin with what was typed; nothing if it cannot be listed."""
        values: list[str] = []
        if argument == "memory":
            values = [name for name in self._mounts if name.startswith(typed)]
        elif argument == "path" and memory in self._mounts:
            with suppress(MemoryStoreError):
                values = [entry.path for entry in await self._listed(memory) if entry.path.startswith(typed)]
        return Completion(values=values[:_MOST_COMPLETED], total=len(values), has_more=len(values) > _MOST_COMPLETED)

    async def _files(self, memory: str, after: str) -> list[Resource]:
        """Those behind the path `after`. A memory that cannot be listed is a resource that says so: clients show
        nothing of a list that failed, and little of a log."""
        try:
            entries = await self._listed(memory)
        except MemoryStoreError as error:
            told = f"The files of this memory cannot be listed now. {error}"
            return [Resource(uri=_uri(memory, ""), name=f"{memory} (cannot be listed)", description=told)]
        return [_resource(memory, entry) for entry in entries if entry.path.encode() > after.encode()]

    async def _listed(self, memory: str) -> list[FileEntry]:
        return in_order(await _answered(memory, self._mounts[memory].store.list()))

    def _named(self, uri: str) -> tuple[str, str]:
        scheme, _, rest = uri.partition("://")
        name, _, path = rest.partition("/")
        memory = name.lower()  # letter case counts neither in a scheme nor in what stands for a host
        if scheme.lower() != _SCHEME or memory not in self._mounts:
            known = ", ".join(_uri(each, "") for each in self._mounts)
            raise MCPError(INVALID_PARAMS, f"No such resource. They begin with {known}.")
        return memory, unquote(path)


async def _answered(memory: str, asked: Awaitable[T]) -> T:
    """What a store answers. `unavailable` as well for one that hangs, or raises what is no refusal."""
    try:
        async with asyncio.timeout(_SECONDS):
            return await asked
    except MemoryStoreError:
        raise
    except Exception as error:  # stores are anyone's code
        _log.exception("The memory %s could not be read.", memory)
        raise MemoryStoreError("unavailable", f"The memory failed: {type(error).__name__}.") from error


def _resource(memory: str, entry: FileEntry) -> Resource:
    return Resource(
        uri=_uri(memory, entry.path),
        name=f"{memory}/{entry.path}",
        description=entry.description or None,
        mime_type=_mime_type(entry.path),
        size=entry.size,
    )


def _uri(memory: str, path: str) -> str:
    return f"{_SCHEME}://{memory}/{quote(path)}"


def _mime_type(path: str) -> str:
    return "text/markdown" if path.lower().endswith((".md", ".markdown")) else "text/plain"


def _refused(error: MemoryStoreError, uri: str) -> MCPError:
    code = INTERNAL_ERROR if error.code in _OURS else INVALID_PARAMS
    return MCPError(code, str(error), {"uri": uri[:_ECHOED_CHARS]})
