"""The directory store on a disk that fails where nothing depends on it any more, and where everything does."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest

from memshelf import DirectoryFileStore, Origin
from memshelf.files.decide import Write
from memshelf.testing import refused
from memshelf.testing.disk import FaultyDisk
from memshelf.testing.harness import contents

ORIGIN = Origin()


async def _changed(store: DirectoryFileStore) -> dict[str, str]:
    """One change of each kind."""
    first = await store.write("notes/a.md", "one\n", expected=None, origin=ORIGIN)
    second = await store.write("notes/a.md", "two\n", expected=first, origin=ORIGIN)
    assert first != second
    await store.move("notes/a.md", "b.md", expected=second, origin=ORIGIN)
    together = (Write("c.md", "three\n", None, None), Write("d.md", "four\n", None, None))
    _, other = await store.write_both(*together, origin=ORIGIN)
    assert isinstance(other, str)
    await store.delete("c.md", expected=(await store.read("c.md")).version, origin=ORIGIN)
    return await contents(store)


CHANGED = {"b.md": "two\n", "d.md": "four\n"}


async def test_a_change_that_was_made_is_not_said_to_have_failed_as_a_file_could_not_be_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.close

    def close(fd: int) -> None:
        written = fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
        real(fd)
        if not written:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "close", close)
    async with DirectoryFileStore(tmp_path) as store:
        assert await _changed(store) == CHANGED  # nor does the thread that makes changes end
        await store.purge()
        assert await contents(store) == {}


async def test_a_lock_that_cannot_be_released_is_released_by_closing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = fcntl.flock

    def flock(fd: int, operation: int) -> None:
        if operation == fcntl.LOCK_UN:
            raise OSError(errno.ENOLCK, "No locks available")
        real(fd, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    async with DirectoryFileStore(tmp_path) as store, DirectoryFileStore(tmp_path) as other:
        assert await _changed(store) == CHANGED
        await other.write("e.md", "five\n", expected=None, origin=ORIGIN)


async def test_content_that_a_disk_refuses_when_the_file_is_closed_is_not_put_in_place(tmp_path: Path) -> None:
    class Disk(FaultyDisk):
        def close_written(self, fd: int) -> None:
            super().close_written(fd)
            raise OSError(errno.EDQUOT, "Disk quota exceeded")

    async with DirectoryFileStore(tmp_path, disk=Disk(lambda _: None), durable=False) as store:
        await refused("unavailable", store.write("a.md", "one\n", expected=None, origin=ORIGIN))
        assert await contents(store) == {}
    assert not (tmp_path / ".memshelf" / "staged").exists()


async def test_a_system_without_a_thread_to_give_is_unavailable_for_as_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "memshelf-directory":
            raise RuntimeError("can't start new thread")
        real(thread)

    async with DirectoryFileStore(tmp_path) as store:
        with monkeypatch.context() as exhausted:
            exhausted.setattr(threading.Thread, "start", refuse)
            await refused("unavailable", store.write("a.md", "one\n", expected=None, origin=ORIGIN))
        await asyncio.wait_for(store.write("a.md", "two\n", expected=None, origin=ORIGIN), 60)
        assert await contents(store) == {"a.md": "two\n"}
