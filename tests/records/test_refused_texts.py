"""An embedder that refuses one text, as what a provider finds too long or not allowed, costs no other its meaning."""

from __future__ import annotations

import pytest

from memshelf import InProcessFileStore, Origin
from memshelf.meaning.files import FileMeaning
from memshelf.records.backends.in_process import InProcessRecordStore
from memshelf.records.model import NewRecord
from memshelf.workspace.entries import read_entry_file
from memshelf.workspace.meaning import Meaning

pytest.importorskip("numpy")

SAME = ("car", "automobile")


class Picky:
    """Knows that a car is an automobile, and refuses all that comes with poison."""

    model, version, dimension = "picky", "1", 27

    def __init__(self) -> None:
        self.requests = 0
        self.down = False

    async def embed(self, texts, *, query=False):
        self.requests += 1
        if self.down or any("poison" in text for text in texts):
            raise ValueError("400")
        return [self._vector(text) for text in texts]

    def _vector(self, text):
        car = any(word in text for word in SAME)
        return [10.0 * car] + [0.1 + 0.01 * text.count(chr(97 + each)) for each in range(26)]


async def test_entries_of_a_workspace():
    embedder = Picky()
    meaning = Meaning(embedder)
    meaning.put(read_entry_file("user_a.md", "Has an automobile."))
    meaning.put(read_entry_file("user_b.md", "Takes a dose of poison."))
    for number in range(20):
        meaning.put(read_entry_file(f"user_{number}.md", f"Word {number}."))
    found = await meaning.search("car", 3, 1.0)
    assert max(found, key=found.get) == "user_a.md"
    assert "user_b.md" in await meaning.search("dose", 30, 1.0)
    assert meaning.waiting == 0
    assert meaning.kept("user_b.md") is None, "the next process asks again"
    before = embedder.requests
    await meaning.search("car", 3, 1.0)
    assert embedder.requests == before + 1
    meaning.close()


async def test_entries_wait_for_an_embedder_that_is_down():
    embedder = Picky()
    embedder.down = True
    meaning = Meaning(embedder)
    for number in range(20):
        meaning.put(read_entry_file(f"user_{number}.md", f"Word {number}."))
    assert await meaning.search("car", 3, 1.0) is None
    assert embedder.requests == 2
    embedder.down = False
    assert await meaning.search("word 3", 3, 1.0)
    assert meaning.waiting == 0
    meaning.close()


async def test_files():
    store, embedder = InProcessFileStore(), Picky()
    await store.write("a.md", "has an automobile", expected=None, origin=Origin())
    await store.write("b.md", "takes a dose of poison", expected=None, origin=Origin())
    for number in range(20):
        await store.write(f"{number}.md", f"word {number}", expected=None, origin=Origin())
    files = FileMeaning(store, embedder=embedder)
    assert (await files.search("car", limit=1))[0].path == "a.md"
    before = embedder.requests
    assert "b.md" in [hit.path for hit in await files.search("dose", limit=22)]
    assert embedder.requests == before + 1, "it is not asked again for what it refuses"
    await files.aclose()


async def test_records_that_are_added_together():
    async with InProcessRecordStore(embedder=Picky()) as store:
        texts = ["has an automobile", "takes a dose of poison", *(f"word {number}" for number in range(20))]
        await store.add_many(NewRecord(text=text) for text in texts)
        assert (await store.search("car", limit=1))[0].text == "has an automobile"
