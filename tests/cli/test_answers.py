"""Servers that are no memory stores, or whose answers went wrong: one line and exit code 3, whatever they answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from memshelf import MemoryStoreError
from memshelf.cli.answers import Answer

TIME = "2026-11-30T00:00:00Z"
SHA = "0" * 64
STORE = {"id": "memstore_1", "type": "memory_store", "name": "Notes", "description": "", "metadata": {"a": "b"},
         "created_at": TIME, "updated_at": TIME, "archived_at": None}  # fmt: skip
MEMORY = {"id": "mem_1", "type": "memory", "memory_store_id": "memstore_1", "path": "/a.md", "content": "tea",
          "content_size_bytes": 3, "content_sha256": SHA, "memory_version_id": "memver_1", "created_at": TIME,
          "updated_at": TIME}  # fmt: skip
VERSION = {"id": "memver_1", "type": "memory_version", "memory_store_id": "memstore_1", "memory_id": "mem_1",
           "operation": "created", "path": None, "content": None, "content_size_bytes": None, "content_sha256": None,
           "created_at": TIME, "created_by": {"type": "user_actor", "user_id": "ann"}, "redacted_at": TIME,
           "redacted_by": None}  # fmt: skip
CHECKED = {"type": "memshelf_verification", "intact": True, "versions": 1, "head": "ab", "problems": ["x"]}
HISTORY = {"type": "memshelf_history", "epoch": "e", "created_at": 7, "head_seq": 1, "head": "ab",
           "data": [{"type": "version", "seq": 1, "path": None, "created_at": 7, "redacted_at": None}]}  # fmt: skip
PAGE = {"data": [STORE, MEMORY, {"type": "memory_prefix", "path": "/b/"}, VERSION], "next_page": None}
GOOD = [STORE, MEMORY, VERSION, CHECKED, HISTORY, PAGE, {"data": [], "next_page": "page_x"}]


@pytest.mark.parametrize("answer", GOOD, ids=lambda answer: answer.get("type", "page"))
def test_what_a_memory_store_answers_is_taken_as_it_is(answer):
    assert Answer.of(answer) == answer


@pytest.mark.parametrize(
    ("answer", "name", "value"),
    [
        *[(STORE, name, value) for name in ("id", "name", "created_at") for value in (None, 1, True, [], {}, "\ud800")],
        *[(STORE, "metadata", value) for value in (None, [], "x", {"a": 1}, {"a": None}, {"a": {}}, {"a": "\ud800"})],
        *[(STORE, "created_at", value) for value in ("", "yesterday", "2026-11-30", "2026-11-30T00:00:00", TIME * 2)],
        *[(MEMORY, "content_size_bytes", value) for value in (None, "3", 1.5, True)],
        *[(MEMORY, "path", value) for value in (None, 1, {})],
        *[(VERSION, name, 1) for name in ("path", "content", "content_sha256", "created_by", "redacted_at")],
        *[(CHECKED, name, value) for name in ("intact", "problems", "versions") for value in (None, "x", 1.5)],
        (CHECKED, "problems", [1]),
        *[(CHECKED, "head", value) for value in (None, "xy", "a", 1)],
        *[(HISTORY, name, value) for name in ("created_at", "head_seq") for value in (None, TIME, 1.5)],
        *[(PAGE, "data", value) for value in (None, {}, "x", [1], [None], [[]], [{**STORE, "id": 1}])],
        *[(PAGE, "next_page", value) for value in (1, {}, ["x"])],
    ],
    ids=repr,
)
def test_a_field_of_another_kind_is_refused(answer, name, value):
    with pytest.raises(MemoryStoreError, match=f"another {'id' if value == [{**STORE, 'id': 1}] else name} than") as no:
        Answer.of({**answer, name: value})
    assert no.value.code == "unavailable"


def test_a_field_that_is_asked_for_and_is_not_there_is_refused():
    with pytest.raises(MemoryStoreError, match="has no name"):
        Answer.of({"id": "x"})["name"]


@pytest.fixture
def answering() -> Iterator[tuple[str, dict[str, object]]]:
    """A server that answers everything with what stands under "answer"."""
    told: dict[str, object] = {}

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            body = json.dumps(told["answer"]).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815  # the names are the server's

        def log_message(self, *args: object) -> None:
            del args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", told
    server.shutdown()
    server.server_close()
    thread.join()


ENDLESS = {"data": [STORE], "next_page": "page_x"}
EMPTY = {"data": [], "next_page": "page_x"}


@pytest.mark.parametrize("answer", [{}, {"data": 1}, {**STORE, "type": "x", "created_at": 1}, ENDLESS], ids=repr)
@pytest.mark.parametrize(
    "command",
    [
        ("stores", "list"),
        ("stores", "show", "Notes"),
        ("stores", "show", "memstore_1"),
        ("stores", "verify", "memstore_1"),
        ("stores", "search", "memstore_1", "tea"),
        ("stores", "export", "memstore_1", "out"),
        ("memories", "list", "memstore_1"),
        ("memories", "view", "memstore_1", "/a.md"),
        ("memories", "delete", "memstore_1", "mem_1", "--yes"),
        ("versions", "list", "memstore_1"),
        ("versions", "diff", "memstore_1", "memver_1"),
        ("versions", "view", "memstore_1", "memver_1"),
    ],
    ids=" ".join,
)
def test_a_server_that_is_no_memory_store_is_told_so_on_one_line(run, answering, command, answer):
    url, told = answering
    told["answer"] = answer
    ran = run(*command, "--url", url, "--key", "k")
    assert (ran.code, len(ran.err.splitlines())) == (3, 1), ran
    assert ran.err.startswith("error: unavailable: The server")


@pytest.mark.parametrize("what", ["stores", "memories", "versions"])
def test_a_listing_that_does_not_end_is_given_up(run, answering, what):
    url, told = answering
    told["answer"] = EMPTY
    ran = run(what, "list", *(["memstore_1"] if what != "stores" else []), "--url", url, "--key", "k")
    assert (ran.code, ran.err) == (3, "error: unavailable: The server's listing does not end.\n")


def test_a_history_that_does_not_go_on_is_not_exported(run, answering, tmp_path):
    url, told = answering
    stuck = {"type": "version", "seq": 1}
    told["answer"] = {**STORE, **HISTORY, "type": "version", "head_seq": 9, "data": [stuck], "updated_at": 7}
    ran = run("stores", "export", "memstore_1", "out", "--url", url, "--key", "k")
    assert (ran.code, ran.err) == (3, "error: unavailable: The server's history does not go on.\n")
    assert list(tmp_path.iterdir()) == []
