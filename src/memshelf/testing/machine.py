"""A Hypothesis state machine that drives a store beside a dictionary."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from memshelf.errors import ErrorCode
from memshelf.files.decide import ancestors
from memshelf.files.model import Changes
from memshelf.files.protocol import FileStore
from memshelf.testing.harness import ORIGIN, refused

__all__ = ["FileStoreMachine"]

T = TypeVar("T")

# Few paths, close to each other, so that they meet.
_PATHS = st.sampled_from(["a", "ab", "a/b", "a/b/c", "a.b", "A", "b", "caf\xe9", "cafe\u0301", "茶/绿"])
_TEXTS = st.one_of(
    st.sampled_from(["", "tea", "tea\n", "---\ndescription: tea\n---\n"]),
    st.text(st.characters(codec="utf-8"), max_size=30).filter(lambda text: not text.lstrip("\ufeff").startswith("---")),
)
_PICK = st.integers(0, 5)


class FileStoreMachine(RuleBasedStateMachine):
    """Random operations on a store and on a dictionary must agree, refusals and their codes included.

    Subclass it with an `open(place)` and run its `TestCase`. Stale versions and near-miss paths are drawn on purpose.
    """

    def open(self, place: Path) -> AbstractAsyncContextManager[FileStore]:
        """Open the store under test for a new memory, kept at `place`."""
        raise NotImplementedError(f"{type(self).__name__}.open(place) opens the store under test.")

    def __init__(self) -> None:
        super().__init__()
        self._runner = asyncio.Runner()
        self._place = Path(tempfile.mkdtemp(prefix="memshelf-machine-"))
        self._files: dict[str, tuple[str, str]] = {}
        self._versions: list[str] = ["never"]
        self._seen: list[tuple[str, dict[str, tuple[str, str]]]] = []

    @initialize()
    def opened(self) -> None:
        self._context = self.open(self._place)
        self._store: Any = self._do(self._context.__aenter__())

    def teardown(self) -> None:
        try:
            self._do(self._context.__aexit__(None, None, None))
        finally:
            self._runner.close()
            shutil.rmtree(self._place)

    def _do(self, operation: Awaitable[T]) -> T:
        async def run() -> T:
            return await operation

        return self._runner.run(run())

    @rule(path=_PATHS, text=_TEXTS)
    def create(self, path: str, text: str) -> None:
        path = _canonical(path)
        call = self._store.write(path, text, expected=None, origin=ORIGIN)
        if (blocker := self._in_the_way(path)) is not None:
            self._refused("already_exists", call, blocker)
        else:
            self._put(path, text, self._do(call))

    @rule(path=_PATHS, text=_TEXTS, stale=st.booleans(), pick=_PICK)
    def replace(self, path: str, text: str, stale: bool, pick: int) -> None:
        expected = self._expected(_canonical(path), stale, pick)
        call = self._store.write(path, text, expected=expected, origin=ORIGIN)
        path = _canonical(path)
        if not self._matches(path, expected):
            self._refused("version_mismatch", call, path)
        elif self._files[path][0] == text:
            assert self._do(call) == expected
        else:
            self._put(path, text, self._do(call))

    @rule(source=_PATHS, destination=_PATHS, stale=st.booleans(), pick=_PICK)
    def move(self, source: str, destination: str, stale: bool, pick: int) -> None:
        source, expected = _canonical(source), self._expected(_canonical(source), stale, pick)
        call = self._store.move(source, destination, expected=expected, origin=ORIGIN)
        destination = _canonical(destination)
        if not self._matches(source, expected):
            self._refused("version_mismatch", call, source)
        elif (blocker := self._in_the_way(destination)) is not None:
            self._refused("already_exists", call, blocker)
        else:
            version = self._do(call)
            text, _ = self._files.pop(source)
            self._put(destination, text, version)

    @rule(path=_PATHS, stale=st.booleans(), pick=_PICK)
    def delete(self, path: str, stale: bool, pick: int) -> None:
        path, expected = _canonical(path), self._expected(_canonical(path), stale, pick)
        call = self._store.delete(path, expected=expected, origin=ORIGIN)
        if not self._matches(path, expected):
            self._refused("version_mismatch", call, path)
        else:
            self._do(call)
            del self._files[path]

    @rule()
    def purge(self) -> None:
        self._do(self._store.purge())
        self._files.clear()

    @rule()
    def take_a_cursor(self) -> None:
        self._seen.append((self._do(self._store.changes(None)).cursor, dict(self._files)))

    @rule(pick=_PICK)
    def changes_cover_the_difference(self, pick: int) -> None:
        if not self._seen:
            return
        cursor, files = self._seen[pick % len(self._seen)]
        answer = self._do(self._store.changes(cursor))
        if isinstance(answer, Changes):
            both = files.keys() | self._files.keys()
            different = {path for path in both if files.get(path) != self._files.get(path)}
            assert different <= set(answer.paths)

    @invariant()
    def the_store_holds_what_the_dictionary_holds(self) -> None:
        if not hasattr(self, "_store"):
            return
        listing = self._do(self._store.list())
        assert [entry.path for entry in listing] == sorted(self._files, key=str.encode)
        for entry in listing:
            text, version = self._files[entry.path]
            file = self._do(self._store.read(entry.path))
            assert (file.path, file.text, file.version) == (entry.path, text, version)
            assert (entry.version, entry.size) == (version, len(text.encode()))

    def _put(self, path: str, text: str, version: str) -> None:
        self._files[path] = (text, version)
        self._versions.append(version)

    def _matches(self, path: str, expected: str) -> bool:
        return path in self._files and self._files[path][1] == expected

    def _expected(self, path: str, stale: bool, pick: int) -> str:
        if path in self._files and not stale:
            return self._files[path][1]
        return self._versions[-1 - pick % len(self._versions)]

    def _in_the_way(self, path: str) -> str | None:
        above = [each for each in (path, *ancestors(path)) if each in self._files]
        below = sorted((each for each in self._files if each.startswith(f"{path}/")), key=str.encode)
        return next(iter([*above, *below]), None)

    def _refused(self, code: ErrorCode, call: Awaitable[object], path: str) -> None:
        error = self._do(refused(code, call))
        shown = (error.current.text, error.current.version) if error.current is not None else None
        assert shown == self._files.get(path)


def _canonical(path: str) -> str:
    return path.replace("e\u0301", "\xe9")
