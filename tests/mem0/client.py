"""What mem0's own client for its hosted platform sends, and what it makes of the answers. Needs `mem0ai`.

Arguments: a folder, the address of a server. It prints the answers, one a line.
"""

from __future__ import annotations

import json
import os
import sys

folder, address = sys.argv[1:]
os.environ["MEM0_DIR"], os.environ["MEM0_TELEMETRY"] = folder, "False"

from mem0 import MemoryClient  # noqa: E402  # reads the environment when it is imported


class Client(MemoryClient):
    def _validate_api_key(self) -> str:
        """Without asking for the organisation, of which memshelf's store has no notice."""
        self.org_id, self.project_id = "org", "project"
        return "somebody@example.com"


client = Client(api_key="m0-key", host=address)
alice = {"user_id": "alice"}
added = client.add("likes tea", infer=False, **alice)
record_id = added["results"][0]["id"]
for answer in (
    added,
    client.get_all(filters=alice, page=1, page_size=100),
    client.search("tea", filters=alice, top_k=7),
    client.get(record_id),
    client.update(record_id, text="likes coffee"),
    client.get(record_id),
    client.delete(record_id),
    client.delete_all(**alice),
):
    print(json.dumps(answer))
