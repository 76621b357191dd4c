"""Rates, protocol headers, slow clients, probes and metrics, in the process of the test."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import uvicorn

from memshelf.service.accounts import Accounts
from memshelf.service.app import create_app
from memshelf.service.config import Rate, ServiceConfig
from memshelf.service.protocol import protocol_for
from memshelf.service.rate import RateLimiter
from memshelf.service.state import ServiceState
from memshelf.storage.ids import Mint
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.stores.shelf import Shelf


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Local:
    """A service in this event loop, on a socket."""

    def __init__(self, state: ServiceState, server: uvicorn.Server, port: int, key: str) -> None:
        self.state = state
        self.server = server
        self.port = port
        self.key = key

    def head(self, method: str, path: str, *lines: str) -> bytes:
        named = (f"{method} {path} HTTP/1.1", "host: x", f"authorization: Bearer {self.key}", *lines)
        return "\r\n".join((*named, "", "")).encode()

    async def ask(self, method: str, path: str, *lines: str, body: bytes = b"") -> tuple[int, dict[str, str], bytes]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        named = [f"{method} {path} HTTP/1.1", "host: x", "connection: close", f"content-length: {len(body)}", *lines]
        if not any(line.startswith("authorization") for line in lines):
            named.append(f"authorization: Bearer {self.key}")
        writer.write("\r\n".join([*named, "", ""]).encode() + body)
        received = await reader.read()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return parsed(received)


def parsed(received: bytes) -> tuple[int, dict[str, str], bytes]:
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in lines), body


@pytest.fixture
def serve(tmp_path: Path):
    @contextlib.asynccontextmanager
    async def serve(clock: Clock | None = None, **settings: object) -> AsyncIterator[Local]:
        config = ServiceConfig(**settings)
        shelf = Shelf(SqliteEngine(tmp_path / "memshelf.db", durable=False), config.limits)
        state = ServiceState(shelf, config, **({"clock": clock} if clock is not None else {}))
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        server = uvicorn.Server(
            uvicorn.Config(
                create_app(state),
                http=protocol_for(config, Mint()),
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                timeout_keep_alive=600,  # so that it is no timer of uvicorn that ends a connection here
            )
        )
        key = await Accounts(shelf.engine).create_key("default")
        task = asyncio.create_task(server._serve([listener]))
        try:
            yield Local(state, server, listener.getsockname()[1], key)
        finally:
            server.should_exit = True
            await task

    return serve


def test_a_bucket_fills_up_again():
    clock = Clock()
    limiter = RateLimiter(Rate(per_second=2, burst=3), clock)
    assert [limiter.take("a").remaining for _ in range(3)] == [2, 1, 0]
    refused = limiter.take("a")
    assert (refused.retry_after, refused.remaining, refused.reset) == (1, 0, 2)
    assert limiter.take("b").retry_after is None
    clock.now += 0.5
    assert limiter.take("a").retry_after is None
    assert limiter.take("a").retry_after == 1
    clock.now += 100
    assert limiter.take("a").remaining == 2


@pytest.mark.parametrize(("per_second", "burst"), [(0, 1), (-1, 1), (1, 0)])
def test_a_rate_that_lets_nothing_through_is_none(per_second, burst):
    with pytest.raises(ValueError, match="rate"):
        Rate(per_second, burst)


async def test_each_key_has_its_own_rate(serve):
    clock = Clock()
    async with serve(clock, reads=Rate(1, 3), writes=Rate(1, 1)) as local:
        for remaining in (2, 1, 0):
            status, headers, _ = await local.ask("GET", "/v1/memory_stores")
            assert status == 200
            assert (headers["ratelimit-limit"], headers["ratelimit-remaining"]) == ("3", str(remaining))
            assert int(headers["ratelimit-reset"]) == 3 - remaining
            assert "retry-after" not in headers
        status, headers, body = await local.ask("GET", "/v1/memory_stores")
        assert (status, headers["retry-after"], json.loads(body)["error"]["type"]) == (429, "1", "rate_limit_error")
        create = ("POST", "/v1/memory_stores", "content-type: application/json")
        assert (await local.ask(*create, body=b'{"name":"n"}'))[0] == 200
        assert (await local.ask(*create, body=b'{"name":"n"}'))[0] == 429
        other = await local.state.accounts.create_key("default")
        assert (await local.ask("GET", "/v1/memory_stores", f"authorization: Bearer {other}"))[0] == 200
        assert (await local.ask("GET", "/healthz"))[0] == 200
        clock.now += 1
        assert (await local.ask("GET", "/v1/memory_stores"))[0] == 200


async def test_a_revoked_key_is_remembered_for_a_moment_at_most(serve):
    clock = Clock()
    async with serve(clock, key_seconds=1.0) as local:
        assert (await local.ask("GET", "/v1/memory_stores"))[0] == 200
        (key,) = await local.state.accounts.keys()
        await local.state.accounts.revoke(key.id)
        clock.now += 1.001
        assert (await local.ask("GET", "/v1/memory_stores"))[0] == 401
        assert (await local.state.accounts.keys())[0].revoked_at is not None


ANTHROPIC = "anthropic-version: 2023-06-01"
MEMORY = "anthropic-beta: agent-memory-2026-07-22"
AGENTS = "anthropic-beta: managed-agents-2026-04-01"
BOTH = "anthropic-beta: managed-agents-2026-04-01,agent-memory-2026-07-22"
ZAI, NEW, OLD = (
    "zai-version: 2026-05-26",
    "zai-beta: other, managed-agents-2026-09-22",
    "zai-beta: managed-agents-2026-05-26",
)


HEADERS = [
    ("/memory_stores", (), 400),
    ("/memory_stores", (ANTHROPIC,), 400),
    ("/memory_stores", (MEMORY,), 400),
    ("/memory_stores", (ANTHROPIC, MEMORY), 200),
    ("/memory_stores", (ANTHROPIC, AGENTS), 200),
    ("/memory_stores", (ANTHROPIC, BOTH), 400),
    ("/memory_stores", (ANTHROPIC, AGENTS, MEMORY), 400),
    ("/memory_stores", (ANTHROPIC, MEMORY, "anthropic-beta: files-api-2025-04-14"), 200),
    ("/memory_stores", (ANTHROPIC, "anthropic-beta: files-api-2025-04-14", f"{MEMORY}  "), 200),
    ("/sessions", (ANTHROPIC, MEMORY), 400),
    ("/sessions", (ANTHROPIC, AGENTS), 200),
    ("/memory_stores", (ZAI,), 400),
    ("/memory_stores", (NEW,), 400),
    ("/memory_stores", (ZAI, NEW), 200),
    ("/memory_stores", (ZAI, OLD), 200),
    ("/memory_stores", (f"{ZAI} ", OLD, "zai-beta: other"), 200),
    ("/memory_stores", ("zai-version: 2026-01-01", NEW), 400),
    ("/sessions", (ZAI, NEW), 200),
]


async def test_strict_headers_are_those_of_the_platforms(serve):
    async with serve(strict_headers=True) as local:
        for path, lines, expected in HEADERS:
            status, _, _ = await local.ask("GET", f"/v1{path}", *lines)
            assert (path, lines, status) == (path, lines, expected)


async def test_other_services_take_any_headers(serve):
    async with serve() as local:
        for path, lines, _ in HEADERS:
            assert (await local.ask("GET", f"/v1{path}", *lines))[0] == 200


async def test_a_header_on_several_lines_is_one_list(serve):
    async with serve() as local:
        kind = "content-type: application/json"
        for lines, expected in (((OLD, "zai-beta: other"), 201), ((OLD, NEW), 200), ((NEW, OLD), 200)):
            status, _, _ = await local.ask("POST", "/v1/memory_stores", kind, *lines, body=b'{"name":"n"}')
            assert (lines, status) == (lines, expected)
        assert (await local.ask("GET", "/v1/memory_stores", "x-api-key:   " + local.key + "  "))[0] == 200
        same = (f"authorization: Bearer {local.key}",) * 2
        assert (await local.ask("POST", "/v1/memory_stores", kind, kind, *same, body=b'{"name":"n"}'))[0] == 200
        two = (f"authorization: Bearer {local.key}", "authorization: Bearer other")
        assert (await local.ask("GET", "/v1/memory_stores", *two))[0] == 401
        status, _, _ = await local.ask("POST", "/v1/memory_stores", kind, "content-type: text/plain", body=b"{}")
        assert status == 415


async def test_a_head_that_does_not_end(serve):
    async with serve(header_seconds=0.05) as local:
        for start in (b"", b"GET /v1/memory_stores HT", b"GET /v1/memory_stores HTTP/1.1\r\nhost: x\r\n"):
            client = socket.create_connection(("127.0.0.1", local.port))
            client.sendall(start)  # before the service is asked for a connection, from when on it counts
            reader, writer = await asyncio.open_connection(sock=client)
            status, headers, body = parsed(await reader.read())
            assert (status, json.loads(body)["error"]["type"]) == (408, "timeout_error")
            assert headers["request-id"] == json.loads(body)["request_id"]
            writer.close()


async def test_a_body_that_does_not_end(serve):
    async with serve(body_seconds=0.05) as local:
        reader, writer = await asyncio.open_connection("127.0.0.1", local.port)
        writer.write(local.head("POST", "/v1/memory_stores", "content-length: 9") + b"{")
        status, headers, body = parsed(await reader.read())
        assert (status, headers["connection"], json.loads(body)["error"]["type"]) == (408, "close", "timeout_error")
        writer.close()
        _, _, body = await local.ask("GET", "/v1/memory_stores")
        assert json.loads(body)["data"] == []


async def test_a_request_that_does_not_end_behind_one_that_came_whole(serve):
    async with serve(header_seconds=0.5, body_seconds=0.05) as local:
        whole = local.head("POST", "/v1/memory_stores", "content-type: application/json", "content-length: 12")
        for start in (b"POST /v1/memory_sto", local.head("POST", "/v1/memory_stores", "content-length: 9") + b"{"):
            reader, writer = await asyncio.open_connection("127.0.0.1", local.port)
            writer.write(whole + b'{"name":"n"}' + start)
            answers = await reader.read()
            assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200", b"408"]
            writer.close()


async def test_a_client_that_takes_no_answer_in_is_left(serve):
    async with serve(send_seconds=0.05, idle_seconds=60) as local:

        async def ask(method: str, path: str, body: bytes = b"") -> dict[str, object]:
            return json.loads((await local.ask(method, path, "content-type: application/json", body=body))[2])

        store = (await ask("POST", "/v1/memory_stores", b'{"name":"n"}'))["id"]
        for number in range(20):
            content = json.dumps({"path": f"/{number}", "content": "x" * 100_000}).encode()
            await ask("POST", f"/v1/memory_stores/{store}/memories", content)
        _reader, writer = await asyncio.open_connection("127.0.0.1", local.port, limit=1)
        writer.transport.pause_reading()
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        writer.write(local.head("GET", f"/v1/memory_stores/{store}/memories?view=full") * 8)
        lost = asyncio.get_running_loop().create_future()
        writer.transport.get_protocol().connection_lost = lambda error: lost.done() or lost.set_result(error)
        await asyncio.sleep(0)
        # When the service has given up, writing to it fails sooner or later.
        while not lost.done():
            writer.write(b"x" * 1_000)
            await asyncio.sleep(0.01)
        assert (await local.ask("GET", "/healthz"))[0] == 200


async def test_a_body_that_goes_on_after_its_refusal_is_cut_off(serve):
    async with serve(send_seconds=0.05) as local:
        reader, writer = await asyncio.open_connection("127.0.0.1", local.port)
        writer.write(b"POST /v1/memory_stores HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\n{")
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 401 ")
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        writer.close()


async def test_what_the_end_of_the_service_cuts_short_has_an_answer(serve, monkeypatch):
    from memshelf.stores.catalogue import Stores

    begun = asyncio.Semaphore(0)

    async def never(*_: object, **__: object) -> None:
        begun.release()
        await asyncio.Event().wait()

    monkeypatch.setattr(Stores, "create", never)
    monkeypatch.setattr(Stores, "retrieve", never)
    async with serve() as local:
        read = asyncio.create_task(local.ask("GET", "/v1/memory_stores/memstore_1"))
        change = asyncio.create_task(
            local.ask("POST", "/v1/memory_stores", "content-type: application/json", body=b'{"name":"n"}')
        )
        for _ in range(2):
            await begun.acquire()
        reader, writer = await asyncio.open_connection("127.0.0.1", local.port)
        writer.write(local.head("POST", "/v1/memory_stores", "content-type: application/json", "content-length: 9"))
        while local.state.metrics.in_flight < 3:
            await asyncio.sleep(0)
        for task in local.server.server_state.tasks:  # as uvicorn does it when the time is over
            task.cancel()
        answers = [await read, await change, parsed(await reader.readuntil(b'"}') + await reader.readuntil(b'"}'))]
        writer.close()
    for (status, headers, body), expected in zip(answers, (503, 504, 503), strict=True):
        said = json.loads(body)
        assert (status, headers["request-id"], said["type"]) == (expected, said["request_id"], "error")
        assert ("may or may not" in said["error"]["message"]) == (expected == 504)


async def test_the_probes(serve):
    async with serve() as local:
        assert (await local.ask("GET", "/healthz", "authorization: none"))[0] == 200
        assert (await local.ask("GET", "/readyz", "authorization: none"))[0] == 200
        local.state.ending = True
        status, _, body = await local.ask("GET", "/readyz")
        assert (status, json.loads(body)) == (503, {"status": "ending"})
        local.state.ending = False
        await local.ask("GET", "/v1/memory_stores/memstore_1")
        await local.ask("GET", "/v1/memory_stores/memstore_2/nothing")
        status, headers, body = await local.ask("GET", "/metrics")
        assert (status, headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
        text = body.decode()
        assert (
            'memshelf_requests_total{method="GET",route="/v1/memory_stores/{memory_store_id}",status="404"} 1' in text
        )
        assert 'memshelf_requests_total{method="GET",route="unmatched",status="404"} 1' in text
        assert 'memshelf_request_seconds_bucket{route="/healthz",le="+Inf"} 1' in text
        assert "memshelf_requests_in_flight 1\n" in text
        assert "memstore_1" not in text


async def test_probes_may_be_asked_without_their_answer(serve):
    async with serve() as local:
        for path in ("/healthz", "/readyz", "/metrics"):
            status, headers, body = await local.ask("HEAD", path)
            assert (status, body, int(headers["content-length"]) > 0) == (200, b"", True)


async def test_a_crash_outside_of_the_api_has_the_envelope_as_well(serve, caplog, monkeypatch):
    async with serve() as local:

        def crash() -> str:
            raise RuntimeError("SECRET")

        monkeypatch.setattr(local.state.metrics, "render", crash)
        status, headers, body = await local.ask("GET", "/metrics")
    assert (status, json.loads(body)["error"]["type"]) == (500, "api_error")
    assert json.loads(body)["request_id"] == headers["request-id"]
    assert [record.name for record in caplog.records if record.levelname == "ERROR"] == ["memshelf.service"]


async def test_a_database_that_cannot_be_used_is_not_ready(tmp_path, serve):
    async with serve() as local:
        (tmp_path / "memshelf.db").unlink()
        (tmp_path / "memshelf.db").mkdir()
        await local.state.shelf.engine.aclose()
        status, _, body = await local.ask("GET", "/readyz")
        assert (status, json.loads(body)) == (503, {"status": "database unavailable"})
        status, headers, body = await local.ask("GET", "/v1/memory_stores")
        assert (status, json.loads(body)["error"]["type"]) == (503, "api_error")
        assert headers["retry-after"] == "1"


async def test_a_crash_is_an_answer_and_a_line_without_what_was_sent(serve, caplog, monkeypatch):
    from memshelf.stores.catalogue import Stores

    async def crash(self: Stores, name: str, *_: object) -> None:
        raise RuntimeError(f"the name is {name}")

    monkeypatch.setattr(Stores, "create", crash)
    async with serve() as local:
        status, headers, body = await local.ask(
            "POST", "/v1/memory_stores", "content-type: application/json", body=b'{"name":"SECRET"}'
        )
    assert (status, json.loads(body)["error"]["type"]) == (500, "api_error")
    assert b"SECRET" not in body
    (record,) = [record for record in caplog.records if record.name == "memshelf.service"]
    from memshelf.service.logs import _Lines

    line = json.loads(_Lines().format(record))
    assert (line["event"], line["error"], line["request_id"]) == ("crash", "RuntimeError", headers["request-id"])
    assert any("routes/stores.py" in place for place in line["at"])
    assert "SECRET" not in json.dumps(line)
