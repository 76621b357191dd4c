"""A memory and a directory that are kept alike."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from memshelf import (
    DirectoryFileStore,
    FileStore,
    InProcessFileStore,
    MemoryStoreError,
    Mirror,
    Origin,
    SqliteFileStore,
)

BY = Origin()


@pytest.fixture(params=["in process", "sqlite", "directory"])
async def store(request, tmp_path):
    made = {
        "in process": InProcessFileStore,
        "sqlite": lambda: SqliteFileStore(tmp_path / "memory.db"),
        "directory": lambda: DirectoryFileStore(tmp_path / "memory"),
    }[request.param]()
    yield made
    if not isinstance(made, InProcessFileStore):
        await made.aclose()


@pytest.fixture
def here(tmp_path) -> Path:
    return tmp_path / "here"


@pytest.fixture
def mirror(store, here):
    return Mirror(store, here, name="notes")


async def texts(store: FileStore) -> dict[str, str]:
    return {each.path: (await store.read(each.path)).text for each in await store.list()}


def on_disk(here: Path) -> dict[str, str]:
    return {
        str(path.relative_to(here)): path.read_text()
        for path in here.rglob("*")
        if path.is_file() and ".memshelf" not in path.parts
    }


async def put(store: FileStore, path: str, text: str) -> None:
    found = {each.path: each.version for each in await store.list()}
    await store.write(path, text, expected=found.get(path), origin=BY)


async def drop(store: FileStore, path: str) -> None:
    await store.delete(path, expected=(await store.read(path)).version, origin=BY)


async def test_what_changes_on_one_side_goes_to_the_other(store, here, mirror):
    await put(store, "tea/green.md", "80 degrees\n")
    await put(store, "茶.md", "龙井\n")
    report = await mirror.sync()
    assert sorted(report.pulled) == ["tea/green.md", "茶.md"]
    assert on_disk(here) == {"tea/green.md": "80 degrees\n", "茶.md": "龙井\n"}
    assert not (await mirror.sync()).changed

    (here / "tea" / "green.md").write_text("75 degrees\n")
    (here / "new").mkdir()
    (here / "new" / "file.txt").write_text("mine")
    await put(store, "茶.md", "碧螺春\n")
    report = await mirror.sync()
    assert (sorted(report.pushed), report.pulled) == (["new/file.txt", "tea/green.md"], ["茶.md"])
    assert (
        await texts(store)
        == on_disk(here)
        == {"tea/green.md": "75 degrees\n", "new/file.txt": "mine", "茶.md": "碧螺春\n"}
    )

    (here / "new" / "file.txt").unlink()
    await drop(store, "茶.md")
    report = await mirror.sync()
    assert (report.deleted, report.removed, report.refused) == (["new/file.txt"], ["茶.md"], {})
    assert await texts(store) == on_disk(here) == {"tea/green.md": "75 degrees\n"}
    assert not (await mirror.sync()).changed


async def test_it_is_private_and_leaves_the_directory_as_it_was_to_others(store, here, mirror):
    await put(store, "a.md", "a")
    await mirror.sync()
    assert [oct(path.stat().st_mode & 0o777) for path in (here, here / ".memshelf", here / "a.md")] == [
        "0o700",
        "0o700",
        "0o600",
    ]
    assert [entry.path for entry in await DirectoryFileStore(here).list()] == ["a.md"]
    await put(DirectoryFileStore(here), "b.md", "b")  # which clears what is left in the control directory
    assert (await mirror.sync()).pushed == ["b.md"]


async def test_a_file_changed_on_both_sides_keeps_both_texts(store, here, mirror):
    await put(store, "notes/plan.md", "first")
    await put(store, "same.md", "first")
    await put(store, "README", "first")
    await mirror.sync()
    for path in ("notes/plan.md", "README"):
        await put(store, path, "theirs")
        (here / path).write_text("mine")
    await put(store, "same.md", "both")
    (here / "same.md").write_text("both")
    report = await mirror.sync()
    assert sorted(report.conflicts) == ["README", "notes/plan.md"]
    plan, readme = report.conflicts["notes/plan.md"], report.conflicts["README"]
    assert plan.startswith("notes/plan.conflict-")
    assert plan.endswith(".md")
    assert readme.startswith("README.conflict-")
    kept = {"notes/plan.md": "theirs", "README": "theirs", "same.md": "both", plan: "mine", readme: "mine"}
    assert await texts(store) == on_disk(here) == kept
    assert not (await mirror.sync()).changed


async def test_what_is_changed_on_one_side_and_deleted_on_the_other_comes_back(store, here, mirror):
    for path in ("a.md", "b.md"):
        await put(store, path, "first")
    await mirror.sync()
    (here / "a.md").unlink()
    await put(store, "a.md", "theirs")
    (here / "b.md").write_text("mine")
    await drop(store, "b.md")
    report = await mirror.sync()
    assert (report.pulled, report.pushed) == (["a.md"], ["b.md"])
    assert await texts(store) == on_disk(here) == {"a.md": "theirs", "b.md": "mine"}


async def test_a_directory_that_lost_its_files_gets_them_again_and_many_deletions_are_held(store, here, mirror):
    every = {f"{n:02}.md": str(n) for n in range(20)}
    for path, text in every.items():
        await put(store, path, text)
    await mirror.sync()
    for path in every:
        (here / path).unlink()
    assert len((await mirror.sync()).pulled) == 20
    assert await texts(store) == on_disk(here) == every

    gone = sorted(every)[:9]
    for path in gone:
        (here / path).unlink()
    (here / "new.md").write_text("new")
    report = await mirror.sync()
    assert (sorted(report.held), report.deleted, report.pushed) == (gone, [], ["new.md"])
    assert set(gone) < set(await texts(store))
    report = await mirror.sync(delete_many=True)
    assert (sorted(report.deleted), report.held) == (gone, [])
    assert await texts(store) == on_disk(here)


async def test_without_its_mark_nothing_is_deleted(store, here, mirror):
    for path in ("a.md", "b.md", "c.md"):
        await put(store, path, "first")
    await mirror.sync()
    (here / "a.md").unlink()
    (here / "b.md").write_text("mine")
    (here / ".memshelf" / "mirror").write_bytes(b"\0 damaged")
    with pytest.raises(MemoryStoreError, match="mirrors no memory yet") as refused:
        await mirror.sync()
    assert refused.value.code == "conflict"
    report = await Mirror(store, here, name="notes", adopt=True).sync()
    assert (report.pulled, [*report.conflicts]) == (["a.md", "b.md"], ["b.md"])
    assert await texts(store) == on_disk(here)


async def test_a_directory_with_files_is_taken_only_if_that_is_said_and_is_of_one_memory(store, here):
    here.mkdir()
    (here / "mine.md").write_text("mine")
    with pytest.raises(MemoryStoreError, match="mirrors no memory yet"):
        await Mirror(store, here, name="notes").sync()
    assert await store.list() == []
    assert (await Mirror(store, here, name="notes", adopt=True).sync()).pushed == ["mine.md"]
    assert not (await Mirror(store, here, name="notes").sync()).changed
    with pytest.raises(MemoryStoreError, match="mirrors another memory: notes"):
        await Mirror(store, here, name="other", adopt=True).sync()


async def test_read_only_writes_nothing_to_the_memory_and_loses_nothing(store, here):
    mirror = Mirror(store, here, name="notes", access="read")
    for path in ("a.md", "b.md", "c.md"):
        await put(store, path, "first")
    await mirror.sync()
    (here / "a.md").write_text("mine")
    (here / "b.md").unlink()
    (here / "new.md").write_text("new")
    report = await mirror.sync()
    assert (report.pulled, sorted(report.refused)) == (["b.md"], ["a.md", "new.md"])
    await put(store, "a.md", "theirs")
    report = await mirror.sync()
    copy = report.conflicts["a.md"]
    assert await texts(store) == {"a.md": "theirs", "b.md": "first", "c.md": "first"}
    assert on_disk(here) == {"a.md": "theirs", copy: "mine", "b.md": "first", "c.md": "first", "new.md": "new"}


async def test_what_is_no_text_any_more_is_not_taken_for_deleted(store, here, mirror, tmp_path):
    for path in ("a.md", "b.md", "c.md", "d.md"):
        await put(store, path, "first")
    await mirror.sync()
    (here / "a.md").write_bytes("茶".encode("gb18030"))
    (here / "b.md").unlink()
    (here / "b.md").symlink_to(tmp_path / "elsewhere")
    (here / "c.md").unlink()
    (here / "c.md").mkdir()
    report = await mirror.sync()
    assert (sorted(report.refused), report.deleted) == (["a.md", "b.md"], ["c.md"])
    assert await texts(store) == {"a.md": "first", "b.md": "first", "d.md": "first"}
    await put(store, "a.md", "theirs")
    assert "a.md" in (await mirror.sync()).refused
    assert (here / "a.md").read_bytes() == "茶".encode("gb18030")
    (here / "a.md").write_text("mine")
    report = await mirror.sync()
    assert (await store.read("a.md")).text == "theirs"
    assert (here / report.conflicts["a.md"]).read_text() == "mine"


async def test_what_editors_and_systems_put_beside_files_stays_here(store, here, mirror):
    await put(store, ".profile", "theirs")
    await mirror.sync()
    for path in (".DS_Store", "notes.md~", ".cache/x"):
        (here / path).parent.mkdir(exist_ok=True)
        (here / path).write_text("x")
    (here / ".profile").write_text("mine")
    assert (await mirror.sync()).pushed == [".profile"]
    assert await texts(store) == {".profile": "mine"}


async def test_patience_waits_for_a_file_that_is_gone_for_a_moment(store, here, mirror):
    for path in ("a.md", "b.md", "c.md"):
        await put(store, path, "first")
    await mirror.sync(patient=True)
    (here / "a.md").unlink()
    (here / "b.md").unlink()
    assert not (await mirror.sync(patient=True)).changed
    (here / "b.md").write_text("saved")
    report = await mirror.sync(patient=True)
    assert (report.deleted, report.pushed) == (["a.md"], ["b.md"])


async def test_a_file_in_the_way_of_a_directory_is_refused_and_the_rest_is_done(store, here, mirror):
    await put(store, "a.md", "first")
    await mirror.sync()
    await put(store, "b/c.md", "theirs")
    (here / "b").write_text("mine")
    (here / "d.md").write_text("mine")
    report = await mirror.sync()
    assert (sorted(report.refused), report.pushed) == (["b", "b/c.md"], ["d.md"])
    assert (here / "b").read_text() == "mine"
    (here / "b").unlink()
    assert (await mirror.sync()).pulled == ["b/c.md"]


class _Stopping:
    """A store of which the n-th call fails, and those after it: before it is done, or after."""

    def __init__(self, store: FileStore, calls: int, *, after: bool) -> None:
        self._store, self._left, self._after = store, calls, after

    def __getattr__(self, name):
        method = getattr(self._store, name)

        async def call(*args, **kwargs):
            self._left -= 1
            if self._left < 0 or (self._left == 0 and not self._after):
                raise MemoryStoreError("unavailable", "gone")
            answer = await method(*args, **kwargs)
            if self._left == 0 and name in ("write", "delete"):
                raise MemoryStoreError("write_unconfirmed", "lost")
            return answer

        return call


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("forgets", [False, True])
async def test_wherever_it_stops_the_next_one_makes_up_for_it(tmp_path, monkeypatch, after, forgets):
    for calls in range(1, 16):
        store, here = InProcessFileStore(), tmp_path / f"{calls}"
        for path in ("a.md", "b.md", "c.md", "d.md", "e.md"):
            await put(store, path, "first")
        await Mirror(store, here, name="notes").sync()
        await put(store, "a.md", "theirs a")
        await put(store, "b.md", "theirs b")
        (here / "b.md").write_text("mine b")
        (here / "c.md").write_text("mine c")
        (here / "d.md").unlink()
        await drop(store, "e.md")
        (here / "f.md").write_text("mine f")
        with monkeypatch.context() as patch:
            if forgets:  # as when it is killed before it noted what it had done
                patch.setattr(Mirror, "_keep", lambda *_: None)
            stopping = Mirror(_Stopping(store, calls, after=after), here, name="notes")
            await asyncio.gather(stopping.sync(), return_exceptions=True)
        report = await Mirror(store, here, name="notes").sync()
        assert (report.refused, report.held) == ({}, [])
        found = await texts(store)
        assert found == on_disk(here), calls
        [copy] = [path for path in found if "conflict" in path]
        assert found == {
            "a.md": "theirs a",
            "b.md": "theirs b",
            copy: "mine b",
            "c.md": "mine c",
            "f.md": "mine f",
        }
        assert not (await Mirror(store, here, name="notes").sync()).changed


async def test_what_was_done_before_a_failure_is_reported_by_the_error_and_kept(here):
    store = InProcessFileStore()
    for path in ("a.md", "b.md"):
        await put(store, path, "first")
    with pytest.raises(MemoryStoreError, match=r"\.md: gone") as failed:
        await Mirror(_Stopping(store, 3, after=True), here, name="notes").sync()
    assert failed.value.code == "unavailable"
    assert len((await Mirror(store, here, name="notes").sync()).pulled) == 1


@pytest.mark.parametrize("seed", range(6))
async def test_no_text_is_lost_whatever_both_sides_do(tmp_path, seed):
    chance = random.Random(seed)
    store = InProcessFileStore()
    places = [tmp_path / "one", tmp_path / "two"]
    mirrors = [Mirror(store, place, name="notes") for place in places]
    fresh: dict[Path, str] = {}
    """What was written in a directory, and not carried over yet."""

    async def sync(*chosen: Mirror) -> None:
        await asyncio.gather(*(each.sync(delete_many=True) for each in chosen))
        held = {*(await texts(store)).values(), *(text for place in places for text in on_disk(place).values())}
        assert held >= set(fresh.values())
        for file in [file for file in fresh if any(places[mirrors.index(each)] in file.parents for each in chosen)]:
            del fresh[file]

    await sync(*mirrors)
    for step in range(120):
        path, text = chance.choice(["a.md", "b.md", "d/c.md", "d/e.md"]), f"{step}"
        file = chance.choice(places) / path
        match chance.randrange(6):
            case 0 | 1:
                file.parent.mkdir(exist_ok=True)
                file.write_text(text)
                fresh[file] = text
            case 2:
                await put(store, path, text)
            case 3:
                file.unlink(missing_ok=True)
                fresh.pop(file, None)
            case 4:
                await sync(*mirrors)
            case _:
                await sync(chance.choice(mirrors))
    for _ in range(2):
        for each in mirrors:
            report = await each.sync(delete_many=True)
    assert (report.changed, report.refused) == (False, {})
    assert await texts(store) == on_disk(places[0]) == on_disk(places[1])


async def test_a_write_that_comes_between_is_never_overwritten(here):
    store = InProcessFileStore()
    await put(store, "a.md", "first")
    await Mirror(store, here, name="notes").sync()
    (here / "a.md").write_text("mine")

    class Between:
        def __getattr__(self, name):
            return getattr(store, name)

        async def write(self, path, text, *, expected, origin):
            if text == "mine" and path == "a.md":
                await put(store, "a.md", "theirs")
            return await store.write(path, text, expected=expected, origin=origin)

    report = await Mirror(Between(), here, name="notes").sync()
    copy = report.conflicts["a.md"]
    assert await texts(store) == on_disk(here) == {"a.md": "theirs", copy: "mine"}
    assert report.refused == {}


async def test_a_conflict_that_was_half_done_makes_no_second_copy(here, monkeypatch):
    store = InProcessFileStore()
    await put(store, "a.md", "first")
    await Mirror(store, here, name="notes").sync()
    await put(store, "a.md", "theirs")
    (here / "a.md").write_text("mine")
    write = DirectoryFileStore.write

    async def full(self, path, text, *, expected, origin):
        if path == "a.md":
            raise MemoryStoreError("unavailable", "the disk is full")
        return await write(self, path, text, expected=expected, origin=origin)

    with monkeypatch.context() as patch:
        patch.setattr(DirectoryFileStore, "write", full)
        with pytest.raises(MemoryStoreError, match="the disk is full"):
            await Mirror(store, here, name="notes").sync()
    report = await Mirror(store, here, name="notes").sync()
    assert on_disk(here) == {"a.md": "theirs", report.conflicts["a.md"]: "mine"}


async def test_a_first_one_that_is_killed_needs_no_adopting(here, monkeypatch):
    store = InProcessFileStore()
    for path in ("a.md", "b.md"):
        await put(store, path, "first")
    keep = Mirror._keep

    def killed(self, alike):
        if alike:
            raise KeyboardInterrupt
        keep(self, alike)

    with monkeypatch.context() as patch:
        patch.setattr(Mirror, "_keep", killed)
        with pytest.raises(KeyboardInterrupt):
            await Mirror(store, here, name="notes").sync()
    assert len(on_disk(here)) == 2
    assert not (await Mirror(store, here, name="notes").sync()).changed


async def test_a_memory_that_is_not_there_leaves_no_directory_behind(here):
    class Missing:
        async def list(self):
            raise MemoryStoreError("memory_deleted", "no such store")

    with pytest.raises(MemoryStoreError, match="no such store"):
        await Mirror(Missing(), here, name="typo").sync()  # type: ignore[arg-type]
    assert not here.exists()


async def test_patience_lasts_until_the_next_sync_also_if_this_one_looks_twice(here):
    store = InProcessFileStore()
    mirror = Mirror(store, here, name="notes")
    for path in ("a.md", "b.md"):
        await put(store, path, "first")
    await mirror.sync(patient=True)
    (here / "a.md").unlink()
    (here / "b.md").write_text("mine")
    await put(store, "b.md", "theirs")
    report = await mirror.sync(patient=True)
    assert (list(report.conflicts), report.deleted) == (["b.md"], [])
    assert (await mirror.sync(patient=True)).deleted == ["a.md"]


async def test_who_is_writing_into_a_file_goes_on_in_the_copy(store, here, mirror):
    await put(store, "a.md", "first")
    await mirror.sync()
    await put(store, "a.md", "theirs")
    with (here / "a.md").open("w") as editor:
        editor.write("half ")
        editor.flush()
        copy = (await mirror.sync()).conflicts["a.md"]
        editor.write("and half")
    assert (await mirror.sync()).pushed == [copy]
    assert await texts(store) == on_disk(here) == {"a.md": "theirs", copy: "half and half"}


async def test_many_files_that_vanish_from_the_memory_are_kept_here(store, here, mirror):
    every = {f"{n:02}.md": str(n) for n in range(20)}
    for path, text in every.items():
        await put(store, path, text)
    await mirror.sync()
    gone = sorted(every)[:9]
    for path in gone:
        await drop(store, path)
    (here / "00.md").write_text("mine")
    await drop(store, "19.md")
    report = await mirror.sync()
    assert (report.pushed, sorted(report.held_here), report.removed) == (["00.md"], [*gone[1:], "19.md"], [])
    assert len(on_disk(here)) == 20
    report = await mirror.sync(delete_many=True)
    assert (sorted(report.removed), report.held_here) == ([*gone[1:], "19.md"], [])
    assert await texts(store) == on_disk(here)


async def test_a_memory_that_has_nothing_any_more_empties_no_directory(store, here, mirror):
    for path in ("a.md", "b.md"):
        await put(store, path, "first")
    await mirror.sync()
    for path in ("a.md", "b.md"):
        await drop(store, path)
    report = await mirror.sync()
    assert (report.held_here, report.removed) == (["a.md", "b.md"], [])
    assert sorted((await mirror.sync(delete_many=True)).removed) == ["a.md", "b.md"]


async def test_what_is_no_text_any_more_in_the_memory_is_not_taken_for_deleted(tmp_path, here):
    memory = DirectoryFileStore(tmp_path / "memory")
    for path in ("a.md", "b.md"):
        await put(memory, path, "first")
    await Mirror(memory, here, name="notes").sync()
    (tmp_path / "memory" / "a.md").write_bytes("茶".encode("gb18030"))
    report = await Mirror(memory, here, name="notes").sync()
    assert (report.removed, [*report.refused]) == ([], ["a.md"])
    assert "not UTF-8" in report.refused["a.md"]
    assert on_disk(here) == {"a.md": "first", "b.md": "first"}


async def test_a_lost_reply_is_made_up_for_at_once(here):
    store = InProcessFileStore()
    await Mirror(store, here, name="notes").sync()
    (here / "a.md").write_text("mine")

    class Losing:
        def __getattr__(self, name):
            return getattr(store, name)

        async def write(self, path, text, *, expected, origin):
            await store.write(path, text, expected=expected, origin=origin)
            raise MemoryStoreError("write_unconfirmed", "lost")

    assert (await Mirror(Losing(), here, name="notes").sync()).refused == {}
    (here / "a.md").write_text("mine, and more")
    assert (await Mirror(store, here, name="notes").sync()).pushed == ["a.md"]


@pytest.mark.parametrize(
    "damaged",
    [
        "[" * 100_000,
        "[]",
        '{"name": "notes", "files": 7}',
        '{"name": "notes", "files": {"a.md": ["1", "2", "3"]}}',
        '{"name": "notes", "files": {"a.md": [null, "2"]}}',
        '{"name": 7, "files": {}}',
    ],
)
async def test_a_damaged_mark_is_none(here, damaged):
    store = InProcessFileStore()
    await put(store, "a.md", "first")
    await Mirror(store, here, name="notes").sync()
    (here / ".memshelf" / "mirror").write_text(damaged)
    with pytest.raises(MemoryStoreError, match="mirrors no memory yet"):
        await Mirror(store, here, name="notes").sync()


async def test_a_sync_that_changes_nothing_writes_nothing(store, here, mirror):
    await put(store, "a.md", "first")
    await mirror.sync()
    mark = here / ".memshelf" / "mirror"
    before = mark.stat().st_ino, mark.stat().st_mtime_ns
    await mirror.sync()
    assert (mark.stat().st_ino, mark.stat().st_mtime_ns) == before


async def test_arguments_are_checked(store, here):
    with pytest.raises(ValueError, match="access"):
        Mirror(store, here, name="notes", access="read_only")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="name"):
        Mirror(store, here, name=None)  # type: ignore[arg-type]
