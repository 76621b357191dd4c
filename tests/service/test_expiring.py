"""Versions that expire under a service and by command: on the wire, in metrics and logs, and nowhere any more."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta

import anthropic
import pytest
from aged import LONG_AGO, old_store, prepared
from serving import SECONDS, Service
from stored import bytes_at
from test_erasure import SECRET, leaks, told

from memshelf.service.config import ServiceConfig
from memshelf.service.retention import keep_expiring
from memshelf.service.state import ServiceState
from memshelf.storage.ids import Mint
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.stores.retention import Retention
from memshelf.stores.shelf import Shelf

EXPIRED = {"type": "user_actor", "user_id": "memshelf_retention"}


def until_expired(service: Service) -> None:
    """Ask until the first run is over."""
    deadline = datetime.now(UTC) + timedelta(seconds=SECONDS)
    while b'memshelf_retention_runs_total{outcome="done"} 1' not in service.get("/metrics").data:
        assert datetime.now(UTC) < deadline, service.log.read_text()


def test_a_service_lets_versions_expire(start, place):
    where = place()
    store, key = prepared(where, SECRET, "clean", "now")
    processes = [start(*where, options=("--keep-versions", "30", "--keep-recent", "1")) for _ in range(2)]
    for service in processes:
        service.key = key
        until_expired(service)
    first, second = processes
    counted = [service.get("/metrics").data for service in processes]
    assert sum(int(each.split(b"memshelf_versions_expired_total ")[-1].split(b"\n")[0]) for each in counted) == 2
    assert leaks(bytes_at(first.where)) == leaks(told(first)) == leaks(told(second)) == []
    lines = [json.loads(line) for line in first.log.read_text().splitlines()]
    runs = [line for line in lines if line["event"] == "versions expired"]
    assert sum(line["versions"] for line in runs) == 2
    assert set(runs[0]) == {"time", "level", "event", "versions", "stores", "ms"}
    versions = first.get(f"/v1/memory_stores/{store}/memory_versions?view=full").json["data"]
    assert [each["content"] for each in versions] == ["now", None, None]
    for each in versions[1:]:
        assert (each["path"], each["content_sha256"], each["content_size_bytes"]) == (None, None, None)
        assert (each["redacted_by"], each["created_by"]["api_key_id"]) == (EXPIRED, "apikey_1")
        assert each["redacted_at"] > each["created_at"]
    zhipu = first.get(
        f"/v1/memory_stores/{store}/memory_versions/{versions[1]['id']}", headers={"zai-version": "2026-05-26"}
    )
    assert zhipu.json["redacted_by"] == EXPIRED
    client = anthropic.Anthropic(base_url=first.url, api_key=key, _strict_response_validation=True)
    listed = list(client.beta.memory_stores.memory_versions.list(store))
    assert listed[1].redacted_by is not None
    assert listed[1].redacted_by.to_dict() == EXPIRED
    client.close()
    assert first.get(f"/v1/memshelf/memory_stores/{store}/verify").json["intact"]
    assert (first.stop(), second.stop()) == (0, 0)


def test_a_service_keeps_everything_unless_it_is_told_otherwise(start, place):
    where = place()
    store, key = prepared(where, "old", "now")
    service = start(*where)
    service.key = key
    versions = service.get(f"/v1/memory_stores/{store}/memory_versions?view=full").json["data"]
    assert [each["content"] for each in versions] == ["now", "old"]
    assert b'memshelf_retention_runs_total{outcome="done"} 0' in service.get("/metrics").data


class EnoughError(Exception):
    pass


async def test_it_runs_now_and_every_day_and_sooner_after_a_failure(tmp_path, caplog):
    now, waits = LONG_AGO, []
    engine = SqliteEngine(tmp_path / "memshelf.db", durable=False)
    shelf = Shelf(engine, mint=Mint(lambda: now))
    store = await old_store(shelf, SECRET, "clean")
    state = ServiceState(shelf, ServiceConfig())

    async def sleep(seconds: float) -> None:
        nonlocal now
        waits.append((seconds, state.metrics.versions_expired))
        now += timedelta(days=20)
        match len(waits):
            case 1:
                await engine.aclose()
                (tmp_path / "memshelf.db").rename(tmp_path / "aside")
                (tmp_path / "memshelf.db").write_bytes(b"no database" * 1000)
            case 2:
                await engine.aclose()
                (tmp_path / "aside").rename(tmp_path / "memshelf.db")
            case 4:
                raise EnoughError

    with caplog.at_level(logging.INFO, "memshelf.service"), pytest.raises(EnoughError):
        await keep_expiring(state, Retention(30, 1), sleep)
    assert waits == [(86_400, 0), (900, 0), (86_400, 1), (86_400, 1)]
    assert state.metrics.retention_runs == {"done": 3, "failed": 1}
    assert [record.getMessage() for record in caplog.records] == [
        "versions expired",
        "retention failed",
        "versions expired",
        "versions expired",
    ]
    assert caplog.records[1].facts == {"code": "unavailable", "versions": 0, "stores": 0}
    assert store not in caplog.text
    await engine.aclose()


async def test_a_mistake_ends_nothing_and_is_logged_without_its_words(tmp_path, caplog):
    def clock() -> datetime:
        raise RuntimeError(SECRET)

    engine = SqliteEngine(tmp_path / "memshelf.db", durable=False)
    state = ServiceState(Shelf(engine, mint=Mint(clock)), ServiceConfig())

    async def sleep(seconds: float) -> None:
        assert seconds == 900
        if state.metrics.retention_runs["failed"] == 2:
            raise EnoughError

    with pytest.raises(EnoughError):
        await keep_expiring(state, Retention(30), sleep)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [("ERROR", "crash")] * 2
    await engine.aclose()
