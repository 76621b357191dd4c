"""What the contract suites share."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeVar

from memshelf.errors import ErrorCode, MemoryStoreError
from memshelf.files.protocol import FileStore
from memshelf.limits import FileFormat
from memshelf.origin import Origin

__all__ = ["ORIGIN", "StoreContract", "refused", "scenario"]

ORIGIN = Origin()

Suite = TypeVar("Suite", bound="_Opens")


class _Opens(Protocol):
    def open(self, place: Path) -> AbstractAsyncContextManager[Any]: ...


class StoreContract:
    """The base of the suites: how to open the store under test."""

    def open(self, place: Path, format: FileFormat | None = None) -> AbstractAsyncContextManager[Any]:
        """Open the memory kept at `place`, an existing folder. Called again with the same folder while the first is
        still open, it is a second handle on the same memory."""
        raise NotImplementedError(f"{type(self).__name__}.open(place, format) opens the store under test.")


def scenario(test: Callable[[Suite, Any], Awaitable[None]]) -> Callable[[Suite, Path], None]:
    """A test that gets an open store of a new memory, with an event loop of its own and no pytest plugin."""

    @functools.wraps(test)
    def run(self: Suite, tmp_path: Path) -> None:
        async def body() -> None:
            async with self.open(tmp_path) as store:
                await test(self, store)

        asyncio.run(body())

    del run.__wrapped__  # pytest would ask for the inner signature's fixtures
    return run


async def refused(code: ErrorCode, operation: Awaitable[object]) -> MemoryStoreError:
    """The refusal with that code; anything else fails the test."""
    try:
        result = await operation
    except MemoryStoreError as error:
        assert error.code == code, f"expected {code}, got {error.code}: {error}"
        assert error.message, "a refusal says what is wrong"
        return error
    raise AssertionError(f"expected {code}, but it succeeded with {result!r}")


async def put(store: FileStore, path: str, text: str) -> str:
    """Create or replace a file, whatever is there."""
    try:
        expected: str | None = (await store.read(path)).version
    except MemoryStoreError as error:
        if error.code != "not_found":
            raise
        expected = None
    return await store.write(path, text, expected=expected, origin=ORIGIN)


async def contents(store: FileStore) -> dict[str, str]:
    """Every path with its text."""
    return {entry.path: (await store.read(entry.path)).text for entry in await store.list()}
