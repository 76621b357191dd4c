"""A store of a service for an MCP client, by `memshelf mcp --store`."""

from __future__ import annotations

import os
import sys

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def test_a_store_is_a_memory_of_a_client(service):
    store = service.store()
    where = {"MEMSHELF_URL": f"http://127.0.0.1:{service.port}", "MEMSHELF_KEY": service.key}
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "memshelf", "mcp", "--store", f"team={store}", "--store", "gone=memstore_gone:read"],
        env={**os.environ, **where},
    )
    async with Client(stdio_client(command)) as client:
        arguments = {"memory": "team", "path": "a.md", "content": "by a client"}
        assert not (await client.call_tool("memory_file_create", arguments)).is_error
        shown = (await client.call_tool("memory_context", {"about": ""})).content[0].text
        refused = await client.call_tool("memory_file_view", {"memory": "gone"})
    assert "a.md: by a client" in shown
    assert "Memory gone is not shown here (unavailable)." in shown
    assert refused.is_error
    assert service.key not in refused.content[0].text
    assert [each["path"] for each in service.get(f"/v1/memory_stores/{store}/memories").json["data"]] == ["/a.md"]
