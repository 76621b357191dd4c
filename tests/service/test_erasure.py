"""What is redacted or deleted is nowhere any more: not in the database's files, its log, its indexes, nor in the
service's own logs and metrics."""

from __future__ import annotations

import pytest
from serving import Service
from stored import bytes_at

SECRET, PLACE = "correct horse battery staple", "whereabouts"


@pytest.fixture
def own(start) -> Service:
    service = start()
    service.first_key()
    return service


def told(service: Service) -> bytes:
    return service.log.read_bytes() + service.get("/metrics").data


def leaks(found: bytes) -> list[str]:
    return [word for word in (*SECRET.split(), PLACE) if word.encode() in found]


def test_a_redacted_version_leaves_no_byte(own):
    store = own.store()
    memory = own.memory(store, f"/{PLACE}/a", SECRET)
    for number in range(200):
        own.memory(store, f"/other/{number}", f"other {number}" * 50)
    own.get(f"/v1/memshelf/memory_stores/{store}/search?query=horse")
    own.post(f"/v1/memory_stores/{store}/memories", {"path": f"/{PLACE}/a", "content": SECRET})
    own.get(f"/v1/memory_stores/{store}/memories?path_prefix=/{PLACE}/")
    own.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"path": "/clean", "content": "clean"})
    assert set(leaks(bytes_at(own.where))) == {*SECRET.split(), PLACE}
    redact = f"/v1/memory_stores/{store}/memory_versions/{memory['memory_version_id']}/redact"
    assert own.post(redact).status == 200
    assert leaks(bytes_at(own.where)) == []
    assert leaks(told(own)) == []
    assert own.get(f"/v1/memshelf/memory_stores/{store}/verify").json["intact"]
    assert own.get(f"/v1/memshelf/memory_stores/{store}/search?query=horse").json["data"] == []
    own.stop()
    assert leaks(bytes_at(own.where)) == []


def test_a_deleted_store_leaves_no_byte(own):
    store = own.store()
    memory = own.memory(store, f"/{PLACE}/a", SECRET)
    own.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": f"{SECRET} 2"})
    own.delete(f"/v1/memory_stores/{store}/memories/{memory['id']}")
    assert own.delete(f"/v1/memory_stores/{store}").status == 200
    assert leaks(bytes_at(own.where)) == []
    assert leaks(told(own)) == []


def test_the_log_names_requests_and_nothing_that_people_wrote(service):
    store = service.store(name=SECRET)
    service.memory(store, f"/{PLACE}", SECRET)
    for path in (
        f"/v1/{PLACE}",
        f"/{PLACE}",
        f"/v1/memory_stores/{PLACE}",
        f"/v1/memory_stores/{store}/memories?page={PLACE}",
    ):
        assert service.get(path).status in (400, 404)
    service.post(f"/v1/memory_stores/{store}/memories", data=f'{{"{PLACE}": "{SECRET}"'.encode())
    service.get("/v1/memory_stores", key=PLACE)
    service.call("GET", "/v1/memory_stores", headers={"user-agent": PLACE, "referer": PLACE})
    assert leaks(told(service)) == []
    assert service.key.encode() not in told(service)
    lines = service.log.read_text().splitlines()
    assert any(
        '"route":"/v1/memory_stores/{memory_store_id}/memories"' in line and '"status":200' in line for line in lines
    )


def test_of_a_key_only_a_hash_is_kept(service):
    service.new_key("other")
    assert service.key.encode() not in bytes_at(service.where)
