"""`MEM0_OSS` against the contract, on the real mem0 library; what its client for the platform sends, and our store too.

Run by `make test-mem0`; not collected otherwise.

`MEM0_PYTHON` is a Python that has `mem0ai`. Embeddings come from an endpoint on the loopback interface that hashes
words; nothing leaves the machine.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
import os
import re
import subprocess
import threading
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest

from memshelf.records.backends.mem0 import MEM0_OSS, MEM0_PLATFORM
from memshelf.testing import RecordStoreContract, refused
from memshelf.testing.mem0 import FakeMem0
from memshelf.testing.records import texts

KEY = "m0sk_test"


class Embeddings(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        data = [{"object": "embedding", "index": at, "embedding": vector(text)} for at, text in enumerate(texts)]
        body = json.dumps({"object": "list", "data": data, "model": asked["model"], "usage": {}}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def vector(text: str) -> list[float]:
    found = [0.0] * 256
    for word in re.findall(r"[a-z0-9]+|[\u3400-\u9fff]", text.lower()) or [text]:
        found[hashlib.sha256(word.encode()).digest()[0]] += 1.0
    length = math.hypot(*found)
    return [each / length for each in found]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    embeddings = ThreadingHTTPServer(("127.0.0.1", 0), Embeddings)
    threading.Thread(target=embeddings.serve_forever, daemon=True).start()
    program = [os.environ["MEM0_PYTHON"], str(Path(__file__).with_name("adapter.py"))]
    arguments = [str(tmp_path_factory.mktemp("mem0")), f"http://127.0.0.1:{embeddings.server_address[1]}/v1", KEY]
    with subprocess.Popen([*program, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        yield server.stdout.readline().strip()
        server.stdin.close()
        server.wait(timeout=20)
    embeddings.shutdown()
    embeddings.server_close()


@asynccontextmanager
async def opened(address: str, user: str, key: str = KEY):
    configuration = {"base_url": address, "timeout": 60}
    async with (
        httpx2.AsyncClient(timeout=60) as http,
        MEM0_OSS.open(configuration, {"api_key": key}, namespace=user, http=http) as store,
    ):
        yield store


class TestRealMem0(RecordStoreContract):
    """One server for all; each test has users of its own."""

    namespaces = tuple(name for name in RecordStoreContract.namespaces if " " not in name)

    @pytest.fixture(autouse=True)
    def _server(self, address):
        self.address = address

    def open(self, place: Path, namespace: str = "default"):
        return opened(self.address, f"{hashlib.sha256(str(place).encode()).hexdigest()[:12]}-{namespace}")


async def test_a_wrong_key_is_unavailable_and_writes_nothing(address):
    async with opened(address, "alice", "wrong") as store:
        await refused("unavailable", store.add("likes tea"))
    async with opened(address, "alice") as store:
        assert await texts(store) == []


async def test_pages_stand_in_the_order_of_adding_though_the_server_lists_by_random_ids(address):
    async with opened(address, "many") as store:
        for each in range(60):
            await store.add(f"record {each}")
        seen, cursor = [], None
        while True:
            page = await store.list(limit=25, cursor=cursor)
            seen += [record.text for record in page.records]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert seen == [f"record {each}" for each in range(60)]
        await store.purge()
        assert await texts(store) == []


async def test_the_platform_is_asked_as_mem0s_own_client_asks_it(tmp_path):
    theirs = FakeMem0("mem0_platform", api_key="m0-key", purges_after=0)
    async with theirs.served() as address:
        program = [os.environ["MEM0_PYTHON"], str(Path(__file__).with_name("client.py")), str(tmp_path), address]
        done = await asyncio.to_thread(subprocess.run, program, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    added, page, found, *_ = map(json.loads, done.stdout.splitlines())
    (record_id,) = [each["id"] for each in added["results"]]
    assert [each["id"] for each in page["results"]] == [each["id"] for each in found["results"]] == [record_id]
    ours = FakeMem0("mem0_platform", api_key="m0-key", purges_after=0)
    async with (
        ours.client() as http,
        MEM0_PLATFORM.open({}, {"api_key": "m0-key"}, namespace="alice", http=http) as store,
    ):
        record = await store.add("likes tea")
        await store.list(limit=5)
        await store.search("tea", limit=7)
        await store.update(record.id, "likes coffee")
        await store.delete(record.id)
        await store.purge()
    requests = {(method, path.replace(record_id, "ID")) for method, path in theirs.requests}
    assert {(method, path.replace(record.id, "ID")) for method, path in ours.requests} == requests
