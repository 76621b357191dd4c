"""What a request leaves in the memory of the service."""

from __future__ import annotations

from garbage import garbage
from memshelf.service.accounts import Accounts
from memshelf.service.local import client_of
from memshelf.storage.sqlite_engine import SqliteEngine


async def test_what_a_request_made_is_freed_at_once(tmp_path):
    """Objects that hold each other wait for a search for garbage, for which every request would stand still."""
    engine = SqliteEngine(tmp_path / "memshelf.db", durable=False)
    await Accounts(engine).make_workspace("default")
    async with client_of(engine, "default", "me") as client:
        made = await client.post("http://here/v1/memory_stores", json={"name": "Notes"})
        store = f"http://here/v1/memory_stores/{made.json()['id']}"
        memory = (await client.post(f"{store}/memories", json={"path": "/a.md", "content": "a"})).json()["id"]
        with garbage() as kept:
            for content in "bc":
                changed = await client.post(f"{store}/memories/{memory}", json={"content": content})
                taken = await client.post(f"{store}/memories", json={"path": "/a.md", "content": content})
                malformed = await client.post(f"{store}/memories/{memory}", json={"path": "/b//b"})
                none = await client.get(f"{store}/memories/none")
                nowhere = await client.get("http://here/v1/memory_stores/none/memories")
                statuses = [each.status_code for each in (changed, taken, malformed, none, nowhere)]
                assert statuses == [200, 409, 400, 404, 404]
    assert kept == []
