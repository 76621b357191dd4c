"""The commands on PostgreSQL."""

from __future__ import annotations

import json

import pytest
from serving import memshelf

pytestmark = pytest.mark.parametrize("engine", ["postgresql"], indirect=True, scope="session")


def test_a_database_becomes_a_service(start):
    first = start()
    key = first.first_key()
    store = first.store()
    first.memory(store, "/a")
    second = start(*first.where)
    second.key = key
    assert second.get(f"/v1/memory_stores/{store}/memories").json["data"][0]["path"] == "/a"
    other = memshelf("keys", "create", *first.where, "--workspace", "team").strip()
    assert second.get(f"/v1/memory_stores/{store}", key=other).status == 404
    listed = json.loads(memshelf("keys", "list", *first.where, "--json"))["keys"]
    assert [each["workspace"] for each in listed] == ["default", "team"]
    assert memshelf("verify", *first.where).startswith(f"{store}: intact, 1 version, head ")
    assert (first.stop(), second.stop()) == (0, 0)
