"""The conversation archive: what users and assistants said, day by day, in files that are only ever appended to."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

from memshelf.arguments import checked_argument
from memshelf.credentials import SecretsPolicy, admit, check_policy
from memshelf.errors import MemoryStoreError
from memshelf.files.edits import find
from memshelf.files.protocol import FileStore
from memshelf.matching import best_matches
from memshelf.origin import Origin
from memshelf.storage.journal import Journal, Lines
from memshelf.workspace.conversation import ArchivedTurn, Said, block, said_in, thread_name, turns
from memshelf.workspace.turns import TRIES, give_way, overtaken

__all__ = ["PART_BYTES", "ConversationArchive"]

PART_BYTES = 16_384
"""In a store that only takes whole files, a day's file of this size is left, and the day goes on in the next part."""

_PIECE_CHARS, _SPEAKER_CHARS = 8_000, 20
_FILE = re.compile(r"(\d{4}-\d\d-\d\d)(?:\.(\d{3,}))?\.md")
_READERS = 8


class ConversationArchive:
    """The conversations of one user, in `<directory>/YYYY-MM-DD.md`, by the day in UTC.

    With `root`, the directory that the user's files are in, a day is one file: a block is appended under a lock and,
    with `durable`, synced, at a cost that does not depend on what is there; any number of processes and event loops may
    append, and a crash loses at most the block being written. No symbolic link below `root` is followed.

    On any other `store`, which only takes whole files of a limited size, a day goes on in `YYYY-MM-DD.002.md` and so
    forth when a part has grown to `PART_BYTES`; an append writes the last part anew, and only if nobody else did. What
    is too long for one part takes several writes, and when one fails, those before it stay.

    Credentials are masked unless `secrets` says otherwise. Every call may raise `unavailable`; an append also
    `write_unconfirmed`.
    """

    def __init__(
        self,
        store: FileStore,
        directory: str = "conversations",
        *,
        root: Path | None = None,
        durable: bool = True,
        secrets: SecretsPolicy = "mask",
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._days: _Days = _Folder(root, directory, durable) if root is not None else _Parts(store, directory)
        self._secrets = check_policy(secrets)
        self._clock = clock

    async def append(self, messages: Iterable[Mapping[str, object]], session_id: str | None = None) -> str | None:
        """Archive what users and assistants said in `messages`, and answer the path of the file; `None` if nothing.

        Each message has a `role` and a `content`. `session_id` names the thread. `TypeError` for what is no message;
        `invalid_text` where the policy refuses credentials.
        """
        thread, said = thread_name(checked_argument("session_id", session_id, str, None)), said_in(messages)
        if not said:
            return None
        admitted = await asyncio.to_thread(self._admitted, said)
        at = self._clock()
        return await self._days.append(at, thread, admitted)

    async def search(self, query: str, limit: int = 10) -> list[ArchivedTurn]:
        """At most `limit` turns in which somebody says what `query` names, the best first, then the newest.

        English by words, Chinese by pairs of characters. An empty query finds nothing.
        """
        if not checked_argument("query", query, str).strip() or checked_argument("limit", limit, int) < 1:
            return []
        files = await self._days.read()
        return await asyncio.to_thread(_found, files, query, limit)

    def _admitted(self, said: list[Said]) -> list[Said]:
        return [(speaker, admit(text, self._secrets, subject="A message")) for speaker, text in said]


def _found(files: Iterable[tuple[str, str]], query: str, limit: int) -> list[ArchivedTurn]:
    said = ((turn, turn.text) for file, text in files for turn in turns(file, file.rpartition("/")[2][:10], text))
    return best_matches(query, said, limit)


def _in_order(names: Iterable[str]) -> list[str]:
    known = [(match[1], int(match[2] or 1), name) for name in names if (match := _FILE.fullmatch(name)) is not None]
    return [name for *_, name in sorted(known)]


class _Days(Protocol):
    async def append(self, at: datetime, thread: str | None, said: list[Said]) -> str: ...

    async def read(self) -> Iterable[tuple[str, str]]:
        """Every file's path and text, the oldest first."""
        ...


class _Folder:
    """The days as files of a directory below `root`."""

    def __init__(self, root: Path, directory: str, durable: bool) -> None:
        self._root = os.path.abspath(root)
        self._directory = directory
        self._durable = durable

    async def append(self, at: datetime, thread: str | None, said: list[Said]) -> str:
        day = f"{at.astimezone(UTC):%Y-%m-%d}"
        written = block(at, thread, said).encode()

        def lines(there: Lines) -> bytes:
            return written if there.size else f"# {day}\n".encode() + written

        await asyncio.to_thread(self._journal(f"{day}.md").append, lines)
        return f"{self._directory}/{day}.md"

    async def read(self) -> Iterable[tuple[str, str]]:
        return self._read()  # in the thread that searches, one file after the other

    def _read(self) -> Iterator[tuple[str, str]]:
        for name in _in_order(self._journal("any").names()):
            with self._journal(name).reading() as lines:
                text = b"\n".join([*lines.forwards(), b""]).decode(errors="replace")
            yield f"{self._directory}/{name}", text

    def _journal(self, name: str) -> Journal:
        path = os.path.join(self._root, self._directory, name)
        return Journal(path, durable=self._durable, below=self._root)


class _Parts:
    """The days as files of a store, each in parts."""

    def __init__(self, store: FileStore, directory: str) -> None:
        self._store = store
        self._directory = directory
        self._last: dict[str, int] = {}
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()

    async def append(self, at: datetime, thread: str | None, said: list[Said]) -> str:
        day = f"{at.astimezone(UTC):%Y-%m-%d}"
        pieces = [block(at, thread, piece) for piece in _pieces(said)]
        async with self._turns.setdefault(asyncio.get_running_loop(), asyncio.Lock()):
            for piece in pieces:
                path = await self._append(day, piece)
        return path

    async def _append(self, day: str, piece: str) -> str:
        part = await self._last_part(day)
        for attempt in range(TRIES):
            path = self._path(day, part)
            found = await find(self._store, path)
            if found is not None and len(found.text.encode()) + len(piece.encode()) > PART_BYTES:
                part += 1
                continue
            text = found.text if found is not None else f"# {day}\n"
            try:
                expected = found.version if found is not None else None
                text = text if text.endswith("\n") else f"{text}\n"
                await self._store.write(path, text + piece, expected=expected, origin=Origin())
            except MemoryStoreError as error:
                if not overtaken(error, path):
                    raise
                await give_way(attempt)
            else:
                self._last = {day: part}
                return path
        raise MemoryStoreError("conflict_retries_exhausted", "Other writers kept archiving; not all of it is archived.")

    async def _last_part(self, day: str) -> int:
        if day not in self._last:
            there = 1
            while await find(self._store, self._path(day, there * 2)) is not None:
                there *= 2
            low, high = there, there * 2
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if await find(self._store, self._path(day, middle)) else (low, middle)
            self._last = {day: low}
        return self._last[day]

    async def read(self) -> Iterable[tuple[str, str]]:
        under = f"{self._directory}/"
        names = [each.path[len(under) :] for each in await self._store.list() if each.path.startswith(under)]
        reading = asyncio.Semaphore(_READERS)

        async def read(name: str) -> tuple[str, str]:
            async with reading:
                found = await find(self._store, under + name)
            return under + name, found.text if found is not None else ""

        return await asyncio.gather(*map(read, _in_order(names)))

    def _path(self, day: str, part: int) -> str:
        return f"{self._directory}/{day}.md" if part == 1 else f"{self._directory}/{day}.{part:03}.md"


def _pieces(said: list[Said]) -> Iterator[list[Said]]:
    """What was said, in pieces that have room in a file each, at up to 4 bytes a character."""
    piece: list[Said] = []
    room = _PIECE_CHARS
    for speaker, text in said:
        rest = text
        while rest:
            piece.append((speaker, rest[:room]))
            rest, room = rest[room:], room - len(rest[:room]) - _SPEAKER_CHARS
            if room <= 0:
                yield piece
                piece, room = [], _PIECE_CHARS
    if piece:
        yield piece
