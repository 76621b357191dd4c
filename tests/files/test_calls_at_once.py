"""One tool call that two processes make at the same time: it is made once, and both have its result."""

from __future__ import annotations

import pytest

from memshelf import FileFormat, Origin, SqliteFileStore
from memshelf.files import edits
from memshelf.testing import refused

CALL = Origin(run_id="run", tool_call_id="call")
HOW = {"origin": CALL, "format": FileFormat(), "retries": 3}
OPERATIONS = {
    "edit": lambda store: edits.edit(store, "a.md", "tea", "coffee", **HOW),
    "append": lambda store: edits.append(store, "a.md", "biscuits", **HOW),
    "move": lambda store: edits.move(store, "a.md", "b.md", **HOW),
}


class Late(SqliteFileStore):
    """A process that another one gets ahead of, once, before it reads the file or before it writes."""

    def __init__(self, *arguments, before, meanwhile):
        super().__init__(*arguments, durable=False)
        self._before = before
        self._meanwhile = meanwhile

    async def _step(self, name):
        if name == self._before:
            self._before = None
            await self._meanwhile()

    async def read(self, path):
        await self._step("read")
        return await super().read(path)

    async def write(self, *arguments, **more):
        await self._step("write")
        return await super().write(*arguments, **more)

    async def move(self, *arguments, **more):
        await self._step("write")
        return await super().move(*arguments, **more)


@pytest.fixture
async def theirs(tmp_path):
    async with SqliteFileStore(tmp_path / "memory.db", durable=False) as store:
        await store.write("a.md", "tea\n", expected=None, origin=Origin())
        yield store


@pytest.mark.parametrize("before", ["read", "write"])
@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("operation", OPERATIONS)
async def test_the_later_one_answers_with_the_result_of_the_earlier_one(theirs, tmp_path, operation, others, before):
    first = []

    async def meanwhile():
        if others:
            await edits.append(theirs, "a.md", "milk", origin=Origin(), format=FileFormat(), retries=0)
        first.append(await OPERATIONS[operation](theirs))

    ours = Late(tmp_path / "memory.db", before=before, meanwhile=meanwhile)
    async with ours:
        assert await OPERATIONS[operation](ours) == first[0]
        assert len((await ours.versions()).versions) == 2 + others


@pytest.mark.parametrize("before", ["read", "write"])
async def test_the_same_call_with_other_arguments_is_refused_also_then(theirs, tmp_path, before):
    async def meanwhile():
        await OPERATIONS["append"](theirs)

    async with Late(tmp_path / "memory.db", before=before, meanwhile=meanwhile) as ours:
        await refused("forbidden", edits.edit(ours, "a.md", "tea", "milk", **HOW))


async def test_a_failure_that_is_the_calls_own_stays_what_it_was(theirs, tmp_path):
    async def meanwhile():
        await edits.edit(theirs, "a.md", "tea", "milk", origin=Origin(), format=FileFormat(), retries=0)

    async with Late(tmp_path / "memory.db", before="read", meanwhile=meanwhile) as ours:
        await refused("no_match", OPERATIONS["edit"](ours))
