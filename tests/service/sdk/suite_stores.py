"""What the official SDK must see: stores, memories, versions, sessions. Run by `test_sdk.py`, once for each SDK."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, datetime, timedelta

import anthropic
import pytest
from anthropic import BadRequestError, ConflictError, NotFoundError


def sha(text):
    return hashlib.sha256(text.encode()).hexdigest()


def kind(error):
    return error.body["error"]["type"]


def conflict(dialect, type):
    """The type of a conflict: the old protocol knows only one."""
    return "invalid_request_error" if dialect == "zhipu-old" else type


@pytest.fixture(scope="session")
def stores(client):
    return client.beta.memory_stores


@pytest.fixture
def store(stores):
    return stores.create(name="Notes", description="d", metadata={"a": "1"})


@pytest.fixture
def memories(stores):
    return stores.memories


@pytest.fixture
def versions(stores):
    return stores.memory_versions


def test_it_is_the_version_that_was_asked_for():
    assert anthropic.__version__ == os.environ["MEMSHELF_TEST_SDK"]


def test_a_store_has_every_field(stores):
    created = stores.create(name="Ünïcode 记忆", description="what", metadata={"team": "blue"})
    assert created.type == "memory_store"
    assert created.id.startswith("memstore_")
    assert (created.name, created.description, created.metadata) == ("Ünïcode 记忆", "what", {"team": "blue"})
    assert created.archived_at is None
    assert created.created_at == created.updated_at
    assert datetime.now(UTC) - created.created_at < timedelta(minutes=5)
    bare = stores.create(name="bare")
    assert (bare.description, bare.metadata) == ("", {})
    assert stores.retrieve(created.id) == created


@pytest.mark.parametrize(
    "fields",
    [
        {"name": ""},
        {"name": "n" * 256},
        {"name": "bell\x07"},
        {"name": "n", "description": "d" * 1025},
        {"name": "n", "description": "nul\0"},
        {"name": "n", "metadata": {str(number): "v" for number in range(17)}},
        {"name": "n", "metadata": {"k" * 65: "v"}},
        {"name": "n", "metadata": {"k": "v" * 513}},
        {"name": "n", "metadata": {"k": 1}},
        {"name": 1},
        {"name": "n", "extra_body": {"colour": "red"}},
    ],
)
def test_a_store_that_breaks_a_rule_is_a_bad_request(stores, fields):
    with pytest.raises(BadRequestError) as refused:
        stores.create(**fields)
    assert kind(refused.value) == "invalid_request_error"
    assert refused.value.request_id == refused.value.body["request_id"]


def test_the_longest_allowed_fields_are_stored(stores):
    pairs = {f"{number:064}": "v" * 512 for number in range(16)}
    created = stores.create(name="n" * 255, description="d" * 1024, metadata=pairs)
    assert stores.retrieve(created.id).metadata == pairs


def test_an_unknown_store_is_not_found(stores):
    for call in (stores.retrieve, stores.archive, stores.delete, lambda store_id: stores.update(store_id, name="n")):
        with pytest.raises(NotFoundError) as refused:
            call("memstore_missing")
        assert kind(refused.value) == "not_found_error"


def test_an_update_changes_what_it_names(stores, store):
    changed = stores.update(store.id, name=None, metadata={"a": None, "b": "2"})
    assert (changed.name, changed.description, changed.metadata) == ("Notes", "d", {"b": "2"})
    assert changed.updated_at > store.updated_at
    assert stores.update(store.id, description="").description == ""
    assert stores.update(store.id, name="Other").name == "Other"
    with pytest.raises(BadRequestError):
        stores.update(store.id, metadata={str(number): "v" for number in range(16)})
    assert stores.retrieve(store.id).metadata == {"b": "2"}


def test_stores_are_listed_newest_first_page_by_page(stores):
    before = datetime.now(UTC)
    made = [stores.create(name=f"s{number}") for number in range(3)]
    stores.archive(made[1].id)
    ids = [each.id for each in made]
    listed = [each.id for each in stores.list(limit=1) if each.id in ids]
    assert listed == [ids[2], ids[0]]
    with_archived = [each.id for each in stores.list(limit=2, include_archived=True) if each.id in ids]
    assert with_archived == ids[::-1]
    later = [each.id for each in stores.list(created_at_gte=made[2].created_at) if each.id in ids]
    assert later == [ids[2]]
    earlier = [each.id for each in stores.list(created_at_lte=made[0].created_at, limit=100)]
    assert earlier[0] == ids[0]
    assert not list(stores.list(created_at_lte=before - timedelta(days=1)))


@pytest.mark.parametrize("limit", [0, -1, 101])
def test_a_limit_out_of_range(stores, dialect, limit):
    if dialect != "anthropic" and limit == 101:
        assert stores.list(limit=limit) is not None
        return
    with pytest.raises(BadRequestError):
        stores.list(limit=limit)


def test_a_memory_has_every_field(memories, store):
    created = memories.create(store.id, path="/p/a.md", content="héllo")
    assert created.type == "memory"
    assert created.id.startswith("mem_")
    assert created.memory_version_id.startswith("memver_")
    assert (created.memory_store_id, created.path, created.content) == (store.id, "/p/a.md", None)
    assert (created.content_size_bytes, created.content_sha256) == (6, sha("héllo"))
    assert created.created_at == created.updated_at
    full = memories.retrieve(created.id, memory_store_id=store.id)
    assert full.content == "héllo"
    assert full.model_copy(update={"content": None}) == created
    assert memories.retrieve(created.id, memory_store_id=store.id, view="basic") == created
    assert memories.create(store.id, path="/p/b.md", content="x", view="full").content == "x"
    empty = memories.create(store.id, path="/empty", content="", view="full")
    assert (empty.content, empty.content_size_bytes, empty.content_sha256) == ("", 0, sha(""))


BAD_PATHS = ["", "/", "a", "/a//b", "/a/", "/./a", "/a/..", "/../a", "/a\x07", "/a\u200b", "/a\u2028", "/nul\0"]
BAD_PATHS += ["/" + "a" * 1024, "/" + "/".join("a" * 21), "/.anthropic-memory-store", "/.anthropic-memory-store/a"]


@pytest.mark.parametrize("path", BAD_PATHS)
def test_a_path_that_breaks_a_rule_is_a_bad_request(memories, store, path):
    with pytest.raises(BadRequestError) as refused:
        memories.create(store.id, path=path, content="x")
    assert kind(refused.value) == "invalid_request_error"
    assert not memories.list(store.id).data


@pytest.mark.parametrize(
    "path",
    [
        "/a b/é.md",
        "/100%/_x",
        "/notes..md",
        "/...",
        "/a\\b",
        "/*",
        "/" + "a" * 1023,
        "/" + "/".join("a" * 20),
        "/记忆/茶",
    ],
)
def test_a_path_of_ordinary_characters_is_kept_as_it_is(memories, store, path):
    created = memories.create(store.id, path=path, content="x")
    assert created.path == path
    assert [each.path for each in memories.list(store.id)] == [path]


def test_a_path_that_is_not_composed(memories, store, dialect):
    if dialect == "anthropic":
        with pytest.raises(BadRequestError):
            memories.create(store.id, path="/e\u0301", content="x")
    else:
        assert memories.create(store.id, path="/e\u0301", content="x").path == "/é"


def test_paths_that_differ_in_case_are_different(memories, store):
    memories.create(store.id, path="/A", content="x")
    memories.create(store.id, path="/a", content="x")
    assert [each.path for each in memories.list(store.id)] == ["/A", "/a"]


def test_content_up_to_the_limit(memories, store):
    text = "é" * 51_200
    created = memories.create(store.id, path="/big", content=text)
    assert memories.retrieve(created.id, memory_store_id=store.id).content == text
    for refused_text in (text + "x", "nul\0"):
        with pytest.raises(BadRequestError):
            memories.create(store.id, path="/refused", content=refused_text)


def test_a_taken_path_is_a_conflict_that_names_what_is_there(memories, store, dialect):
    there = memories.create(store.id, path="/a/b", content="x")
    for path in ("/a/b", "/a", "/a/b/c"):
        with pytest.raises(ConflictError) as refused:
            memories.create(store.id, path=path, content="y")
        assert kind(refused.value) == conflict(dialect, "memory_path_conflict_error")
        assert refused.value.body["error"]["conflicting_memory_id"] == there.id
        assert refused.value.body["error"]["conflicting_path"] == "/a/b"


def test_an_update_under_a_precondition(memories, store, dialect):
    first = memories.create(store.id, path="/a", content="one")
    good = {"type": "content_sha256", "content_sha256": first.content_sha256}
    second = memories.update(first.id, memory_store_id=store.id, content="two", precondition=good)
    assert second.content is None
    assert (second.id, second.path, second.content_sha256) == (first.id, "/a", sha("two"))
    assert second.memory_version_id != first.memory_version_id
    assert second.updated_at > first.updated_at
    assert second.created_at == first.created_at
    with pytest.raises(ConflictError) as refused:
        memories.update(first.id, memory_store_id=store.id, content="three", precondition=good)
    assert kind(refused.value) == conflict(dialect, "memory_precondition_failed_error")
    again = memories.update(first.id, memory_store_id=store.id, content="two", precondition=good, view="full")
    assert again.memory_version_id == second.memory_version_id
    assert again.content == "two"


def test_an_update_that_asks_for_nothing_or_too_much_is_a_bad_request(memories, store):
    memory = memories.create(store.id, path="/a", content="x")
    for fields in (
        {},
        {"content": None, "path": None},
        {"path": "a"},
        {"content": "x" * 102_401},
        {"content": "y", "precondition": {"type": "content_sha256"}},
        {"content": "y", "precondition": {"type": "content_sha256", "content_sha256": "abc"}},
        {"content": "y", "precondition": {"content_sha256": sha("x")}},
    ):
        with pytest.raises(BadRequestError):
            memories.update(memory.id, memory_store_id=store.id, **fields)
    assert memories.retrieve(memory.id, memory_store_id=store.id).memory_version_id == memory.memory_version_id


def test_a_rename_keeps_the_id_and_never_overwrites(memories, versions, store, dialect):
    one = memories.create(store.id, path="/a", content="x")
    memories.create(store.id, path="/b", content="y")
    moved = memories.update(one.id, memory_store_id=store.id, path="/c/d")
    assert (moved.id, moved.path, moved.content_sha256) == (one.id, "/c/d", sha("x"))
    for taken in ("/b", "/b/x"):
        with pytest.raises(ConflictError) as refused:
            memories.update(one.id, memory_store_id=store.id, path=taken)
        assert kind(refused.value) == conflict(dialect, "memory_path_conflict_error")
    same = memories.update(one.id, memory_store_id=store.id, path="/c/d")
    assert same.memory_version_id == moved.memory_version_id
    assert memories.update(one.id, memory_store_id=store.id, path="/c").path == "/c"
    both = memories.update(one.id, memory_store_id=store.id, path="/c/e", content="z")
    assert (both.path, both.content_sha256) == ("/c/e", sha("z"))
    history = list(versions.list(store.id, memory_id=one.id, view="full"))
    assert [(each.path, each.content) for each in history] == [("/c/e", "z"), ("/c", "x"), ("/c/d", "x"), ("/a", "x")]


def test_a_listing_rolls_up_what_is_deeper(memories, store):
    for path in ("/p/a.md", "/p/d/1", "/p/d/2", "/p/d0", "/p/e/f/g", "/q", "/p.md"):
        memories.create(store.id, path=path, content=path)

    def shown(**query):
        return [(each.type, each.path) for each in memories.list(store.id, **query)]

    level = [("memory", "/p/a.md"), ("memory_prefix", "/p/d/"), ("memory", "/p/d0"), ("memory_prefix", "/p/e/")]
    for limit in (1, 2, 3, 20):
        assert shown(path_prefix="/p/", depth=1, limit=limit) == level
    assert shown(depth=1) == [("memory", "/p.md"), ("memory_prefix", "/p/"), ("memory", "/q")]
    assert shown(path_prefix="/", depth=1, limit=1) == shown(depth=1)
    everything = ["/p.md", "/p/a.md", "/p/d/1", "/p/d/2", "/p/d0", "/p/e/f/g", "/q"]
    assert [path for _, path in shown(limit=2)] == everything
    assert [path for _, path in shown(depth=0)] == everything
    assert shown(path_prefix="/p/d/") == [("memory", "/p/d/1"), ("memory", "/p/d/2")]
    assert shown(path_prefix="/nothing/") == []
    assert [each.content for each in memories.list(store.id, path_prefix="/p/d/", view="full")] == ["/p/d/1", "/p/d/2"]
    assert [each.content for each in memories.list(store.id, path_prefix="/p/d/")] == [None, None]


def test_the_depth_of_a_listing(memories, store, dialect):
    memories.create(store.id, path="/a/b/c", content="x")
    for depth in (-1, 1025):
        with pytest.raises(BadRequestError):
            memories.list(store.id, depth=depth)
    if dialect == "anthropic":
        with pytest.raises(BadRequestError):
            memories.list(store.id, depth=2)
    else:
        assert [each.path for each in memories.list(store.id, depth=2)] == ["/a/b/"]
        assert [each.path for each in memories.list(store.id, depth=1024)] == ["/a/b/c"]


@pytest.mark.parametrize("prefix", ["/p", "p/", "/p//", "/../", "/p/./"])
def test_a_prefix_that_is_no_directory_is_a_bad_request(memories, store, prefix):
    with pytest.raises(BadRequestError):
        memories.list(store.id, path_prefix=prefix)


def test_a_full_view_has_at_most_twenty_items(memories, store):
    for number in range(25):
        memories.create(store.id, path=f"/{number:02}", content=str(number))
    page = memories.list(store.id, view="full", limit=100)
    assert len(page.data) == 20
    assert [each.content for each in page] == [str(number) for number in range(25)]


def test_unknown_query_parameters_are_ignored(memories, store):
    memories.create(store.id, path="/a", content="x")
    listed = memories.list(store.id, extra_query={"order_by": "path", "order": "desc", "beta": "true"})
    assert [each.path for each in listed.data] == ["/a"]


@pytest.mark.parametrize("page", ["page_", "page_AAAA", "nonsense", "page_W10", "page_é"])
def test_a_foreign_cursor_is_a_bad_request(memories, versions, stores, store, page):
    for listing in (memories.list, versions.list):
        with pytest.raises(BadRequestError):
            listing(store.id, page=page)
    with pytest.raises(BadRequestError):
        stores.list(page=page)


def test_a_cursor_belongs_to_its_listing(memories, stores, store):
    other = stores.create(name="other")
    for path in ("/a", "/b", "/c"):
        memories.create(store.id, path=path, content="x")
    cursor = memories.list(store.id, limit=1).next_page
    for listing in ((other.id, {}), (store.id, {"path_prefix": "/a/"}), (store.id, {"depth": 1})):
        with pytest.raises(BadRequestError):
            memories.list(listing[0], page=cursor, **listing[1])
    assert [each.path for each in memories.list(store.id, limit=2, page=cursor).data] == ["/b", "/c"]


def test_a_memory_of_another_store_is_not_found(memories, stores, store):
    memory = memories.create(store.id, path="/a", content="x")
    other = stores.create(name="other").id
    for call in (
        lambda: memories.retrieve(memory.id, memory_store_id=other),
        lambda: memories.retrieve("mem/../" + memory.id, memory_store_id=store.id),
        lambda: memories.update(memory.id, memory_store_id=other, content="y"),
        lambda: memories.delete(memory.id, memory_store_id=other),
    ):
        with pytest.raises(NotFoundError) as refused:
            call()
        assert kind(refused.value) == "not_found_error"


def test_a_delete_leaves_the_history(memories, versions, store, dialect):
    memory = memories.create(store.id, path="/a", content="x")
    with pytest.raises(ConflictError) as refused:
        memories.delete(memory.id, memory_store_id=store.id, expected_content_sha256=sha("other"))
    assert kind(refused.value) == conflict(dialect, "memory_precondition_failed_error")
    for malformed in (sha("x").upper(), "sha256"):
        with pytest.raises(BadRequestError):
            memories.delete(memory.id, memory_store_id=store.id, expected_content_sha256=malformed)
    gone = memories.delete(memory.id, memory_store_id=store.id, expected_content_sha256=sha("x"))
    assert (gone.id, gone.type) == (memory.id, "memory_deleted")
    for call in (memories.delete, memories.retrieve):
        with pytest.raises(NotFoundError):
            call(memory.id, memory_store_id=store.id)
    deleted, created = versions.list(store.id, memory_id=memory.id, view="full").data
    assert (deleted.operation, deleted.path) == ("deleted", "/a")
    assert (deleted.content, deleted.content_sha256, deleted.content_size_bytes) == (None, None, None)
    assert (created.operation, created.content, created.content_size_bytes) == ("created", "x", 1)
    assert memories.create(store.id, path="/a", content="again").id != memory.id


def test_versions_have_every_field_and_filter(memories, versions, store, dialect):
    before = datetime.now(UTC) - timedelta(seconds=1)
    memory = memories.create(store.id, path="/a", content="one")
    changed = memories.update(memory.id, memory_store_id=store.id, content="two")
    memories.create(store.id, path="/b", content="three")
    newest = versions.list(store.id).data[0]
    assert (newest.type, newest.operation, newest.memory_store_id) == ("memory_version", "created", store.id)
    history = list(versions.list(store.id, memory_id=memory.id, limit=1))
    assert [each.operation for each in history] == ["modified", "created"]
    assert history[0].id == changed.memory_version_id
    assert [each.content for each in history] == [None, None]
    assert history[0].content_sha256 == sha("two")
    actor = history[0].created_by
    if dialect == "anthropic":
        assert actor.type == "api_actor"
        key = actor.api_key_id
    else:
        assert actor.type == "user_actor"
        key = actor.user_id
    assert key.startswith("apikey_")
    assert (history[0].redacted_at, history[0].redacted_by) == (None, None)

    def count(**query):
        return len(list(versions.list(store.id, **query)))

    assert count() == 3
    assert count(operation="created") == 2
    assert count(operation="deleted") == 0
    assert count(api_key_id=key) == 3
    assert count(api_key_id="apikey_other") == 0
    assert count(session_id="sesn_other") == 0
    assert count(memory_id="mem_never") == 0
    assert count(extra_query={"service_account_id": "svac_1"}) == 0
    assert count(created_at_gte=before) == 3
    assert count(created_at_lte=before) == 0
    assert count(memory_id=memory.id, created_at_gte=changed.updated_at) == 1
    full = versions.retrieve(changed.memory_version_id, memory_store_id=store.id)
    assert (full.content, full.path) == ("two", "/a")
    assert versions.retrieve(full.id, memory_store_id=store.id, view="basic").content is None
    with pytest.raises(NotFoundError):
        versions.retrieve("memver_missing", memory_store_id=store.id)


def test_a_redaction_leaves_who_and_when(memories, versions, store, dialect):
    memory = memories.create(store.id, path="/secret", content="password")
    with pytest.raises(ConflictError) as refused:
        versions.redact(memory.memory_version_id, memory_store_id=store.id)
    assert kind(refused.value) == conflict(dialect, "conflict_error")
    memories.update(memory.id, memory_store_id=store.id, content="clean", path="/clean")
    redacted = versions.redact(memory.memory_version_id, memory_store_id=store.id)
    assert (redacted.path, redacted.content) == (None, None)
    assert (redacted.content_sha256, redacted.content_size_bytes) == (None, None)
    assert redacted.created_by is not None
    assert redacted.redacted_by is not None
    assert redacted.redacted_at is not None
    assert versions.retrieve(redacted.id, memory_store_id=store.id) == redacted
    assert versions.redact(redacted.id, memory_store_id=store.id) == redacted
    memories.delete(memory.id, memory_store_id=store.id)
    for version in list(versions.list(store.id, memory_id=memory.id)):
        assert versions.redact(version.id, memory_store_id=store.id).path is None


def test_an_archived_store_can_only_be_read_and_cleaned_up(client, memories, versions, stores, store):
    memory = memories.create(store.id, path="/a", content="one")
    memories.update(memory.id, memory_store_id=store.id, content="two")
    archived = stores.archive(store.id)
    assert archived.archived_at is not None
    assert stores.archive(store.id) == archived
    for write in (
        lambda: memories.create(store.id, path="/b", content="x"),
        lambda: memories.update(memory.id, memory_store_id=store.id, content="three"),
        lambda: stores.update(store.id, name="n"),
        lambda: client.beta.sessions.create(
            agent="agent_1", environment_id="env_1", resources=[{"type": "memory_store", "memory_store_id": store.id}]
        ),
    ):
        with pytest.raises(BadRequestError) as refused:
            write()
        assert kind(refused.value) == "invalid_request_error"
    assert memories.retrieve(memory.id, memory_store_id=store.id).content == "two"
    assert versions.redact(memory.memory_version_id, memory_store_id=store.id).redacted_at is not None
    assert memories.delete(memory.id, memory_store_id=store.id).type == "memory_deleted"
    assert stores.delete(store.id).type == "memory_store_deleted"


def test_a_deleted_store_is_gone_with_everything_in_it(memories, versions, stores, store):
    memory = memories.create(store.id, path="/a", content="x")
    gone = stores.delete(store.id)
    assert (gone.id, gone.type) == (store.id, "memory_store_deleted")
    for call in (
        lambda: stores.retrieve(store.id),
        lambda: stores.delete(store.id),
        lambda: memories.list(store.id),
        lambda: memories.retrieve(memory.id, memory_store_id=store.id),
        lambda: memories.create(store.id, path="/b", content="x"),
        lambda: versions.list(store.id),
        lambda: versions.retrieve(memory.memory_version_id, memory_store_id=store.id),
    ):
        with pytest.raises(NotFoundError):
            call()


def attached(*store_ids, **fields):
    return [{"type": "memory_store", "memory_store_id": id, **fields} for id in store_ids]


def test_a_session_mounts_stores(client, stores, dialect):
    store = stores.create(name="Demo Memory!", description="what it is for")
    session = client.beta.sessions.create(
        agent="agent_1",
        environment_id="env_1",
        resources=attached(store.id) + attached(stores.create(name="记忆").id, access="read_only", instructions="look"),
    )
    assert session.id.startswith("sesn_" if dialect == "anthropic" else "sess_")
    assert (session.type, session.agent.id, session.environment_id) == ("session", "agent_1", "env_1")
    first, second = session.resources
    assert (first.type, first.memory_store_id, first.access) == ("memory_store", store.id, "read_write")
    assert (first.name, first.description, first.instructions) == ("Demo Memory!", "what it is for", None)
    assert first.mount_path == f"/mnt/memory/demo-memory-{store.id[-6:]}"
    assert (second.access, second.instructions, second.description) == ("read_only", "look", "")
    assert second.mount_path == f"/mnt/memory/store-{second.memory_store_id[-6:]}"
    stores.update(store.id, name="Renamed")
    again = client.beta.sessions.retrieve(session.id)
    assert again.resources == session.resources
    assert list(client.beta.sessions.resources.list(session.id)) == session.resources
    assert [each.memory_store_id for each in client.beta.sessions.resources.list(session.id, limit=1)] == [
        each.memory_store_id for each in session.resources
    ]
    assert [each.id for each in client.beta.sessions.list(memory_store_id=store.id)] == [session.id]
    assert not client.beta.sessions.list(memory_store_id="memstore_other").data
    assert len(client.beta.sessions.list(memory_store_id=store.id, agent_id="agent_1", agent_version=1).data) == 1
    for unmet in ({"agent_version": 2}, {"extra_query": {"deployment_id": "depl_1"}}):
        assert not client.beta.sessions.list(memory_store_id=store.id, **unmet).data


def test_a_session_may_say_that_it_needs_nothing_else(client):
    fields = {"agent": "agent_1", "environment_id": "env_1"}
    nothing = {"vault_ids": [], "initial_events": [], "budget": None, "resources": None, "title": None}
    session = client.beta.sessions.create(**fields, extra_body=nothing)
    assert (session.resources, session.vault_ids, session.title) == ([], [], None)
    for field, value in (("vault_ids", ["vlt_1"]), ("initial_events", ["x"]), ("budget", {"type": "limit"})):
        with pytest.raises(BadRequestError, match=field):
            client.beta.sessions.create(**fields, extra_body={field: value})


def test_a_session_that_breaks_a_rule_is_a_bad_request(client, stores):
    store = stores.create(name="n").id
    many = [stores.create(name=f"s{number}").id for number in range(9)]
    for resources in (
        attached(*many),
        attached(store, instructions="i" * 4097),
        attached(store, access="admin"),
        attached("memstore_missing"),
        attached(store, store),
        attached(store, mount_path="/mnt"),
        [{"type": "file", "file_id": "file_1"}],
    ):
        with pytest.raises(BadRequestError) as refused:
            client.beta.sessions.create(agent="agent_1", environment_id="env_1", resources=resources)
        assert kind(refused.value) == "invalid_request_error"
    for fields in ({"agent": "", "environment_id": "env_1"}, {"agent": "agent_1", "environment_id": ""}):
        with pytest.raises(BadRequestError):
            client.beta.sessions.create(**fields)
    assert not client.beta.sessions.list(memory_store_id=store).data
    eight = client.beta.sessions.create(
        agent={"type": "agent", "id": "agent_1", "version": 3},
        environment_id="env_1",
        resources=attached(*many[:8], instructions="i" * 4096),
        title="t",
        metadata={"a": "b"},
    )
    assert (len(eight.resources), eight.agent.version, eight.title, eight.metadata) == (8, 3, "t", {"a": "b"})


def test_title_and_metadata_of_a_session_are_changed_by_what_is_given(client, dialect):
    def own(session):  # how long it has run goes on
        return session.title, session.metadata, session.updated_at

    session = client.beta.sessions.create(
        agent="agent_1", environment_id="env_1", title="Tea", metadata={"team": "a", "run": "1"}
    )
    changed = client.beta.sessions.update(session.id, metadata={"run": "2", "team": None, "new": "会话"})
    assert (changed.title, changed.metadata) == ("Tea", {"run": "2", "new": "会话"})
    assert changed.updated_at > session.updated_at
    assert (changed.resources, changed.status, changed.agent) == (session.resources, "running", session.agent)
    renamed = client.beta.sessions.update(session.id, title="Coffee")
    assert (renamed.title, renamed.metadata) == ("Coffee", changed.metadata)
    assert own(client.beta.sessions.retrieve(session.id)) == own(renamed)
    same = client.beta.sessions.update(session.id, title="Coffee", metadata={"run": "2", "gone": None}, vault_ids=[])
    assert own(same) == own(renamed)
    bare = client.beta.sessions.update(session.id, title=None, extra_body={"metadata": None})
    assert (bare.title, bare.metadata) == (None, {})
    for wrong in (
        {"title": "x" * 256},
        {"metadata": {"": "x"}},
        {"metadata": {"k": "v" * 513}},
        {"metadata": {f"k{number}": "v" for number in range(17)}},
        {"vault_ids": ["vlt_1"]},
        {"budget": {"type": "limit", "max_list_cost": "1"}},
        {"agent": {"tools": []}},
    ):
        with pytest.raises(BadRequestError) as refused:
            client.beta.sessions.update(session.id, **wrong)
        assert kind(refused.value) == "invalid_request_error"
    with pytest.raises(NotFoundError):
        client.beta.sessions.update("sesn_none", title="x")
    assert own(client.beta.sessions.retrieve(session.id)) == own(bare)
    client.beta.sessions.archive(session.id)
    with pytest.raises(ConflictError) as late:
        client.beta.sessions.update(session.id, title="late")
    assert kind(late.value) == conflict(dialect, "conflict_error")


def test_a_running_session_holds_its_store(client, stores, store, dialect):
    session = client.beta.sessions.create(agent="agent_1", environment_id="env_1", resources=attached(store.id))
    assert session.status == "running"
    client.beta.sessions.create(
        agent="agent_1", environment_id="env_1", resources=attached(store.id, access="read_only")
    )
    for end in (stores.archive, stores.delete):
        with pytest.raises(ConflictError) as refused:
            end(store.id)
        assert kind(refused.value) == conflict(dialect, "conflict_error")
        assert session.id in refused.value.message
    archived = client.beta.sessions.archive(session.id)
    assert archived.archived_at is not None
    assert client.beta.sessions.archive(session.id).archived_at == archived.archived_at
    assert [each.id for each in client.beta.sessions.list(memory_store_id=store.id, include_archived=True)][
        -1
    ] == session.id
    assert session.id not in [each.id for each in client.beta.sessions.list(memory_store_id=store.id)]
    assert stores.archive(store.id).archived_at is not None
    gone = client.beta.sessions.delete(session.id)
    assert (gone.id, gone.type) == (session.id, "session_deleted")
    with pytest.raises(NotFoundError):
        client.beta.sessions.retrieve(session.id)


def test_a_conflict_is_not_tried_again(options, store, memories):
    memories.create(store.id, path="/a", content="x")
    sent = []
    with anthropic.Anthropic(**{**options, "max_retries": 2}) as patient:
        original = patient._client.send
        patient._client.send = lambda request, **more: sent.append(request) or original(request, **more)
        with pytest.raises(ConflictError):
            patient.beta.memory_stores.memories.create(store.id, path="/a", content="y")
    assert len(sent) == 1


def test_the_raw_answer(client, stores, store, dialect):
    created = stores.with_raw_response.create(name="raw")
    assert created.http_response.status_code == (201 if dialect == "zhipu-old" else 200)
    assert created.headers["request-id"].startswith("req_")
    memory = stores.memories.with_raw_response.create(store.id, path="/a", content="x")
    assert memory.http_response.status_code == (201 if dialect == "zhipu-old" else 200)
    assert stores.with_raw_response.retrieve(store.id).http_response.status_code == 200


def test_a_wrong_key_is_an_authentication_error(options):
    with anthropic.Anthropic(**{**options, "api_key": "msk_wrong"}) as stranger:
        with pytest.raises(anthropic.AuthenticationError) as refused:
            stranger.beta.memory_stores.list()
        assert kind(refused.value) == "authentication_error"


async def test_the_asynchronous_client(options):
    async with anthropic.AsyncAnthropic(**options) as client:
        stores = client.beta.memory_stores
        store = await stores.create(name="async")
        for number in range(5):
            await stores.memories.create(store.id, path=f"/{number}", content=str(number))
        listed = [each.path async for each in stores.memories.list(store.id, limit=2)]
        assert listed == [f"/{number}" for number in range(5)]
        history = [each.operation async for each in stores.memory_versions.list(store.id, limit=2)]
        assert history == ["created"] * 5
        with pytest.raises(ConflictError):
            await stores.memories.create(store.id, path="/0", content="x")
        assert (await stores.archive(store.id)).archived_at is not None
        assert (await stores.delete(store.id)).type == "memory_store_deleted"
