"""Faults under a service that runs: what it answers is true, nothing that it answered is lost, and it goes on alone."""

from __future__ import annotations

import os
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from serving import SECONDS, Reply, Service

from postgres_server import PostgresServer


def pages(service: Service, path: str) -> list[dict[str, str]]:
    items, page = [], f"{path}?limit=100"
    while page:
        found = service.get(page).json
        items += found["data"]
        page = found["next_page"] and f"{path}?limit=100&page={found['next_page']}"
    return items


def listed(service: Service, store: str) -> list[str]:
    return [memory["path"] for memory in pages(service, f"/v1/memory_stores/{store}/memories")]


def unavailable(service: Service, store: str) -> str:
    """What the service says to whoever reads, writes or asks whether it is ready."""
    path = f"/v1/memory_stores/{store}/memories"
    replies = [service.get(path), service.post(path, {"path": "/never", "content": "x"})]
    for reply in replies:
        assert (reply.status, reply.error, reply.headers["retry-after"]) == (503, "api_error", "1")
    assert (service.get("/readyz").status, service.get("/healthz").status) == (503, 200)
    return replies[0].json["error"]["message"]


@pytest.fixture
def data(start, engine: str) -> tuple[Service, str, Path]:
    """A service with a store, and the directory of its data."""
    service = start()
    service.first_key()
    store = service.store()
    service.memory(store, "/first")
    return service, store, Path(service.where[1])


def backed_up(directory: Path, place: Path) -> Path:
    with closing(sqlite3.connect(directory / "memshelf.db")) as source, closing(sqlite3.connect(place / "b")) as copy:
        source.backup(copy)
    return place / "b"


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True, scope="session")
def test_a_database_that_was_moved_away_is_used_again_when_it_is_back(data, tmp_path):
    service, store, directory = data
    os.rename(directory / "memshelf.db", tmp_path / "elsewhere.db")
    assert "removed" in unavailable(service, store)
    assert not (directory / "memshelf.db").exists()
    os.rename(tmp_path / "elsewhere.db", directory / "memshelf.db")
    service.memory(store, "/second")
    assert listed(service, store) == ["/first", "/second"]
    assert service.get(f"/v1/memshelf/memory_stores/{store}/verify").json["intact"]


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True, scope="session")
def test_a_backup_is_put_in_place_of_a_directory_that_was_removed(data, tmp_path):
    service, store, directory = data
    backup = backed_up(directory, tmp_path)
    service.memory(store, "/after the backup")
    shutil.rmtree(directory)
    unavailable(service, store)
    assert not directory.exists()
    directory.mkdir()
    shutil.move(backup, directory / "memshelf.db")
    service.memory(store, "/second")
    assert listed(service, store) == ["/first", "/second"]
    assert service.stop() == 0


@pytest.mark.parametrize("engine", ["sqlite"], indirect=True, scope="session")
def test_a_backup_beside_the_log_of_what_it_replaces_is_left_alone(data, tmp_path):
    service, store, directory = data
    backup = backed_up(directory, tmp_path)
    for number in range(20):
        service.memory(store, f"/after/{number}")
    os.replace(backup, directory / "memshelf.db")
    assert "-wal" in unavailable(service, store)
    for log in directory.glob("memshelf.db-*"):
        log.unlink()
    assert listed(service, store) == ["/first"]
    service.memory(store, "/second")
    assert service.get(f"/v1/memshelf/memory_stores/{store}/verify").json["intact"]


@pytest.mark.parametrize("engine", ["postgresql"], indirect=True, scope="session")
def test_a_server_that_goes_down_and_comes_back_loses_nothing_that_was_answered(start):
    server = PostgresServer(durable=True)
    try:
        service = start("--database", server.new_database())
        service.first_key()
        store = service.store()
        path = f"/v1/memory_stores/{store}/memories"

        def create(number: int) -> Reply:
            return service.post(path, {"path": f"/{number}", "content": "x"})

        with ThreadPoolExecutor(8) as pool:
            before = list(pool.map(create, range(40)))
            pending = [pool.submit(create, number) for number in range(40, 80)]
            pending[0].result(SECONDS)
            server.halt()
            during = [each.result(SECONDS) for each in pending]
            unavailable(service, store)
            server.start()
            after = list(pool.map(create, range(80, 120)))
        assert {reply.status for reply in before + after} == {200}
        assert {reply.status for reply in during} <= {200, 503, 504}
        answered = {reply.json["path"] for reply in before + during + after if reply.status == 200}
        unknown = {f"/{number}" for number, reply in enumerate(during, 40) if reply.status == 504}
        found = {version["path"] for version in pages(service, f"/v1/memory_stores/{store}/memory_versions")}
        assert answered <= found <= answered | unknown
        assert service.get("/readyz").status == 200
        assert service.get(f"/v1/memshelf/memory_stores/{store}/verify").json["intact"]
    finally:
        server.stop()
