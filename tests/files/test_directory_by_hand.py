"""The directory store and what people, and other programs, do to its files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
import subprocess
import unicodedata
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from memshelf import Changes, DirectoryFileStore, FullResync, MemoryStoreError, Origin
from memshelf.files.backends.directory.content import READABLE_BYTES
from memshelf.files.backends.directory.disk import Disk
from memshelf.testing import refused
from memshelf.testing.harness import contents, put

ORIGIN = Origin()
NFC, NFD = "caf\xe9", "cafe\u0301"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "memory"


@pytest.fixture
async def store(root: Path) -> AsyncIterator[DirectoryFileStore]:
    async with DirectoryFileStore(root) as opened:
        yield opened


class _Meddled(Disk):
    """Calls `meddle(call, number)` before every call to the system, with its name and its number."""

    def __init__(self, meddle: Callable[[str, int], None]) -> None:
        self.calls: list[str] = []
        self._meddle = meddle

    def __getattribute__(self, name: str) -> object:
        if name.startswith("_") or name == "calls":
            return super().__getattribute__(name)
        self._meddle(name, len(self.calls))
        self.calls.append(name)
        return super().__getattribute__(name)


class _Watched(Disk):
    """Knows which files were read."""

    def __init__(self) -> None:
        self.read_files: list[str] = []

    def open_file(self, name: str, at: int) -> int:
        self.read_files.append(name)
        return super().open_file(name, at)


class _Later(_Watched):
    """On which every file was stamped long ago."""

    def now(self) -> int:
        return super().now() + 10**10


def _by_hand(root: Path, path: str, text: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())


# What is no file of the memory


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    outside = tmp_path / "outside"
    _by_hand(outside, "secret", "secret")
    _by_hand(outside, "notes/a", "secret")
    return outside


def _is_untouched(outside: Path) -> bool:
    found = {str(each.relative_to(outside)): each.read_text() for each in outside.rglob("*") if each.is_file()}
    return found == {"secret": "secret", "notes/a": "secret"}


async def test_a_symbolic_link_is_never_followed_in_any_position(
    root: Path, store: DirectoryFileStore, outside: Path
) -> None:
    version = await store.write("a", "one", expected=None, origin=ORIGIN)
    await store.write("d/e", "two", expected=None, origin=ORIGIN)
    (root / "file").symlink_to(outside / "secret")
    (root / "notes").symlink_to(outside / "notes")
    (root / "d" / "up").symlink_to(outside)
    (root / "inside").symlink_to("a")
    (root / "dangling").symlink_to("nowhere")
    assert [entry.path for entry in await store.list()] == ["a", "d/e"]
    for path in ("file", "notes/a", "notes/new", "d/up/secret", "d/up/notes/a", "inside", "dangling", "notes/x/y"):
        await refused("invalid_path", store.read(path))
        await refused("invalid_path", store.write(path, "x", expected=None, origin=ORIGIN))
        await refused("invalid_path", store.write(path, "x", expected=version, origin=ORIGIN))
        await refused("invalid_path", store.move("a", path, expected=version, origin=ORIGIN))
        await refused("invalid_path", store.move(path, "b", expected=version, origin=ORIGIN))
        await refused("invalid_path", store.delete(path, expected=version, origin=ORIGIN))
    await refused("invalid_path", store.write("notes", "x", expected=None, origin=ORIGIN))
    assert await store.search("secret", regex=False, case_sensitive=False, path="", limit=9) == ([], False)
    await store.purge()
    assert _is_untouched(outside)
    assert (root / "notes").is_symlink()


CHANGES: dict[str, Callable[[DirectoryFileStore], object]] = {
    "create": lambda store: store.write("notes/new", "mine", expected=None, origin=ORIGIN),
    "create below": lambda store: store.write("notes/b/new", "mine", expected=None, origin=ORIGIN),
    "replace": lambda store: put(store, "notes/a", "mine"),
    "move": lambda store: _move(store, "z", "notes/z"),
    "delete": lambda store: _delete(store, "notes/a"),
    "purge": lambda store: store.purge(),
    "read": lambda store: store.read("notes/a"),
    "list": lambda store: store.list(),
    "search": lambda store: store.search("e", regex=False, case_sensitive=False, path="", limit=9),
}


async def _move(store: DirectoryFileStore, source: str, destination: str) -> None:
    await store.move(source, destination, expected=(await store.read(source)).version, origin=ORIGIN)


async def _delete(store: DirectoryFileStore, path: str) -> None:
    await store.delete(path, expected=(await store.read(path)).version, origin=ORIGIN)


@pytest.mark.parametrize("swapped", ["notes", "notes/a"])
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_link_swapped_in_between_two_calls_leads_nowhere(
    tmp_path: Path, outside: Path, swapped: str, change: Callable[[DirectoryFileStore], object]
) -> None:
    number, calls = 0, 1
    while number < calls:
        root = tmp_path / f"{number}"
        _by_hand(root, "notes/a", "one")
        _by_hand(root, "z", "two")

        def meddle(_: str, call: int, root: Path = root, number: int = number) -> None:
            if call == number and (root / swapped).exists():
                (root / swapped).rename(root / "moved")
                (root / swapped).symlink_to(outside / ("notes" if swapped == "notes" else "secret"))

        disk = _Meddled(meddle)
        async with DirectoryFileStore(root, durable=False, disk=disk) as store:
            try:
                found = await change(store)  # type: ignore[misc]  # an awaitable, of whatever the change returns
            except MemoryStoreError as error:
                assert error.code in ("invalid_path", "version_mismatch", "not_found", "write_unconfirmed")
            else:
                assert "secret" not in str(found)
        assert _is_untouched(outside), f"at call {number}: {disk.calls}"
        number, calls = number + 1, len(disk.calls)
    assert calls > 5


async def test_what_is_no_text_file_is_left_out_and_hangs_nothing(root: Path, store: DirectoryFileStore) -> None:
    version = await store.write("a", "one", expected=None, origin=ORIGIN)
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        before = Path.cwd()
        os.chdir(root)  # the address of a socket is short
        listener.bind("socket")
        os.chdir(before)
    special = ["fifo", "socket"]
    if os.geteuid() == 0:
        os.mknod(root / "device", 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # endless zeros
        special.append("device")
    _by_hand(root, "gbk", "绿茶".encode("gbk"))
    _by_hand(root, "utf-16", "tea".encode("utf-16"))
    for name in (b"undecodable-\xff", b"new\nline", b"back\\slash", b"\xef\xbb\xbf\x07"):
        (root / os.fsdecode(name)).write_text("x")
    (root / os.fsdecode(b"directory-\xff")).mkdir()
    _by_hand(root, os.fsdecode(b"directory-\xff/file"), "x")
    with open(root / "huge", "wb") as huge:
        huge.truncate(16 * 1024 * 1024 + 1)
    async with asyncio.timeout(20):
        assert [entry.path for entry in await store.list()] == ["a"]
        for path in special:
            await refused("invalid_path", store.read(path))
            await refused("invalid_path", store.write(path, "x", expected=None, origin=ORIGIN))
            await refused("invalid_path", store.write(path, "x", expected=version, origin=ORIGIN))
            await refused("invalid_path", store.move("a", path, expected=version, origin=ORIGIN))
            await refused("invalid_path", store.delete(path, expected=version, origin=ORIGIN))
            await refused("invalid_path", store.write(f"{path}/x", "x", expected=None, origin=ORIGIN))
        for path in ("gbk", "utf-16", "huge"):
            await refused("invalid_file", store.read(path))
            await refused("invalid_path", store.write(path, "x", expected=None, origin=ORIGIN))
            await refused("invalid_path", store.write(f"{path}/x", "x", expected=None, origin=ORIGIN))
            await refused("invalid_file", store.write(path, "x", expected=version, origin=ORIGIN))
            await refused("invalid_file", store.delete(path, expected=version, origin=ORIGIN))
    before_purge = {each.name for each in root.iterdir()}
    await store.purge()
    assert {each.name for each in root.iterdir()} == before_purge - {"a"}


async def test_a_directory_in_the_way_is_used_when_it_is_empty_and_named_when_it_is_not(
    root: Path, store: DirectoryFileStore
) -> None:
    version = await store.write("a", "one", expected=None, origin=ORIGIN)
    (root / "empty" / "b" / "c").mkdir(parents=True)
    (root / "empty" / "d").mkdir()
    await store.write("empty", "x", expected=None, origin=ORIGIN)
    (root / "free" / "b").mkdir(parents=True)
    version = await store.move("a", "free", expected=version, origin=ORIGIN)
    _by_hand(root, "pictures/tea.png", b"\x89PNG\xff")
    error = await refused("invalid_path", store.write("pictures", "x", expected=None, origin=ORIGIN))
    assert "pictures is a directory" in error.message
    await refused("invalid_path", store.move("free", "pictures", expected=version, origin=ORIGIN))
    assert (await refused("version_mismatch", store.delete("pictures", expected="v", origin=ORIGIN))).current is None
    await refused("not_found", store.read("pictures"))
    await store.write("pictures/tea.md", "beside it", expected=None, origin=ORIGIN)
    await store.delete("pictures/tea.md", expected=(await store.read("pictures/tea.md")).version, origin=ORIGIN)
    assert (root / "pictures" / "tea.png").exists()
    assert await contents(store) == {"empty": "x", "free": "one"}


async def test_a_directory_in_the_way_stays_when_anything_below_it_is_no_memory_path(
    root: Path, store: DirectoryFileStore
) -> None:
    deep = root / "deep"
    deep.mkdir(parents=True)
    at = os.open(deep, os.O_RDONLY)
    for _ in range(1_200):  # deeper than a path of the memory, than the files a process may open, than the call stack
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
    (root / "odd" / "a\\b").mkdir(parents=True)
    for path in ("deep", "odd"):
        error = await refused("invalid_path", store.write(path, "x", expected=None, origin=ORIGIN))
        assert "is a directory with things that are no memory files" in error.message
    assert (deep / "d" / "d").is_dir()
    assert [each.name for each in (root / "odd").iterdir()] == ["a\\b"]
    subprocess.run(["rm", "-rf", deep], check=True)  # what pytest removes directories with is recursive


# A person at the same files


async def test_a_file_made_by_hand_is_part_of_the_memory(root: Path, store: DirectoryFileStore) -> None:
    _by_hand(root, "notes/tea.md", "---\ndescription: Tea\n---\r\ngreen\n")
    _by_hand(root, "bad.md", "---\ndescription: [tea\n---\nbody")
    laughs = "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 12))
    _by_hand(root, "bomb.md", f"---\na0: &a0 [x]\n{laughs}description: Boom\n---\n")
    _by_hand(root, "deep.md", "---\na: " + "[" * 1_500 + "\n---\n")
    _by_hand(root, "bom.md", "\ufefftea\x00\n")
    _by_hand(root, "large.md", "x" * 70_000)
    listing = await store.list()
    assert {entry.path: entry.description for entry in listing} == {
        "notes/tea.md": "Tea",
        "bad.md": None,
        "bomb.md": "Boom",
        "deep.md": None,
        "bom.md": "tea\x00",
        "large.md": "x" * 200,
    }
    for entry in listing:
        file = await store.read(entry.path)
        assert file.version == entry.version
        assert file.text.encode() == (root / entry.path).read_bytes()
        await store.delete(entry.path, expected=entry.version, origin=ORIGIN)
    assert not (root / "notes").exists()


async def test_an_edit_that_keeps_size_and_time_is_seen_even_long_after_the_last_look(root: Path) -> None:
    _by_hand(root, "d/a", "one")
    disk = _Later()
    async with DirectoryFileStore(root, disk=disk) as store:
        cursor = (await store.changes(None)).cursor
        assert await store.changes(cursor) == Changes(cursor, ())
        assert disk.read_files == ["a"], "an unchanged file is read once"
        before = (root / "d" / "a").stat()
        while (root / "d" / "a").stat().st_ctime_ns == before.st_ctime_ns:  # until the disk's clock has moved
            _by_hand(root, "d/a", "two")
            os.utime(root / "d" / "a", ns=(before.st_atime_ns, before.st_mtime_ns))
        assert isinstance(await store.changes(cursor), FullResync)
        assert [entry.version for entry in await store.list()] == [(await store.read("d/a")).version]


async def test_edits_within_one_tick_of_the_clock_are_all_seen(root: Path, store: DirectoryFileStore) -> None:
    for number in range(300):
        text = f"{number:04d}"
        _by_hand(root, "a", text)
        [entry] = await store.list()
        assert entry.description == text


async def test_a_file_is_read_again_until_its_stamp_would_show_the_next_edit(root: Path) -> None:
    _by_hand(root, "a", "one")
    disk = _Watched()
    async with DirectoryFileStore(root, disk=disk) as store:
        assert await store.list() == await store.list()
    assert disk.read_files == ["a", "a"]


async def test_a_listing_reads_only_what_changed(root: Path) -> None:
    for number in range(50):
        _by_hand(root, f"d{number % 5}/{number}", str(number))
    _by_hand(root, "d0/picture", b"\xff")
    disk = _Later()
    async with DirectoryFileStore(root, disk=disk, durable=False) as store:
        first = await store.list()
        assert len(disk.read_files) == 51
        del disk.read_files[:]
        assert await store.list() == first
        assert disk.read_files == []
        _by_hand(root, "d0/new", "new")
        (root / "d1" / "1").unlink()
        (root / "d2" / "2").rename(root / "d3" / "two")
        (root / "d4" / "4").unlink()
        (root / "d4" / "4").mkdir()
        _by_hand(root, "d4/4/x", "below")
        listing = await store.list()
        assert sorted(disk.read_files) == ["new", "two", "x"]
        assert [entry.path for entry in listing] == sorted(
            {entry.path for entry in first} - {"d1/1", "d2/2", "d4/4"} | {"d0/new", "d3/two", "d4/4/x"}
        )


async def test_an_editors_atomic_save_is_an_edit_and_a_stale_write_is_refused(
    root: Path, store: DirectoryFileStore
) -> None:
    version = await store.write("a", "one", expected=None, origin=ORIGIN)
    _by_hand(root, ".a.swp", "by hand")
    (root / ".a.swp").replace(root / "a")
    for operation in (
        store.write("a", "two", expected=version, origin=ORIGIN),
        store.move("a", "b", expected=version, origin=ORIGIN),
        store.delete("a", expected=version, origin=ORIGIN),
    ):
        error = await refused("version_mismatch", operation)
        assert error.current is not None
        assert error.current.text == "by hand"
    await put(store, "a", "three")
    assert await contents(store) == {"a": "three"}


async def test_an_edit_by_hand_while_a_write_is_staged_is_kept(root: Path) -> None:
    _by_hand(root, "a", "one")

    def meddle(call: str, _: int) -> None:
        if call == "write":
            _by_hand(root, "a", "by hand")

    async with DirectoryFileStore(root, disk=_Meddled(meddle)) as store:
        error = await refused("version_mismatch", put(store, "a", "two"))
    assert error.current is not None
    assert error.current.text == "by hand"
    assert (root / "a").read_text() == "by hand"
    assert {each.name for each in (root / ".memshelf").iterdir()} == {"lock", ".gitignore"}


@pytest.mark.parametrize("call", ["open_root", "create", "sync", "link"])
async def test_a_file_made_by_hand_while_one_is_created_is_kept(root: Path, call: str) -> None:
    def meddle(name: str, _: int) -> None:
        if name == call:
            _by_hand(root, "d/a", "by hand")

    async with DirectoryFileStore(root, disk=_Meddled(meddle)) as store:
        error = await refused("already_exists", store.write("d/a", "mine", expected=None, origin=ORIGIN))
        assert error.current is not None
        assert error.current.text == "by hand"
        assert await contents(store) == {"d/a": "by hand"}
    assert {each.name for each in (root / ".memshelf").iterdir()} == {"lock", ".gitignore"}


async def test_a_file_that_moves_while_it_is_listed_is_listed_once(root: Path) -> None:
    calls, number = 1, 0
    while number < calls:
        there, back = (root / "a/file", root / "b/file") if number % 2 else (root / "b/file", root / "a/file")
        back.unlink(missing_ok=True)
        _by_hand(root, str(there.relative_to(root)), "here or there")
        back.parent.mkdir(exist_ok=True)
        for directory in (root, there.parent, back.parent):
            os.utime(directory, (0, 0))  # or a change could have the same stamp, where the clock of a disk is coarse

        def meddle(_: str, call: int, there: Path = there, back: Path = back, number: int = number) -> None:
            if call == number:
                there.rename(back)

        disk = _Meddled(meddle)
        async with DirectoryFileStore(root, disk=disk) as store:
            listed = [entry.path for entry in await store.list()]
        assert listed in (["a/file"], ["b/file"]), f"at call {number}: {disk.calls}"
        number, calls = number + 1, len(disk.calls)
    assert calls > 10


async def test_a_listing_does_not_wait_for_whoever_changes_something_without_a_break(root: Path) -> None:
    _by_hand(root, "a/file", "text")

    def meddle(call: str, number: int) -> None:
        if call == "status_of":
            (root / "a" / f"{number}").mkdir()

    async with DirectoryFileStore(root, disk=_Meddled(meddle)) as store:
        assert [entry.path for entry in await store.list()] == ["a/file"]


async def test_a_directory_removed_by_hand_while_a_file_is_created_is_made_again(root: Path) -> None:
    (root / "d").mkdir(parents=True)
    times = []

    def meddle(name: str, _: int) -> None:
        if name == "link" and not times:
            times.append(name)
            (root / "d").rmdir()

    async with DirectoryFileStore(root, disk=_Meddled(meddle)) as store:
        await store.write("d/a", "mine", expected=None, origin=ORIGIN)
        assert await contents(store) == {"d/a": "mine"}
    assert times


# Unicode forms


async def test_names_that_a_person_decomposed_are_used_under_their_composed_path(
    root: Path, store: DirectoryFileStore
) -> None:
    _by_hand(root, f"{NFD}/{NFD}.md", "one")
    path = f"{NFC}/{NFC}.md"
    [entry] = await store.list()
    assert entry.path == path
    for asked in (path, f"{NFD}/{NFD}.md"):
        file = await store.read(asked)
        assert (file.path, file.text, file.version) == (path, "one", entry.version)
    await refused("already_exists", store.write(path, "x", expected=None, origin=ORIGIN))
    version = await store.write(path, "two", expected=entry.version, origin=ORIGIN)
    await store.write(f"{NFC}/beside", "three", expected=None, origin=ORIGIN)
    assert {each.name for each in (root / NFD).iterdir()} == {f"{NFD}.md", "beside"}, "the person's names stay"
    moved = await store.move(path, f"{NFC}/b", expected=version, origin=ORIGIN)
    await store.delete(f"{NFC}/b", expected=moved, origin=ORIGIN)
    assert await contents(store) == {f"{NFC}/beside": "three"}
    await refused("already_exists", store.write(NFC, "x", expected=None, origin=ORIGIN))


async def test_of_two_forms_of_a_name_the_composed_one_is_the_file(root: Path, store: DirectoryFileStore) -> None:
    root.mkdir()
    forms = [f"{NFC}{NFC}", f"{NFD}{NFD}", f"{NFC}{NFD}"]
    for form in forms:
        (root / form).write_text(form)
    if len(list(root.iterdir())) == 1:
        pytest.skip("this disk does not tell Unicode forms apart")
    for form in forms:
        [entry] = await store.list()
        file = await store.read(forms[0])
        assert entry.path == file.path == forms[0]
        assert (file.text, file.version) == (form, entry.version)
        (root / form).unlink()
    assert await store.list() == []
    for form in forms:
        _by_hand(root, f"{form}/a", form)
    assert await contents(store) == {f"{forms[0]}/a": forms[0]}
    await store.purge()
    assert [each.name for each in root.iterdir()] == [".memshelf"]


async def test_a_name_that_composes_to_plain_letters_is_left_out(root: Path, store: DirectoryFileStore) -> None:
    kelvin, ohm = "\u212a.md", "\u2126.md"
    for name in (kelvin, ohm):
        assert unicodedata.normalize("NFC", name) != name
        _by_hand(root, name, "x")
    assert await store.list() == []
    await refused("not_found", store.read(kelvin))


@pytest.mark.parametrize("kind", ["link", "dangling link", "pipe", "socket", "too large"])
async def test_a_foreign_thing_under_the_composed_name_hides_the_decomposed_one_and_stays(
    root: Path, store: DirectoryFileStore, kind: str
) -> None:
    _by_hand(root, "other", "x")
    _by_hand(root, NFD, "decomposed")
    if (root / NFC).exists():
        pytest.skip("this disk does not tell Unicode forms apart")
    assert (await store.read(NFC)).text == "decomposed"
    assert NFC in await contents(store)
    match kind:
        case "link":
            (root / NFC).symlink_to("other")
        case "dangling link":
            (root / NFC).symlink_to("nowhere")
        case "pipe":
            os.mkfifo(root / NFC)
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener, contextlib.chdir(root):
                listener.bind(NFC)
        case "too large":
            with (root / NFC).open("wb") as file:
                file.truncate(READABLE_BYTES + 1)
    assert await contents(store) == {"other": "x"}, "a listed file can be read"
    assert await store.list() == await DirectoryFileStore(root).list()
    await store.purge()
    assert {each.name for each in root.iterdir()} == {".memshelf", NFC, NFD}
    (root / NFC).unlink()
    assert await contents(store) == {NFC: "decomposed"}


async def test_what_version_control_keeps_is_no_part_of_the_memory(root: Path, store: DirectoryFileStore) -> None:
    await put(store, "notes/a", "mine")
    await put(store, "notes/.gitignore", "also a file")
    for kept in (root / ".git", root / "notes" / ".HG", root / "sub" / ".jj"):
        kept.mkdir(parents=True)
        (kept / "config").write_text("[core]\n")
    before = await contents(store)
    assert set(before) == {"notes/a", "notes/.gitignore"}
    version = (await store.read("notes/a")).version
    for path in (".git/config", ".git", ".GIT/config", ".git./x", ".g\u200cit/config", "sub/.jj/config", "a/b/.svn/x"):
        await refused("invalid_path", store.read(path))
        await refused("invalid_path", store.write(path, "x", expected=None, origin=ORIGIN))
        await refused("invalid_path", store.move("notes/a", path, expected=version, origin=ORIGIN))
    found, _ = await store.search("core", regex=False, case_sensitive=False, path="", limit=10)
    assert found == []
    await store.purge()
    assert (root / ".git" / "config").read_text() == "[core]\n"


async def test_version_control_leaves_the_control_directory_out(root: Path, store: DirectoryFileStore) -> None:
    await put(store, "a", "mine")
    subprocess.run(["git", "init", "--quiet", root], check=True)
    subprocess.run(["git", "-C", root, "add", "--all"], check=True)
    listed = subprocess.run(["git", "-C", root, "ls-files"], check=True, capture_output=True, text=True)
    assert listed.stdout == "a\n"
