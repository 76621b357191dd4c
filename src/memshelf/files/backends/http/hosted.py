"""A store of a memshelf service as a file memory."""

from __future__ import annotations

import builtins
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import quote

import httpx2

from memshelf.arguments import checked_argument, checked_id
from memshelf.closing import Closes
from memshelf.errors import MemoryStoreError
from memshelf.files.backends.http import answers
from memshelf.files.backends.http.answers import field, items, maybe
from memshelf.files.backends.http.connection import (
    ANTHROPIC_HEADERS,
    Connection,
    Json,
    LostReplyError,
    Query,
    RefusedError,
    unconfirmed,
)
from memshelf.files.decide import Delete, Move, Recorded, Request, Write, replay
from memshelf.files.edits import find
from memshelf.files.format import FileFormat, validate_directory, validate_path
from memshelf.files.model import Changes, FileEntry, FileText, FullResync, GrepMatch, Version, VersionPage
from memshelf.files.protocol import FileStore, HistoryFileStore, SearchableFileStore, documented_by
from memshelf.limits import page_limit
from memshelf.origin import Origin
from memshelf.storage.ids import Mint, askable

__all__ = ["MemoryStoreFileStore"]

T = TypeVar("T")

_MOST_VERSIONS = 50
_MOST_MATCHES = 10_000
_CURSOR_CHARS = 200


@documented_by(FileStore, SearchableFileStore, HistoryFileStore)
class MemoryStoreFileStore(Closes):
    """The memory store with the id `store` on the memshelf service at `base_url`: every file, its history, search.

    It is what the service's own database is: compare-and-swap is by version, a tool call that is made again answers
    with its first result, and changes are listed exactly. The service also holds to the rules of its stores: paths of
    at most 20 segments without format characters, files of at most 100 KiB, and what an archived store refuses. It
    says itself by which key, or in which session, a change was made: `session_id` and `api_key_id` of an origin are
    the service's.

    When the reply to a change is lost, the store looks whether the change was made, and answers as if the reply had
    come; if that cannot be told, `write_unconfirmed`. It never makes a change twice, and retries nothing by itself.

    `api_key` is sent to `base_url` and nowhere else: redirects are not followed, and no error or log has it. Give a
    `client` for proxies, certificates and the like; it is not closed by `aclose`. A request takes at most `timeout`
    seconds, and an answer at most `max_answer_bytes`.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        store: str,
        *,
        headers: Mapping[str, str] = ANTHROPIC_HEADERS,
        client: httpx2.AsyncClient | None = None,
        format: FileFormat | None = None,
        timeout: float = 30.0,
        max_answer_bytes: int = 67_108_864,
        mint: Mint | None = None,
    ) -> None:
        self.format = checked_argument("format", format, FileFormat, None) or FileFormat()
        self._connection = Connection(
            base_url, api_key, headers=headers, client=client, timeout=timeout, max_answer_bytes=max_answer_bytes
        )
        name = _askable(checked_id("store", store))
        self._root = f"/v1/memshelf/memory_stores/{quote(name, safe='')}/files"
        self._mint = mint or Mint()
        self._listing: tuple[str, builtins.list[FileEntry]] | None = None

    async def aclose(self) -> None:
        """Close the connections; a closed store opens again when used."""
        await self._connection.aclose()

    async def list(self) -> builtins.list[FileEntry]:
        def parse(answer: Json) -> tuple[str, builtins.list[FileEntry] | None]:
            entries = maybe(answer, "data", builtins.list)
            cursor = field(answer, "cursor", str)
            return cursor, [answers.entry(each) for each in entries] if entries is not None else None

        known = self._listing
        cursor, entries = await self._ask("", parse, {"known": known[0]} if known is not None else None)
        if entries is None:
            if known is None or cursor != known[0]:
                raise MemoryStoreError("unavailable", "The server did not answer with a listing.")
            return known[1].copy()
        self._listing = cursor, entries
        return entries.copy()

    async def read(self, path: str) -> FileText:
        path = validate_path(path, self.format)

        def parse(answer: Json) -> FileText:
            file = answers.file(answer)
            if file.path != path:
                raise LostReplyError("The server answered with another file.")
            return file

        return await self._ask("/content", parse, {"path": path})

    async def write(self, path: str, text: str, *, expected: str | None, origin: Origin) -> str:
        request = Write.checked(path, text, expected, self.format)
        body = {"path": request.path, "text": text, "expected": _maybe_askable(expected)}
        return await self._change("/write", body, origin, request)

    async def move(self, source: str, destination: str, *, expected: str, origin: Origin) -> str:
        request = Move.checked(source, destination, expected, self.format)
        body = {"source": request.source, "destination": request.destination, "expected": _askable(expected)}
        return await self._change("/move", body, origin, request)

    async def delete(self, path: str, *, expected: str, origin: Origin) -> None:
        request = Delete.checked(path, expected, self.format)
        body = {"path": request.path, "expected": _askable(expected)}
        await self._change("/delete", body, origin, request)

    async def changes(self, since: str | None) -> Changes | FullResync:
        def parse(answer: Json) -> Changes | FullResync:
            cursor, paths = field(answer, "cursor", str), maybe(answer, "paths", builtins.list)
            if paths is None:
                return FullResync(cursor)
            return Changes(cursor, tuple(field({"path": path}, "path", str) for path in paths))

        placeable = since is not None and len(since) <= _CURSOR_CHARS and since.isascii() and since.isprintable()
        return await self._ask("/changes", parse, {"since": since} if since is not None and placeable else None)

    async def purge(self) -> None:
        """What `redact` says of bytes that are left holds for the service's database. The store itself stays."""
        try:
            await self._send("/purge", {}, lambda answer: field(answer, "type", str))
        except LostReplyError as lost:
            if await _settled(lost, self.list()) or (await _settled(lost, self.versions())).versions:
                raise unconfirmed(lost) from None
        self._listing = None

    async def search(
        self, pattern: str, *, regex: bool, case_sensitive: bool, path: str, limit: int
    ) -> tuple[builtins.list[GrepMatch], bool]:
        """At most 10,000 matches are found at once."""

        def parse(answer: Json) -> tuple[builtins.list[GrepMatch], bool]:
            return [answers.match(each) for each in items(answer)], field(answer, "more", bool)

        directory = validate_directory(path, self.format)
        if not pattern:
            raise MemoryStoreError("invalid_pattern", "A pattern is not empty.")
        query: Query = {
            "pattern": _askable(pattern),
            "regex": str(regex).lower(),
            "case_sensitive": str(case_sensitive).lower(),
            "path": directory,
            "limit": min(page_limit(limit), _MOST_MATCHES),
        }
        return await self._ask("/grep", parse, query)

    async def versions(
        self,
        path: str | None = None,
        *,
        since: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> VersionPage:
        """At most 50 at once. `ValueError` when `since` has no time zone, or `limit` is no whole number from 1 on."""
        checked_argument("since", since, datetime, None)
        if since is not None and since.tzinfo is None:
            raise ValueError("`since` is a time with a time zone.")
        limit = page_limit(limit)

        def parse(answer: Json) -> VersionPage:
            versions = tuple(answers.version(each) for each in items(answer))
            return VersionPage(versions, maybe(answer, "next_cursor", str))

        query: dict[str, str | int] = {"limit": min(limit, _MOST_VERSIONS)}
        if path is not None:
            query["path"] = validate_path(path, self.format)
        if since is not None:
            query["since"] = since.isoformat()
        if cursor is not None:
            query["cursor"] = _askable(cursor)[:_CURSOR_CHARS]
        return await self._ask("/versions", parse, query)

    async def read_version(self, version_id: str) -> Version:
        return _present(await self._ask("/version", _found, {"version_id": _askable(version_id)}))

    async def restore(self, version_id: str, *, expected: str | None, origin: Origin) -> str:
        version_id = _askable(version_id)
        body = {"version_id": version_id, "expected": _maybe_askable(expected)}
        return await self._change("/restore", body, origin, None)

    async def redact(self, version_id: str, *, by: str) -> Version:
        """`by` is kept as a person's name, which no key's id (`apikey_...`) is."""
        version_id = _askable(version_id)
        try:
            return _present(await self._send("/redact", {"version_id": version_id, "by": by}, _found))
        except LostReplyError as lost:
            version = await _settled(lost, self.read_version(version_id))
            if version.redacted_at is None:
                raise unconfirmed(lost) from None
            return version

    async def replayed(self, origin: Origin) -> Version | None:
        checked_argument("origin", origin, Origin)
        if origin.run_id is None or origin.tool_call_id is None:
            return None
        query = {"run_id": _askable(origin.run_id), "tool_call_id": _askable(origin.tool_call_id)}
        return await self._ask("/version", _found, query)

    async def _change(self, path: str, body: Json, origin: Origin, request: Request | None) -> str:
        """Make a change under an id of its own, by which it can be looked for when its reply is lost."""
        checked_argument("origin", origin, Origin)
        change_id = self._mint.id("change", self._mint.now()).removeprefix("change_")
        named = {
            name: _askable(value)
            for name in ("run_id", "principal_id", "tool_call_id")
            if (value := getattr(origin, name)) is not None
        }
        try:
            return await self._send(
                path, {**body, "origin": named, "change_id": change_id}, lambda answer: field(answer, "version", str)
            )
        except LostReplyError as lost:
            return _outcome(lost, request, await _settled(lost, self._look(change_id, origin, request)))

    async def _look(self, change_id: str, origin: Origin, request: Request | None) -> _Seen:
        # The file is read first: when it has left the version that was expected, the change was made by then, or it
        # never will be.
        path = request.loads if request is not None else None
        current = await find(self, path) if path is not None else None
        made = await self._made(change_id)
        return _Seen(current, made, await self._recorded(origin) if made is None else None)

    async def _made(self, change_id: str) -> Version | None:
        try:
            return await self._ask("/version", _found, {"change_id": change_id})
        except MemoryStoreError as error:
            if error.code == "not_found":
                return None
            raise

    async def _recorded(self, origin: Origin) -> Recorded | None:
        version = await self.replayed(origin)
        if version is None:
            return None
        parent = await self.read_version(version.parent_id) if version.parent_id is not None else None
        return Recorded(
            version.id,
            version.operation,
            version.path,
            version.text,
            version.parent_id,
            parent.path if parent is not None else None,
        )

    async def _ask(self, path: str, parse: Callable[[Json], T], query: Query | None = None) -> T:
        try:
            return await self._connection.ask(f"{self._root}{path}", parse, query)
        except RefusedError as refused:
            raise _explained(refused) from None

    async def _send(self, path: str, body: Json, parse: Callable[[Json], T]) -> T:
        try:
            return await self._connection.change("POST", f"{self._root}{path}", parse, body)
        except RefusedError as refused:
            raise _explained(refused) from None


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was found after the reply to a change was lost: its file, and the version that it wrote, or that its tool
    call had written before."""

    current: FileText | None
    made: Version | None
    recorded: Recorded | None


def _outcome(lost: LostReplyError, request: Request | None, seen: _Seen) -> str:
    """What the reply said. `write_unconfirmed` when the change was not made so far, and may still be."""
    if seen.made is not None:
        return seen.made.id
    if request is None or request.expected is None:
        raise unconfirmed(lost)
    if seen.recorded is not None:
        return replay(request, seen.recorded)
    if seen.current is None or seen.current.version != request.expected:
        raise MemoryStoreError(
            "version_mismatch",
            f"{request.loads} is no longer at version {request.expected}; nothing changed.",
            current=seen.current,
        )
    if isinstance(request, Write) and request.text == seen.current.text:
        return request.expected
    raise unconfirmed(lost)


async def _settled(lost: LostReplyError, look: Awaitable[T]) -> T:
    try:
        return await look
    except MemoryStoreError:
        raise unconfirmed(lost) from None


def _explained(refused: RefusedError) -> MemoryStoreError:
    """A refusal that does not come from a file memory."""
    if refused.status in (404, 405, 409):
        return MemoryStoreError(
            "unavailable",
            f"The server is no memshelf service with file memories (status {refused.status}): check its address, "
            "which ends before /v1.",
        )
    return refused.plainly()


def _found(answer: Json) -> Version | None:
    version: Any = maybe(answer, "version", dict)
    return answers.version(version) if version is not None else None


def _present(version: Version | None) -> Version:
    if version is None:
        raise MemoryStoreError("unavailable", "The server did not answer with a version.")
    return version


def _askable(id: str) -> str:
    return askable(checked_argument("id", id, str))


def _maybe_askable(id: str | None) -> str | None:
    return _askable(id) if id is not None else None
