"""The directory store on disks that crash after every operation, and on disks that refuse every one."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from memshelf import DirectoryFileStore, MemoryStoreError, Origin
from memshelf.files.decide import Write
from memshelf.testing import refused
from memshelf.testing.disk import CrashingDisk, FaultyDisk, PowerCut
from memshelf.testing.harness import contents

ORIGIN = Origin()
_FURNITURE = {"memory", "memory/.memshelf", "memory/.memshelf/lock", "memory/.memshelf/.gitignore"}


@dataclass(frozen=True)
class Case:
    """A change, and the memory before and after it. `empty` are directories that stand there without files."""

    before: dict[str, str]
    after: dict[str, str]
    change: Callable[[DirectoryFileStore], Awaitable[object]]
    empty: tuple[str, ...] = field(default=())


def _write(path: str, text: str) -> Callable[[DirectoryFileStore], Awaitable[object]]:
    async def change(store: DirectoryFileStore) -> None:
        try:
            expected = (await store.read(path)).version
        except MemoryStoreError:
            expected = None
        await store.write(path, text, expected=expected, origin=ORIGIN)

    return change


def _move(source: str, destination: str) -> Callable[[DirectoryFileStore], Awaitable[object]]:
    async def change(store: DirectoryFileStore) -> None:
        version = (await store.read(source)).version
        await store.move(source, destination, expected=version, origin=ORIGIN)

    return change


def _delete(path: str) -> Callable[[DirectoryFileStore], Awaitable[object]]:
    async def change(store: DirectoryFileStore) -> None:
        await store.delete(path, expected=(await store.read(path)).version, origin=ORIGIN)

    return change


OLD, NEW = "old " * 50, "new " * 90
CASES = {
    "create in a new memory": Case({}, {"a": NEW}, _write("a", NEW)),
    "create in new directories": Case({"z": OLD}, {"z": OLD, "a/b/c": NEW}, _write("a/b/c", NEW)),
    "create beside a file": Case({"a/z": OLD}, {"a/z": OLD, "a/b": NEW}, _write("a/b", NEW)),
    "create over empty directories": Case({"z": OLD}, {"z": OLD, "a": NEW}, _write("a", NEW), ("a/b/c", "a/d")),
    "replace": Case({"a/b": OLD, "z": OLD}, {"a/b": NEW, "z": OLD}, _write("a/b", NEW)),
    "replace by nothing": Case({"a": OLD}, {"a": ""}, _write("a", "")),
    "replace by the same": Case({"a/b": OLD}, {"a/b": OLD}, _write("a/b", OLD)),
    "move": Case({"a": OLD, "z": OLD}, {"b": OLD, "z": OLD}, _move("a", "b")),
    "move between directories": Case({"a/b/c": OLD, "z": OLD}, {"x/y/c": OLD, "z": OLD}, _move("a/b/c", "x/y/c")),
    "move down": Case({"a/b": OLD}, {"a/c/b": OLD}, _move("a/b", "a/c/b")),
    "delete": Case({"a": OLD, "z": OLD}, {"z": OLD}, _delete("a")),
    "delete the last one of directories": Case({"a/b/c": OLD, "z": OLD}, {"z": OLD}, _delete("a/b/c")),
}
each_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


async def _filled(place: Path, case: Case) -> Path:
    place.mkdir(parents=True)
    async with DirectoryFileStore(place / "memory", durable=False) as store:
        for path, text in case.before.items():
            await store.write(path, text, expected=None, origin=ORIGIN)
    for path in case.empty:
        (place / "memory" / path).mkdir(parents=True)
    return place


async def _crash(place: Path, case: Case, limit: int | None) -> tuple[CrashingDisk, bool]:
    """The disk after the change or the crash in it, and whether the change was acknowledged."""
    disk = CrashingDisk(place, limit)
    async with DirectoryFileStore(place / "memory", disk=disk) as store:
        try:
            await case.change(store)
        except PowerCut:
            return disk, False
    return disk, True


async def _operations(place: Path, case: Case) -> int:
    disk, acknowledged = await _crash(await _filled(place, case), case, None)
    assert acknowledged
    return len(disk.operations)


async def _whole_and_usable(place: Path, allowed: list[dict[str, str]]) -> None:
    async with DirectoryFileStore(place / "memory", durable=False) as store:
        found = await contents(store)
        assert found in allowed
        await store.write("next/one", "works", expected=None, origin=ORIGIN)
        assert await contents(store) == {**found, "next/one": "works"}
        if "a" in found:
            # The name under which a crash may have left the same file in the control directory is not written over.
            await _delete("a")(store)
    if (place / "memory").exists():
        assert {each.name for each in (place / "memory" / ".memshelf").iterdir()} <= {"lock", ".gitignore"}


@each_case
async def test_a_killed_process_leaves_the_memory_before_or_after(tmp_path: Path, case: Case) -> None:
    for limit in range(await _operations(tmp_path / "all", case)):
        place = await _filled(tmp_path / str(limit), case)
        _, acknowledged = await _crash(place, case, limit)
        assert not acknowledged
        await _whole_and_usable(place, [case.before, case.after])


@each_case
async def test_a_power_cut_leaves_the_memory_before_or_after(tmp_path: Path, case: Case) -> None:
    for limit in range(await _operations(tmp_path / "all", case)):
        disk, _ = await _crash(await _filled(tmp_path / str(limit), case), case, limit)
        for kept in range(disk.pending + 1):
            left = tmp_path / f"{limit}-{kept}"
            disk.power_cut(left, kept)
            await _whole_and_usable(left, [case.before, case.after])


@each_case
async def test_a_power_cut_loses_nothing_that_was_acknowledged(tmp_path: Path, case: Case) -> None:
    disk, acknowledged = await _crash(await _filled(tmp_path / "place", case), case, None)
    assert acknowledged
    for kept in range(disk.pending + 1):
        left = tmp_path / str(kept)
        disk.power_cut(left, kept)
        await _whole_and_usable(left, [case.after])


@each_case
async def test_the_writer_after_a_killed_one_loses_nothing_to_a_power_cut(tmp_path: Path, case: Case) -> None:
    """Directories that the killed writer made are there, but it may not have seen them reach the disk."""
    for limit in range(await _operations(tmp_path / "all", case)):
        disk, _ = await _crash(await _filled(tmp_path / str(limit), case), case, limit)
        disk.revive()
        acknowledged: dict[str, str] = {}
        async with DirectoryFileStore(tmp_path / str(limit) / "memory", disk=disk) as store:
            for path in ("a/b/next", "x/y/next", "next"):
                try:
                    await store.write(path, NEW, expected=None, origin=ORIGIN)
                except MemoryStoreError as error:
                    assert error.code == "already_exists"  # `a` is a file in some cases
                else:
                    acknowledged[path] = NEW
        assert "next" in acknowledged
        left = tmp_path / f"{limit}-left"
        disk.power_cut(left)
        async with DirectoryFileStore(left / "memory", durable=False) as store:
            assert await contents(store) in ({**case.before, **acknowledged}, {**case.after, **acknowledged})


PAIRS = {
    "two new files": ({}, "a/b/c", "z"),
    "a new file, and another replaced": ({"z": OLD}, "a/b", "z"),
    "both replaced": ({"a/b": OLD, "z": OLD}, "a/b", "z"),
    "in one directory": ({"a/y": OLD}, "a/b", "a/y"),
    "the first stays the same": ({"a/b": NEW, "z": OLD}, "a/b", "z"),
    "twice the same file": ({"a/b": OLD}, "a/b", "a/b"),
}


@pytest.mark.parametrize(("before", "first", "second"), PAIRS.values(), ids=PAIRS)
async def test_of_two_writes_at_once_the_second_is_never_there_alone_and_the_first_never_lost(
    tmp_path: Path, before: dict[str, str], first: str, second: str
) -> None:
    one, other = Write(first, NEW, None, None), Write(second, f"{NEW}other", None, None)

    async def change(store: DirectoryFileStore) -> None:
        known = {each.path: each.version for each in await store.list()}
        expected = replace(one, expected=known.get(first)), replace(other, expected=known.get(second))
        _, made = await store.write_both(*expected, origin=ORIGIN)
        assert isinstance(made, str) == (first != second), "what it expected is gone"

    made_first = {**before, first: NEW}
    made_both = {**made_first, second: other.text} if first != second else made_first
    case = Case(before, made_both, change)
    operations = await _operations(tmp_path / "all", case)
    for limit in range(operations + 1):
        place = await _filled(tmp_path / str(limit), case)
        disk, acknowledged = await _crash(place, case, limit)
        assert acknowledged == (limit == operations)
        for kept in range(disk.pending + 1):
            left = tmp_path / f"{limit}-{kept}"
            disk.power_cut(left, kept)
            await _whole_and_usable(left, [made_first, made_both] if acknowledged else [before, made_first, made_both])
        await _whole_and_usable(place, [made_both] if acknowledged else [before, made_first, made_both])


async def test_two_writes_that_a_disk_does_not_confirm_are_told_as_such(tmp_path: Path) -> None:
    syncs = 0

    def before(operation: str) -> None:
        nonlocal syncs
        syncs += operation == "sync"
        if operation == "sync" and syncs == 3:  # both contents are synced before
            raise OSError(errno.EIO, "broken")

    async with DirectoryFileStore(tmp_path) as store:
        await store.write("z", OLD, expected=None, origin=ORIGIN)
        version = await store.write("a", OLD, expected=None, origin=ORIGIN)
    async with DirectoryFileStore(tmp_path, disk=FaultyDisk(before)) as store:
        pair = Write("a", NEW, version, None), Write("b", NEW, None, None)
        await refused("write_unconfirmed", store.write_both(*pair, origin=ORIGIN))
        assert await contents(store) == {"a": NEW, "b": NEW, "z": OLD}


async def test_a_write_that_cannot_be_made_leaves_the_other_as_it_should_be(tmp_path: Path) -> None:
    async with DirectoryFileStore(tmp_path) as store:
        version = await store.write("a", OLD, expected=None, origin=ORIGIN)
        stale = Write("a", NEW, "stale", None), Write("b", NEW, None, None)
        await refused("version_mismatch", store.write_both(*stale, origin=ORIGIN))
        stale = Write("x", NEW, "stale", None), Write("b", NEW, None, None)
        await refused("version_mismatch", store.write_both(*stale, origin=ORIGIN))
        assert await contents(store) == {"a": OLD}
        too_large = Write("b", "x" * store.format.max_file_bytes + "x", None, None)
        for second, code in ((Write("a", NEW, None, None), "already_exists"), (too_large, "too_large")):
            version, error = await store.write_both(Write("a", NEW, version, None), second, origin=ORIGIN)
            assert isinstance(error, MemoryStoreError)
            assert error.code == code
            assert await contents(store) == {"a": NEW}


async def test_without_durability_nothing_is_synced(tmp_path: Path) -> None:
    disk = CrashingDisk(tmp_path)
    async with DirectoryFileStore(tmp_path / "new" / "memory", durable=False, disk=disk) as store:
        version = await store.write("a/b", "one", expected=None, origin=ORIGIN)
        version = await store.write("a/b", "two", expected=version, origin=ORIGIN)
        await store.move("a/b", "c/d", expected=version, origin=ORIGIN)
        await store.purge()
    assert "rename" in disk.operations
    assert "sync" not in disk.operations


async def test_a_new_memory_and_the_directories_above_it_survive_a_power_cut(tmp_path: Path) -> None:
    """Also when a writer was killed while it made them."""
    for limit in range(25):
        place = tmp_path / str(limit)
        place.mkdir()
        disk = CrashingDisk(place, limit)
        for _ in range(2):
            async with DirectoryFileStore(place / "x" / "y" / "memory", disk=disk) as store:
                try:
                    await _write("a/b", "one")(store)
                except PowerCut:
                    disk.revive()
        disk.power_cut(left := tmp_path / f"{limit}-left")
        async with DirectoryFileStore(left / "x" / "y" / "memory") as store:
            assert await contents(store) == {"a/b": "one"}


@pytest.mark.parametrize(
    ("change", "after"),
    [
        (_write("d/a", "two"), {"d/a": "two"}),
        (_write("d/a", "one"), {"d/a": "one"}),
        (_move("d/a", "d/b"), {"d/b": "one"}),
    ],
    ids=["replace", "replace by the same", "move"],
)
async def test_what_a_person_did_not_sync_is_synced_with_the_first_change_of_it(
    tmp_path: Path, change: Callable[[DirectoryFileStore], Awaitable[object]], after: dict[str, str]
) -> None:
    place = tmp_path / "place"
    (place / "memory").mkdir(parents=True)
    disk = CrashingDisk(place)
    root = disk.open_root(str(place / "memory"))
    disk.make_directory("d", root)
    directory = disk.open_directory("d", root)
    file = disk.create("a", directory)
    disk.write(file, b"one")
    for fd in (file, directory, root):
        disk.close(fd)
    async with DirectoryFileStore(place / "memory", disk=disk) as store:
        await change(store)
    disk.power_cut(tmp_path / "left")
    async with DirectoryFileStore(tmp_path / "left" / "memory") as store:
        assert await contents(store) == after


async def test_a_directory_that_is_made_again_survives_a_power_cut(tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    disk = CrashingDisk(place)
    async with DirectoryFileStore(place / "memory", disk=disk) as store:
        for text in ("one", "two", "three"):
            await _write("a/b", text)(store)
            await _delete("a/b")(store)
        await _write("a/b", "four")(store)
    disk.power_cut(tmp_path / "left")
    async with DirectoryFileStore(tmp_path / "left" / "memory") as store:
        assert await contents(store) == {"a/b": "four"}


class _Unsynced(FaultyDisk):
    """Does not wait for the real disk."""

    def sync(self, fd: int) -> None:
        self._before("sync")


class _Refusal:
    """Refuses operation number `at`, and with `sticky` all that follow except for clearing up."""

    def __init__(self, at: int, error: int, *, sticky: bool) -> None:
        self.count = 0
        self._at, self._error, self._sticky = at, error, sticky

    def __call__(self, operation: str) -> None:
        number, self.count = self.count, self.count + 1
        clears = operation in ("unlink", "remove_directory")
        if number == self._at or (self._sticky and number > self._at and not clears):
            raise OSError(self._error, os.strerror(self._error))


REFUSALS = {
    "no space": (errno.ENOSPC, True),
    "over quota": (errno.EDQUOT, True),
    "read-only": (errno.EROFS, True),
    "no permission": (errno.EACCES, True),
    "not permitted once": (errno.EPERM, False),
    "input and output": (errno.EIO, True),
    "input and output once": (errno.EIO, False),
    "too many open files once": (errno.EMFILE, False),
}


@pytest.mark.parametrize(("error", "sticky"), REFUSALS.values(), ids=REFUSALS)
@each_case
async def test_what_the_system_refuses_changes_nothing_and_leaves_nothing_behind(
    tmp_path: Path, case: Case, error: int, sticky: bool
) -> None:
    outcomes = []
    for at in range(await _operations(tmp_path / "all", case)):
        place = await _filled(tmp_path / str(at), case)
        shape = _shape(place)
        disk = _Unsynced(_Refusal(at, error, sticky=sticky))
        async with DirectoryFileStore(place / "memory", disk=disk) as store:
            try:
                await case.change(store)
            except MemoryStoreError as refusal:
                outcomes.append(refusal.code)
                if refusal.code == "unavailable":
                    assert os.strerror(error) in refusal.message
                    assert await contents(store) == case.before
                    # A memory that is new may keep its empty root.
                    assert _shape(place) - _FURNITURE <= shape
                else:
                    # The change could not be taken back, nor be confirmed.
                    assert refusal.code == "write_unconfirmed"
                    assert await contents(store) == case.after
            else:
                assert await contents(store) == case.after
        await _whole_and_usable(place, [case.before, case.after])
    assert "unavailable" in outcomes


def _shape(place: Path) -> set[str]:
    return {str(each.relative_to(place)) for each in place.rglob("*")}


async def test_a_disk_without_hard_links_still_creates_files_whole_and_overwrites_none(tmp_path: Path) -> None:
    def refuse(operation: str) -> None:
        if operation == "link":
            if (tmp_path / "by-hand").exists():
                (tmp_path / "late").write_text("by hand")
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    async with DirectoryFileStore(tmp_path, disk=FaultyDisk(refuse)) as store:
        await asyncio.gather(
            *(store.write("a/b", str(n), expected=None, origin=ORIGIN) for n in range(4)), return_exceptions=True
        )
        assert len(await contents(store)) == 1
        (tmp_path / "by-hand").touch()
        with pytest.raises(MemoryStoreError, match="already exists"):
            await store.write("late", "mine", expected=None, origin=ORIGIN)
        assert (tmp_path / "late").read_text() == "by hand"


async def test_a_disk_that_cannot_sync_directories_is_used_as_it_is(tmp_path: Path) -> None:
    class Disk(CrashingDisk):
        def sync(self, fd: int) -> None:
            if os.path.isdir(f"/dev/fd/{fd}"):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            super().sync(fd)

    async with DirectoryFileStore(tmp_path / "memory", disk=Disk(tmp_path)) as store:
        await store.write("a/b", "one", expected=None, origin=ORIGIN)
        assert await contents(store) == {"a/b": "one"}
