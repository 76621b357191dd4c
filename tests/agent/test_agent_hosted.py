"""An agent whose memory is a hosted store."""

from __future__ import annotations

import sys
from pathlib import Path

from pydantic_ai import Agent
from scripted import Script, call, returns

from memshelf import FileMemoryCapability, FileMount, MemoryStoreFileStore, Origin, PlatformFileStore
from memshelf.storage.sqlite_engine import SqliteEngine

sys.path.append(str(Path(__file__).parents[1] / "files"))
from hosted import URL, account, served


async def test_an_agent_remembers_in_a_hosted_store_and_another_one_recalls_it(tmp_path):
    engine = SqliteEngine(tmp_path / "memshelf.db", durable=False)
    async with served(engine) as client:
        key, store_id = await account(engine, tmp_path)
        store = MemoryStoreFileStore(URL, key, store_id, client=client)
        script = Script(
            call("create", memory="team", path="prefs/tea.md", content="Likes green tea."),
            call("edit", memory="team", path="prefs/tea.md", old_string="green", new_string="black"),
            call("grep", memory="team", pattern="TEA"),
            "Noted.",
        )
        capability = FileMemoryCapability([FileMount("team", store, "write")], origin=Origin("run", "ann"))
        result = await Agent(script.model, capabilities=[capability]).run("I like black tea.")
        assert result.output == "Noted."
        found = returns(script.requests[3])[-1]
        assert "Likes black tea." in str(found)
        versions = (await store.versions("prefs/tea.md")).versions
        assert [(each.operation, each.origin.principal_id) for each in versions] == [
            ("modified", "ann"),
            ("created", "ann"),
        ]
        assert all(each.origin.api_key_id is not None for each in versions)

        plain = PlatformFileStore(URL, key, store_id, client=client)
        again = Script(call("view", memory="team", path="prefs/tea.md"), "Black tea.")
        reading = FileMemoryCapability([FileMount("team", plain, "read")])
        await Agent(again.model, capabilities=[reading]).run("What do I like?")
        assert "prefs/tea.md: Likes black tea." in str(again.requests[0])
        assert "Likes black tea." in str(returns(again.requests[1])[-1])
