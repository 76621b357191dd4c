"""Searching a store by meaning over HTTP."""

from __future__ import annotations

from urllib.parse import quote

import pytest
from serving import Service


@pytest.fixture
def store(service: Service) -> str:
    return service.store()


def _hits(service: Service, store: str, query: str, more: str = "") -> list[dict]:
    found = service.get(f"/v1/memshelf/memory_stores/{store}/search?by=meaning&query={quote(query)}{more}")
    assert found.status == 200, found.data
    return found.json["data"]


def test_memories_are_found_by_meaning_in_both_languages(service, store):
    service.memory(store, "/prefs/drinks.md", "# Drinks\n\nAt breakfast: green tea, never coffee.")
    service.memory(store, "/notes/发布.md", "# 部署\n\n发布前先跑测试，再推送到生产环境。")
    [closest, *_] = _hits(service, store, "她早上喝什么？")
    assert closest["memory"]["path"] == "/prefs/drinks.md"
    assert (closest["line"], closest["excerpt"]) == (3, "At breakfast: green tea, never coffee.")
    assert 0 < closest["score"] <= 1
    assert closest["memory"]["content"] is None
    assert _hits(service, store, "how do we ship to production?")[0]["memory"]["path"] == "/notes/发布.md"
    below = _hits(service, store, "green tea", "&path_prefix=/notes/&limit=1")
    assert [hit["memory"]["path"] for hit in below] == ["/notes/发布.md"]


def test_a_search_by_meaning_sees_every_change(service, store):
    memory = service.memory(store, "/a", "the quokka likes marmalade")
    assert len(_hits(service, store, "quokka")) == 1
    service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": "likes cribbage", "path": "/b"})
    [hit] = _hits(service, store, "quokka")
    assert (hit["memory"]["path"], hit["excerpt"]) == ("/b", "likes cribbage")
    service.delete(f"/v1/memory_stores/{store}/memories/{memory['id']}")
    assert _hits(service, store, "quokka") == []


def test_a_store_that_is_not_there_is_not_searched(service, store):
    for id in ("memstore_0", "x"):
        refused = service.get(f"/v1/memshelf/memory_stores/{id}/search?by=meaning&query=tea")
        assert (refused.status, refused.error) == (404, "not_found_error")
    refused = service.get(f"/v1/memshelf/memory_stores/{store}/search?by=magic&query=tea")
    assert refused.status == 400
    refused = service.get(f"/v1/memshelf/memory_stores/{store}/search?by=meaning&query=tea&path_prefix=x")
    assert refused.status == 400


def test_a_store_that_was_searched_by_meaning_is_redacted_and_deleted(service, store):
    memory = service.memory(store, "/a", "a secret")
    assert len(_hits(service, store, "secret")) == 1
    service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": "nothing"})
    redacted = service.post(f"/v1/memory_stores/{store}/memory_versions/{memory['memory_version_id']}/redact")
    assert redacted.status == 200
    assert [hit["excerpt"] for hit in _hits(service, store, "secret")] == ["nothing"]
    assert service.delete(f"/v1/memory_stores/{store}").status == 200
    assert service.get(f"/v1/memshelf/memory_stores/{store}/search?by=meaning&query=tea").status == 404


def test_more_stores_than_indexes_are_searched(service):
    stores = [service.store() for _ in range(6)]
    for number, store in enumerate(stores):
        service.memory(store, f"/{number}", f"the quokka has number {number}")
    for _ in range(2):
        for number, store in enumerate(stores):
            assert [hit["memory"]["path"] for hit in _hits(service, store, "quokka")] == [f"/{number}"]
