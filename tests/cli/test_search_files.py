"""`memshelf search`: files by meaning, what is kept between two searches, and what is not."""

from __future__ import annotations

import asyncio
import fcntl
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from memshelf import DirectoryFileStore, InProcessFileStore, Origin, SqliteFileStore
from memshelf.meaning.files import FileMeaning
from memshelf.meaning.kept import DatabaseVectors, FileVectors
from memshelf.meaning.passages import cut
from memshelf.storage.sqlite_engine import SqliteEngine

FILES = {
    "prefs.md": "---\ndescription: What Ann likes\n---\n# Drinks\n\n- prefers green tea in the morning\n- no sugar\n\n"
    "# Sports\n\nplays tennis on Sundays with her brother\n",
    "notes/deploy.md": "# 部署\n\n发布前先跑测试，然后用 make deploy 推送到生产环境。\n\n回滚用 make rollback。\n",
    "notes/菜谱.md": "# 番茄炒蛋\n\n先炒鸡蛋，再放番茄，最后加盐。\n",
}


@pytest.fixture(params=["memory", "memory.db"])
def memory(request, run, monkeypatch):
    """The same files in a directory and in SQLite."""
    monkeypatch.setenv("MEMSHELF_MEMORY", request.param)
    for path, content in FILES.items():
        assert run("files", "create", path, content).code == 0
    return request.param


def _first(run, *arguments: str) -> tuple[str, int, str]:
    hit = run("search", *arguments, "--json").json["hits"][0]
    return hit["path"], hit["line"], hit["text"]


@pytest.mark.parametrize(
    ("query", "path", "line"),
    [
        ("What does she drink at breakfast?", "prefs.md", 6),
        ("她周末做什么运动？", "prefs.md", 11),
        ("how do I ship to production?", "notes/deploy.md", 3),
        ("egg and tomato recipe", "notes/菜谱.md", 3),
        ("番茄", "notes/菜谱.md", 3),
    ],
)
def test_files_are_found_by_meaning_in_both_languages(run, memory, query, path, line):
    assert _first(run, query)[:2] == (path, line)


def test_an_answer_is_a_line_each_with_score_and_place(run, memory, terminal):
    found = run("search", "what does she drink?", "--limit", "2", "--under", "notes")
    scored, place, text = found.text.splitlines()[0].split("\t")
    assert 0 < float(scored) <= 1
    assert place.startswith("notes/")
    assert text
    assert len(found.text.splitlines()) == 2
    shown = terminal("search", "tea", env={"MEMSHELF_MEMORY": memory})
    assert shown.end() == 0
    assert "SCORE  FILE" in shown.seen
    assert run("search", "tea", "--under", "../x", "--json").json["error"] == "invalid_path"
    assert run("search", "tea", "--memory", "nowhere").code == 3


def _kept(memory: str) -> set[str]:
    """The versions of which vectors are kept."""
    if memory == "memory":
        vectors = FileVectors(Path("memory/.memshelf/vectors"))
        return set(asyncio.run(vectors.load(_maker(vectors))))
    with closing(sqlite3.connect(memory)) as connection:
        return {version for (version,) in connection.execute("SELECT version_id FROM file_vectors")}


def _maker(vectors: FileVectors) -> str:
    import json

    return json.loads(vectors._file.read().split(b"\n")[0])["maker"]


def _versions(run) -> set[str]:
    return {file["version"] for file in run("files", "ls", "-r", "--json").json["files"]}


def test_vectors_are_kept_of_what_is_live_and_of_nothing_else(run, memory):
    run("search", "tea")
    assert _kept(memory) == _versions(run)
    run("files", "edit", "prefs.md", "green tea", "black coffee")
    run("files", "mv", "notes/deploy.md", "deploy.md")
    run("files", "rm", "notes/菜谱.md", "--yes")
    assert _first(run, "egg and tomato recipe")[0] != "notes/菜谱.md"
    assert _kept(memory) == _versions(run)
    assert len(_kept(memory)) == 2


def test_nothing_is_kept_when_it_is_told_not_to(run, memory):
    assert run("search", "tea", "--no-cache").code == 0
    assert not Path("memory/.memshelf/vectors").exists()
    assert memory == "memory" or _kept(memory) == set()


class Counting:
    """Counts what it embeds."""

    model, version, dimension = "counting", "1", 4

    def __init__(self) -> None:
        self.count = 0

    async def embed(self, texts, *, query=False):
        self.count += 0 if query else len(texts)
        return [[1.0, len(text) % 7, len(text) % 3, 0.5] for text in texts]


@pytest.fixture(params=["directory", "sqlite"])
def opened(request, tmp_path):
    """A store and where its vectors are kept."""

    def open_():
        if request.param == "directory":
            return DirectoryFileStore(tmp_path / "m"), FileVectors(tmp_path / "m/.memshelf/vectors")
        return (
            SqliteFileStore(tmp_path / "m.db"),
            DatabaseVectors(SqliteEngine(tmp_path / "m.db"), "default"),
        )

    return open_


async def _search(opened, embedder) -> int:
    """Search in a new index, as a new process would; how many texts were embedded."""
    store, kept = opened()
    files, before = FileMeaning(store, kept, embedder=embedder), embedder.count
    await files.search("tea", limit=3)
    await files.aclose()
    await store.aclose()
    if isinstance(kept, DatabaseVectors):
        await kept.aclose()
    return embedder.count - before


async def test_only_what_changed_is_embedded(opened):
    store, _ = opened()
    for path, text in FILES.items():
        await store.write(path, text, expected=None, origin=Origin())
    embedder = Counting()
    assert await _search(opened, embedder) > 5
    assert await _search(opened, embedder) == 0
    await store.write("new.md", "likes tea", expected=None, origin=Origin())
    assert 1 <= await _search(opened, embedder) <= 2
    embedder.version = "2"
    assert await _search(opened, embedder) > 5
    await store.aclose()


async def test_an_index_that_stays_open_follows_the_memory(opened):
    store, kept = opened()
    files = FileMeaning(store, kept, embedder=None)
    assert await files.search("quokka", limit=3) == []
    version = await store.write("a.md", "the quokka likes marmalade", expected=None, origin=Origin())
    assert [(hit.path, hit.line) for hit in await files.search("quokka", limit=3)] == [("a.md", 1)]
    version = await store.move("a.md", "b.md", expected=version, origin=Origin())
    assert [hit.path for hit in await files.search("quokka", limit=3)] == ["b.md"]
    version = await store.write("b.md", "the walrus plays cribbage", expected=version, origin=Origin())
    assert await files.search("quokka", limit=3) == []
    await store.delete("b.md", expected=version, origin=Origin())
    assert await files.search("walrus", limit=3) == []
    await files.aclose()
    await store.aclose()
    if isinstance(kept, DatabaseVectors):
        await kept.aclose()


async def test_what_was_embedded_before_a_failure_is_kept(opened):
    store, kept = opened()
    for each in range(300):
        await store.write(f"{each:03}.md", f"likes tea number {each}", expected=None, origin=Origin())
    embedder = Counting()
    working, texts = embedder.embed, list[str]()

    async def fails_at_the_end(asked, *, query=False):
        texts.extend(asked)
        if len(texts) > 280:
            raise RuntimeError("out of memory")
        return await working(asked, query=query)

    embedder.embed = fails_at_the_end
    files = FileMeaning(store, kept, embedder=embedder)
    assert len(await files.search("tea", limit=3)) == 3, "found by their words"
    await files.aclose()
    embedder.embed = working
    assert await _search(opened, embedder) == 300 - 256
    await store.aclose()
    if isinstance(kept, DatabaseVectors):
        await kept.aclose()


@pytest.mark.parametrize("embedder", [None, "default"])
async def test_a_file_of_many_close_passages_hides_no_other(embedder):
    store = InProcessFileStore()
    many = "\n\n".join(f"Tea number {number} is drunk in the morning." for number in range(100))
    await store.write("many.md", many, expected=None, origin=Origin())
    for name in ("a.md", "b.md"):
        await store.write(name, "a note on tea", expected=None, origin=Origin())
    files = FileMeaning(store, embedder=embedder)
    hits = await files.search("tea in the morning", limit=3)
    assert hits[0].path == "many.md"
    assert {hit.path for hit in hits} == {"many.md", "a.md", "b.md"}
    await files.aclose()


async def test_redacting_and_purging_erase_the_vectors_at_once(tmp_path):
    database = tmp_path / "m.db"
    store, kept = SqliteFileStore(database), DatabaseVectors(SqliteEngine(database), "default")
    first = await store.write("a.md", "a secret marmalade", expected=None, origin=Origin())
    await store.write("b.md", "another secret", expected=None, origin=Origin())
    files = FileMeaning(store, kept, embedder=Counting())
    await files.search("tea", limit=3)
    secret = (await kept.load(files._maker))[first]
    assert secret in _bytes(tmp_path)
    second = await store.write("a.md", "nothing", expected=first, origin=Origin())
    await store.redact(first, by="test")
    assert set(await kept.load(files._maker)) == {version for version in files._vectors if version != first}
    await files.search("tea", limit=3)
    assert second in await kept.load(files._maker)
    await store.purge()
    assert await kept.load(files._maker) == {}
    await files.search("tea", limit=3)
    assert await kept.load(files._maker) == {}
    for each in (files, kept, store):
        await each.aclose()


def _bytes(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{}",
        b"[" * 100_000,
        b'{"format": "memshelf vectors 1"}\n',
        None,
        b'{"format": 1, "maker": 2}',
        "cut",
        "nan",
    ],
    ids=["empty", "nothing", "deep", "no maker", "random", "foreign", "cut", "nan"],
)
def test_a_damaged_cache_is_made_again(tmp_path, damage):
    place = tmp_path / "m/.memshelf/vectors"
    store = DirectoryFileStore(tmp_path / "m")
    embedder = Counting()

    async def body() -> None:
        await store.write("a.md", "likes tea\n\nand cake", expected=None, origin=Origin())

        def opened():
            return store, FileVectors(place)

        assert await _search(opened, embedder) > 0
        whole = place.read_bytes()
        if damage == "cut":
            place.write_bytes(whole[:-3])
        elif damage == "nan":
            place.write_bytes(whole[:-2] + b"\x00\x7e")
        else:
            place.write_bytes(os.urandom(300) if damage is None else damage)
        assert await _search(opened, embedder) > 0
        assert place.read_bytes() == whole

    asyncio.run(body())


def test_a_directory_that_may_not_be_written_is_searched_all_the_same(tmp_path):
    place = tmp_path / "m/.memshelf/vectors"
    store = DirectoryFileStore(tmp_path / "m")

    async def body() -> None:
        await store.write("a.md", "likes tea", expected=None, origin=Origin())
        place.mkdir()
        files = FileMeaning(store, FileVectors(place), embedder=Counting())
        assert [hit.path for hit in await files.search("tea", limit=3)] == ["a.md"]
        await files.aclose()

    asyncio.run(body())


@pytest.mark.parametrize("trap", ["folder", "file", "pipe", "new"])
def test_no_link_is_followed_and_nothing_hangs(tmp_path, trap):
    memory, elsewhere = tmp_path / "m", tmp_path / "elsewhere"
    memory.mkdir()
    (memory / "a.md").write_text("likes tea")
    elsewhere.mkdir()
    (elsewhere / "vectors").write_text("mine")
    control = memory / ".memshelf"
    if trap == "folder":
        control.symlink_to(elsewhere)
    else:
        control.mkdir()
        if trap == "pipe":
            os.mkfifo(control / "vectors")
        else:
            (control / ("vectors" if trap == "file" else "vectors.new")).symlink_to(elsewhere / "vectors")

    async def body() -> None:
        store = DirectoryFileStore(memory)
        files = FileMeaning(store, FileVectors(control / "vectors"), embedder=Counting())
        assert [hit.path for hit in await files.search("tea", limit=3)] == ["a.md"]
        await files.aclose()
        await store.aclose()

    asyncio.run(body())
    assert [each.name for each in elsewhere.iterdir()] == ["vectors"]
    assert (elsewhere / "vectors").read_text() == "mine"


def test_what_a_killed_search_left_is_removed_by_the_next(tmp_path):
    memory = tmp_path / "m"
    memory.mkdir()
    (memory / "a.md").write_text("likes tea")
    control = memory / ".memshelf"

    async def body() -> None:
        embedder, store = Counting(), DirectoryFileStore(memory)
        for _ in range(2):
            await _search(lambda: (store, FileVectors(control / "vectors")), embedder)
            assert [each.name for each in control.iterdir()] == ["vectors"]
            (control / "vectors.new").write_text("half of a secret")
        await _search(lambda: (store, FileVectors(control / "vectors")), embedder)
        assert [each.name for each in control.iterdir()] == ["vectors"]

    asyncio.run(body())
    assert b"secret" not in (control / "vectors").read_bytes()


def test_a_search_leaves_alone_what_another_one_writes(tmp_path):
    memory = tmp_path / "m"
    memory.mkdir()
    (memory / "a.md").write_text("likes tea")
    control = memory / ".memshelf"
    control.mkdir()

    async def body() -> None:
        store = DirectoryFileStore(memory)
        with (control / "vectors.new").open("wb") as theirs:
            fcntl.flock(theirs, fcntl.LOCK_EX)
            theirs.write(b"theirs")
            theirs.flush()
            await _search(lambda: (store, FileVectors(control / "vectors")), Counting())
            assert (control / "vectors.new").read_bytes() == b"theirs"

    asyncio.run(body())


def test_a_failing_embedder_leaves_words_and_is_asked_again(tmp_path):
    store, embedder = DirectoryFileStore(tmp_path / "m"), Counting()

    async def body() -> None:
        await store.write("a.md", "likes tea", expected=None, origin=Origin())
        files = FileMeaning(store, embedder=embedder)
        working, embedder.embed = embedder.embed, _fails
        assert [hit.path for hit in await files.search("tea", limit=3)] == ["a.md"]
        embedder.embed = working
        assert [hit.path for hit in await files.search("tea", limit=3)] == ["a.md"]
        assert embedder.count > 0
        await files.aclose()

    asyncio.run(body())


@pytest.mark.parametrize("change", ["new", "changed", "gone"])
async def test_a_search_that_is_cancelled_costs_later_ones_nothing(tmp_path, change):
    store, free = DirectoryFileStore(tmp_path / "m"), threading.Event()
    version = await store.write("a.md", "likes tea", expected=None, origin=Origin())
    files = FileMeaning(store, embedder=Counting())
    assert [hit.path for hit in await files.search("tea", limit=3)] == ["a.md"]
    if change == "new":
        await store.write("b.md", "likes tea", expected=None, origin=Origin())
    elif change == "changed":
        await store.write("a.md", "likes black tea", expected=version, origin=Origin())
    else:
        await store.delete("a.md", expected=version, origin=Origin())
    known = files._files.copy()
    busy = asyncio.create_task(files._recall.run(free.wait))  # so that the index takes a while
    searching = asyncio.create_task(files.search("tea", limit=3))
    while files._files == known:
        await asyncio.sleep(0)
    searching.cancel()  # while it waits for the index
    with pytest.raises(asyncio.CancelledError):
        await searching
    free.set()
    await busy
    expected = {"new": ["a.md", "b.md"], "changed": ["a.md"], "gone": []}[change]
    assert sorted(hit.path for hit in await files.search("tea", limit=3)) == expected
    await files.aclose()
    await store.aclose()


async def _fails(texts, *, query=False):
    raise ValueError("It is down.")


def test_a_file_is_cut_into_paragraphs_and_items_below_their_headings():
    text = (
        "---\ndescription: About the drink\n---\n# Tea\n\nFirst line\nsecond line.\n\n- one\n  more of one\n"
        "- [ ] two\n\n## Empty\n## Code\n```\n# no heading\n```\n---\n1. last\n"
    )
    assert [(each.line, each.text, each.heading) for each in cut("notes/green-tea.md", text, "About the drink")] == [
        (1, "About the drink", "notes green tea"),
        (6, "First line second line.", "Tea"),
        (9, "one more of one", "Tea"),
        (11, "two", "Tea"),
        (13, "Empty", ""),
        (16, "# no heading", "Code"),
        (19, "last", "Code"),
    ]
    assert [each.text for each in cut("a.md", "", None)] == ["a"]
    assert [each.text for each in cut("a.md", "# Title", "# Title")] == ["Title"]
    assert [each.text for each in cut("a.md", "# Title\n\nText.", "Title")] == ["Text."]
    assert [each.text for each in cut("a.md", "First line.\nSecond.", "First line.")] == ["First line. Second."]
    assert len(cut("a.md", "x\n\n" * 5_000, None)) == 2_000
    assert max(len(each.text) for each in cut("a.md", "很长" * 5_000, None)) == 600
