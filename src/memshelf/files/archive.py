"""A memory with its whole history as one text: what `docs/archive-format.md` describes, written and checked.

An archive is lines of JSON: a header, every version in order, and an end with a hash of all before it. The hash chain
goes with it, so that what is read is what was written, or is refused.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO, Any, TypeAlias

from memshelf.errors import MemoryStoreError
from memshelf.files.chain import ChainCheck, Facts, Stored
from memshelf.files.decide import ancestors
from memshelf.files.model import Operation
from memshelf.origin import Origin

__all__ = [
    "Archived",
    "Checked",
    "Header",
    "Json",
    "checked",
    "damaged",
    "end_json",
    "header_json",
    "line_of",
    "version_from",
    "version_json",
    "versions_of",
]

Json: TypeAlias = dict[str, Any]  # JSON has many types

FORMAT = 1
_MOST_LINE_BYTES = 67_108_864
_OPERATIONS: dict[object, Operation] = {"created": "created", "modified": "modified", "deleted": "deleted"}
_ORIGIN = ("run_id", "principal_id", "tool_call_id", "session_id", "api_key_id")


@dataclass(frozen=True, slots=True)
class Archived:
    """A version with everything that is kept of it. `redacted_at` is in microseconds since 1970."""

    stored: Stored
    redacted_at: int | None
    redacted_by: str | None


@dataclass(frozen=True, slots=True)
class Header:
    """Of which memory an archive is. `store` holds a named store's own fields, `None` for a file memory."""

    epoch: str
    created_at: int
    store: Json | None


@dataclass(frozen=True, slots=True)
class Checked:
    """An archive that was read to its end and is whole: where its history stands, and its hash."""

    header: Header
    head_seq: int
    head_link: bytes
    sha256: str


def line_of(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def header_json(header: Header) -> Json:
    return {
        "type": "memshelf_archive",
        "format": FORMAT,
        "epoch": header.epoch,
        "created_at": header.created_at,
        "store": header.store,
    }


def version_json(version: Archived) -> Json:
    stored, facts = version.stored, version.stored.facts
    return {
        "type": "version",
        "seq": facts.seq,
        "id": facts.id,
        "file_id": facts.file_id,
        "parent_id": facts.parent_id,
        "operation": facts.operation,
        "moved": facts.moved,
        "path": stored.path,
        "sha256": stored.sha256,
        "size": stored.size,
        "salt": stored.salt.hex() if stored.salt is not None else None,
        "commitment": facts.commitment.hex(),
        "link": stored.link.hex(),
        "origin": {name: getattr(facts.origin, name) for name in _ORIGIN},
        "created_at": facts.created_at,
        "redacted_at": version.redacted_at,
        "redacted_by": version.redacted_by,
        "content": stored.content.decode() if stored.content is not None else None,
    }


def end_json(versions: int, head: bytes, sha256: str) -> Json:
    return {"type": "end", "versions": versions, "head": head.hex(), "sha256": sha256}


def damaged(reason: str) -> MemoryStoreError:
    return MemoryStoreError("invalid_file", f"The archive is damaged, and nothing of it was imported: {reason}")


def checked(file: IO[bytes], valid_path: Callable[[str], str]) -> Checked:
    """Read a whole archive and check all that can be: `invalid_file`, with the reason. `valid_path` answers with the
    path that it is given, or refuses it."""
    reader = _Reader(file)
    check, live = ChainCheck(reader.header.epoch), _Live()
    for version in reader.versions():
        check.add(version.stored)
        live.follow(version)
        _require_path(version.stored, valid_path)
    seq, link, sha256 = reader.end
    if problems := check.report(seq, link).problems:
        raise damaged(problems[0])
    live.require_apart()
    return Checked(reader.header, seq, link, sha256)


def _require_path(stored: Stored, valid_path: Callable[[str], str]) -> None:
    if stored.path is None:
        return
    try:
        same = valid_path(stored.path) == stored.path
    except MemoryStoreError:
        same = False
    if not same:
        raise damaged(f"version {stored.facts.seq} ({stored.facts.id}) is at a path that no file can have.")


def versions_of(file: IO[bytes], expected: Checked) -> Iterator[Archived]:
    """The versions of an archive that was checked, again. `invalid_file` when it is not the same any more."""
    reader = _Reader(file)
    yield from reader.versions()
    if reader.end != (expected.head_seq, expected.head_link, expected.sha256):
        raise damaged("it changed while it was read.")


class _Reader:
    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self._lines = 0
        self.header = _header(self._next())
        self.end: tuple[int, bytes, str] = 0, b"", ""

    def versions(self) -> Iterator[Archived]:
        count = 0
        while True:
            before = self._hash.hexdigest()
            value = self._next()
            if value.get("type") == "end":
                break
            count += 1
            try:
                yield version_from(value)
            except (KeyError, TypeError, ValueError) as error:
                raise damaged(f"line {self._lines} is no version ({error!r}).") from None
        if value.get("sha256") != before:
            raise damaged("its end does not belong to what comes before.")
        if value.get("versions") != count:
            raise damaged("it has another number of versions than it says.")
        if self._read(1):
            raise damaged("something follows its end.")
        try:
            self.end = count, bytes.fromhex(value["head"]), before
        except (KeyError, TypeError, ValueError):
            raise damaged("its end has no head.") from None

    def _read(self, most: int) -> bytes:
        try:
            return self._file.readline(most)
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise damaged("it is compressed, and cannot be unpacked to its end.") from None

    def _next(self) -> Json:
        self._lines += 1
        line = self._read(_MOST_LINE_BYTES)
        if not line.endswith(b"\n"):
            if self._lines == 1 and not line.startswith(b"{"):
                raise _no_archive()
            raise damaged("it ends too early." if len(line) < _MOST_LINE_BYTES else f"line {self._lines} is too long.")
        self._hash.update(line)
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise damaged(f"line {self._lines} is no JSON object.") if self._lines > 1 else _no_archive()
        return value


def _no_archive() -> MemoryStoreError:
    return MemoryStoreError(
        "invalid_file",
        "This is no archive of memshelf's, as `export` writes it: its first line says that it is one. Nothing was "
        "imported.",
    )


def _header(value: Json) -> Header:
    if value.get("type") != "memshelf_archive":
        raise _no_archive()
    if value.get("format") != FORMAT:
        raise MemoryStoreError(
            "invalid_file",
            f"This memshelf reads archives of format {FORMAT}, and this is one of format {value.get('format')!r}; "
            "nothing was imported.",
        )
    epoch, created_at, store = value.get("epoch"), value.get("created_at", 0), value.get("store")
    if not isinstance(epoch, str) or not _is_number(created_at) or not (store is None or isinstance(store, dict)):
        raise damaged("its header is not as it must be.")
    return Header(epoch, int(created_at), store)


def version_from(value: Json) -> Archived:
    """`KeyError`, `TypeError` or `ValueError` for what is no version."""
    origin = value["origin"]
    texts = (value["id"], value["file_id"], value["commitment"], value["link"])
    maybe_texts = [value[name] for name in ("parent_id", "path", "sha256", "salt", "redacted_by", "content")]
    maybe_texts += [origin[name] for name in _ORIGIN]
    numbers = (value["seq"], value["created_at"])
    maybe_numbers = (value["size"], value["redacted_at"])
    if (
        value["type"] != "version"
        or not all(isinstance(each, str) and each for each in texts)
        or not all(each is None or isinstance(each, str) for each in maybe_texts)
        or not all(map(_is_number, numbers))
        or not all(each is None or _is_number(each) for each in maybe_numbers)
        or type(value["moved"]) is not bool
    ):
        raise ValueError("a field has another type")
    if any("\0" in each for each in (*texts, *maybe_texts[:1], *maybe_texts[4:5], *maybe_texts[6:]) if each):
        raise ValueError("a name has NUL")
    content, salt = value["content"], value["salt"]
    data = content.encode() if content is not None else None
    if value["redacted_at"] is None and (len(data) if data is not None else None) != value["size"]:
        raise ValueError("its size is another")
    return Archived(
        Stored(
            facts=Facts(
                id=value["id"],
                seq=value["seq"],
                file_id=value["file_id"],
                parent_id=value["parent_id"],
                operation=_OPERATIONS[value["operation"]],
                moved=value["moved"],
                origin=Origin(**{name: origin[name] for name in _ORIGIN}),
                created_at=value["created_at"],
                commitment=bytes.fromhex(value["commitment"]),
            ),
            link=bytes.fromhex(value["link"]),
            path=value["path"],
            content=data,
            sha256=value["sha256"],
            size=value["size"],
            salt=bytes.fromhex(salt) if salt is not None else None,
            redacted=value["redacted_at"] is not None,
        ),
        value["redacted_at"],
        value["redacted_by"],
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63


@dataclass(slots=True)
class _Live:
    """Follows what every version does to the files, so that no archive makes a memory that no writes could."""

    files: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    calls: set[tuple[str, str]] = field(default_factory=set)

    def follow(self, version: Archived) -> None:
        facts, path = version.stored.facts, version.stored.path
        name = f"version {facts.seq} ({facts.id})"
        call = facts.origin.run_id, facts.origin.tool_call_id
        if facts.id in self.ids or call in self.calls:
            raise damaged(f"{name} repeats the id or the tool call of an earlier one.")
        self.ids.add(facts.id)
        if call[0] is not None and call[1] is not None:
            self.calls.add((call[0], call[1]))
        parent, stood = self.files.pop(facts.file_id, (None, None))
        created = facts.operation == "created"
        if facts.parent_id != parent or created is not (parent is None) or facts.file_id in self.gone:
            raise damaged(f"{name} does not follow from what its file was.")
        if not facts.moved and not created and None not in (path, stood) and path != stood:
            raise damaged(f"{name} is at another path than its file, and is no move.")
        if facts.operation == "deleted":
            self.gone.add(facts.file_id)
        else:
            self.files[facts.file_id] = facts.id, path

    def require_apart(self) -> None:
        paths = [path for _, path in self.files.values()]
        standing = {path for path in paths if path is not None}
        if len(standing) != len(paths):
            raise damaged("two files stand at one path, or one has none.")
        for path in standing:
            if not standing.isdisjoint(ancestors(path)):
                raise damaged("a file stands where a directory is.")
