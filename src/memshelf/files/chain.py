"""The hash chain of a memory's history, as pure functions, for every store that keeps one.

Each version carries a link: a hash over the link before it and over its own facts. Its path and content enter only
through a commitment, a hash salted with random bytes. Redaction erases path, content, hash, size and salt, and keeps
commitment and link: so the chain still verifies, and nothing that remains lets anyone confirm a guess at what was
erased.

The chain shows that a version was altered, removed or reordered by someone who could not recompute every link after
it. Who can rewrite the whole database can also rewrite the chain: to rule that out, keep `ChainReport.head` elsewhere,
and have later checks look for it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from memshelf.files.model import Operation
from memshelf.origin import Origin

__all__ = [
    "SALT_BYTES",
    "ChainCheck",
    "ChainReport",
    "Facts",
    "Stored",
    "checked_head",
    "commitment",
    "genesis",
    "link",
]

SALT_BYTES = 32

_HEAD = re.compile("[0-9a-f]{64}")


class Facts(NamedTuple):
    """What a link covers, besides the link before it. `created_at` is in microseconds since 1970."""

    # A tuple, as these are made for each write: to make a frozen dataclass takes twice as long.

    id: str
    seq: int
    file_id: str
    parent_id: str | None
    operation: Operation
    moved: bool
    origin: Origin
    created_at: int
    commitment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A version as it was found in a store."""

    facts: Facts
    link: bytes
    path: str | None
    content: bytes | None
    sha256: str | None
    size: int | None
    salt: bytes | None
    redacted: bool


@dataclass(frozen=True, slots=True)
class ChainReport:
    """What `verify` found: how many versions stand in the memory, the link of the last one, and what is wrong.

    Problems name versions by number and id, never by path or content.
    """

    versions: int
    head: str
    problems: tuple[str, ...]

    @property
    def intact(self) -> bool:
        return not self.problems


def checked_head(head: str) -> str:
    if not _HEAD.fullmatch(head):
        raise ValueError("A head is the 64 hexadecimal digits that `verify` reports.")
    return head


def genesis(epoch: str) -> bytes:
    """The link before the first version of an epoch."""
    return _digest(f"genesis {epoch}")


# No two lists of facts have the same text: what may hold a space stands at the end, or behind its length.


def commitment(salt: bytes, path: str, sha256: str | None, size: int | None) -> bytes:
    return _digest(f"commitment {salt.hex()} {sha256} {size} {path}")


def link(previous: bytes, facts: Facts) -> bytes:
    id, file_id, parent_id = facts.id, facts.file_id, facts.parent_id or ""
    return _digest(
        f"link {previous.hex()} {facts.seq} {facts.operation} {facts.moved:d} {facts.created_at} "
        f"{facts.commitment.hex()} {len(id)}:{id}{len(file_id)}:{file_id}{len(parent_id)}:{parent_id}"
        f"{_named(facts.origin)}"
    )


def _named(origin: Origin) -> str:
    # By name, and only what is set: a field that an origin gains later leaves older links as they are.
    return "".join(
        [
            f" {name}={len(value)}:{value}"
            for name in ("api_key_id", "principal_id", "run_id", "session_id", "tool_call_id")
            if (value := getattr(origin, name)) is not None
        ]
    )


def _digest(text: str) -> bytes:
    return hashlib.sha256(f"memshelf {text}".encode()).digest()


class ChainCheck:
    """Checks a history from its first version on: `add` each in order, then ask for the `report`.

    `noted` is the head of an earlier report, which has to be a link of the history still. `ValueError` for what is no
    head.
    """

    def __init__(self, epoch: str, noted: str | None = None) -> None:
        self._noted = bytes.fromhex(checked_head(noted)) if noted is not None else None
        self._previous = genesis(epoch)
        self._passed = self._previous == self._noted
        self._seq = 0
        self._count = 0
        self._problems: list[str] = []

    def add(self, version: Stored) -> None:
        facts, name = version.facts, f"version {version.facts.seq} ({version.facts.id})"
        if facts.seq != self._seq + 1:
            self._problems.append(_missing(self._seq + 1, facts.seq - 1))
        elif version.link != link(self._previous, facts):
            self._problems.append(f"{name} does not follow from the one before it: one of the two was altered.")
        self._problems += (f"{name} {problem}" for problem in _own_problems(version))
        self._passed |= version.link == self._noted
        self._previous, self._seq = version.link, facts.seq
        self._count += 1

    def report(self, head_seq: int, head_link: bytes, strays: Iterable[str] = ()) -> ChainReport:
        """`head_seq` and `head_link` are what the memory remembers of its last version; `strays` are the ids of
        versions that the live files and the history do not agree about."""
        problems = list(self._problems)
        if self._seq < head_seq:
            problems.append(_missing(self._seq + 1, head_seq))
        elif self._previous != head_link:
            problems.append("the last version is not the one that the memory remembers as its head.")
        if self._noted is not None and not self._passed:
            problems.append(
                "the head that was noted is not in this history, which was purged or written anew since then."
            )
        problems += (f"the live files do not agree with the history about version {stray}." for stray in strays)
        return ChainReport(self._count, head_link.hex(), tuple(problems))


def _missing(first: int, last: int) -> str:
    return f"version {first} is missing." if first == last else f"versions {first} to {last} are missing."


def _own_problems(version: Stored) -> Iterator[str]:
    erasable = (version.path, version.content, version.sha256, version.size, version.salt)
    if version.redacted:
        if any(value is not None for value in erasable):
            yield "is redacted and still has what redaction erases."
        return
    if version.path is None or version.salt is None:
        yield "has lost its path or salt without being redacted."
        return
    if commitment(version.salt, version.path, version.sha256, version.size) != version.facts.commitment:
        yield "has another path, hash or size than was committed to."
    expected = None if version.content is None else hashlib.sha256(version.content).hexdigest()
    if version.sha256 != expected or (version.content is None) != (version.facts.operation == "deleted"):
        yield "has other content than was stored."
