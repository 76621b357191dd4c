"""What the mem0 stores send, what they make of any answer, and what they refuse to open."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager

import httpx2
import pytest

from memshelf.records.backends.mem0 import MEM0_OSS, MEM0_PLATFORM
from memshelf.records.protocol import RecordStore
from memshelf.testing import refused
from memshelf.testing.mem0 import FakeMem0
from memshelf.testing.records import texts

BOTH = ["mem0_oss", "mem0_platform"]
UNKNOWN = ["dropped", "lost", "failed", "failed_after", "malformed", "oversize", "redirected"]


def definition(flavour):
    return {"mem0_oss": MEM0_OSS, "mem0_platform": MEM0_PLATFORM}[flavour]


@asynccontextmanager
async def opened(fake: FakeMem0, namespace="alice", **configuration):
    credential = {"api_key": fake.api_key or "any"}
    configuration = {"base_url": "http://mem0.test", **configuration}
    async with (
        fake.client() as http,
        definition(fake.flavour).open(configuration, credential, namespace=namespace, http=http) as store,
    ):
        yield store


@asynccontextmanager
async def answering(answer, flavour="mem0_oss", **configuration):
    """A store whose requests a function answers, and the list of them."""
    requests = []

    def handle(request):
        requests.append(request)
        return answer(request)

    configuration = {"base_url": "http://mem0.test", **configuration}
    async with (
        httpx2.AsyncClient(transport=httpx2.MockTransport(handle)) as http,
        definition(flavour).open(configuration, {"api_key": "key-1"}, namespace="alice", http=http) as store,
    ):
        yield store, requests


async def given_up(call, fake, fault, pass_time):
    """The call, for which time passes when it has arrived and no answer will come."""
    calling, before = asyncio.ensure_future(call), len(fake.requests)
    while fault == "hanging" and len(fake.requests) == before:
        await asyncio.sleep(0)
    pass_time(60 if fault == "hanging" else 0)
    return await calling


def record(text="likes tea", **more):
    return {"id": "m1", "memory": text, "user_id": "alice", "created_at": "2026-01-01T00:00:00Z", **more}


# What is sent


@pytest.mark.parametrize(
    ("flavour", "expected"),
    [
        (
            "mem0_oss",
            [
                ("POST", "/memories"),
                ("GET", "/memories/m1"),
                ("GET", "/memories/m1"),
                ("PUT", "/memories/m1"),
                ("GET", "/memories/m1"),
                ("POST", "/search"),
                ("GET", "/memories?user_id=alice&top_k=1000"),
            ],
        ),
        (
            "mem0_platform",
            [
                ("POST", "/v3/memories/add/"),
                ("GET", "/v1/memories/m1/"),
                ("GET", "/v1/memories/m1/"),
                ("PUT", "/v1/memories/m1/"),
                ("GET", "/v1/memories/m1/"),
                ("POST", "/v3/memories/search/"),
                ("POST", "/v3/memories/?page=1&page_size=100"),
            ],
        ),
    ],
)
async def test_requests_are_those_of_the_server(flavour, expected):
    def answer(request):
        if request.method == "GET" and request.url.path.strip("/").endswith("m1"):
            return httpx2.Response(200, json=record())
        if request.method == "PUT":
            return httpx2.Response(200, json={"message": "updated"})
        return httpx2.Response(200, json={"results": [record(event="ADD", score=0.5)], "next": None})

    async with answering(answer, flavour) as (store, requests):
        await store.add("likes tea")
        await store.update("m1", "likes tea")
        await store.search("what to drink", limit=7)
        await store.list(limit=3)
    assert [(each.method, each.url.raw_path.decode()) for each in requests] == expected
    bodies = {str(each.url.path): json.loads(each.content) for each in requests if each.content}
    add, search = ("/memories", "/search") if flavour == "mem0_oss" else ("/v3/memories/add/", "/v3/memories/search/")
    assert bodies[add] == {
        "messages": [{"role": "user", "content": "likes tea"}], "user_id": "alice", "infer": False,
    }  # fmt: skip
    assert bodies[search] == {"query": "what to drink", "filters": {"user_id": "alice"}, "top_k": 7}
    assert [body for body in bodies.values() if "text" in body] == [{"text": "likes tea"}]
    if flavour == "mem0_platform":
        assert bodies["/v3/memories/"] == {"filters": {"user_id": "alice"}}
    header, value = ("x-api-key", "key-1") if flavour == "mem0_oss" else ("authorization", "Token key-1")
    assert {each.headers[header] for each in requests} == {value}


async def test_the_open_source_server_is_asked_without_a_key_when_there_is_none():
    fake = FakeMem0("mem0_oss")
    seen = []

    async def note(request):
        seen.append(dict(request.headers))

    async with fake.client() as http:
        http.event_hooks = {"request": [note]}
        async with MEM0_OSS.open({"base_url": "http://mem0.test/"}, namespace="alice", http=http) as store:
            await store.add("likes tea")
        assert not http.is_closed
    assert all("x-api-key" not in headers and "authorization" not in headers for headers in seen)


async def test_slashes_at_the_end_of_the_address_are_dropped_and_its_path_is_kept():
    async with answering(lambda _: httpx2.Response(200, json={"results": []}), base_url="http://h:1/mem0//") as (
        store,
        requests,
    ):
        await store.search("tea", limit=1)
    assert str(requests[0].url) == "http://h:1/mem0/search"


async def test_the_platform_has_an_address_of_its_own():
    fake = FakeMem0("mem0_platform")
    async with (
        fake.client() as http,
        MEM0_PLATFORM.open({}, {"api_key": "k"}, namespace="alice", http=http) as store,
    ):
        assert isinstance(store, RecordStore)
        http.event_hooks = {"request": [_is_for_the_platform]}
        await store.add("likes tea")


async def _is_for_the_platform(request):
    assert request.url.host == "api.mem0.ai"
    assert request.url.scheme == "https"


async def test_a_search_for_half_a_surrogate_pair_is_sent_as_utf_8():
    async with answering(lambda _: httpx2.Response(200, json={"results": []})) as (store, requests):
        await store.search("tea \ud800", limit=1)
    assert json.loads(requests[0].content)["query"] == "tea \ufffd"


async def test_a_blank_search_asks_nobody():
    async with answering(lambda _: httpx2.Response(500)) as (store, requests):
        assert await store.search(" \n", limit=1) == []
    assert requests == []


# Opening


@pytest.mark.parametrize(
    "namespace", ["", " ", "a b", "*", "a*", "a\n", "a\x00", "\ud800", "\u200b", "\u3000", "x" * 257, None, 7]
)
@pytest.mark.parametrize("flavour", BOTH)
def test_a_name_that_mem0_could_take_for_more_than_one_user_is_refused(flavour, namespace):
    with pytest.raises(ValueError, match="namespace"):
        definition(flavour).open({"base_url": "https://mem0.example"}, {"api_key": "k"}, namespace=namespace)


@pytest.mark.parametrize("namespace", ["a", "x" * 256, "用户1", "a/b?c=d&e#f", "user%", "../x", "ñ:1"])
@pytest.mark.parametrize("flavour", BOTH)
async def test_every_other_name_is_a_namespace_of_its_own(flavour, namespace):
    fake = FakeMem0(flavour)
    async with opened(fake, namespace) as store, opened(fake, "bob") as other:
        await other.add("bob's")
        await store.add("likes tea")
        assert await texts(store) == ["likes tea"]
        await store.purge()
        assert await texts(store) == []
        assert await texts(other) == ["bob's"]


@pytest.mark.parametrize(
    "base_url",
    ["", "mem0.example", "ftp://mem0.example", "https://", "https:///x", "https://u@mem0.example", "http://u:p@h",
     "https://@h", "https://h?x=1", "https://h?", "https://h/#f", "https://h#", "https://h:x", "https://h:99999",
     "https://h:0", "https://h /", "https://h\n", "https://h\\x", "file:///etc", "//h", None, 7, b"https://h"],
)  # fmt: skip
def test_an_address_that_is_none_is_refused_without_being_told(base_url):
    with pytest.raises(ValueError, match="base_url is") as refusal:
        MEM0_OSS.open({"base_url": base_url}, namespace="alice")
    assert "u:p" not in str(refusal.value)


@pytest.mark.parametrize("credential", [None, {}, {"api_key": ""}, {"api_key": "a b"}, {"api_key": "k\n"},
                                        {"api_key": "é"}, {"api_key": 7}, {"key": "k"}])  # fmt: skip
def test_the_platform_needs_a_key(credential):
    with pytest.raises(ValueError, match=r"api_key|key, which means nothing"):
        MEM0_PLATFORM.open({}, credential, namespace="alice")


def test_the_open_source_server_has_no_address_of_its_own():
    with pytest.raises(ValueError, match="base_url"):
        MEM0_OSS.open({}, namespace="alice")


@pytest.mark.parametrize("more", [{"timeout": 0}, {"timeout": "5"}, {"timeout": True}, {"baseurl": "https://h"}])
def test_a_configuration_with_anything_else_is_refused(more):
    with pytest.raises(ValueError, match=r"timeout|baseurl"):
        MEM0_OSS.open({"base_url": "https://mem0.example", **more}, namespace="alice")


def test_an_address_or_a_key_in_the_place_of_a_mapping_is_refused_without_repeating_it():
    for configuration, credential in (("https://mem0.example", None), (None, None), ({}, "m0-secret")):
        with pytest.raises(TypeError, match=r"`(configuration|credential)` is of type Mapping") as refusal:
            MEM0_PLATFORM.open(configuration, credential, namespace="alice")
        assert "secret" not in str(refusal.value)
    with pytest.raises(TypeError, match="`http` is of type AsyncClient"):
        MEM0_OSS.open({"base_url": "https://mem0.example"}, namespace="alice", http=object())


# The client of its own


@pytest.mark.parametrize("base_url", ["http://mem0.example", "https://127.0.0.1:1", "https://localhost", "https://[::1]",
                                      "https://169.254.169.254"])  # fmt: skip
async def test_without_a_client_only_public_https_is_reached_and_the_refusal_says_what_to_do(base_url):
    async with MEM0_OSS.open({"base_url": base_url}, namespace="alice") as store:
        error = await refused("unavailable", store.search("tea", limit=1))
        assert "http=" in error.message
        await refused("unavailable", store.add("likes tea"))


async def test_with_a_client_a_server_on_loopback_is_reached():
    fake = FakeMem0("mem0_oss", api_key="k")
    async with (
        fake.served() as address,
        httpx2.AsyncClient() as http,
        MEM0_OSS.open({"base_url": address}, {"api_key": "k"}, namespace="alice", http=http) as store,
    ):
        await store.add("用户喜欢绿茶")
        assert [found.text for found in await store.search("绿茶", limit=1)] == ["用户喜欢绿茶"]
        fake.fail("lost", "POST")
        await refused("write_unconfirmed", store.add("likes coffee"))
        assert fake.texts("alice") == ["用户喜欢绿茶", "likes coffee"]


async def test_the_fake_server_ends_with_its_block_though_a_request_hangs():
    fake = FakeMem0("mem0_oss")
    async with (
        fake.served() as address,
        httpx2.AsyncClient() as http,
        MEM0_OSS.open({"base_url": address, "timeout": 0.2}, namespace="alice", http=http) as store,
    ):
        fake.fail("hanging")
        await refused("unavailable", store.search("tea", limit=1))


async def test_the_fake_server_is_an_asgi_application_too():
    fake = FakeMem0("mem0_oss")
    async with (
        httpx2.AsyncClient(transport=httpx2.ASGITransport(app=fake)) as http,
        MEM0_OSS.open({"base_url": "http://mem0.test"}, namespace="alice", http=http) as store,
    ):
        await store.add("likes tea")
        assert await texts(store) == ["likes tea"]


# Writes whose outcome is not known


@pytest.mark.parametrize("fault", [*UNKNOWN, "hanging"])
@pytest.mark.parametrize("flavour", BOTH)
async def test_an_add_without_a_readable_answer_is_unconfirmed_and_not_sent_again(flavour, fault, pass_time):
    fake = FakeMem0(flavour)
    async with opened(fake) as store:
        fake.fail(fault, "POST")
        await refused("write_unconfirmed", given_up(store.add("likes tea"), fake, fault, pass_time))
    assert [method for method, _ in fake.requests] == ["POST"]
    carried_out = fault in ("lost", "failed_after", "malformed", "oversize")
    assert fake.texts("alice") == (["likes tea"] if carried_out else [])


@pytest.mark.parametrize("fault", UNKNOWN)
@pytest.mark.parametrize("flavour", BOTH)
async def test_an_update_without_a_readable_answer_is_unconfirmed_and_not_sent_again(flavour, fault):
    fake = FakeMem0(flavour)
    async with opened(fake) as store:
        record_id = fake.put("alice", "likes tea")
        fake.fail(fault, "PUT")
        await refused("write_unconfirmed", store.update(record_id, "likes coffee"))
    assert [method for method, _ in fake.requests] == ["GET", "PUT"]


@pytest.mark.parametrize("fault", UNKNOWN)
@pytest.mark.parametrize("flavour", BOTH)
async def test_a_delete_or_purge_without_a_readable_answer_is_unconfirmed_and_not_sent_again(flavour, fault):
    fake = FakeMem0(flavour)
    async with opened(fake) as store:
        record_id = fake.put("alice", "likes tea")
        fake.fail(fault, "DELETE")
        await refused("write_unconfirmed", store.delete(record_id))
        assert [method for method, _ in fake.requests] == ["GET", "DELETE"]
        fake.fail(fault, "DELETE")
        await refused("write_unconfirmed", store.purge())
    assert [method for method, _ in fake.requests] == ["GET", "DELETE", "DELETE"]


@pytest.mark.parametrize("fault", [*UNKNOWN, "refused"])
@pytest.mark.parametrize("flavour", BOTH)
async def test_what_cannot_be_read_back_is_unconfirmed(flavour, fault):
    fake = FakeMem0(flavour)
    async with opened(fake) as store:
        fake.fail(fault, "GET")
        await refused("write_unconfirmed", store.add("likes tea"))
        (added,) = (await store.list(limit=5)).records
        fake.fail(fault, "GET", after=1)
        await refused("write_unconfirmed", store.update(added.id, "likes coffee"))
        fake.fail("failed" if fault == "malformed" else fault, "GET", after=1)  # a 404 says all, whatever its body
        await refused("write_unconfirmed", store.delete(added.id))
    assert fake.texts("alice") == []
    assert [method for method, _ in fake.requests][-3:] == ["GET", "DELETE", "GET"]


@pytest.mark.parametrize("flavour", BOTH)
async def test_a_server_that_rewrites_texts_is_found_out(flavour):
    fake = FakeMem0(flavour, rewriting=True)
    async with opened(fake) as store:
        await refused("write_unconfirmed", store.add("likes tea"))


@pytest.mark.parametrize(
    "answer",
    [
        {"results": []},
        {"results": [record(event="ADD"), record(event="ADD")]},
        {"results": [record(event="UPDATE")]},
        {"results": [record(event="NONE")]},
        {"results": [record()]},
        {"results": [{"event": "ADD"}]},
        {"results": [{"event": "ADD", "id": 7}]},
        {"results": [{"event": "ADD", "id": ".."}]},
        {"results": [{"event": "ADD", "id": ""}]},
        {"results": ["m1"]},
        {"results": {}},
        {"status": "PENDING"},
        {"status": "PENDING", "event_id": 7},
        {"status": "PENDING", "event_id": "../memories"},
        {"status": "FAILED", "event_id": "e1"},
        {"status": "SUCCEEDED", "event_id": "e1"},
        {},
        [],
        None,
        "m1",
        7,
    ],
)
@pytest.mark.parametrize("flavour", BOTH)
async def test_an_add_is_confirmed_by_one_added_record_and_nothing_else(flavour, answer):
    async with answering(lambda _: httpx2.Response(200, json=answer), flavour) as (store, requests):
        await refused("write_unconfirmed", store.add("likes tea"))
    assert len(requests) == 1


async def test_an_add_that_the_platform_carries_out_later_is_waited_for_and_read_back():
    fake = FakeMem0("mem0_platform", adds_after=3)
    async with opened(fake) as store:
        added = await store.add("likes tea")
        assert added.text == "likes tea"
        assert await texts(store) == ["likes tea"]
    assert [method for method, _ in fake.requests].count("POST") == 2  # the add, and the list


@pytest.mark.parametrize(
    "event",
    [
        {"id": "e1", "status": "FAILED", "results": []},
        {"id": "e1", "status": "SUCCEEDED", "results": []},
        {"id": "e1", "status": "RUNNING", "results": [record(event="ADD")]},
        {"id": "e1", "status": "SUCCEEDED", "results": None},
        None,
        [],
    ],
)
async def test_an_add_whose_event_tells_of_no_record_is_unconfirmed_and_not_sent_again(event, monkeypatch):
    monkeypatch.setattr("memshelf.records.backends.mem0.store._WAITS", (0.0, 0.0))

    def answer(request):
        queued = {"message": "Queued.", "status": "PENDING", "event_id": "e1"}
        return httpx2.Response(200, json=queued if request.method == "POST" else event)

    async with answering(answer, "mem0_platform") as (store, requests):
        await refused("write_unconfirmed", store.add("likes tea"))
    assert [each.method for each in requests].count("POST") == 1
    assert {each.url.path for each in requests[1:]} == {"/v1/event/e1/"}


@pytest.mark.parametrize("fault", ["dropped", "failed", "malformed", "refused"])
async def test_an_event_that_cannot_be_read_leaves_its_add_unconfirmed(fault):
    fake = FakeMem0("mem0_platform", adds_after=3)
    fake.fail(fault, "GET")
    async with opened(fake) as store:
        await refused("write_unconfirmed", store.add("likes tea"))
    assert [method for method, _ in fake.requests] == ["POST", "GET"]


async def test_the_open_source_server_has_no_events():
    def answer(_):
        return httpx2.Response(200, json={"status": "PENDING", "event_id": "e1"})

    async with answering(answer) as (store, requests):
        await refused("write_unconfirmed", store.add("likes tea"))
    assert len(requests) == 1


@pytest.mark.parametrize(
    "back",
    [record("likes Tea"), record("likes tea "), record(user_id="bob"), record(user_id=None), {}, None, [], "m1", 7,
     {"id": "m1", "memory": None, "user_id": "alice"}, record(id="m2"), record(id="M1")],
)  # fmt: skip
async def test_an_add_that_reads_back_as_anything_else_is_unconfirmed(back):
    def answer(request):
        if request.method == "POST":
            return httpx2.Response(200, json={"results": [record(event="ADD")]})
        return httpx2.Response(200, json=back)

    async with answering(answer) as (store, requests):
        await refused("write_unconfirmed", store.add("likes tea"))
    assert [each.method for each in requests] == ["POST", "GET"]


async def test_another_record_than_the_one_asked_for_says_nothing_of_it():
    """Such as a stale one of a cache in between: no change is sent on the strength of it, and none is confirmed."""
    reads = iter([record(id="m2"), record(id="m2"), record(), record(id="m2")])

    def answer(request):
        return httpx2.Response(200, json=next(reads) if request.method == "GET" else {"message": "deleted"})

    async with answering(answer) as (store, requests):
        await refused("unavailable", store.update("m1", "likes coffee"))
        await refused("unavailable", store.delete("m1"))
        assert [each.method for each in requests] == ["GET", "GET"]
        await refused("write_unconfirmed", store.delete("m1"))
        assert [each.method for each in requests[2:]] == ["GET", "DELETE", "GET"]


async def test_a_delete_that_did_not_happen_is_unconfirmed():
    def answer(request):
        return httpx2.Response(200, json=record() if request.method == "GET" else {"message": "deleted"})

    async with answering(answer) as (store, requests):
        await refused("write_unconfirmed", store.delete("m1"))
    assert [each.method for each in requests] == ["GET", "DELETE", "GET"]


async def test_an_update_and_a_delete_may_be_answered_without_a_body():
    state = {"text": "likes tea"}

    def answer(request):
        if request.method == "GET":
            return httpx2.Response(200, json=record(state["text"]) if state else None)
        if request.method == "PUT":
            state.update(json.loads(request.content))
        else:
            state.clear()
        return httpx2.Response(204)

    async with answering(answer) as (store, _):
        assert (await store.update("m1", "likes coffee")).text == "likes coffee"
        await store.delete("m1")


async def test_a_purge_that_does_not_end_is_unconfirmed(monkeypatch):
    monkeypatch.setattr("memshelf.records.backends.mem0.store._WAITS", (0.0, 0.0, 0.0))
    fake = FakeMem0("mem0_platform", purges_after=100)
    async with opened(fake) as store:
        fake.put("alice", "likes tea")
        error = await refused("write_unconfirmed", store.purge())
        assert "still lists" in error.message
    assert [method for method, _ in fake.requests].count("DELETE") == 1


async def test_a_purge_waits_until_the_platform_has_done_it():
    fake = FakeMem0("mem0_platform", purges_after=3)
    async with opened(fake) as store:
        fake.put("alice", "likes tea")
        await store.purge()
        assert await texts(store) == []


# Refusals: nothing changed


@pytest.mark.parametrize("status", [400, 401, 403, 409, 413, 422, 429])
async def test_a_refused_write_changed_nothing(status):
    def answer(request):
        return httpx2.Response(200, json=record()) if request.method == "GET" else httpx2.Response(status, text="<no>")

    async with answering(answer) as (store, requests):
        for write in (store.add("tea"), store.update("m1", "tea"), store.delete("m1"), store.purge()):
            error = await refused("unavailable", write)
            assert str(status) in error.message
            assert "nothing changed" in error.message
    assert [each.method for each in requests] == ["POST", "GET", "PUT", "GET", "DELETE", "DELETE"]


async def test_a_wrong_key_is_a_refusal_that_does_not_tell_the_key():
    fake = FakeMem0("mem0_platform", api_key="right")
    async with (
        fake.client() as http,
        MEM0_PLATFORM.open({}, {"api_key": "wrong-key"}, namespace="alice", http=http) as store,
    ):
        error = await refused("unavailable", store.add("likes tea"))
        assert "API key" in error.message
        assert "wrong-key" not in error.message
        await refused("unavailable", store.list(limit=1))


async def test_a_record_that_goes_between_read_and_change_is_not_found_by_an_update_and_gone_for_a_delete():
    def answer(request):
        return httpx2.Response(200, json=record()) if request.method == "GET" else httpx2.Response(404, json={})

    async with answering(answer) as (store, requests):
        await refused("record_not_found", store.update("m1", "tea"))
        await store.delete("m1")
        await refused("unavailable", store.add("tea"))
    assert [each.method for each in requests] == ["GET", "PUT", "GET", "DELETE", "POST"]


async def test_a_server_without_a_way_to_purge_is_unavailable():
    async with answering(lambda _: httpx2.Response(404)) as (store, _):
        await refused("unavailable", store.purge())


@pytest.mark.parametrize("text", ["x" * 8_001, "茶" * 8_001, "", " ", "\ud800"])
async def test_a_text_over_8000_characters_or_without_any_is_not_sent(text):
    async with answering(lambda _: httpx2.Response(500)) as (store, requests):
        await refused("invalid_text", store.add(text))
        await refused("invalid_text", store.update("m1", text))
    assert requests == []


# Reads


@pytest.mark.parametrize("fault", [*UNKNOWN, "refused", "hanging"])
@pytest.mark.parametrize("flavour", BOTH)
async def test_a_read_that_fails_is_unavailable_and_changes_nothing(flavour, fault, pass_time):
    fake = FakeMem0(flavour)
    record_id = fake.put("alice", "likes tea")
    async with opened(fake) as store:
        for read in (store.search("tea", limit=1), store.list(limit=1), store.update(record_id, "coffee"),
                     store.delete(record_id)):  # fmt: skip
            fake.fail(fault)
            await refused("unavailable", given_up(read, fake, fault, pass_time))
    assert {method for method, _ in fake.requests} <= {"GET", "POST"}
    assert fake.texts("alice") == ["likes tea"]


@pytest.mark.parametrize(
    "body",
    [b"", b"null", b"7", b'"x"', b"{}", b'{"results": null}', b'{"results": [7]}', b'{"results": [{"id": "m1"}]}',
     b'{"results": [{"memory": "tea"}]}', b'{"results": [{"id": 1, "memory": "tea"}]}', b"[" * 100_000, b"\xff\xfe",
     b"<html>"],
)  # fmt: skip
async def test_an_answer_that_is_no_list_of_records_is_unavailable_and_not_an_empty_memory(body):
    async with answering(lambda _: httpx2.Response(200, content=body)) as (store, _):
        await refused("unavailable", store.search("tea", limit=5))
        await refused("unavailable", store.list(limit=5))


async def test_odd_values_in_a_record_do_not_hide_it():
    odd = record("half \ud83d of an emoji", score=float("nan"), updated_at="yesterday", created_at=7, metadata="x")
    body = json.dumps({"results": [odd, record("huge", score=10**400), record("low", score=-1, created_at="2026")]})
    async with answering(lambda _: httpx2.Response(200, content=body.encode())) as (store, _):
        found = await store.search("tea", limit=5)
    assert [(each.text, each.score, each.updated_at) for each in found] == [
        ("huge", 1.0, found[0].updated_at),
        ("half \ufffd of an emoji", None, None),
        ("low", 0.0, None),
    ]


async def test_search_results_come_closest_first_and_no_more_than_asked_for():
    scores = [0.2, 0.9, 0.5]
    listed = [record(f"r{score}", score=score, id=f"m{score}") for score in scores]
    async with answering(lambda _: httpx2.Response(200, json={"results": listed})) as (store, _):
        assert [each.score for each in await store.search("tea", limit=2)] == [0.9, 0.5]


async def test_times_are_utc_whatever_zone_the_server_writes():
    listed = [record(updated_at="2026-01-01T02:00:00.5+02:00"), record(id="m2", updated_at=None)]
    async with answering(lambda _: httpx2.Response(200, json={"results": listed})) as (store, _):
        first, second = (await store.list(limit=5)).records
    assert first.updated_at.isoformat() == "2026-01-01T00:00:00.500000+00:00"
    assert second.updated_at.isoformat() == "2026-01-01T00:00:00+00:00"


# Other users


@pytest.mark.parametrize("flavour", BOTH)
async def test_records_of_others_are_dropped_even_when_the_server_shows_them(flavour):
    fake = FakeMem0(flavour, leaky=True)
    for each in range(6):
        fake.put(("alice", "bob", "alicee")[each % 3], f"tea {each}")
    async with opened(fake) as store:
        assert await texts(store) == ["tea 0", "tea 3"]
        assert {found.text for found in await store.search("tea", limit=20)} == {"tea 0", "tea 3"}
        page = await store.list(limit=1)
        rest = await store.list(limit=9, cursor=page.next_cursor)
        assert [record.text for record in (*page.records, *rest.records)] == ["tea 0", "tea 3"]
        assert rest.next_cursor is None


@pytest.mark.parametrize("flavour", BOTH)
async def test_a_record_of_another_user_is_never_sent_a_change(flavour):
    fake = FakeMem0(flavour, leaky=True)
    theirs = fake.put("bob", "bob's secret")
    async with opened(fake) as store:
        for change in (store.update(theirs, "taken over"), store.delete(theirs)):
            error = await refused("record_not_found", change)
            assert "bob's" not in error.message
    assert {method for method, _ in fake.requests} == {"GET"}
    assert fake.texts("bob") == ["bob's secret"]


async def test_a_record_that_names_nobody_is_listed_and_not_changed():
    async with answering(lambda _: httpx2.Response(200, json={"results": [record(user_id=None)]})) as (store, _):
        assert await texts(store) == ["likes tea"]
    async with answering(lambda _: httpx2.Response(200, json=record(user_id=None))) as (store, requests):
        await refused("record_not_found", store.delete("m1"))
    assert [each.method for each in requests] == ["GET"]


@pytest.mark.parametrize(
    "record_id", ["", ".", "..", "a/b", "../..", "a?b", "a#b", "a%2fb", "a b", "é", "x" * 257, "\n"]
)
@pytest.mark.parametrize("flavour", BOTH)
async def test_an_id_that_would_change_the_path_is_not_sent(flavour, record_id):
    async with answering(lambda _: httpx2.Response(200, json=record()), flavour) as (store, requests):
        await refused("record_not_found", store.update(record_id, "tea"))
        await refused("record_not_found", store.delete(record_id))
    assert requests == []


# Pages


@pytest.mark.parametrize("sizes", [(1,), (2, 3), (7, 1, 50), (100,), (101, 99), (250,)])
@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("flavour", BOTH)
async def test_pages_of_any_size_show_each_record_once(flavour, newest_first, sizes):
    fake = FakeMem0(flavour, newest_first=newest_first)
    for each in range(205):
        fake.put("alice", f"record {each}")
    async with opened(fake) as store:
        seen = await _read(store, sizes)
    expected = [f"record {each}" for each in range(205)]
    assert seen == (expected[::-1] if newest_first and flavour == "mem0_platform" else expected)


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("flavour", BOTH)
async def test_what_comes_and_goes_between_pages_neither_skips_nor_repeats(flavour, newest_first):
    fake = FakeMem0(flavour, newest_first=newest_first)
    ids = [fake.put("alice", f"record {each}") for each in range(240)]
    changes = iter(
        [
            lambda: [fake.put("alice", f"new {each}") for each in range(130)],
            lambda: [fake.remove(each) for each in ids[100:110]],
            lambda: [fake.remove(each) for each in (*ids[:20], *ids[220:])],
            lambda: [fake.put("alice", f"newer {each}") for each in range(3)],
        ]
    )
    gone = {*range(100, 110), *range(20), *range(220, 240)}
    async with opened(fake) as store:
        seen = await _read(store, (45,), between=lambda: next(changes, list)())
    stayed = [text for text in seen if text.startswith("record") and int(text.split()[1]) not in gone]
    expected = [f"record {each}" for each in range(240) if each not in gone]
    assert stayed == (expected[::-1] if newest_first and flavour == "mem0_platform" else expected)
    assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("flavour", BOTH)
async def test_a_reader_that_deletes_each_page_gets_through(flavour, newest_first):
    fake = FakeMem0(flavour, newest_first=newest_first)
    for each in range(23):
        fake.put("alice", f"record {each}")
    async with opened(fake) as store:
        cursor, seen = None, []
        while True:
            page = await store.list(limit=5, cursor=cursor)
            seen += [record.text for record in page.records]
            cursor = page.next_cursor
            if cursor is None:
                break
            for record in page.records:
                await store.delete(record.id)
    assert sorted(seen) == sorted(f"record {each}" for each in range(23))


async def test_the_open_source_list_ends_at_a_thousand():
    fake = FakeMem0("mem0_oss")
    for each in range(1_003):
        fake.put("alice", f"record {each}")
    async with opened(fake) as store:
        assert len(await _read(store, (100,))) == 1_000


async def test_the_platform_list_does_not_end_at_a_thousand():
    fake = FakeMem0("mem0_platform")
    for each in range(1_003):
        fake.put("alice", f"record {each}")
    async with opened(fake) as store:
        assert len(await _read(store, (100, 37))) == 1_003
    sizes = {int(target.rpartition("=")[2]) for _, target in fake.requests}
    assert sizes <= set(range(1, 201))


@pytest.mark.parametrize("cursor", ["0", "5", "2", "5.5", "00000000.1.1.0123456789", "x" * 5_000, "\ud800", "١"])
@pytest.mark.parametrize("flavour", BOTH)
async def test_a_cursor_that_is_none_is_refused_without_asking(flavour, cursor):
    fake = FakeMem0(flavour)
    fake.put("alice", "tea")
    async with opened(fake) as store:
        await refused("invalid_cursor", store.list(limit=1, cursor=cursor))
    assert fake.requests == []


@pytest.mark.parametrize("flavour", BOTH)
async def test_a_made_up_offset_costs_a_few_requests(flavour):
    fake = FakeMem0(flavour)
    for each in range(250):
        fake.put("alice", f"record {each}")
    async with opened(fake) as store:
        namespace, _, made, last = (await store.list(limit=3)).next_cursor.split(".")
        page = await store.list(limit=2, cursor=f"{namespace}.999999999.{made}.{last}")
        assert [record.text for record in page.records] == ["record 3", "record 4"]
    assert len(fake.requests) <= 6


async def test_a_listing_that_does_not_end_is_unavailable():
    listed = {"results": [record()], "next": "https://api.mem0.ai/v3/memories/?page=2"}
    async with answering(lambda _: httpx2.Response(200, json=listed), "mem0_platform") as (store, requests):
        await refused("unavailable", store.list(limit=5))
    assert len(requests) == 2


@pytest.mark.parametrize("limit", [0, -1])
async def test_a_limit_is_at_least_one(limit):
    async with answering(lambda _: httpx2.Response(500)) as (store, _):
        with pytest.raises(ValueError, match="limit"):
            await store.list(limit=limit)
        with pytest.raises(ValueError, match="limit"):
            await store.search("tea", limit=limit)


async def _read(store, sizes, between=lambda: None):
    """Every text, page by page; the sizes of the pages take turns."""
    cursor, seen, number = None, [], 0
    while True:
        page = await store.list(limit=sizes[number % len(sizes)], cursor=cursor)
        seen += [record.text for record in page.records]
        cursor, number = page.next_cursor, number + 1
        if cursor is None:
            return seen
        between()
