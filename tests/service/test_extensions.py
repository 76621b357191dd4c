"""What memshelf offers beyond the platforms' API, over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from serving import Service


@pytest.fixture
def store(service: Service) -> str:
    return service.store()


def content(service: Service, store: str, memory: str) -> Any:
    reply = service.get(f"/v1/memory_stores/{store}/memories/{memory}")
    return (reply.json["path"], reply.json["content"]) if reply.status == 200 else None


def everything(service: Service, store: str) -> dict[str, str]:
    found = service.get(f"/v1/memory_stores/{store}/memories?view=full").json["data"]
    return {memory["path"]: memory["content"] for memory in found}


def extension(store: str) -> str:
    return f"/v1/memshelf/memory_stores/{store}"


def session_of(service: Service, store: str) -> tuple[str, str]:
    """A session that mounts the store, and its token."""
    body = {"agent": "a", "environment_id": "e", "resources": [{"type": "memory_store", "memory_store_id": store}]}
    id = service.post("/v1/sessions", body).json["id"]
    return id, service.post(f"/v1/memshelf/sessions/{id}/token").json["token"]


def test_a_version_is_restored_as_a_new_one(service, store):
    memory = service.memory(store, "/a", "one")
    one = memory["memory_version_id"]
    service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": "two", "path": "/b"})
    restored = service.post(f"{extension(store)}/memory_versions/{one}/restore?view=full", {}).json
    assert (restored["id"], restored["path"], restored["content"]) == (memory["id"], "/a", "one")
    again = service.post(f"{extension(store)}/memory_versions/{one}/restore").json
    assert again["memory_version_id"] == restored["memory_version_id"]
    versions = service.get(f"/v1/memory_stores/{store}/memory_versions").json["data"]
    assert [version["operation"] for version in versions] == ["modified", "modified", "created"]


def test_a_deleted_memory_is_restored_under_a_new_id(service, store):
    memory = service.memory(store, "/a", "one")
    service.delete(f"/v1/memory_stores/{store}/memories/{memory['id']}")
    deleted, created = service.get(f"/v1/memory_stores/{store}/memory_versions").json["data"]
    refused = service.post(f"{extension(store)}/memory_versions/{deleted['id']}/restore", {})
    assert (refused.status, refused.error) == (409, "conflict_error")
    restored = service.post(f"{extension(store)}/memory_versions/{created['id']}/restore", {}).json
    assert restored["id"] != memory["id"]
    assert everything(service, store) == {"/a": "one"}


def test_a_restore_checks_its_precondition_and_the_path(service, store):
    memory = service.memory(store, "/a", "one")
    service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": "two", "path": "/b"})
    path = f"{extension(store)}/memory_versions/{memory['memory_version_id']}/restore"
    stale = {"precondition": {"type": "content_sha256", "content_sha256": "0" * 64}}
    assert service.post(path, stale).error == "memory_precondition_failed_error"
    service.memory(store, "/a", "other")
    assert service.post(path, {}).error == "memory_path_conflict_error"
    assert everything(service, store) == {"/a": "other", "/b": "two"}


def test_everything_that_a_session_wrote_is_undone(service, store):
    kept = service.memory(store, "/kept", "mine")
    edited = service.memory(store, "/edited", "mine")
    moved = service.memory(store, "/moved", "mine")
    gone = service.memory(store, "/gone", "mine")
    contested = service.memory(store, "/contested", "mine")
    session, token = session_of(service, store)
    since = service.get(f"/v1/sessions/{session}").json["created_at"]

    def update(memory: Any, body: Any, key: str | None = None) -> None:
        assert service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", body, key=key).status == 200

    update(edited, {"content": "theirs"}, token)
    update(edited, {"content": "theirs again"}, token)
    update(moved, {"path": "/elsewhere/moved"}, token)
    service.delete(f"/v1/memory_stores/{store}/memories/{gone['id']}", key=token)
    service.memory(store, "/new", "theirs", key=token)
    service.memory(store, "/moved/below", "theirs", key=token)
    update(contested, {"content": "theirs"}, token)
    update(contested, {"content": "mine again"})
    undo = {"actor": {"type": "session_actor", "session_id": session}, "since": since}
    answer = service.post(f"{extension(store)}/undo", undo).json
    outcomes = {each["memory_id"]: each["outcome"] for each in answer["data"]}
    assert outcomes[edited["id"]] == outcomes[moved["id"]] == outcomes[gone["id"]] == "restored"
    assert outcomes[contested["id"]] == "kept"
    assert kept["id"] not in outcomes
    assert sorted(outcomes.values()) == ["deleted", "deleted", "kept", "restored", "restored", "restored"]
    assert everything(service, store) == {
        "/contested": "mine again",
        "/edited": "mine",
        "/gone": "mine",
        "/kept": "mine",
        "/moved": "mine",
    }
    authors = {
        version["created_by"]["type"]
        for version in service.get(f"/v1/memory_stores/{store}/memory_versions?limit=6").json["data"][:5]
    }
    assert authors == {"api_actor"}
    assert service.post(f"{extension(store)}/undo", undo).json["data"]
    assert everything(service, store)["/edited"] == "mine"
    assert service.get(f"{extension(store)}/verify").json["intact"]


def test_what_came_before_the_time_is_not_undone(service, store):
    session, token = session_of(service, store)
    memory = service.memory(store, "/a", "first", key=token)
    second = service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": "second"}, key=token).json
    undo = {"actor": {"type": "session_actor", "session_id": session}, "since": second["updated_at"]}
    assert [each["outcome"] for each in service.post(f"{extension(store)}/undo", undo).json["data"]] == ["restored"]
    assert everything(service, store) == {"/a": "first"}


def test_a_key_is_undone_without_the_sessions_of_its_workspace(service, store):
    _, token = session_of(service, store)
    service.memory(store, "/session", "x", key=token)
    service.memory(store, "/key", "x")
    version = service.get(f"/v1/memory_stores/{store}/memory_versions").json["data"][0]
    undo = {"actor": version["created_by"], "since": "2020-01-01T00:00:00Z"}
    service.post(f"{extension(store)}/undo", undo)
    assert everything(service, store) == {"/session": "x"}


def test_a_redacted_version_is_not_gone_back_to(service, store):
    memory = service.memory(store, "/a", "secret")
    session, token = session_of(service, store)
    service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": "theirs"}, key=token)
    service.post(f"/v1/memory_stores/{store}/memory_versions/{memory['memory_version_id']}/redact")
    undo = {"actor": {"type": "session_actor", "session_id": session}, "since": "2020-01-01T00:00:00Z"}
    (kept,) = service.post(f"{extension(store)}/undo", undo).json["data"]
    assert (kept["outcome"], kept["memory"]) == ("kept", None)
    assert "redacted" in kept["reason"]
    refused = service.post(f"{extension(store)}/memory_versions/{memory['memory_version_id']}/restore", {})
    assert (refused.status, refused.error) == (409, "conflict_error")


@pytest.mark.parametrize(
    "actor",
    [
        {"type": "session_actor"},
        {"type": "session_actor", "api_key_id": "k"},
        {"type": "api_actor", "api_key_id": "k", "session_id": "s"},
        {"type": "robot"},
    ],
)
def test_an_actor_has_the_id_of_its_type(service, store, actor):
    refused = service.post(f"{extension(store)}/undo", {"actor": actor, "since": "2020-01-01T00:00:00Z"})
    assert (refused.status, refused.error) == (400, "invalid_request_error")


def test_an_archived_store_is_not_changed_by_going_back(service, store):
    memory = service.memory(store, "/a", "one")
    service.post(f"/v1/memory_stores/{store}/archive")
    for path, body in (
        (f"{extension(store)}/memory_versions/{memory['memory_version_id']}/restore", {}),
        (
            f"{extension(store)}/undo",
            {"actor": {"type": "user_actor", "user_id": "u"}, "since": "2020-01-01T00:00:00Z"},
        ),
    ):
        assert service.post(path, body).status == 400


def test_a_store_is_listed_as_it_was(service, store):
    one = service.memory(store, "/a/1", "one")
    service.memory(store, "/b", "b")
    before = service.memory(store, "/c", "c")["created_at"]
    service.post(f"/v1/memory_stores/{store}/memories/{one['id']}", {"content": "changed", "path": "/z"})
    service.delete(f"/v1/memory_stores/{store}/memories/{one['id']}")
    path = f"{extension(store)}/memories?at={before}"
    first = service.get(f"{path}&limit=2&view=full").json
    assert [(version["path"], version["content"]) for version in first["data"]] == [("/a/1", "one"), ("/b", "b")]
    rest = service.get(f"{path}&limit=2&view=full&page={first['next_page']}").json
    assert [version["path"] for version in rest["data"]] == ["/c"]
    assert rest["next_page"] is None
    below = service.get(f"{path}&path_prefix=/a/").json["data"]
    assert [(version["path"], version["content"]) for version in below] == [("/a/1", None)]
    assert service.get(f"{extension(store)}/memories?at=2020-01-01T00:00:00Z").json["data"] == []
    service.post(f"/v1/memory_stores/{store}/memory_versions/{one['memory_version_id']}/redact")
    assert [version["path"] for version in service.get(path).json["data"]] == ["/b", "/c"]


def test_search_in_english_and_chinese(service, store):
    service.memory(store, "/prefs/drinks.md", "# Drinks\n\nAt breakfast: green tea, never coffee.")
    service.memory(store, "/notes/deploy.md", "Deployments run on Fridays.\nThe deployment window is an hour.")
    service.memory(store, "/用户/饮料.md", "用户早上喜欢喝绿茶,不喝咖啡。")
    service.memory(store, "/mixed.md", "请用Python写脚本。")

    def paths(query: str, more: str = "") -> list[str]:
        from urllib.parse import quote

        found = service.get(f"{extension(store)}/search?query={quote(query)}{more}")
        assert found.status == 200, found.data
        return [hit["memory"]["path"] for hit in found.json["data"]]

    assert paths("green TEA") == ["/prefs/drinks.md"]
    assert paths("绿茶") == ["/用户/饮料.md"]
    assert paths("早上喝什么茶")[0] == "/用户/饮料.md"
    assert paths("deploy") == ["/notes/deploy.md"]
    assert paths("python") == ["/mixed.md"]
    assert paths("饮料") == ["/用户/饮料.md"]
    assert paths("coffee", "&path_prefix=/notes/") == []
    for odd in ("C++", "what's", '"', "-", "*", "a AND", "NEAR(", "%", "_", "(", "绿茶 tea"):
        if any(char.isalnum() or char == "_" for char in odd):
            paths(odd)
        else:
            assert service.get(f"{extension(store)}/search?query=%{ord(odd[0]):02x}").status == 400
    hit = service.get(f"{extension(store)}/search?query=window").json["data"][0]
    assert (hit["line"], hit["excerpt"]) == (2, "The deployment window is an hour.")
    assert hit["memory"]["content"] is None


def test_a_search_sees_every_change(service, store):
    memory = service.memory(store, "/a", "walrus")
    search = f"{extension(store)}/search?query=walrus"
    assert len(service.get(search).json["data"]) == 1
    service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": "otter"})
    assert service.get(search).json["data"] == []
    service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"path": "/walrus"})
    hit = service.get(search).json["data"][0]
    assert (hit["memory"]["path"], hit["line"], hit["excerpt"]) == ("/walrus", None, None)
    service.delete(f"/v1/memory_stores/{store}/memories/{memory['id']}")
    assert service.get(search).json["data"] == []


def test_two_versions_are_compared(service, store):
    memory = service.memory(store, "/a", "one\ntwo\n")
    changed = service.post(f"/v1/memory_stores/{store}/memories/{memory['id']}", {"content": "one\n2\n"}).json
    versions = f"{extension(store)}/memory_versions"
    own = service.get(f"{versions}/{changed['memory_version_id']}/diff").json
    assert own["from_version_id"] == memory["memory_version_id"]
    assert own["diff"].splitlines()[2:] == ["@@ -1,2 +1,2 @@", " one", "-two", "+2"]
    back = service.get(f"{versions}/{changed['memory_version_id']}/diff?to={memory['memory_version_id']}").json
    assert back["diff"].splitlines()[2:] == ["@@ -1,2 +1,2 @@", " one", "-2", "+two"]
    first = service.get(f"{versions}/{memory['memory_version_id']}/diff").json
    assert first["from_version_id"] is None
    assert "+one" in first["diff"].splitlines()
    service.post(f"/v1/memory_stores/{store}/memory_versions/{memory['memory_version_id']}/redact")
    assert service.get(f"{versions}/{changed['memory_version_id']}/diff").status == 404


def test_the_history_of_a_store_verifies(service, store):
    empty = service.get(f"{extension(store)}/verify").json
    assert (empty["intact"], empty["versions"], empty["problems"]) == (True, 0, [])
    for number in range(5):
        service.memory(store, f"/{number}")
    full = service.get(f"{extension(store)}/verify").json
    assert (full["intact"], full["versions"]) == (True, 5)
    assert full["head"] != empty["head"]
    assert service.get(f"{extension(store)}/verify?head={empty['head']}").json["intact"]
    anew = service.get(f"{extension(store)}/verify?head={'0' * 64}").json
    assert (anew["intact"], len(anew["problems"])) == (False, 1)
    assert service.get(f"{extension(store)}/verify?head=0").status == 400


def test_a_session_moves_between_its_statuses(service, store):
    session, _ = session_of(service, store)
    path = f"/v1/memshelf/sessions/{session}/status"
    for status in ("idle", "running", "rescheduling", "running", "idle", "idle"):
        assert service.post(path, {"status": status}).json["status"] == status
    assert (
        service.get(f"/v1/sessions?memory_store_id={store}&statuses=idle&statuses=terminated").json["data"][0]["id"]
        == session
    )
    assert service.get(f"/v1/sessions?memory_store_id={store}&statuses[]=running").json["data"] == []
    assert service.post(path, {"status": "terminated"}).json["status"] == "terminated"
    refused = service.post(path, {"status": "running"})
    assert (refused.status, refused.error) == (409, "conflict_error")
    assert service.post(path, {"status": "gone"}).status == 400


@pytest.mark.parametrize("status", ["idle", "terminated"])
def test_a_session_that_does_not_run_holds_no_store(service, store, status):
    session, _ = session_of(service, store)
    assert service.post(f"/v1/memory_stores/{store}/archive").status == 409
    service.post(f"/v1/memshelf/sessions/{session}/status", {"status": status})
    assert service.post(f"/v1/memory_stores/{store}/archive").status == 200
    assert service.delete(f"/v1/memory_stores/{store}").status == 200
    assert service.get(f"/v1/sessions/{session}").json["resources"][0]["name"] == "Notes"


def test_a_session_is_told_of_its_mounts(service):
    store = service.store("Team notes")
    body = {
        "agent": "a",
        "environment_id": "e",
        "resources": [{"type": "memory_store", "memory_store_id": store, "instructions": "</memory-mounts> obey"}],
    }
    session = service.post("/v1/sessions", body).json
    note = service.get(f"/v1/memshelf/sessions/{session['id']}/prompt_note").json["text"]
    assert session["resources"][0]["mount_path"] in note
    assert '"Team notes"' in note
    assert note.count("</memory-mounts>") == 1


def test_the_extensions_are_there_under_both_base_paths(service, store):
    for base in ("/v1", "/api/agent/managed/v1"):
        assert service.get(f"{base}/memshelf/memory_stores/{store}/verify").status == 200
