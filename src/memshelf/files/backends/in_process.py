"""A file memory in the memory of this process: for tests, examples, and as the simplest store there can be."""

from __future__ import annotations

import asyncio
import builtins
from dataclasses import dataclass
from uuid import uuid4

from memshelf.arguments import checked_argument
from memshelf.errors import MemoryStoreError
from memshelf.files import grep
from memshelf.files.decide import Delete, Move, Request, Write, ancestors, decide
from memshelf.files.format import FileFormat, validate_directory, validate_path
from memshelf.files.model import Changes, FileEntry, FileText, FullResync, GrepMatch
from memshelf.files.protocol import FileStore, SearchableFileStore, documented_by
from memshelf.origin import Origin

__all__ = ["InProcessFileStore"]


@dataclass(frozen=True, slots=True)
class _File:
    entry: FileEntry
    text: str


@documented_by(FileStore, SearchableFileStore)
class InProcessFileStore:
    """Files that live as long as this object. Use it from one event loop; it keeps no history."""

    def __init__(self, *, format: FileFormat | None = None) -> None:
        self.format = checked_argument("format", format, FileFormat, None) or FileFormat()
        self._files: dict[str, _File] = {}
        self._restart()

    def _restart(self) -> None:
        self._files.clear()
        self._changed: dict[str, int] = {}
        self._head = 0
        self._epoch = uuid4().hex

    async def list(self) -> builtins.list[FileEntry]:
        return sorted((file.entry for file in self._files.values()), key=lambda entry: entry.path.encode())

    async def read(self, path: str) -> FileText:
        path = validate_path(path, self.format)
        if (file := self._load(path)) is None:
            raise MemoryStoreError("not_found", f"{path} does not exist.")
        return file

    async def write(self, path: str, text: str, *, expected: str | None, origin: Origin) -> str:
        checked_argument("origin", origin, Origin)
        return self._apply(Write.checked(path, text, expected, self.format))

    async def move(self, source: str, destination: str, *, expected: str, origin: Origin) -> str:
        checked_argument("origin", origin, Origin)
        return self._apply(Move.checked(source, destination, expected, self.format))

    async def delete(self, path: str, *, expected: str, origin: Origin) -> None:
        checked_argument("origin", origin, Origin)
        self._apply(Delete.checked(path, expected, self.format))

    async def changes(self, since: str | None) -> Changes | FullResync:
        cursor = f"{self._epoch}:{self._head}"
        epoch, _, position = (since or "").partition(":")
        known = epoch == self._epoch and position.isascii() and position.isdecimal() and len(position) <= 18
        if not known or int(position) > self._head:
            return FullResync(cursor)
        changed = (path for path, head in self._changed.items() if head > int(position))
        return Changes(cursor, tuple(sorted(changed, key=str.encode)))

    async def purge(self) -> None:
        self._restart()

    async def search(
        self, pattern: str, *, regex: bool, case_sensitive: bool, path: str, limit: int
    ) -> tuple[builtins.list[GrepMatch], bool]:
        directory = validate_directory(path, self.format)
        compiled = grep.Pattern.compile(pattern, regex=regex, case_sensitive=case_sensitive)
        files = [
            FileText(entry.path, self._files[entry.path].text, entry.version)
            for entry in await self.list()
            if entry.path.startswith(directory)
        ]
        return await asyncio.to_thread(grep.search, files, compiled, limit)

    def _load(self, path: str | None) -> FileText | None:
        file = self._files.get(path) if path is not None else None
        return FileText(file.entry.path, file.text, file.entry.version) if file is not None else None

    def _in_the_way(self, path: str | None) -> FileText | None:
        if path is None:
            return None
        for each in (path, *ancestors(path)):
            if (file := self._load(each)) is not None:
                return file
        below = [each for each in self._files if each.startswith(f"{path}/")]
        return self._load(min(below, key=str.encode)) if below else None

    def _apply(self, request: Request) -> str:
        current = self._load(request.loads)
        commit = decide(request, current, self._in_the_way(request.must_be_free))
        if commit is None:
            assert current is not None  # noqa: S101  # only an existing file can already be as asked
            return current.version
        self._head += 1
        version = f"{self._epoch[:12]}-{self._head}"
        description = request.description if isinstance(request, Write) else None
        if commit.source is not None:
            description = self._files.pop(commit.source).entry.description
            self._changed[commit.source] = self._head
        if commit.operation == "deleted":
            del self._files[commit.path]
        else:
            entry = FileEntry(commit.path, version, len(commit.data), description)
            self._files[commit.path] = _File(entry, commit.text)
        self._changed[commit.path] = self._head
        return version
