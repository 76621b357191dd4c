"""Hosted memory stores when network and server fail: the answer is what happened, or that nobody knows."""

from __future__ import annotations

import asyncio
import gc
import logging
import ssl
import sys
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx2
import pytest

from memshelf import (
    FileMount,
    HistoryFileStore,
    MemoryStoreError,
    MemoryStoreFileStore,
    Origin,
    PlatformFileStore,
    SearchableFileStore,
    open_memory_store,
)
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.testing import refused

sys.path.append(str(Path(__file__).parent))
from faulty import AFTER, BEFORE, proxied

from hosted import URL, account, served

NOBODY = Origin()
BOTH = pytest.mark.parametrize("kind", [MemoryStoreFileStore, PlatformFileStore])


class Place:
    """A service, a way to its store that can fail, and one that does not."""

    def __init__(self, proxy, client, key, store_id, kind):
        self.proxy, self.client, self.key, self.store_id = proxy, client, key, store_id
        options = {"timeout": 30.0, "max_answer_bytes": 1_000_000}
        self.store = kind(proxy.url, key, store_id, **options)
        self.other = MemoryStoreFileStore(URL, key, store_id, client=client)

    async def call(self, method, path, body=None):
        headers = {"authorization": f"Bearer {self.key}"}
        answer = await self.client.request(method, f"{URL}/v1/{path}", json=body, headers=headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def contents(self):
        return {entry.path: (await self.other.read(entry.path)).text for entry in await self.other.list()}


@asynccontextmanager
async def place(tmp_path, kind=MemoryStoreFileStore):
    engine = SqliteEngine(tmp_path / "memshelf.db", durable=False)
    async with served(engine) as client:
        key, store_id = await account(engine, tmp_path)
        async with proxied(client, URL) as proxy:
            found = Place(proxy, client, key, store_id, kind)
            async with found.store:
                yield found


@BOTH
@pytest.mark.parametrize("fault", AFTER)
async def test_a_change_whose_reply_is_lost_is_found_to_be_made_and_made_once(tmp_path, kind, fault, pass_time):
    async with place(tmp_path, kind) as here:
        here.proxy.fault, here.proxy.pass_time = fault, pass_time
        first = await here.store.write("a", "one", expected=None, origin=NOBODY)
        second = await here.store.write("a", "two", expected=first, origin=NOBODY)
        moved = await here.store.move("a", "b", expected=second, origin=NOBODY)
        assert (await here.other.read("b")).version == moved
        await here.store.delete("b", expected=moved, origin=NOBODY)
        assert await here.contents() == {}
        assert len(here.proxy.changes) == 4
        versions = (await here.other.versions()).versions
        assert [version.id for version in versions[1:]] == [moved, second, first]


@pytest.mark.parametrize("fault", ["lost", "500", "garbage"])
async def test_restore_redact_and_purge_are_settled_as_well(tmp_path, fault):
    async with place(tmp_path) as here:
        first = await here.store.write("a", "one", expected=None, origin=NOBODY)
        second = await here.store.write("a", "two", expected=first, origin=NOBODY)
        here.proxy.fault = fault
        third = await here.store.restore(first, expected=second, origin=NOBODY)
        assert (await here.other.read("a")).version == third
        redacted = await here.store.redact(second, by="ann")
        assert (redacted.id, redacted.redacted_by) == (second, "ann")
        await here.store.purge()
        assert await here.contents() == {}
        assert len(here.proxy.changes) == 5


@BOTH
@pytest.mark.parametrize("fault", BEFORE)
async def test_a_change_that_may_still_be_made_is_unconfirmed_and_not_sent_again(tmp_path, kind, fault):
    async with place(tmp_path, kind) as here:
        version = await here.store.write("a", "one", expected=None, origin=NOBODY)
        here.proxy.fault = fault
        await refused("write_unconfirmed", here.store.write("a", "two", expected=version, origin=NOBODY))
        await refused("write_unconfirmed", here.store.write("b", "two", expected=None, origin=NOBODY))
        await refused("write_unconfirmed", here.store.move("a", "c", expected=version, origin=NOBODY))
        await refused("write_unconfirmed", here.store.delete("a", expected=version, origin=NOBODY))
        await refused("write_unconfirmed", here.store.purge())
        assert await here.contents() == {"a": "one"}
        assert len(here.proxy.changes) == 6


@pytest.mark.parametrize("fault", BEFORE)
async def test_a_redaction_or_restore_that_was_not_made_is_unconfirmed(tmp_path, fault):
    async with place(tmp_path) as here:
        first = await here.store.write("a", "one", expected=None, origin=NOBODY)
        second = await here.store.write("a", "two", expected=first, origin=NOBODY)
        here.proxy.fault = fault
        await refused("write_unconfirmed", here.store.redact(first, by="ann"))
        await refused("write_unconfirmed", here.store.restore(first, expected=second, origin=NOBODY))
        assert await here.contents() == {"a": "two"}


@BOTH
async def test_a_lost_change_that_another_writer_overtook_is_a_mismatch_with_the_file_as_it_is(tmp_path, kind):
    async with place(tmp_path, kind) as here:
        version = await here.store.write("a", "one", expected=None, origin=NOBODY)

        async def overtake():
            here.proxy.meanwhile = None
            await here.other.write("a", "theirs", expected=version, origin=NOBODY)

        here.proxy.fault, here.proxy.meanwhile = "dropped", overtake
        error = await refused("version_mismatch", here.store.write("a", "ours", expected=version, origin=NOBODY))
        assert error.current.text == "theirs"


@BOTH
async def test_a_lost_change_that_was_made_and_then_overwritten_answers_with_its_own_version(tmp_path, kind):
    async with place(tmp_path, kind) as here:
        version = await here.store.write("a", "one", expected=None, origin=NOBODY)

        async def follow():
            here.proxy.meanwhile = None
            await here.other.write("a", "three", expected=(await here.other.read("a")).version, origin=NOBODY)

        here.proxy.fault, here.proxy.meanwhile = "lost", follow
        second = await here.store.write("a", "two", expected=version, origin=NOBODY)
        assert (await here.other.read_version(second)).text == "two"
        assert await here.contents() == {"a": "three"}


async def test_a_repeated_tool_call_whose_reply_is_lost_answers_with_its_first_result(tmp_path):
    call, other = Origin("run", "ann", "call"), Origin("run", "ann", "other")
    async with place(tmp_path) as here:
        first = await here.store.write("a", "one", expected=None, origin=NOBODY)
        second = await here.store.write("a", "two", expected=first, origin=call)
        here.proxy.fault = "lost"
        assert await here.store.write("a", "two", expected=first, origin=call) == second
        await refused("forbidden", here.store.write("a", "three", expected=first, origin=call))
        assert await here.store.write("a", "two", expected=second, origin=other) == second
        assert len((await here.other.versions()).versions) == 2


async def test_a_request_that_arrives_twice_is_done_once(tmp_path):
    async with place(tmp_path) as here:
        body = {"path": "a", "text": "one", "expected": None, "change_id": "0" * 12 + "7" + "0" * 3 + "8" + "0" * 15}
        root = f"memshelf/memory_stores/{here.store_id}/files"
        assert await here.call("POST", f"{root}/write", body) == await here.call("POST", f"{root}/write", body)
        assert len((await here.other.versions()).versions) == 1


@BOTH
@pytest.mark.parametrize("fault", [*AFTER, *BEFORE])
async def test_a_read_that_fails_is_unavailable(tmp_path, kind, fault, pass_time):
    async with place(tmp_path, kind) as here:
        await here.store.write("a", "one", expected=None, origin=NOBODY)
        here.proxy.fault, here.proxy.pass_time = fault, pass_time
        here.proxy.when = lambda method, path: True
        await refused("unavailable", here.store.read("a"))
        await refused("unavailable", here.store.list())
        await refused("unavailable", here.store.changes(None))
        assert ("GET", "/elsewhere") not in here.proxy.seen


@BOTH
async def test_a_server_that_is_not_there_is_unavailable_also_for_changes(tmp_path, kind):
    async with place(tmp_path, kind) as here:
        gone = kind("http://127.0.0.1:1", here.key, here.store_id)
        await refused("unavailable", gone.read("a"))
        if kind is MemoryStoreFileStore:
            await refused("unavailable", gone.delete("a", expected="x", origin=NOBODY))
        await refused("unavailable", gone.write("a", "one", expected=None, origin=NOBODY))
        await gone.aclose()


async def test_a_change_that_a_service_without_its_database_did_not_begin_is_unavailable(tmp_path):
    engine = SqliteEngine(tmp_path / "memshelf.db", durable=False, recreate=False)
    async with served(engine) as client:
        key, store_id = await account(engine, tmp_path)
        store = MemoryStoreFileStore(URL, key, store_id, client=client)
        version = await store.write("a", "one", expected=None, origin=NOBODY)
        (tmp_path / "memshelf.db").rename(tmp_path / "elsewhere.db")
        for change in (
            store.write("a", "two", expected=version, origin=NOBODY),
            store.write("b", "two", expected=None, origin=NOBODY),
            store.move("a", "b", expected=version, origin=NOBODY),
            store.delete("a", expected=version, origin=NOBODY),
            store.purge(),
        ):
            await refused("unavailable", change)
        (tmp_path / "elsewhere.db").rename(tmp_path / "memshelf.db")
        assert (await store.read("a")).version == version
        assert len(await store.list()) == 1


@BOTH
async def test_what_the_server_refuses_has_its_code(tmp_path, kind):
    async with place(tmp_path, kind) as here:
        version = await here.store.write("a", "one", expected=None, origin=NOBODY)
        await refused("invalid_path", here.store.write("/".join("x" * 21), "x", expected=None, origin=NOBODY))
        await refused("invalid_path", here.store.write("a\u200b", "x", expected=None, origin=NOBODY))
        await here.call("POST", f"memory_stores/{here.store_id}/archive")
        await refused("store_archived", here.store.write("a", "two", expected=version, origin=NOBODY))
        await refused("store_archived", here.store.write("b", "two", expected=None, origin=NOBODY))
        await refused("store_archived", here.store.move("a", "b", expected=version, origin=NOBODY))
        assert (await here.store.read("a")).text == "one"
        await here.store.delete("a", expected=version, origin=NOBODY)
        await here.call("DELETE", f"memory_stores/{here.store_id}")
        await refused("memory_deleted", here.store.list())
        await refused("memory_deleted", here.store.read("a"))
        await refused("memory_deleted", here.store.write("a", "x", expected=None, origin=NOBODY))
        await refused("memory_deleted", here.store.write("a\u200b", "x", expected=None, origin=NOBODY))
        wrong = kind(here.proxy.url, "msk_wrong", here.store_id)
        await refused("forbidden", wrong.list())
        await refused("forbidden", wrong.write("a", "x", expected=None, origin=NOBODY))
        await wrong.aclose()


async def test_a_session_that_mounts_a_store_read_only_reads_it_and_writes_as_itself_elsewhere(tmp_path):
    async with place(tmp_path) as here:
        await here.other.write("a", "one", expected=None, origin=NOBODY)
        for access, writes in (("read_only", False), ("read_write", True)):
            resource = {"type": "memory_store", "memory_store_id": here.store_id, "access": access}
            session = await here.call(
                "POST", "sessions", {"agent": "a", "environment_id": "e", "resources": [resource]}
            )
            token = (await here.call("POST", f"memshelf/sessions/{session['id']}/token", {}))["token"]
            async with MemoryStoreFileStore(here.proxy.url, token, here.store_id) as store:
                assert (await store.read("a")).text == "one"
                call = store.write("b", "two", expected=None, origin=Origin("run", "ann", "call", "other", "other"))
                if not writes:
                    await refused("forbidden", call)
                    continue
                origin = (await store.read_version(await call)).origin
                assert origin == Origin("run", "ann", "call", session["id"], None)
                await refused("forbidden", store.purge())
                await refused("forbidden", store.redact("memver_x", by="ann"))


async def test_a_redaction_is_not_made_in_the_name_of_a_key(tmp_path):
    async with place(tmp_path) as here:
        await refused("invalid_value", here.store.redact("memver_x", by="apikey_someone"))


@BOTH
async def test_neither_errors_nor_logs_hold_the_key(tmp_path, kind, caplog):
    caplog.set_level(logging.DEBUG)
    async with place(tmp_path, kind) as here:
        errors = []
        for fault in (*AFTER[:5], *BEFORE, None):
            here.proxy.fault, here.proxy.when = fault, lambda method, path: True
            for call in (here.store.read("x"), here.store.write("x/y", "z", expected=None, origin=NOBODY)):
                try:
                    await call
                except MemoryStoreError as error:
                    errors.append(repr(error) + repr(error.__cause__) + repr(vars(error)))
        assert len(errors) >= 10
        assert here.key not in "".join(errors)
        assert here.key not in caplog.text
        assert here.key not in repr(here.store)


async def test_a_server_that_repeats_the_key_in_its_message_does_not_get_it_into_ours(tmp_path):
    async with place(tmp_path) as here:
        missing = f"memstore_{here.key}"
        store = MemoryStoreFileStore(here.proxy.url, here.key, missing)
        error = await refused("memory_deleted", store.list())
        assert "[key]" in error.message
        assert here.key not in error.message
        await store.aclose()


async def test_the_store_is_opened_as_what_the_server_offers(tmp_path):
    async with place(tmp_path) as here:
        ours = await open_memory_store(here.proxy.url, here.key, here.store_id)
        assert isinstance(ours, MemoryStoreFileStore)
        assert isinstance(ours, HistoryFileStore)
        assert isinstance(ours, SearchableFileStore)
        plain = await open_memory_store(URL, here.key, here.store_id, client=_WithoutExtensions(here.client))
        assert isinstance(plain, PlatformFileStore)
        assert not isinstance(plain, HistoryFileStore)
        assert not isinstance(plain, SearchableFileStore)
        small = await open_memory_store(URL, here.key, here.store_id, client=here.client, max_answer_bytes=2_000)
        await refused("unavailable", _filled(small))
        await refused("unknown_memory", open_memory_store(here.proxy.url, here.key, "memstore_none"))
        await refused("forbidden", open_memory_store(here.proxy.url, "wrong", here.store_id))
        FileMount("team", ours, "write")
        FileMount("team", plain, "write")


async def _filled(store):
    await store.write("long.md", "x" * 2_000, expected=None, origin=Origin())
    await store.read("long.md")


class _WithoutExtensions(httpx2.AsyncClient):
    """A client of a server that knows no `/memshelf`."""

    is_closed = False

    def __init__(self, client):
        self._client = client

    def build_request(self, method, url, **options):
        return self._client.build_request(method, url.replace("/memshelf/", "/nothing/"), **options)

    async def send(self, request, **options):
        return await self._client.send(request, **options)


@pytest.mark.parametrize("url", ["ftp://x", "x", "http://", "http://user:pw@x", "http://x?k=v", "http://x#y"])
def test_an_address_that_is_none_is_refused_at_construction(url):
    with pytest.raises(ValueError, match="base_url"):
        MemoryStoreFileStore(url, "key", "memstore_x")


@pytest.mark.parametrize("key", ["", "a b", "a\n", "é"])
def test_a_key_that_no_header_can_hold_is_refused_at_construction_and_not_shown(key):
    with pytest.raises(ValueError, match="api_key is"):
        MemoryStoreFileStore("http://x", key, "memstore_x")


@BOTH
async def test_a_server_without_tls_is_named(kind):
    def refuse(_request):
        raise httpx2.ConnectError("failed") from ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number")

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(refuse)) as client:
        error = await refused("unavailable", kind(URL, "msk_key", "memstore_1", client=client).list())
    assert error.message.startswith("TLS with the server failed: check its address, which begins with http:// if ")


class _Listing(BaseHTTPRequestHandler):
    """An empty store, on a connection that stays open. A `/v1` too many leads nowhere."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        there = not self.path.startswith("/v1/v1/")
        self._answer(200 if there else 404, b'{"data": [], "cursor": "0", "next_page": null}' if there else b"")

    def _answer(self, status, body):
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        pass


@pytest.fixture
def empty_store():
    with ThreadingHTTPServer(("127.0.0.1", 0), _Listing) as server:
        server.daemon_threads = True
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@BOTH
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")  # of a loop that ends first, only garbage is left
def test_every_event_loop_may_use_a_store(empty_store, kind):
    store = kind(empty_store, "msk_key", "memstore_1")

    async def first():
        assert await store.list() == []

    async def last():
        async with store:
            assert await store.list() == []
        assert await store.list() == []  # a closed store opens again
        await store.aclose()

    for loop in (first, first, last):
        asyncio.run(loop())
    gc.collect()  # the store, which is here still, holds on to none of them


@BOTH
def test_an_address_with_a_v1_too_many_is_named(empty_store, kind):
    async def ask():
        async with kind(f"{empty_store}/v1", "msk_key", "memstore_1") as store:
            with pytest.raises(MemoryStoreError, match=r"check its .*address"):
                await store.read("a")

    asyncio.run(ask())


@BOTH
async def test_a_certificate_that_is_not_trusted_is_named(kind):
    def refuse(_request):
        wrong = ssl.SSLCertVerificationError(1, "certificate verify failed")
        wrong.verify_message = "self-signed certificate"
        raise httpx2.ConnectError("failed") from wrong

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(refuse)) as client:
        store = kind(URL, "msk_key", "memstore_1", client=client)
        error = await refused("unavailable", store.list())
    assert error.message == "The server's certificate is not trusted (self-signed certificate); nothing changed."
