"""A store of any server that speaks the Memory Store API as a file memory."""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Mapping

import httpx2

from memshelf.arguments import checked_argument, checked_id
from memshelf.closing import Closes
from memshelf.errors import MemoryStoreError
from memshelf.files.backends.http.connection import (
    ANTHROPIC_HEADERS,
    Connection,
    Json,
    LostReplyError,
    RefusedError,
    unconfirmed,
)
from memshelf.files.backends.http.wire import Memories, Memory, Past
from memshelf.files.decide import Delete, Move, Write, ancestors
from memshelf.files.format import FileFormat, describe, validate_path
from memshelf.files.model import Changes, FileEntry, FileText, FullResync
from memshelf.files.protocol import FileStore, documented_by
from memshelf.origin import Origin

__all__ = ["PlatformFileStore"]

_FEW = 20


@documented_by(FileStore)
class PlatformFileStore(Closes):
    """The memory store with the id `store` on any server that speaks the Memory Store API: Anthropic's, Zhipu's.

    Its versions are the ids of the server's versions. It has no search and no history of its own: the tools read the
    files instead, and the server's history stays what it is. What that API cannot say shapes the rest:

    * A change is checked against the version before it is sent, and sent with the hash of that version's content. So a
      file that changes, and changes back to the very same content, between the two, counts as unchanged.
    * Changes are found by comparing listings: unless nothing changed, `changes` answers `FullResync`.
    * A path that this store has not met yet is looked for in a listing of its directory.
    * The server records its own idea of who made a change; `origin` is not sent, and no tool call is recognised.

    The server's own rules hold as well: see `invalid_value`. When the reply to a change is lost, the store finds its
    outcome in the file's versions, or says `write_unconfirmed`; it retries nothing by itself.

    `headers` are the protocol's: `ANTHROPIC_HEADERS` or `ZHIPU_HEADERS`. For everything else see
    `MemoryStoreFileStore`.
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
    ) -> None:
        self.format = checked_argument("format", format, FileFormat, None) or FileFormat()
        self._connection = Connection(
            base_url, api_key, headers=headers, client=client, timeout=timeout, max_answer_bytes=max_answer_bytes
        )
        self._server = Memories(self._connection, checked_id("store", store))
        self._descriptions: dict[str, str | None] = {}

    async def aclose(self) -> None:
        """Close the connections; a closed store opens again when used."""
        await self._connection.aclose()

    async def list(self) -> builtins.list[FileEntry]:
        """Only the content of versions that this store has not described before is read."""
        memories = await self._server.all()
        new = [memory for memory in memories if memory.version not in self._descriptions]
        if len(new) > _FEW:
            memories = new = await self._server.all(full=True)
        described = {}
        for memory in memories:
            if memory.version in self._descriptions:
                described[memory.version] = self._descriptions[memory.version]
            else:
                text = memory.text if memory.text is not None else await self._server.text_of(memory.version)
                described[memory.version] = self._described(text)
        self._descriptions = described
        entries = [
            FileEntry(memory.path, memory.version, memory.size, described[memory.version]) for memory in memories
        ]
        return sorted(entries, key=lambda entry: entry.path.encode())

    async def read(self, path: str) -> FileText:
        path = validate_path(path, self.format)
        found = await self._server.at(path)
        if found is None:
            raise MemoryStoreError("not_found", f"{path} does not exist.")
        return found.file

    async def write(self, path: str, text: str, *, expected: str | None, origin: Origin) -> str:
        checked_argument("origin", origin, Origin)
        request = Write.checked(path, text, expected, self.format)
        if request.expected is None:
            return await self._create(request)
        current = await self._expected(request.path, request.expected)
        if current.text == text:
            return current.version
        body: Json = {"content": text, "precondition": _precondition(current)}
        wanted = Past("modified", path=request.path, sha256=_sha256(text))
        return await self._update(current, body, wanted)

    async def move(self, source: str, destination: str, *, expected: str, origin: Origin) -> str:
        checked_argument("origin", origin, Origin)
        request = Move.checked(source, destination, expected, self.format)
        current = await self._expected(request.source, expected)
        to = request.destination
        if to == current.path or current.path in ancestors(to) or to in ancestors(current.path):
            raise _in_the_way(to, current.file)
        body: Json = {"path": f"/{to}", "precondition": _precondition(current)}
        return await self._update(current, body, Past("modified", path=to, sha256=current.sha256))

    async def delete(self, path: str, *, expected: str, origin: Origin) -> None:
        checked_argument("origin", origin, Origin)
        request = Delete.checked(path, expected, self.format)
        current = await self._expected(request.path, expected)
        try:
            await self._server.delete(current.id, current.sha256)
        except RefusedError as refused:
            raise await self._refusal(refused, current, None) from None
        except LostReplyError as lost:
            await self._settled(lost, current, Past("deleted", path=current.path, sha256=None))

    async def changes(self, since: str | None) -> Changes | FullResync:
        listed = sorted(f"{memory.path}\0{memory.version}" for memory in await self._server.all())
        cursor = f"listing:{_sha256(chr(0).join(listed))}"
        return Changes(cursor, ()) if since == cursor else FullResync(cursor)

    async def purge(self) -> None:
        """Delete every memory, then redact every version. What the server keeps beside them is the server's. When it
        ends in the midst, `write_unconfirmed` says so; what was deleted stays deleted."""
        begun = False
        try:
            for memory in await self._server.all():
                await self._server.remove(memory.id)
                begun = True
            for version_id in await self._server.unredacted():
                await self._server.redact(version_id)
                begun = True
        except MemoryStoreError as error:
            if begun:
                raise unconfirmed(LostReplyError(f"Not everything was removed: {error.message}")) from None
            raise error.plainly() if isinstance(error, RefusedError) else error from None
        except LostReplyError as lost:
            raise unconfirmed(lost) from None

    async def _create(self, request: Write) -> str:
        try:
            return (await self._server.create(request.path, request.text)).version
        except RefusedError as refused:
            if refused.status != 409:
                raise await self._unlike(refused, request.path, request.text) from None
            raise _in_the_way(request.path, await self._obstacle(refused, request.path)) from None
        except LostReplyError as lost:
            found = await self._looked(lost, request.path)
            created = await self._server.first_version(found.id) if found is not None else None
            if created is None or created.sha256 != _sha256(request.text):
                raise unconfirmed(lost) from None
            return created.id

    async def _update(self, current: Memory, body: Json, wanted: Past) -> str:
        try:
            updated = await self._server.update(current.id, body)
        except RefusedError as refused:
            raise await self._refusal(refused, current, wanted) from None
        except LostReplyError as lost:
            return await self._settled(lost, current, wanted)
        if updated.path != wanted.path:
            raise MemoryStoreError(
                "write_unconfirmed", f"{current.path} was moved meanwhile: its content was replaced where it is now."
            )
        return updated.version

    async def _expected(self, path: str, expected: str) -> Memory:
        current = await self._server.at(path)
        if current is None or current.version != expected:
            raise _moved_on(path, expected, current)
        return current

    async def _refusal(self, refused: RefusedError, current: Memory, wanted: Past | None) -> MemoryStoreError:
        """What a refusal of a change of `current` means."""
        if refused.status not in (404, 409):
            return await self._unlike(refused, wanted.path if wanted is not None else current.path, None)
        now = await self._server.at(current.path)
        if now is None or now.version != current.version or wanted is None or wanted.path == current.path:
            return _moved_on(current.path, current.version, now)
        return _in_the_way(wanted.path, await self._obstacle(refused, wanted.path))

    async def _obstacle(self, refused: RefusedError, path: str) -> FileText | None:
        """What is in the way: the memory that the server names, else one that is found there now."""
        named = refused.details.get("conflicting_memory_id")
        found = await self._server.retrieve(named) if isinstance(named, str) and named else None
        for each in (path, *ancestors(path)):
            found = found or await self._server.at(each)
        if found is None and (below := await self._server.below(path)):
            found = await self._server.retrieve(below[0].id)
        return found.file if found is not None else None

    async def _unlike(self, refused: RefusedError, path: str, text: str | None) -> MemoryStoreError:
        """A 400 says only in words what is wrong; what can be seen from here gets its own code."""
        if refused.code != "invalid_value":
            return refused.plainly()
        if await self._server.archived():
            return MemoryStoreError("store_archived", refused.message)
        if text is not None and "\0" in text:
            return MemoryStoreError("invalid_file", refused.message)
        if path.count("/") >= 20 or not path.isprintable():
            return MemoryStoreError("invalid_path", refused.message)
        return refused.plainly()

    async def _settled(self, lost: LostReplyError, current: Memory, wanted: Past) -> str:
        """The version that followed `current` tells whose change came next."""
        try:
            found, following = await self._server.after(current.id, current.version)
            if found and following is not None and not wanted.matches(following):
                raise _moved_on(current.path, current.version, await self._server.at(current.path))
        except RefusedError:
            raise unconfirmed(lost) from None
        except MemoryStoreError as error:
            if error.code == "version_mismatch":
                raise
            raise unconfirmed(lost) from None
        if not found or following is None:
            raise unconfirmed(lost)
        return following.id

    async def _looked(self, lost: LostReplyError, path: str) -> Memory | None:
        try:
            return await self._server.at(path)
        except MemoryStoreError:
            raise unconfirmed(lost) from None

    def _described(self, text: str | None) -> str | None:
        try:
            return describe(text, self.format) if text is not None else None
        except MemoryStoreError:  # other clients of the server know no rules for content
            return None


def _precondition(current: Memory) -> dict[str, str]:
    return {"type": "content_sha256", "content_sha256": current.sha256}


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _moved_on(path: str, expected: str, current: Memory | None) -> MemoryStoreError:
    reason = "no longer exists" if current is None else f"is no longer at version {expected}"
    shown = current.file if current is not None else None
    return MemoryStoreError("version_mismatch", f"{path} {reason}; nothing changed.", current=shown)


def _in_the_way(path: str, current: FileText | None) -> MemoryStoreError:
    return MemoryStoreError("already_exists", f"{path} is not free; nothing changed.", current=current)
