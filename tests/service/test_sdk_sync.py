"""The sync engine of the official SDK, as a second client: two sessions on one store, each with a directory of its own.

The engine is a private module of the SDK, so the SDK's version is pinned.
"""

from __future__ import annotations

import types
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anthropic
import pytest
from anthropic.lib.tools import _memories as engine
from anthropic.types.beta.sessions import BetaManagedAgentsMemoryStoreResource
from serving import Service

HEADERS = {
    "anthropic": {},
    "zhipu": {"zai-version": "2026-05-26", "zai-beta": "managed-agents-2026-09-22"},
}


class Worker:
    """An agent's host: a session of the service, and its store as a directory."""

    def __init__(self, stores: engine.SessionMemoryStores, session: str, token: str) -> None:
        self.stores = stores
        self.session = session
        self.token = token

    @property
    def root(self) -> Path:
        return self.stores.roots[0]

    async def sync(self) -> None:
        await self.stores._sync_all(final=False)

    def files(self) -> dict[str, str]:
        found = {str(path.relative_to(self.root)): path.read_text() for path in self.root.rglob("*") if path.is_file()}
        del found[engine.MARKER_PATH]
        return found


@pytest.fixture(params=HEADERS)
def join(request: pytest.FixtureRequest, service: Service, tmp_path: Path) -> Callable[..., object]:
    headers = HEADERS[request.param]

    @asynccontextmanager
    async def join(name: str, store: str, access: str = "read_write") -> AsyncIterator[Worker]:
        created = service.post(
            "/v1/sessions",
            {
                "agent": "agent_1",
                "environment_id": "env_1",
                "resources": [{"type": "memory_store", "memory_store_id": store, "access": access}],
            },
            headers=headers,
        )
        session = created.json["id"]
        token = service.post(f"/v1/memshelf/sessions/{session}/token").json["token"]
        client = anthropic.AsyncAnthropic(
            auth_token=token, base_url=f"{service.url}/api/agent/managed", default_headers=headers, max_retries=0
        )
        async with client:
            stores = engine.SessionMemoryStores(client, workdir=tmp_path / name)
            resource = BetaManagedAgentsMemoryStoreResource(
                type="memory_store", memory_store_id=store, access=access, mount_path="", name="notes"
            )
            await stores.download(types.SimpleNamespace(resources=[resource]))
            try:
                yield Worker(stores, session, token)
            finally:
                await stores.dispose()

    return join


async def test_two_sessions_see_each_others_changes(service, join):
    store = service.store()
    for number in range(26):
        service.memory(store, f"/d{number % 3}/{number:02}.md", f"memory {number} 记忆\r\n")
    async with join("one", store) as one, join("two", store) as two:
        assert len(one.files()) == 26
        assert one.files() == two.files()
        (one.root / "d0/00.md").write_text("edited")
        (one.root / "new").mkdir()
        (one.root / "new/note.md").write_text("")
        (one.root / "d1/01.md").rename(one.root / "moved.md")
        await one.sync()
        await two.sync()
        assert two.files()["d0/00.md"] == "edited"
        assert two.files()["new/note.md"] == ""
        assert "moved.md" in two.files()
        (two.root / "moved.md").unlink()
        await two.stores.finish()
        await one.stores.finish()
        assert "moved.md" not in one.files()
        assert "d1/01.md" not in one.files()
        versions = service.get(f"/v1/memory_stores/{store}/memory_versions?session_id={two.session}").json["data"]
        assert [version["operation"] for version in versions] == ["deleted"]
        assert versions[0]["created_by"] == {"type": "session_actor", "session_id": two.session}


async def test_the_first_of_two_edits_wins(service, join):
    store = service.store()
    service.memory(store, "/a.md", "base")
    service.memory(store, "/b.md", "base")
    async with join("one", store) as one, join("two", store) as two:
        (one.root / "a.md").write_text("one")
        (two.root / "a.md").write_text("two")
        (two.root / "b.md").unlink()
        (one.root / "b.md").write_text("kept")
        await one.sync()
        await two.stores.finish()
        assert two.files() == one.files() == {"a.md": "one", "b.md": "kept"}
        await two.stores.flush_writes()
        await one.sync()
        assert one.files() == {"a.md": "one", "b.md": "kept"}


async def test_a_directory_that_is_wiped_comes_back(service, join):
    store = service.store()
    for name in "abc":
        service.memory(store, f"/{name}", name)
    async with join("one", store) as one:
        for path in list(one.root.iterdir()):
            path.unlink()
        await one.sync()
        assert one.files() == {"a": "a", "b": "b", "c": "c"}


async def test_what_no_memory_can_be_stays_local(service, join):
    store = service.store()
    async with join("one", store) as one:
        (one.root / "big").write_text("x" * 102_401)
        (one.root / "binary").write_bytes(b"\xff\xfe")
        (one.root / "fine").write_text("fine")
        await one.sync()
        await one.stores.flush_writes()
        listed = service.get(f"/v1/memory_stores/{store}/memories").json["data"]
        assert [memory["path"] for memory in listed] == ["/fine"]


async def test_a_read_only_session_changes_nothing(service, join):
    store = service.store()
    service.memory(store, "/a", "base")
    async with join("one", store, "read_only") as one:
        (one.root / "a").write_text("changed")
        (one.root / "b").write_text("new")
        await one.sync()
        await one.stores.flush_writes()
        listed = service.get(f"/v1/memory_stores/{store}/memories?view=full").json["data"]
        assert [(memory["path"], memory["content"]) for memory in listed] == [("/a", "base")]
        refused = service.post(f"/v1/memory_stores/{store}/memories", {"path": "/b", "content": "x"}, key=one.token)
        assert (refused.status, refused.error) == (403, "permission_error")
