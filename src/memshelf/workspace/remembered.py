"""What was learned of entries, kept from one process to the next beside the files of a directory.

It saves the reading and embedding of many entries, and nothing depends on it: whatever does not fit is read anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from memshelf.records.retrieval.analysis import ANALYSIS
from memshelf.storage.whole_file import WholeFile
from memshelf.workspace.entries import EntryInfo

__all__ = ["Learned", "Remembered"]

_FORMAT = [2, ANALYSIS]


@dataclass(frozen=True, slots=True)
class Learned:
    """What recall knows of an entry at a version. `terms` and `vectors` are what recall by meaning stores."""

    version: str
    info: EntryInfo
    chinese: bool
    weights: dict[str, float]
    terms: bytes = b""
    vectors: bytes = b""


class Remembered:
    """The file in which it is kept, for one embedder: `model` names it."""

    def __init__(self, path: Path, model: Sequence[object]) -> None:
        self._file = WholeFile(path)
        self._model = [*_FORMAT, *model]

    def load(self) -> dict[str, Learned]:
        """By path; empty when there is nothing, or nothing of use."""
        try:
            mark, _, data = self._file.read().partition(b"\n")
            if mark != _mark(data):  # a bad disk, or somebody's hand
                return {}
            head, _, rest = data.partition(b"\n")
            model, rows = json.loads(head)
            if model != self._model:
                return {}
            learned, at, blobs = {}, 0, memoryview(rest)
            for path, version, info, chinese, weights, terms, vectors in rows:
                middle, end = at + terms, at + terms + vectors
                learned[path] = Learned(
                    version, EntryInfo(**info), chinese, weights, bytes(blobs[at:middle]), bytes(blobs[middle:end])
                )
                at = end
            return learned if at == len(rest) else {}
        except (OSError, ValueError, TypeError, RecursionError):
            return {}

    def save(self, learned: dict[str, Learned]) -> None:
        """Keep it, if the disk can. The directory must be there."""
        rows = [
            (path, each.version, asdict(each.info), each.chinese, each.weights, len(each.terms), len(each.vectors))
            for path, each in learned.items()
        ]
        head = json.dumps([self._model, rows], separators=(",", ":")).encode()
        blobs = b"".join(part for each in learned.values() for part in (each.terms, each.vectors))
        data = head + b"\n" + blobs
        with suppress(OSError):
            self._file.write(_mark(data) + b"\n" + data)

    def drop(self) -> None:
        """Keep nothing: something in it was forgotten for good. `OSError` if it is there and cannot be removed."""
        with suppress(FileNotFoundError, NotADirectoryError):
            self._file.remove()


def _mark(data: bytes) -> bytes:
    return hashlib.sha256(data).hexdigest().encode()
