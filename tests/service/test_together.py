"""Many clients and several processes on one store; processes that are killed."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPException
from typing import Any

from serving import Reply, Service


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def at_once(calls: list[Callable[[], Reply]]) -> list[Reply]:
    """Make all calls at the same moment."""
    gate = threading.Barrier(len(calls))

    def wait(call: Callable[[], Reply]) -> Reply:
        gate.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(wait, calls))


def versions_of(service: Service, store: str, memory: str) -> list[dict[str, object]]:
    path = f"/v1/memory_stores/{store}/memory_versions?memory_id={memory}&limit=100"
    return service.get(path).json["data"]


def test_of_fifty_updates_with_one_precondition_exactly_one_wins(services):
    first = services[0]
    store = first.store()
    memory = first.memory(store, "/a", "base")
    for round in range(3):
        before = first.get(f"/v1/memory_stores/{store}/memories/{memory['id']}").json
        precondition = {"type": "content_sha256", "content_sha256": before["content_sha256"]}

        def update(number: int, round: int = round, precondition: object = precondition) -> Callable[[], Reply]:
            body = {"content": f"round {round} by {number}", "precondition": precondition}
            service = services[number % len(services)]
            return lambda: service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", body)

        replies = at_once([update(number) for number in range(50)])
        won = [reply for reply in replies if reply.status == 200]
        assert len(won) == 1
        lost = [reply for reply in replies if reply.status != 200]
        assert {(reply.status, reply.error) for reply in lost} == {(409, "memory_precondition_failed_error")}
        assert all(reply.headers["x-should-retry"] == "false" for reply in lost)
        after = services[-1].get(f"/v1/memory_stores/{store}/memories/{memory['id']}").json
        assert after["memory_version_id"] == won[0].json["memory_version_id"]
        assert len(versions_of(first, store, memory["id"])) == round + 2


def test_of_fifty_creations_at_one_path_exactly_one_wins(services):
    store = services[0].store()

    def create(number: int) -> Callable[[], Reply]:
        path = ("/a", "/a/b", "/a/b/c")[number % 3]
        service = services[number % len(services)]
        return lambda: service.post(f"/v1/memory_stores/{store}/memories", {"path": path, "content": str(number)})

    replies = at_once([create(number) for number in range(50)])
    assert sorted(reply.status for reply in replies) == [200] + [409] * 49
    assert len(services[-1].get(f"/v1/memory_stores/{store}/memories").json["data"]) == 1


def test_updates_without_precondition_form_one_chain(services):
    first = services[0]
    store = first.store()
    memory = first.memory(store, "/a", "base")

    def update(number: int) -> Callable[[], Reply]:
        service = services[number % len(services)]
        return lambda: service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": str(number)})

    replies = at_once([update(number) for number in range(30)])
    assert [reply.status for reply in replies] == [200] * 30
    versions = versions_of(first, store, memory["id"])
    assert len(versions) == 31
    assert {reply.json["memory_version_id"] for reply in replies} < {version["id"] for version in versions}
    report = first.get(f"/v1/memshelf/memory_stores/{store}/verify").json
    assert (report["intact"], report["versions"]) == (True, 31)


def test_a_store_that_is_archived_meanwhile_takes_nothing_more(services):
    first = services[0]
    store = first.store()

    def create(number: int) -> Callable[[], Reply]:
        service = services[number % len(services)]
        return lambda: service.post(f"/v1/memory_stores/{store}/memories", {"path": f"/{number}", "content": "x"})

    archive = lambda: first.post(f"/v1/memory_stores/{store}/archive")  # noqa: E731  # as the others
    replies = at_once([*(create(number) for number in range(20)), archive])
    created = [reply.json["path"] for reply in replies[:-1] if reply.status == 200]
    assert replies[-1].status == 200
    assert {reply.status for reply in replies[:-1]} <= {200, 400}
    listed = [memory["path"] for memory in first.get(f"/v1/memory_stores/{store}/memories").json["data"]]
    assert sorted(listed) == sorted(created)
    versions = first.get(f"/v1/memory_stores/{store}/memory_versions").json["data"]
    archived_at = first.get(f"/v1/memory_stores/{store}").json["archived_at"]
    assert all(version["created_at"] <= archived_at for version in versions)


def test_of_a_session_and_an_archiving_one_comes_first(services):
    first, last = services[0], services[-1]
    for _ in range(10):
        store = first.store()
        body = {"agent": "a", "environment_id": "e", "resources": [{"type": "memory_store", "memory_store_id": store}]}
        session, archived = at_once(
            [
                lambda body=body: first.post("/v1/sessions", body),
                lambda store=store: last.post(f"/v1/memory_stores/{store}/archive"),
            ]
        )
        assert (session.status, archived.status) in ((200, 409), (400, 200))


def test_the_cap_of_a_store_holds_under_concurrency(start):
    service = start(options=("--memories", "10"))
    service.first_key()
    store = service.store()

    def create(number: int) -> Callable[[], Reply]:
        return lambda: service.post(f"/v1/memory_stores/{store}/memories", {"path": f"/{number}", "content": "x"})

    replies = at_once([create(number) for number in range(30)])
    assert sorted(reply.status for reply in replies) == [200] * 10 + [400] * 20
    full = next(reply for reply in replies if reply.status == 400)
    assert full.error == "invalid_request_error"
    assert "10 memories" in full.json["error"]["message"]
    memory = service.get(f"/v1/memory_stores/{store}/memories").json["data"][0]["id"]
    assert service.post(f"/v1/memory_stores/{store}/memories/{memory}", {"content": "y", "path": "/z"}).status == 200
    assert service.delete(f"/v1/memory_stores/{store}/memories/{memory}").status == 200
    assert service.post(f"/v1/memory_stores/{store}/memories", {"path": "/new", "content": "x"}).status == 200


def test_pages_are_complete_while_others_insert_and_delete(service):
    store = service.store()
    steady = {
        f"/d{number % 10}/{number:03}": service.memory(store, f"/d{number % 10}/{number:03}") for number in range(60)
    }
    stop = threading.Event()

    def disturb(who: int) -> None:
        number = 0
        while not stop.is_set():
            number += 1
            made = service.memory(store, f"/d{number % 12}/x{who}-{number}")
            service.delete(f"/v1/memory_stores/{store}/memories/{made['id']}")

    threads = [threading.Thread(target=disturb, args=(who,)) for who in range(2)]
    for thread in threads:
        thread.start()
    try:
        for query in ("limit=7", "limit=7&view=full", "limit=3&depth=1", "limit=1&depth=1"):
            paths: list[str] = []
            page = ""
            while page is not None:
                cursor = f"&page={page}" if page else ""
                found = service.get(f"/v1/memory_stores/{store}/memories?{query}{cursor}").json
                assert found["data"] or found["next_page"] is None
                paths += [item["path"] for item in found["data"]]
                page = found["next_page"]
            assert paths == sorted(set(paths), key=str.encode)
            wanted = {f"/d{number}/" for number in range(10)} if "depth" in query else set(steady)
            assert wanted <= set(paths)
        ids: list[str] = []
        page = ""
        while page is not None:
            cursor = f"&page={page}" if page else ""
            found = service.get(f"/v1/memory_stores/{store}/memory_versions?limit=9&operation=created{cursor}").json
            ids += [version["memory_id"] for version in found["data"]]
            page = found["next_page"]
        assert len(ids) == len(set(ids))
        assert {memory["id"] for memory in steady.values()} <= set(ids)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_what_was_acknowledged_survives_kill_9(start):
    service = start()
    key = service.first_key()
    store = service.store()
    acknowledged: list[tuple[str, str, str]] = []
    lock = threading.Lock()
    enough = threading.Event()

    def write(worker: int, memory: Any) -> None:
        for number in range(1, 10_000):
            content = f"{worker}:{number}"
            try:
                reply = service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": content})
            except (OSError, HTTPException):  # refused, or cut off in the middle of the answer
                return
            if reply.status != 200:
                return
            with lock:
                acknowledged.append((memory["id"], content, reply.json["memory_version_id"]))
                if len(acknowledged) >= 200:
                    enough.set()

    memories = [service.memory(store, f"/{worker}", "0") for worker in range(8)]
    threads = [threading.Thread(target=write, args=each) for each in enumerate(memories)]
    for thread in threads:
        thread.start()
    assert enough.wait(60)
    service.kill()
    for thread in threads:
        thread.join()
    again = start(*service.where)
    again.key = key
    last: dict[str, int] = {}
    for memory, content, version in acknowledged:
        found = again.get(f"/v1/memory_stores/{store}/memory_versions/{version}").json
        assert (found["content"], found["content_sha256"]) == (content, sha(content))
        last[memory] = int(content.partition(":")[2])
    for memory, number in last.items():
        content = again.get(f"/v1/memory_stores/{store}/memories/{memory}").json["content"]
        assert int(content.partition(":")[2]) in (number, number + 1)  # the last may have been written unheard
    report = again.get(f"/v1/memshelf/memory_stores/{store}/verify").json
    assert report["intact"], report["problems"]


def test_a_stop_finishes_what_was_begun(start):
    service = start()
    service.first_key()
    store = service.store()
    memory = service.memory(store, "/a")
    statuses: list[int] = []

    def write() -> None:
        for number in range(10_000):
            try:
                statuses.append(
                    service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": str(number)}).status
                )
            except OSError:
                return
            if number == 20:
                begun.set()

    begun = threading.Event()
    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    assert service.stop() == 0
    for thread in threads:
        thread.join()
    assert set(statuses) == {200}
