"""What a careless or hostile client may send: always a 4xx with the envelope, never a 500, and nothing is stored."""

from __future__ import annotations

import json
import random
import socket
import struct
import threading
import time
import unicodedata

import pytest
from pydantic import ValidationError
from serving import Reply, Service

from memshelf.service.app import OPERATIONS


def state(service: Service, store: str) -> object:
    """All that a store holds."""
    return [
        service.get(f"/v1/memory_stores/{store}").json,
        service.get(f"/v1/memory_stores/{store}/memories?view=full").json,
        service.get(f"/v1/memory_stores/{store}/memory_versions").json,
    ]


def refused(reply: Reply, *statuses: int) -> None:
    assert reply.status in statuses, (reply.status, reply.data)
    assert reply.error
    assert reply.headers["content-type"] == "application/json"


BODIES = {
    "not JSON": b"{",
    "two documents": b"{}{}",
    "not UTF-8": b'{"path":"/a","content":"\xff"}',
    "UTF-16": '{"path":"/a","content":"x"}'.encode("utf-16"),
    "an array": b"[]",
    "a string": b'"x"',
    "null": b"null",
    "a number": b"1",
    "nothing": b"",
    "NaN": b'{"path":"/a","content":NaN}',
    "deep": b"[" * 100_000,
    "deep objects": b'{"path":' * 50_000,
    "no content": b'{"path":"/a"}',
    "no path": b'{"content":"x"}',
    "null content": b'{"path":"/a","content":null}',
    "content is a number": b'{"path":"/a","content":1}',
    "content is an object": b'{"path":"/a","content":{}}',
    "an unknown field": b'{"path":"/a","content":"x","mode":"0777"}',
    "a lone surrogate": b'{"path":"/a","content":"\\ud800"}',
    "a lone surrogate in the path": b'{"path":"/\\udfff","content":"x"}',
    "NUL in the content": b'{"path":"/a","content":"\\u0000"}',
    "NUL in the path": b'{"path":"/\\u0000","content":"x"}',
    "a control character as it is": b'{"path":"/a","content":"\x01"}',
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_body_that_is_no_memory(service, body):
    store = service.store()
    before = state(service, store)
    refused(service.post(f"/v1/memory_stores/{store}/memories", data=body), 400)
    assert state(service, store) == before


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "application/xml"]
)
def test_a_body_of_another_type(service, kind):
    store = service.store()
    body = b'{"path":"/a","content":"x"}'
    refused(service.post(f"/v1/memory_stores/{store}/memories", data=body, headers={"content-type": kind}), 415)
    assert not service.get(f"/v1/memory_stores/{store}/memories").json["data"]


def test_a_compressed_body(service):
    reply = service.post("/v1/memory_stores", data=b"\x1f\x8b", headers={"content-encoding": "gzip"})
    refused(reply, 415)


def test_types_of_json_with_parameters_are_json(service):
    for kind in ("application/json; charset=utf-8", "APPLICATION/JSON", "application/merge-patch+json"):
        reply = service.post("/v1/memory_stores", data=b'{"name":"n"}', headers={"content-type": kind})
        assert reply.status == 200


def test_a_body_of_fifty_megabytes(service):
    store = service.store()
    body = json.dumps({"path": "/a", "content": "x" * 50_000_000}).encode()
    reply = service.post(f"/v1/memory_stores/{store}/memories", data=body)
    refused(reply, 413)
    assert reply.error == "request_too_large"
    assert not service.get(f"/v1/memory_stores/{store}/memories").json["data"]


def test_the_longest_content_fits_whatever_its_escapes(service):
    store = service.store()
    body = b'{"path":"/a","content":"' + b"\\u0001" * 102_400 + b'"}'
    assert service.post(f"/v1/memory_stores/{store}/memories", data=body).status == 200


def exchange(service: Service, *parts: bytes, pause: float = 0.0) -> bytes:
    """Send the parts one by one, and read until the service closes the connection."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        for part in parts:
            connection.sendall(part)
            time.sleep(pause)
        received = b""
        while chunk := connection.recv(65_536):
            received += chunk
        return received


def head(service: Service, method: str, path: str, *lines: str) -> bytes:
    named = (f"{method} {path} HTTP/1.1", "host: x", f"authorization: Bearer {service.key}", *lines)
    return "\r\n".join((*named, "", "")).encode()


def test_what_is_no_http(service):
    reply = exchange(service, b"\x16\x03\x01\x02\x00\x01\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 400 ")
    assert json.loads(reply.partition(b"\r\n\r\n")[2])["type"] == "error"


def test_a_body_without_a_length_is_held_to_the_limit(service):
    start = head(
        service,
        "POST",
        "/v1/memory_stores",
        "content-type: application/json",
        "transfer-encoding: chunked",
        "connection: close",
    )
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    reply = exchange(service, start, *[chunk] * 32, b"0\r\n\r\n")
    assert reply.startswith(b"HTTP/1.1 413 ")


def test_a_length_that_is_a_lie_closes_the_connection(service):
    start = head(service, "POST", "/v1/memory_stores", "content-type: application/json", "content-length: 99999999999")
    assert exchange(service, start).startswith(b"HTTP/1.1 413 ")


def test_slow_clients_hold_up_nobody(service):
    """Each sends part of a request and then nothing; the others are served meanwhile."""
    store = service.store()
    slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(50)]
    try:
        for number, connection in enumerate(slow):
            start = head(
                service,
                "POST",
                f"/v1/memory_stores/{store}/memories",
                "content-type: application/json",
                "content-length: 100",
            )
            connection.sendall(start[: len(start) - number % 3])
        assert service.memory(store, "/a")["path"] == "/a"
    finally:
        for connection in slow:
            connection.close()
    assert len(service.get(f"/v1/memory_stores/{store}/memories").json["data"]) == 1


def test_a_client_that_leaves_in_the_middle_stores_nothing(service):
    store = service.store()
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", service.port)) as connection:
            connection.sendall(head(service, "POST", f"/v1/memory_stores/{store}/memories", "content-length: 30"))
            connection.sendall(b'{"path":"/a",')
    assert service.get(f"/v1/memory_stores/{store}/memories").json["data"] == []


def test_a_client_that_leaves_with_many_answers_on_their_way_is_no_error(service):
    store = service.store()
    service.memory(store, "/a", "x" * 100_000)
    request = head(service, "GET", f"/v1/memory_stores/{store}/memories?view=full")
    logged = service.log.stat().st_size
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
            connection.sendall(request * 100)
            connection.recv(1)  # the first answer is on its way, and those behind it wait
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    assert service.get(f"/v1/memory_stores/{store}").status == 200
    lines = service.log.read_bytes()[logged:].splitlines()
    assert len(lines) >= 20
    assert {json.loads(line)["level"] for line in lines} == {"info"}


WORDS = [
    "a",
    "b",
    "",
    ".",
    "..",
    "...",
    "é",
    "e\u0301",
    "\u200b",
    "\u2028",
    "\x00",
    "\x7f",
    "%",
    "_",
    "*",
    "\\",
    " ",
    "記憶",
    "\U0001f600",
    "a" * 300,
    "%2e%2e",
    "CON",
    "\ufeff",
    "\u202e",
    "~",
    "$HOME",
    "'",
    '"',
    ";--",
]


def allowed(path: str) -> bool:
    """The rules for paths, in other words than the service's."""
    parts = path.split("/")
    return (
        parts[0] == ""
        and 2 <= len(parts) <= 21
        and all((part and part.strip(".")) or len(part) > 2 for part in parts[1:])
        and not any(unicodedata.category(char) in ("Cc", "Cf", "Zl", "Zp") for char in path)
        and unicodedata.normalize("NFC", path) == path
        and len(path.encode()) <= 1024
    )


def test_two_thousand_random_paths(service):
    """Each is either refused, or stored as it is and found under exactly its own name."""
    chance = random.Random(20260922)
    store = service.store()
    stored: dict[str, str] = {}
    for _ in range(2_000):
        separator = chance.choice(["/", "/", "/", "//"])
        path = chance.choice(["/", "/", "/", "/", ""]) + separator.join(
            chance.choice(WORDS) for _ in range(chance.randint(1, 23 if chance.random() < 0.1 else 3))
        )
        reply = service.post(f"/v1/memory_stores/{store}/memories", {"path": path, "content": path})
        if not allowed(path):
            refused(reply, 400)
        elif reply.status == 409:
            there = reply.json["error"]["conflicting_path"]
            assert there == path or there.startswith(f"{path}/") or path.startswith(f"{there}/")
            assert there in stored
        else:
            assert reply.status == 200, (path, reply.data)
            stored[path] = reply.json["id"]
    assert len(stored) > 50
    listed = []
    page = f"/v1/memory_stores/{store}/memories?limit=100"
    while page:
        found = service.get(page).json
        listed += found["data"]
        page = found["next_page"] and f"/v1/memory_stores/{store}/memories?limit=100&page={found['next_page']}"
    assert [memory["path"] for memory in listed] == sorted(stored, key=str.encode)
    for path, id in chance.sample(sorted(stored.items()), 30):
        assert service.get(f"/v1/memory_stores/{store}/memories/{id}").json["content"] == path


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1/memory_stores/",
        "/v1//memory_stores",
        "/v1/memory_stores//memories",
        "/v1/nothing",
        "/api/agent/managed/v1/nothing",
        "/v1/memory_stores/x/memories/",
        "/v1/memory_stores/%00",
        "/v1/memory_stores/%FF%FE",
        "/v1/memory_stores/..%2f..%2fetc",
        "/v1/memory_stores/memstore_%ED%A0%80/memories",
        "/V1/memory_stores",
    ],
)
def test_a_path_with_nothing_at_it(service, path):
    refused(service.get(path), 404)


def test_a_path_with_a_v1_too_many_says_where_the_api_is(service):
    for path in ("/v1/v1/memory_stores", "/"):
        said = service.get(path).json["error"]["message"]
        assert said.endswith(" The API is below /v1; the address that a client is given ends before it.")


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        *((method, "", "GET, HEAD, POST") for method in ("PUT", "PATCH", "DELETE", "OPTIONS")),
        ("HEAD", "/{id}/archive", "POST"),
    ],
)
def test_a_method_that_a_path_does_not_have(service, method, path, allowed):
    reply = service.call(method, f"/v1/memory_stores{path.format(id=service.store())}")
    assert reply.status == 405
    assert reply.headers["allow"] == allowed
    assert reply.headers["request-id"]
    if method != "HEAD":
        assert reply.error == "invalid_request_error"


def test_head_is_answered_as_get_is_without_the_body(service):
    store = service.store()
    for path in ("", f"/{store}", f"/{store}/memories?limit=1", "/memstore_none", f"/{store}/memories?limit=x"):
        got, head = (service.call(method, f"/v1/memory_stores{path}") for method in ("GET", "HEAD"))
        for reply in (got, head):
            del reply.headers["request-id"], reply.headers["date"]
        assert (head.status, head.headers, head.data) == (got.status, got.headers, b"")
        assert int(head.headers["content-length"]) == len(got.data)


@pytest.mark.parametrize(
    "query",
    [
        "limit=x",
        "limit=",
        "limit=1.5",
        "limit=1.0",
        "limit=1_0",
        "limit=%2010",
        "limit=10%20",
        "limit=10%0A",
        "limit=%2B10",
        "limit=-1",
        "limit=%EF%BC%91%EF%BC%90",
        "limit=0x10",
        "limit=99999999999999999999",
        "view=all",
        "depth=x",
        "depth=1_0",
        "path_prefix=",
        "path_prefix=/a",
        "page=%00",
        "page=",
    ],
)
def test_a_query_that_breaks_a_rule(service, query):
    refused(service.get(f"/v1/memory_stores/{service.store()}/memories?{query}"), 400)


@pytest.mark.parametrize("text", ["1_0", " 10", "10\n", "+10", "１０", "10.0", ""])
def test_a_number_is_in_digits_in_every_query(text):
    queries = {operation.query for operation in OPERATIONS if operation.query is not None}
    numbers = [
        (query, name)
        for query in queries
        for name, field in query.model_json_schema()["properties"].items()
        if "integer" in json.dumps(field)
    ]
    assert len(numbers) > 10
    for query, name in numbers:
        with pytest.raises(ValidationError) as refused:
            query.model_validate({name: text})
        assert (name,) in [each["loc"] for each in refused.value.errors()]


@pytest.mark.parametrize(
    "query",
    [
        "created_at[gte]=yesterday",
        "created_at[gte]=2026-01-01T00:00:00",
        "created_at[gte]=2026",
        "created_at[gte]=1767225600",
        "created_at%5Blte%5D=",
        "operation=renamed",
    ],
)
def test_a_filter_that_breaks_a_rule(service, query):
    refused(service.get(f"/v1/memory_stores/{service.store()}/memory_versions?{query}"), 400)


def test_a_time_may_have_any_offset_with_its_plus_encoded_or_not(service):
    store = service.store()
    service.memory(store, "/a")
    for moment, found in (
        ("2026-01-01T08:00:00+08:00", 1),
        ("2026-01-01T08:00:00%2B08:00", 1),
        ("2999-01-01t00:00:00.123456789z", 0),
        ("2998-12-31T16:00:00-08:00", 0),
    ):
        reply = service.get(f"/v1/memory_stores/{store}/memory_versions?created_at[gte]={moment}")
        assert (reply.status, len(reply.json["data"])) == (200, found), reply.data


def test_a_number_is_no_time_since_when_everything_would_be_undone(service):
    store = service.store()
    service.memory(store, "/a")
    author = service.get(f"/v1/memory_stores/{store}/memory_versions").json["data"][0]["created_by"]
    for since in (2026, "2026", 1.5, True, None, "2026-01-01"):
        refused(service.post(f"/v1/memshelf/memory_stores/{store}/undo", {"actor": author, "since": since}), 400)
    assert len(service.get(f"/v1/memory_stores/{store}/memories").json["data"]) == 1


def test_ids_of_every_kind_are_only_unknown(service):
    store = service.store()
    for id in (
        "%00",
        "%ED%A0%80",
        "a" * 3_000,
        "'; DROP TABLE stores; --".replace(" ", "%20"),
        "%25",
        "_",
        "*",
        "🙂".encode().hex(),
    ):
        for path in (
            f"/v1/memory_stores/{id}",
            f"/v1/memory_stores/{store}/memories/{id}",
            f"/v1/memory_stores/{store}/memory_versions/{id}",
            f"/v1/sessions/{id}",
        ):
            refused(service.get(path), 404)
        if id == "%ED%A0%80":  # no UTF-8: no text at all
            refused(service.get(f"/v1/memory_stores/{store}/memory_versions?memory_id={id}"), 400)
            continue
        found = service.get(f"/v1/memory_stores/{store}/memory_versions?memory_id={id}&session_id={id}&api_key_id={id}")
        assert found.json == {"data": [], "next_page": None}
        assert service.get(f"/v1/sessions?memory_store_id={id}&agent_id={id}").json["data"] == []


def test_an_encoded_slash_does_not_end_an_id(service):
    """Whoever builds a path from a foreign id reaches what has that id, and nothing else."""
    store = service.store()
    memory = service.memory(store, "/a")["id"]
    before = state(service, store)
    for method, path in (
        ("GET", f"{store}%2Fmemories%2F{memory}"),
        ("DELETE", f"{store}%2fmemories%2f{memory}"),
        ("POST", f"{store}%2Farchive"),
        ("DELETE", f"x%2F..%2F{store}"),
        ("GET", f"{store}/memories%2F{memory}"),
        ("DELETE", f"{store}/memories/x%2F..%2F{memory}"),
    ):
        refused(service.call(method, f"/v1/memory_stores/{path}"), 404)
    assert state(service, store) == before
    assert service.get(f"/v1/memory%5Fstores/%6d{store[1:]}").status == 200


def test_what_is_not_there_is_not_found_whatever_else_is_wrong(service):
    store = service.store()
    for path, body in (
        (f"/v1/memory_stores/{store}/memories/mem_x", {}),
        (f"/v1/memory_stores/{store}/memories/mem_x", {"content": 1}),
        (f"/v1/memory_stores/{store}/memories/mem_x", {"path": "no/slash"}),
        (f"/v1/memory_stores/{store}/memory_versions/memver_x/redact", {"unknown": 1}),
        ("/v1/memory_stores/memstore_x", {"name": ""}),
        ("/v1/memory_stores/memstore_x/memories", {"path": "/a"}),
        ("/v1/memory_stores/memstore_x/archive", {"unknown": 1}),
        ("/v1/sessions/sesn_x/archive", {"unknown": 1}),
        ("/v1/memshelf/sessions/sesn_x/status", {"status": "asleep"}),
    ):
        refused(service.post(path, body), 404)
    for path in ("memories?path_prefix=a", "memories?page=x", "memory_versions?limit=0", "memories/mem_x?view=all"):
        refused(service.get(f"/v1/memory_stores/memstore_x/{path}"), 404)


@pytest.mark.parametrize("query", ["limit=1&limit=2", "view=full&view=full", "path_prefix=/%FF/", "path_prefix=/%C3/"])
def test_a_query_that_is_ambiguous_or_no_text(service, query):
    store = service.store()
    service.memory(store, "/\ufffd/a")
    refused(service.get(f"/v1/memory_stores/{store}/memories?{query}"), 400)
    assert service.get(f"/v1/memory_stores/{store}/memories?unknown=1&unknown=2&%FE=1").status == 400
    assert service.get(f"/v1/memory_stores/{store}/memories?unknown=1&unknown=2").status == 200


LONG = b"a" * 2_000_000
CHUNKED = ("content-type: application/json", "transfer-encoding: chunked")


@pytest.mark.parametrize(
    ("before", "part"),
    [
        (b"", b"GET /" + LONG),
        (b"", b"GET / HTTP/1.1\r\nx: " + LONG),
        (b"", b"GET / HTTP/1.1\r\n" + b"x: a\r\n" * 300_000),
        (b"", b"GET / HTTP/1.1\r\nx: " + b"a" * 60_000 + b"\r\ny: " + b"b" * 60_000),
        (b"POST", b"1;" + LONG),
        (b"POST", b"0\r\nx: " + LONG),
        (b"POST", b"0\r\n" + b"x: a\r\n" * 300_000),
    ],
    ids=["path", "line", "many lines", "two lines", "chunk's extension", "trailer", "many trailers"],
)
def test_a_head_is_held_to_its_limit(service, before, part):
    start = before and head(service, "POST", "/v1/memory_stores", *CHUNKED)
    with socket.create_connection(("127.0.0.1", service.port), timeout=30) as connection:
        try:
            connection.sendall(start + part)
            received = connection.recv(65_536)
        except OSError:  # it was cut off before it had sent all, and has not seen the answer
            received = b"HTTP/1.1 431 "
    assert received.startswith(b"HTTP/1.1 431 ")
    assert service.get("/v1/memory_stores").json["data"] == []


def test_a_long_head_within_the_limit_is_read(service):
    assert service.get("/v1/memory_stores", headers={"x": "a" * 60_000}).status == 200
    assert service.get(f"/v1/memory_stores?x={'a' * 60_000}").status == 200


@pytest.mark.parametrize("pieces", [1, 50])
def test_what_follows_the_chunks_of_a_body_is_no_header(service, pieces):
    trailers = b"authorization: Bearer wrong\r\nx-api-key: wrong\r\ncontent-type: text/plain\r\nzai-version: x\r\n"
    body = b'{"name":"n"}'
    chunked = b"%x\r\n%b\r\n0\r\n%b\r\n" % (len(body), body, trailers)
    sent = (
        head(service, "POST", "/v1/memory_stores", *CHUNKED, "trailer: authorization")
        + chunked
        + head(service, "POST", "/v1/memory_stores", *CHUNKED, "connection: close")
        + chunked
    )
    size = -(-len(sent) // pieces)
    reply = exchange(service, *(sent[at : at + size] for at in range(0, len(sent), size)))
    assert reply.count(b"HTTP/1.1 200 ") == 2


def test_a_body_in_the_smallest_chunks_is_read(service):
    body = json.dumps({"name": "n", "description": "d", "metadata": {"k": "v" * 512}}).encode() + b" " * 50_000
    chunks = b"".join(b"1\r\n" + body[at : at + 1] + b"\r\n" for at in range(len(body)))
    reply = exchange(
        service, head(service, "POST", "/v1/memory_stores", *CHUNKED, "connection: close"), chunks, b"0\r\n\r\n"
    )
    assert reply.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("wanted", ["h2c", "websocket", "TLS/1.0, HTTP/2"])
@pytest.mark.parametrize("pieces", [1, 7, 1_000])
def test_a_request_that_asks_for_another_protocol_stays_one(service, wanted, pieces):
    """Such as Java's, which asks for HTTP/2 with the first request of a connection: its body is read all the same."""
    asking = (f"upgrade: {wanted}", "connection: Upgrade, HTTP2-Settings", "http2-settings: AAMAAABk")
    body = json.dumps({"name": f"asks for {wanted}"}).encode()
    named = ("content-type: application/json", f"content-length: {len(body)}")
    chunked = b"5\r\n" + body[:5] + b"\r\n" + b"%x\r\n" % len(body[5:]) + body[5:] + b"\r\n0\r\n\r\n"
    sent = (
        head(service, "POST", "/v1/memory_stores", *asking, *named)
        + body
        + head(service, "GET", "/v1/memory_stores", *asking)
        + head(service, "POST", "/v1/memory_stores", *CHUNKED, *asking)
        + chunked
        + head(service, "GET", "/v1/nothing", "connection: close")
    )
    size = -(-len(sent) // pieces)
    reply = exchange(service, *(sent[at : at + size] for at in range(0, len(sent), size)))
    assert [part[:3] for part in reply.split(b"HTTP/1.1 ")[1:]] == [b"200", b"200", b"200", b"404"]
    stores = service.get("/v1/memory_stores").json["data"]
    assert [store["name"] for store in stores] == [f"asks for {wanted}"] * 2


def test_many_requests_for_another_protocol_at_once(service):
    asking = head(service, "GET", "/v1/nothing", "upgrade: h2c", "connection: upgrade")
    reply = exchange(service, asking * 800 + head(service, "GET", "/v1/nothing", "connection: close"))
    assert reply.count(b"HTTP/1.1 404 ") == 801


def test_a_body_where_none_belongs(service):
    store = service.store()
    assert service.post(f"/v1/memory_stores/{store}/archive", {}).status == 200
    refused(service.post(f"/v1/memory_stores/{store}/archive", {"now": True}), 400)


def test_many_requests_at_once_are_all_answered(service):
    store = service.store()
    replies: list[Reply] = []

    def ask() -> None:
        replies.extend(service.get(f"/v1/memory_stores/{store}") for _ in range(10))

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [reply.status for reply in replies] == [200] * 200
    assert len({reply.headers["request-id"] for reply in replies}) == 200
