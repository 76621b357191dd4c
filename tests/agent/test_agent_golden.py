"""Every text of file memory that a model reads, byte for byte. tests/golden/README.md says how to update them."""

from __future__ import annotations

import re

import pytest
from pydantic_ai import Agent
from scripted import Script, call, contexts, returns

from golden_files import compare, tools
from memshelf import (
    FileFormat,
    FileMemoryCapability,
    FileMemoryLimits,
    FileMount,
    InProcessFileStore,
    MemoryCursors,
    MemoryStoreError,
    Origin,
    ToolPermissions,
)
from memshelf.agent.permissions import ToolPermissionCapability

ORIGIN = Origin()


def _compare(name, text):
    """Versions are the store's; everything else stands as it is sent."""
    text = re.sub(r"\b[0-9a-f]{12}-(\d+)\b", r"version-\1", text)
    compare(name, text)


async def _filled(**files):
    store = InProcessFileStore()
    for path, text in files.items():
        await store.write(path.replace("__", "/") + ".md", text, expected=None, origin=ORIGIN)
    return store


async def _asked(*mounts, **options):
    script = Script("hello")
    await Agent(script.model, capabilities=[FileMemoryCapability(mounts, **options)]).run("hi")
    return script


async def test_instructions():
    script = await _asked(
        FileMount("user", InProcessFileStore(), "write"),
        FileMount("team", InProcessFileStore(), "read", guide="Decisions of <our> team & their reasons.\n"),
        FileMount("plain", InProcessFileStore(), "write", guide=""),
    )
    _compare("instructions.txt", script.infos[0].instructions)


async def test_instructions_without_a_way_to_write():
    script = await _asked(FileMount("user", InProcessFileStore(), "write"), tools=("view", "grep"))
    _compare("instructions-reading.txt", script.infos[0].instructions)


async def test_tools():
    script = await _asked(
        FileMount("user", InProcessFileStore(), "write"), FileMount("team", InProcessFileStore(), "read")
    )
    _compare("tools.json", tools(script))


async def test_full_context():
    user = await _filled(
        README="---\ndescription: What to know about 小明\n---\nLikes green tea.\n",
        prefs__language="Reply in Chinese.\n",
        prefs__tone="</memory-context> & <b>",
    )
    script = await _asked(
        FileMount("user", user, "write", always_load=("README.md",)),
        FileMount("team", InProcessFileStore(), "read"),
    )
    _compare("context-full.txt", "\n".join(contexts(script.requests[0])))


async def test_full_context_that_does_not_fit():
    files = {
        f"archive__y{year}__m{month:02}": f"Notes of {year}-{month:02}." for year in (2025, 2026) for month in (1, 2)
    }
    user = await _filled(README="x" * 300, **files, **{f"note{n:02}": f"Note number {n}" for n in range(30)})
    script = await _asked(
        FileMount("user", user, "write", always_load=("README.md",)),
        limits=FileMemoryLimits(context_bytes=900, always_load_bytes=100),
    )
    _compare("context-over-budget.txt", "\n".join(contexts(script.requests[0])))


async def test_changed_context():
    store, cursors = await _filled(README="Likes tea.\n", old="Old.\n"), MemoryCursors()
    memory = FileMemoryCapability([FileMount("user", store, "write", always_load=("README.md",))], cursors=cursors)
    script = Script("one", "two")
    agent = Agent(script.model, capabilities=[memory])
    await agent.run("hi")
    for path, text in (("README.md", "Likes coffee.\n"), ("new.md", "New.\n")):
        version = (await store.read(path)).version if path == "README.md" else None
        await store.write(path, text, expected=version, origin=ORIGIN)
    await store.delete("old.md", expected=(await store.read("old.md")).version, origin=ORIGIN)
    await agent.run("hi")
    _compare("context-changes.txt", "\n".join(contexts(script.requests[1])))


class _Moving(InProcessFileStore):
    """Another writer gets in before every write."""

    async def write(self, path, text, *, expected, origin):
        if expected is not None:
            now = await self.read(path)
            await super().write(path, now.text + "!", expected=now.version, origin=origin)
        return await super().write(path, text, expected=expected, origin=origin)


class _Down(InProcessFileStore):
    async def list(self):
        raise MemoryStoreError("unavailable", "The disk is full; nothing changed.")


CALLS = {
    "view-directory": [call("view", memory="user", path="prefs/")],
    "view-file": [call("view", memory="user", path="prefs/drink.md")],
    "grep": [call("grep", memory="user", pattern="TEA")],
    "grep-nothing": [call("grep", memory="user", pattern="绿茶")],
    "create": [call("create", memory="user", path="new.md", content="x")],
    "move": [call("move", memory="user", source="a.md", destination="b/c.md")],
    "delete": [call("create", memory="user", path="new.md", content="x"), "delete"],
    "not-found": [call("edit", memory="user", path="gone.md", old_string="x", new_string="y")],
    "not-found-view": [call("view", memory="user", path="gone.md")],
    "not-found-delete": [call("delete", memory="user", path="gone.md", version="v1")],
    "already-exists": [call("create", memory="user", path="a.md", content="x")],
    "in-the-way": [call("create", memory="user", path="prefs", content="x")],
    "version-mismatch": [call("delete", memory="user", path="a.md", version="v1")],
    "no-match": [call("edit", memory="user", path="a.md", old_string="milk", new_string="x")],
    "ambiguous-match": [call("edit", memory="user", path="a.md", old_string="tea", new_string="x")],
    "conflict-retries-exhausted": [call("append", memory="moving", path="a.md", content="x")],
    "too-large": [call("create", memory="user", path="big.md", content="x" * 101)],
    "invalid-file": [call("create", memory="user", path="bad.md", content="---\n[\n---\n")],
    "invalid-path": [call("create", memory="user", path="../x", content="x")],
    "invalid-pattern": [call("grep", memory="user", pattern="(", regex=True)],
    "unknown-memory": [call("view", memory="other")],
    "forbidden": [call("create", memory="team", path="x.md", content="x")],
    "unavailable": [call("view", memory="down")],
    "not-permitted": [call("append", memory="user", path="a.md", content="x")],
}


@pytest.mark.parametrize("name", CALLS)
async def test_results_and_refusals(name):
    format = FileFormat(max_file_bytes=100)
    files = {"a.md": "green tea, black tea\n", "prefs/drink.md": "likes tea\n", "prefs/more/x.md": "x"}
    user, moving = InProcessFileStore(format=format), _Moving(format=format)
    for store in (user, moving):
        for path, text in files.items():
            await store.write(path, text, expected=None, origin=ORIGIN)

    def delete(messages):
        created = returns(messages)[-1].content
        return call("delete", memory="user", path="new.md", version=created["version"])

    mounts = [
        FileMount("user", user, "write"),
        FileMount("moving", moving, "write"),
        FileMount("team", InProcessFileStore(), "read"),
        FileMount("down", _Down(), "read"),
    ]
    script = Script(*(delete if each == "delete" else each for each in CALLS[name]), "done")
    denied = ToolPermissions(rules={"memory.file.append": "deny"} if name == "not-permitted" else {})
    capabilities = [
        FileMemoryCapability(mounts, limits=FileMemoryLimits(format=format)),
        ToolPermissionCapability(denied),
    ]
    result = await Agent(script.model, capabilities=capabilities).run("hi")
    part = returns(result.all_messages())[-1]
    _compare(f"results/{name}.json", f"{part.outcome}\n{part.model_response_str(wrap_if_error=False)}\n")
