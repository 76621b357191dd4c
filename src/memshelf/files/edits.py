"""Changes that check their own condition against the file as it is now.

Each reads the file, checks, holds the result to the `format` that it is given (`too_large`, `invalid_file`; the store
has one of its own), and writes expecting the version that it read. When another writer got in between it reads and
checks again, at most `retries` times, then `conflict_retries_exhausted`. A refusal carries the file as it is now.

On a `HistoryFileStore`, a change made again under the same run and tool call answers with its first result, even though
its condition no longer holds; under other arguments it is `forbidden`.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from memshelf.errors import MemoryStoreError
from memshelf.files.decide import Write, call_reused, decide
from memshelf.files.format import describe, validate_path
from memshelf.files.model import FileText, Version
from memshelf.files.protocol import FileStore, HistoryFileStore
from memshelf.limits import FileFormat
from memshelf.origin import Origin

__all__ = ["Written", "append", "create", "edit", "find", "find_text", "move"]

Change = Callable[[FileText | None], str]


@dataclass(frozen=True, slots=True)
class Written:
    """Where a change left the file. `size` is in UTF-8 bytes."""

    path: str
    version: str
    size: int


async def find(store: FileStore, path: str) -> FileText | None:
    """The file, or `None` when there is none."""
    try:
        return await store.read(path)
    except MemoryStoreError as error:
        if error.code == "not_found":
            return None
        raise


async def find_text(store: FileStore, path: str) -> FileText | None:
    """`find`, for which what a person put there that is no text, or no file, is not there."""
    try:
        return await find(store, path)
    except MemoryStoreError as error:
        if error.code in ("invalid_file", "invalid_path"):
            return None
        raise


async def create(
    store: FileStore, path: str, content: str, *, origin: Origin, format: FileFormat, retries: int
) -> Written:
    """Store a file at a path that is free. `already_exists`."""
    path = validate_path(path, format)
    for _ in range(retries + 1):
        try:
            describe(content, format)
            version = await store.write(path, content, expected=None, origin=origin)
        except MemoryStoreError as error:
            # Some stores say of a path that is taken that its version is not the one expected.
            if error.code not in ("invalid_file", "too_large", "version_mismatch"):
                raise
            # That it is taken comes first: better content would not be stored there either.
            decide(Write(path, content, None, None), None, await find_text(store, path))
            if error.code != "version_mismatch":
                raise
        else:
            return Written(path, version, len(content.encode()))
    raise await _exhausted(store, path, retries)


async def edit(
    store: FileStore, path: str, old: str, new: str, *, origin: Origin, format: FileFormat, retries: int
) -> Written:
    """Replace the one occurrence of `old`. `not_found`, `no_match`, `ambiguous_match`."""
    path = validate_path(path, format)

    def edited(current: FileText | None) -> str:
        current = _existing(current, path)
        count = _occurrences(current.text, old)
        if count == 0:
            quoted = "\n" in old and old.replace("\n", "\r\n") in current.text
            ends = " Lines of this file end with \\r\\n." if quoted else ""
            raise MemoryStoreError(
                "no_match",
                f"The text to replace does not occur in {path}; nothing changed.{ends} Read the current content and "
                "decide again.",
                current=current,
            )
        if count > 1:
            raise MemoryStoreError(
                "ambiguous_match",
                f"The text to replace occurs {count} times in {path}; nothing changed. Name it with more of the text "
                "around it.",
                current=current,
            )
        return current.text.replace(old, new, 1)

    return await _change(store, path, edited, origin, format, retries)


async def append(
    store: FileStore, path: str, content: str, *, origin: Origin, format: FileFormat, retries: int
) -> Written:
    """Add `content` at the end of an existing file, starting on a new line. `not_found`."""
    path = validate_path(path, format)

    def appended(current: FileText | None) -> str:
        text = _existing(current, path).text
        return f"{text}\n{content}" if text and not text.endswith("\n") else text + content

    return await _change(store, path, appended, origin, format, retries)


async def move(
    store: FileStore, source: str, destination: str, *, origin: Origin, format: FileFormat, retries: int
) -> Written:
    """Rename a file, whatever version it is at, to a destination that is free. `not_found`, `already_exists`."""
    source, destination = validate_path(source, format), validate_path(destination, format)

    async def moved() -> Written:
        for _ in range(retries + 1):
            current = _existing(await find(store, source), source)
            try:
                version = await store.move(source, destination, expected=current.version, origin=origin)
            except MemoryStoreError as error:
                if error.code != "version_mismatch":
                    raise
            else:
                return Written(destination, version, len(current.text.encode()))
        raise await _exhausted(store, source, retries)

    def same(_: Version, before: FileText | None) -> bool:
        return before is not None and before.path == source

    return await _once(store, destination, origin, moved, same)


async def _change(
    store: FileStore, path: str, change: Change, origin: Origin, format: FileFormat, retries: int
) -> Written:
    async def changed() -> Written:
        for _ in range(retries + 1):
            current = await find(store, path)
            text = change(current)
            describe(text, format)
            try:
                expected = current.version if current is not None else None
                version = await store.write(path, text, expected=expected, origin=origin)
            except MemoryStoreError as error:
                if error.code != "version_mismatch":
                    raise
            else:
                return Written(path, version, len(text.encode()))
        raise await _exhausted(store, path, retries)

    def same(done: Version, before: FileText | None) -> bool:
        return done.text is not None and _outcome(change, before) == done.text

    return await _once(store, path, origin, changed, same)


async def _once(
    store: FileStore,
    path: str,
    origin: Origin,
    make: Callable[[], Coroutine[Any, Any, Written]],
    same: Callable[[Version, FileText | None], bool],
) -> Written:
    """Make a change of the file that is at the path then, unless its call has made it already. `same` tells so from
    the version that the call wrote and the file that it found."""
    done = await _replayed(store, origin)
    if done is None:
        try:
            return await make()
        except MemoryStoreError as error:
            if error.code in ("unavailable", "write_unconfirmed"):
                raise
            # Another process may have made the same call meanwhile, and with that what this one refused.
            done = await _replayed(store, origin)
            if done is None:
                raise
    if done.path != path or not same(done, await _parent(store, done)):
        raise call_reused()
    return Written(path, done.id, done.size or 0)


async def _replayed(store: FileStore, origin: Origin) -> Version | None:
    if origin.run_id is None or origin.tool_call_id is None or not isinstance(store, HistoryFileStore):
        return None
    return await store.replayed(origin)


async def _parent(store: FileStore, version: Version) -> FileText | None:
    """The file that the change found; `None` when there was none, or when it has been redacted since."""
    if version.parent_id is None or not isinstance(store, HistoryFileStore):
        return None
    before = await store.read_version(version.parent_id)
    if before.path is None or before.text is None:
        return None
    return FileText(before.path, before.text, before.id)


def _outcome(change: Change, before: FileText | None) -> str | None:
    try:
        return change(before)
    except MemoryStoreError:
        return None


def _occurrences(text: str, old: str) -> int:
    """How often `old` occurs, and at least 2 where it only overlaps itself: `aa` is at two places in `aaa`."""
    first = text.find(old) if old else -1
    if first < 0:
        return 0
    return max(text.count(old), 2) if text.find(old, first + 1) >= 0 else 1


def _existing(current: FileText | None, path: str) -> FileText:
    if current is None:
        raise MemoryStoreError("not_found", f"{path} does not exist; nothing changed.")
    return current


async def _exhausted(store: FileStore, path: str, retries: int) -> MemoryStoreError:
    return MemoryStoreError(
        "conflict_retries_exhausted",
        f"Other writers kept changing {path}; nothing changed after {retries} retries. Read it and decide again.",
        current=await find(store, path),
    )
