"""The directory store: the contracts, its root and modes, failures of the system, processes and event loops."""

from __future__ import annotations

import asyncio
import fcntl
import gc
import os
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from memshelf import Changes, DirectoryFileStore, FileFormat, FullResync, MemoryStoreError, Origin
from memshelf.testing import FileStoreContract, FileStoreMachine, SearchableFileStoreContract, refused
from memshelf.testing.harness import contents, put

ORIGIN = Origin()


@asynccontextmanager
async def _open(place: Path, format: FileFormat | None = None) -> AsyncIterator[DirectoryFileStore]:
    async with DirectoryFileStore(place / "memory", format=format, durable=False) as store:
        yield store


class TestDirectoryFileStore(FileStoreContract, SearchableFileStoreContract):
    def open(self, place, format=None):
        return _open(place, format)


class _Machine(FileStoreMachine):
    def open(self, place):
        return _open(place)


TestDirectoryMachine = _Machine.TestCase
TestDirectoryMachine.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
async def store(root: Path) -> AsyncIterator[DirectoryFileStore]:
    async with DirectoryFileStore(root) as opened:
        yield opened


def _by_hand(root: Path, path: str, text: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


# The control directory, the root, modes


@pytest.mark.parametrize(
    "path", [".memshelf", ".memshelf/lock", ".memshelf/x/y", ".MemShelf/lock", ".memshelf. /x", ".mem\u200cshelf/lock"]
)
async def test_the_control_directory_is_not_part_of_the_memory(store: DirectoryFileStore, path: str) -> None:
    version = await store.write("a", "one", expected=None, origin=ORIGIN)
    await refused("invalid_path", store.read(path))
    await refused("invalid_path", store.write(path, "x", expected=None, origin=ORIGIN))
    await refused("invalid_path", store.write(path, "x", expected=version, origin=ORIGIN))
    await refused("invalid_path", store.move("a", path, expected=version, origin=ORIGIN))
    await refused("invalid_path", store.move(path, "b", expected=version, origin=ORIGIN))
    await refused("invalid_path", store.delete(path, expected=version, origin=ORIGIN))
    await refused("invalid_path", store.search("x", regex=False, case_sensitive=False, path=f"{path}/", limit=1))
    assert await contents(store) == {"a": "one"}


async def test_only_the_first_segment_can_be_the_control_directory(store: DirectoryFileStore) -> None:
    for path in ("a/.memshelf/lock", ".memshelfs", ".memshel/f", "memshelf"):
        await store.write(path, "mine", expected=None, origin=ORIGIN)
    assert len(await store.list()) == 4


@pytest.mark.parametrize("umask", [0, 0o022, 0o077])
async def test_files_are_0600_and_directories_0700_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    root = tmp_path / "above" / "memory"
    before = os.umask(umask)
    try:
        async with DirectoryFileStore(root) as store:
            version = await store.write("a/b/c", "one", expected=None, origin=ORIGIN)
            await store.write("a/b/c", "two", expected=version, origin=ORIGIN)
            await store.write("d", "three", expected=None, origin=ORIGIN)
            _by_hand(root, "by-hand", "open to all")
            (root / "by-hand").chmod(0o666)
            await put(store, "by-hand", "ours now")
    finally:
        os.umask(before)
    modes = {str(each.relative_to(tmp_path)): stat.S_IMODE(each.stat().st_mode) for each in tmp_path.rglob("*")}
    directories = {path for path in modes if (tmp_path / path).is_dir()}
    assert directories == {
        "above", "above/memory", "above/memory/.memshelf", "above/memory/a", "above/memory/a/b"
    }  # fmt: skip
    assert {path: oct(mode) for path, mode in modes.items() if mode != (0o700 if path in directories else 0o600)} == {}


async def test_a_missing_root_reads_as_an_empty_memory_and_only_a_new_file_makes_it(root: Path) -> None:
    async with DirectoryFileStore(root / "x") as store:
        assert await store.list() == []
        assert isinstance(await store.changes(None), FullResync)
        assert await store.search("a", regex=False, case_sensitive=False, path="", limit=1) == ([], False)
        await refused("not_found", store.read("a"))
        await refused("version_mismatch", store.write("a", "x", expected="v", origin=ORIGIN))
        await refused("version_mismatch", store.move("a", "b", expected="v", origin=ORIGIN))
        await refused("version_mismatch", store.delete("a", expected="v", origin=ORIGIN))
        await store.purge()
        assert not root.exists()
        await store.write("a", "x", expected=None, origin=ORIGIN)
        assert (root / "x" / "a").read_text() == "x"


async def test_a_root_that_is_removed_or_replaced_is_seen_at_once(root: Path, store: DirectoryFileStore) -> None:
    await store.write("a", "one", expected=None, origin=ORIGIN)
    root.rename(root.with_name("backup"))
    assert await store.list() == []
    await store.write("b", "two", expected=None, origin=ORIGIN)
    root.rename(root.with_name("other"))
    root.with_name("backup").rename(root)
    assert await contents(store) == {"a": "one"}
    await put(store, "a", "three")
    assert await contents(store) == {"a": "three"}


async def test_a_root_that_is_no_directory_is_a_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "nowhere").symlink_to(tmp_path / "missing")
    for name in ("file", "file/below"):
        store = DirectoryFileStore(tmp_path / name)
        for operation in (
            store.list(),
            store.read("a"),
            store.write("a", "x", expected=None, origin=ORIGIN),
            store.purge(),
        ):
            refusal = await refused("unavailable", operation)
            assert "Not a directory" in refusal.message
            assert str(tmp_path) not in refusal.message  # a model may read it
        await store.aclose()
    async with DirectoryFileStore(tmp_path / "nowhere") as store:
        await refused("unavailable", store.write("a", "x", expected=None, origin=ORIGIN))
    assert (tmp_path / "file").read_text() == "x"


async def test_the_root_may_be_reached_through_symbolic_links(tmp_path: Path) -> None:
    (tmp_path / "real" / "memory").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "memory").symlink_to("link/memory")
    async with DirectoryFileStore(tmp_path / "memory") as store:
        await store.write("a", "one", expected=None, origin=ORIGIN)
        assert await contents(store) == {"a": "one"}
    assert (tmp_path / "real" / "memory" / "a").read_text() == "one"


async def test_a_relative_root_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    store = DirectoryFileStore("memory")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    await store.write("a", "one", expected=None, origin=ORIGIN)
    await store.aclose()
    assert (tmp_path / "memory" / "a").read_text() == "one"


def test_a_system_without_directory_descriptors_is_told_what_to_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "supports_dir_fd", set())
    with pytest.raises(NotImplementedError, match="SqliteFileStore"):
        DirectoryFileStore("memory")


async def test_the_same_content_has_the_same_version(root: Path, store: DirectoryFileStore) -> None:
    version = await store.write("a", "tea", expected=None, origin=ORIGIN)
    assert await store.write("b", "tea", expected=None, origin=ORIGIN) == version
    cursor = (await store.changes(None)).cursor
    second = await store.write("a", "coffee", expected=version, origin=ORIGIN)
    assert isinstance(await store.changes(cursor), FullResync)
    assert await store.write("a", "tea", expected=second, origin=ORIGIN) == version
    assert await store.changes(cursor) == Changes(cursor, ())
    os.utime(root / "a", (0, 0))
    assert await store.changes(cursor) == Changes(cursor, ())


# Failures of the system


async def test_a_full_disk_changes_nothing_and_works_again_when_there_is_room(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("may not mount a small disk here; test_directory_crash.py fills one that is simulated")
    try:
        async with DirectoryFileStore(disk / "memory") as store:
            version = await store.write("a", "a" * 60_000, expected=None, origin=ORIGIN)
            written = {"a": "a" * 60_000}
            for number in range(20):
                try:
                    await store.write(f"d{number}/b", "b" * 60_000, expected=None, origin=ORIGIN)
                except MemoryStoreError as error:
                    full = error
                    break
                written[f"d{number}/b"] = "b" * 60_000
            assert full.code == "unavailable"
            assert "No space left" in full.message
            await refused("unavailable", store.write("a", "c" * 65_000, expected=version, origin=ORIGIN))
            assert await contents(store) == written
            assert {each.name for each in (disk / "memory").iterdir()} == {
                ".memshelf", *(path.partition("/")[0] for path in written)
            }  # fmt: skip
            await store.delete("a", expected=version, origin=ORIGIN)
            await store.write("a", "c" * 60_000, expected=None, origin=ORIGIN)
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@contextmanager
def _without_privileges(directory: Path) -> Iterator[None]:
    """Root may do anything; so be someone else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    for each in (directory, *directory.rglob("*")):
        os.chown(each, 65_534, 65_534)
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


async def test_a_read_only_memory_can_be_read_and_says_why_it_cannot_be_changed() -> None:
    with tempfile.TemporaryDirectory(prefix="memshelf-") as place:  # where others may enter, unlike `tmp_path`
        root = Path(place)
        async with DirectoryFileStore(root) as store:
            version = await store.write("d/a", "one", expected=None, origin=ORIGIN)
            with _without_privileges(root):
                for read_only in (["d"], ["d", ".memshelf", "."]):
                    (root / ".memshelf" / "lock").unlink(missing_ok=True)
                    for each in read_only:
                        (root / each).chmod(0o500)
                    for operation in (
                        store.write("d/a", "two", expected=version, origin=ORIGIN),
                        store.write("d/b", "two", expected=None, origin=ORIGIN),
                        store.move("d/a", "d/b", expected=version, origin=ORIGIN),
                        store.delete("d/a", expected=version, origin=ORIGIN),
                    ):
                        assert "Permission denied" in (await refused("unavailable", operation)).message
                    assert await contents(store) == {"d/a": "one"}
                    for each in reversed(read_only):
                        (root / each).chmod(0o700)


async def test_a_file_that_cannot_be_read_is_not_taken_for_deleted() -> None:
    with tempfile.TemporaryDirectory(prefix="memshelf-") as place:
        root = Path(place)
        _by_hand(root, "a", "one")
        _by_hand(root, "d/b", "two")
        with _without_privileges(root):
            for path in ("a", "d"):
                (root / path).chmod(0)
                async with DirectoryFileStore(root) as store:
                    for operation in (store.list(), store.changes(None), store.read("a" if path == "a" else "d/b")):
                        error = await refused("unavailable", operation)
                        assert "Permission denied" in error.message
                        assert f"({path})" in error.message
                (root / path).chmod(0o700)


async def test_a_control_directory_that_is_something_else_is_an_error(
    root: Path, store: DirectoryFileStore, tmp_path: Path
) -> None:
    root.mkdir()
    outside = tmp_path / "outside"
    _by_hand(outside, "secret", "secret")
    (root / ".memshelf").symlink_to(outside)
    await refused("unavailable", store.write("a", "one", expected=None, origin=ORIGIN))
    (root / ".memshelf").unlink()
    (root / ".memshelf").mkdir()
    (root / ".memshelf" / "lock").symlink_to(outside / "secret")
    await refused("unavailable", store.write("a", "one", expected=None, origin=ORIGIN))
    assert [each.read_text() for each in outside.iterdir()] == ["secret"]
    assert await store.list() == []


async def test_no_call_leaves_a_descriptor_open(root: Path, store: DirectoryFileStore, tmp_path: Path) -> None:
    async def use() -> None:
        version = await store.write("a/b/c", "one", expected=None, origin=ORIGIN)
        (root / "a" / "link").symlink_to(tmp_path)
        version = await store.write("a/b/c", "two", expected=version, origin=ORIGIN)
        for path in ("a", "a/b/c", "a/b/c/d", "a/link/x", "x" * 255 + "/" + "y" * 256):
            with pytest.raises(MemoryStoreError):
                await store.write(path, "x", expected=None, origin=ORIGIN)
            with pytest.raises(MemoryStoreError):
                await store.move("a/b/c", path, expected=version, origin=ORIGIN)
            with pytest.raises(MemoryStoreError):
                await store.write(path, "x", expected="v", origin=ORIGIN)
        await store.search("o", regex=False, case_sensitive=False, path="", limit=1)
        await contents(store)
        await store.move("a/b/c", "d/e", expected=version, origin=ORIGIN)
        await store.purge()
        await store.aclose()
        (root / "a" / "link").unlink()

    root.mkdir()
    await use()  # also what is opened once and for all, such as the event loop's own
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        await use()
    assert len(os.listdir("/dev/fd")) == before


async def test_a_name_that_the_system_refuses_is_an_invalid_path(root: Path) -> None:
    async with DirectoryFileStore(root, format=FileFormat(path_bytes=10_000)) as store:
        version = await store.write("a", "one", expected=None, origin=ORIGIN)
        for path in ("x" * 256, "b/" + "x" * 256, "x" * 256 + "/b", "é" * 200):
            await refused("invalid_path", store.write(path, "x", expected=None, origin=ORIGIN))
            await refused("invalid_path", store.move("a", path, expected=version, origin=ORIGIN))
        await refused("invalid_path", store.read("x" * 256))
        assert await contents(store) == {"a": "one"}
        assert {each.name for each in root.iterdir()} == {"a", ".memshelf"}


# The lock, threads and event loops


@contextmanager
def _held(root: Path) -> Iterator[None]:
    """The lock of a memory, as another process would hold it."""
    with open(root / ".memshelf" / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


async def test_readers_go_on_while_many_writers_wait_for_another_process(root: Path, store: DirectoryFileStore) -> None:
    await store.write("a", "one", expected=None, origin=ORIGIN)
    with _held(root):
        writes = [asyncio.create_task(store.write(f"b{n}", "x", expected=None, origin=ORIGIN)) for n in range(100)]
        async with asyncio.timeout(20):
            for _ in range(20):
                assert await contents(store) == {"a": "one"}
        assert not any(write.done() for write in writes)
        await refused("not_found", store.read("b0"))
    await asyncio.gather(*writes)
    assert len(await store.list()) == 101


async def test_a_waiting_change_that_is_cancelled_before_it_began_does_not_happen(
    root: Path, store: DirectoryFileStore
) -> None:
    await store.write("a", "one", expected=None, origin=ORIGIN)
    with _held(root):
        begun = asyncio.create_task(store.write("begun", "x", expected=None, origin=ORIGIN))
        queued = asyncio.create_task(store.write("queued", "x", expected=None, origin=ORIGIN))
        await store.read("a")
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await queued
    await begun
    await store.aclose()
    assert await contents(store) == {"a": "one", "begun": "x"}


async def test_a_lock_that_vanished_with_its_root_is_taken_anew(root: Path, store: DirectoryFileStore) -> None:
    await store.write("a", "one", expected=None, origin=ORIGIN)
    with _held(root):
        write = asyncio.create_task(store.write("b", "two", expected=None, origin=ORIGIN))
        await store.read("a")
        root.rename(root.with_name("gone"))
        root.mkdir()
    await write
    assert await contents(store) == {"b": "two"}
    assert not root.with_name("gone").joinpath("b").exists()


def test_one_store_serves_event_loops_one_after_another_and_side_by_side(root: Path) -> None:
    store = DirectoryFileStore(root, durable=False)

    async def use(name: str) -> None:
        for number in range(20):
            await put(store, f"{name}/{number % 3}", str(number))
            assert f"{name}/0" in [entry.path for entry in await store.list()]

    asyncio.run(use("first"))
    threads = [threading.Thread(target=lambda n=n: asyncio.run(use(f"thread-{n}"))) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asyncio.run(use("last"))
    asyncio.run(store.aclose())
    asyncio.run(use("after closing"))
    asyncio.run(store.aclose())
    assert len(asyncio.run(contents(store))) == 6 * 3


def test_a_caller_whose_event_loop_ends_disturbs_nobody(root: Path) -> None:
    store = DirectoryFileStore(root)

    async def leave() -> None:
        task = asyncio.create_task(store.write("b", "two", expected=None, origin=ORIGIN))
        await asyncio.sleep(0)  # the change is under way
        task.cancel()

    async def stay() -> None:
        await store.write("a", "one", expected=None, origin=ORIGIN)
        await put(store, "a", "three")
        await store.aclose()

    asyncio.run(store.write("c", "zero", expected=None, origin=ORIGIN))
    with _held(root):
        asyncio.run(leave())
    asyncio.run(stay())
    assert (root / "a").read_text() == "three"


async def test_a_store_that_is_forgotten_takes_its_thread_along(root: Path) -> None:
    others = threading.enumerate()
    store = DirectoryFileStore(root)
    await store.write("a", "one", expected=None, origin=ORIGIN)
    [thread] = [each for each in threading.enumerate() if each not in others]
    await store.read("a")
    del store
    gc.collect()
    await asyncio.to_thread(thread.join, 20)
    assert not thread.is_alive()


def test_a_process_that_ends_does_not_wait_for_a_lock_that_another_one_holds(root: Path) -> None:
    program = """
import asyncio, sys
from memshelf import DirectoryFileStore, Origin

async def leave(store):
    write = asyncio.create_task(store.write("b", "two", expected=None, origin=Origin()))
    await asyncio.sleep(0)
    closing = asyncio.create_task(store.aclose())
    await store.read("a")
    for task in (write, closing):
        task.cancel()

asyncio.run(leave(DirectoryFileStore(sys.argv[1])))
"""
    asyncio.run(DirectoryFileStore(root).write("a", "one", expected=None, origin=ORIGIN))
    with _held(root):
        subprocess.run([sys.executable, "-c", program, root], check=True, timeout=60)
    assert asyncio.run(contents(DirectoryFileStore(root))) == {"a": "one"}


# Size


async def test_ten_thousand_files_are_listed_and_one_change_among_them_is_seen(root: Path) -> None:
    for number in range(10_000):
        if number < 100:
            (root / f"d{number:02d}").mkdir(parents=True)
        (root / f"d{number % 100:02d}" / f"{number}.md").write_text(f"note {number}")
    async with DirectoryFileStore(root, durable=False) as store:
        listing = await store.list()
        assert len(listing) == 10_000
        assert [entry.path for entry in listing] == sorted(entry.path for entry in listing)
        cursor = (await store.changes(None)).cursor
        assert await store.changes(cursor) == Changes(cursor, ())
        await put(store, "d42/4242.md", "changed")
        assert isinstance(await store.changes(cursor), FullResync)
        changed = set(await store.list()) - set(listing)
        assert [(entry.path, entry.description) for entry in changed] == [("d42/4242.md", "changed")]
        found, more = await store.search("NOTE 777", regex=False, case_sensitive=False, path="d77/", limit=50)
        assert ([match.path for match in found], more) == (["d77/777.md", "d77/7777.md"], False)
        await store.purge()
        assert [each.name for each in root.iterdir()] == [".memshelf"]


async def test_changes_and_list_are_one_look_at_the_directory(root: Path) -> None:
    async with DirectoryFileStore(root) as store:
        await put(store, "a", "one")
        feed, entries = await store.changes_and_list(None)
        assert (feed, entries) == (await store.changes(None), await store.list())
        assert await store.changes_and_list(feed.cursor) == (Changes(feed.cursor, ()), entries)
        await put(store, "b", "two")
        feed, entries = await store.changes_and_list(feed.cursor)
        assert isinstance(feed, FullResync)
        assert [entry.path for entry in entries] == ["a", "b"]


async def test_a_purge_takes_what_was_derived_from_the_files(root: Path) -> None:
    store = DirectoryFileStore(root)
    await put(store, "tea.md", "Green.")
    (root / ".memshelf" / "vectors").write_text("what search keeps of the files")
    await store.purge()
    assert sorted(each.name for each in (root / ".memshelf").iterdir()) == [".gitignore", "lock"]


def test_an_empty_path_is_no_memory():
    with pytest.raises(ValueError, match="`root` is empty"):
        DirectoryFileStore("")
