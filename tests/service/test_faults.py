"""Faults under a service that runs: what it answers is true, nothing that it answered is lost, and it goes on alone."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from serving import Service


def listed(service: Service, store: str) -> list[str]:
    reply = service.get(f"/v1/memory_stores/{store}/memories?limit=100")
    assert reply.status == 200, reply.data
    return [memory["path"] for memory in reply.json["data"]]


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
