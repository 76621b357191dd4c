"""Keys of another workspace, ids of another store, guessed ids, wildcards: nothing leaks."""

from __future__ import annotations

import pytest
from serving import Service


@pytest.fixture
def stranger(service: Service) -> str:
    """A key of another workspace."""
    return service.new_key(f"stranger of {service.key[-8:]}")


@pytest.fixture
def filled(service: Service) -> dict[str, str]:
    """A store, a memory with two versions, and a session."""
    store = service.store("Private name")
    memory = service.memory(store, "/private/path", "private content")["id"]
    service.post(f"/v1/memory_stores/{store}/memories/{memory}", {"content": "newer private content"})
    version = service.get(f"/v1/memory_stores/{store}/memory_versions").json["data"][1]["id"]
    body = {"agent": "a", "environment_id": "e", "resources": [{"type": "memory_store", "memory_store_id": store}]}
    session = service.post("/v1/sessions", body).json["id"]
    return {"store": store, "memory": memory, "version": version, "session": session}


def requests(store: str, memory: str, version: str, session: str) -> list[tuple[str, str, object]]:
    one = f"/v1/memory_stores/{store}"
    more = f"/v1/memshelf/memory_stores/{store}"
    undo = {"actor": {"type": "session_actor", "session_id": session}, "since": "2026-01-01T00:00:00Z"}
    return [
        ("GET", one, None),
        ("POST", one, {"name": "taken"}),
        ("DELETE", one, None),
        ("POST", f"{one}/archive", None),
        ("GET", f"{one}/memories", None),
        ("POST", f"{one}/memories", {"path": "/x", "content": "x"}),
        ("GET", f"{one}/memories/{memory}", None),
        ("POST", f"{one}/memories/{memory}", {"content": "x"}),
        ("DELETE", f"{one}/memories/{memory}", None),
        ("GET", f"{one}/memory_versions", None),
        ("GET", f"{one}/memory_versions/{version}", None),
        ("POST", f"{one}/memory_versions/{version}/redact", None),
        ("POST", f"{more}/memory_versions/{version}/restore", {}),
        ("GET", f"{more}/memory_versions/{version}/diff", None),
        ("POST", f"{more}/undo", undo),
        ("GET", f"{more}/memories?at=2030-01-01T00:00:00Z", None),
        ("GET", f"{more}/search?query=private", None),
        ("GET", f"{more}/verify", None),
        ("GET", f"/v1/sessions/{session}", None),
        ("POST", f"/v1/sessions/{session}", {"title": "theirs"}),
        ("GET", f"/v1/sessions/{session}/resources", None),
        ("POST", f"/v1/sessions/{session}/archive", None),
        ("DELETE", f"/v1/sessions/{session}", None),
        ("POST", f"/v1/memshelf/sessions/{session}/status", {"status": "idle"}),
        ("POST", f"/v1/memshelf/sessions/{session}/token", None),
        ("GET", f"/v1/memshelf/sessions/{session}/prompt_note", None),
    ]


def test_another_workspace_sees_exactly_what_is_nowhere(service, stranger, filled):
    """Word for word the answer that an id gets which never was, but for the id itself."""
    nowhere = {
        "store": "memstore_01a229b482327302b4457a16f9d03738",
        "memory": "mem_01a229b482327302b4457a16f9d03738",
        "version": "memver_01a229b482327302b4457a16f9d03738",
        "session": "sesn_01a229b482327302b4457a16f9d03738",
    }
    for theirs, never in zip(requests(**filled), requests(**nowhere), strict=True):
        method, path, body = theirs
        seen = service.call(method, path, body, key=stranger)
        expected = service.call(never[0], never[1], never[2], key=stranger)
        assert (seen.status, seen.error) == (404, "not_found_error")
        message = seen.json["error"]["message"]
        for name, id in filled.items():
            message = message.replace(id, nowhere[name])
        assert message == expected.json["error"]["message"]
        assert b"rivate" not in seen.data
    assert service.get("/v1/memory_stores", key=stranger).json["data"] == []
    assert service.get("/v1/sessions", key=stranger).json["data"] == []
    assert service.get(f"/v1/sessions?memory_store_id={filled['store']}", key=stranger).json["data"] == []
    body = {
        "agent": "a",
        "environment_id": "e",
        "resources": [{"type": "memory_store", "memory_store_id": filled["store"]}],
    }
    refused = service.post("/v1/sessions", body, key=stranger)
    assert refused.status == 400
    assert b"rivate" not in refused.data
    assert service.get(f"/v1/memory_stores/{filled['store']}").json["name"] == "Private name"
    assert len(service.get(f"/v1/memory_stores/{filled['store']}/memory_versions").json["data"]) == 2


def test_a_resource_of_another_store_of_the_same_workspace_is_not_found(service, filled):
    other = service.store("other")
    one = {**filled, "store": other}
    for method, path, body in requests(**one):
        if filled["memory"] in path or filled["version"] in path:
            refused = service.call(method, path, body)
            assert (refused.status, refused.error) == (404, "not_found_error"), path
    assert service.get(f"/v1/memory_stores/{other}/memory_versions?memory_id={filled['memory']}").json["data"] == []
    assert len(service.get(f"/v1/memory_stores/{filled['store']}/memory_versions").json["data"]) == 2


def test_cursors_of_another_workspace_are_foreign(service, stranger):
    for number in range(3):
        service.store(f"s{number}")
    cursor = service.get("/v1/memory_stores?limit=1").json["next_page"]
    assert service.get(f"/v1/memory_stores?limit=1&page={cursor}", key=stranger).status == 400


@pytest.mark.parametrize("prefix", ["/%25/", "/_/", "/*/", "/a%25/", "/a_/", "/%5B/"])
def test_wildcards_in_prefixes_are_ordinary_characters(service, prefix):
    store = service.store()
    for path in ("/ab/x", "/a/x", "/abc"):
        service.memory(store, path)
    assert service.get(f"/v1/memory_stores/{store}/memories?path_prefix={prefix}").json["data"] == []
    service.memory(store, "/a%/x")
    service.memory(store, "/a_/x")
    found = service.get(f"/v1/memory_stores/{store}/memories?path_prefix=/a%25/").json["data"]
    assert [memory["path"] for memory in found] == ["/a%/x"]


def test_a_prefix_ends_with_its_segment(service):
    store = service.store()
    for path in ("/notes/a", "/notes-archive/b", "/notes.md", "/notes0", "/note/c"):
        service.memory(store, path)
    found = service.get(f"/v1/memory_stores/{store}/memories?path_prefix=/notes/").json["data"]
    assert [memory["path"] for memory in found] == ["/notes/a"]


@pytest.mark.parametrize(
    "headers",
    [
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": "Basic eDp5"},
        {"authorization": "Bearer msk_guess"},
        {"authorization": "", "x-api-key": "msk_guess"},
        {"authorization": "Bearer \xff"},
    ],
)
def test_without_a_key_nothing_is_told(service, headers):
    for path in ("/v1/memory_stores", "/v1/nothing", "/api/agent/managed/v1/memory_stores"):
        refused = service.get(path, headers=headers)
        assert (refused.status, refused.error) == (401, "authentication_error")


def test_either_form_of_the_key(service):
    assert service.get("/v1/memory_stores", headers={"authorization": "", "x-api-key": service.key}).status == 200
    assert service.get("/v1/memory_stores", headers={"authorization": f"bearer  {service.key}"}).status == 200


def test_a_named_workspace_must_be_the_keys(service):
    refused = service.get("/v1/memory_stores", headers={"anthropic-workspace-id": "wrkspc_other"})
    assert (refused.status, refused.error) == (403, "permission_error")


@pytest.fixture
def session(service):
    """A session with a store for writing, one for reading, and its token; and a store that it does not mount."""
    stores = {name: service.store(name) for name in ("mine", "shared", "foreign")}
    resources = [
        {"type": "memory_store", "memory_store_id": stores["mine"]},
        {"type": "memory_store", "memory_store_id": stores["shared"], "access": "read_only"},
    ]
    id = service.post("/v1/sessions", {"agent": "a", "environment_id": "e", "resources": resources}).json["id"]
    token = service.post(f"/v1/memshelf/sessions/{id}/token").json["token"]
    return {"id": id, "token": token, **stores}


def test_a_sessions_token_reaches_what_the_session_mounts(service, session):
    token = session["token"]
    for name, status in (("mine", 200), ("shared", 403), ("foreign", 404)):
        body = {"path": "/a", "content": "x"}
        assert service.post(f"/v1/memory_stores/{session[name]}/memories", body, key=token).status == status
    for name, status in (("mine", 200), ("shared", 200), ("foreign", 404)):
        for path in ("", "/memories", "/memory_versions"):
            assert service.get(f"/v1/memory_stores/{session[name]}{path}", key=token).status == status
    assert service.get(f"/v1/sessions/{session['id']}", key=token).status == 200
    assert service.get("/v1/sessions/sesn_other", key=token).status == 404


def test_a_sessions_token_does_nothing_else(service, session):
    token, store = session["token"], session["mine"]
    service.memory(store, "/a", key=token)
    version = service.get(f"/v1/memory_stores/{store}/memory_versions").json["data"][0]
    assert version["created_by"] == {"type": "session_actor", "session_id": session["id"]}
    for method, path in (
        ("GET", "/v1/memory_stores"),
        ("POST", "/v1/memory_stores"),
        ("POST", f"/v1/memory_stores/{store}"),
        ("DELETE", f"/v1/memory_stores/{store}"),
        ("POST", f"/v1/memory_stores/{store}/archive"),
        ("POST", f"/v1/memory_stores/{store}/memory_versions/{version['id']}/redact"),
        ("GET", "/v1/sessions"),
        ("POST", "/v1/sessions"),
        ("DELETE", f"/v1/sessions/{session['id']}"),
        ("POST", f"/v1/memshelf/sessions/{session['id']}/token"),
        ("POST", f"/v1/memshelf/memory_stores/{store}/undo"),
    ):
        refused = service.call(method, path, {} if method == "POST" else None, key=token)
        assert (refused.status, refused.error) == (403, "permission_error"), path


@pytest.mark.parametrize("end", ["archive", "terminate", "delete"])
def test_a_sessions_token_ends_with_the_session(service, end):
    store = service.store()
    body = {"agent": "a", "environment_id": "e", "resources": [{"type": "memory_store", "memory_store_id": store}]}
    id = service.post("/v1/sessions", body).json["id"]
    token = service.post(f"/v1/memshelf/sessions/{id}/token").json["token"]
    if end == "archive":
        service.post(f"/v1/sessions/{id}/archive")
    elif end == "terminate":
        service.post(f"/v1/memshelf/sessions/{id}/status", {"status": "terminated"})
    else:
        service.delete(f"/v1/sessions/{id}")
    # It was never used before, so that nothing remembers it.
    refused = service.get(f"/v1/memory_stores/{store}/memories", key=token)
    assert (refused.status, refused.error) == (401, "authentication_error")
    if end != "delete":
        assert service.post(f"/v1/memshelf/sessions/{id}/token").status == 409
