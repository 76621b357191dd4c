"""`memshelf stores | memories | versions`, on local data and on a service."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import program

sys.path.append(str(Path(__file__).parents[1] / "service"))
from serving import Service


@pytest.fixture(autouse=True)
def _no_place(monkeypatch):
    for name in ("MEMSHELF_URL", "MEMSHELF_KEY", "MEMSHELF_DATA", "MEMSHELF_DATABASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    place = tmp_path_factory.mktemp("service")
    found = Service("--data", str(place / "data"), log=place / "log")
    found.first_key()
    yield found
    found.close()


@pytest.fixture(params=["data", "url"])
def at(request, run, tmp_path):
    """Run a command on one of both kinds of places."""
    if request.param == "data":
        assert run("keys", "create", "--data", "data").code == 0
        where = ("--data", "data")
    else:
        served = request.getfixturevalue("service")
        where = ("--url", served.url, "--key", served.new_key(str(tmp_path)))

    def at(*args, ok=True, **options):
        done = run(*args, *where, **options)
        assert (done.code == 0) is ok, done.err
        return done

    return at


@pytest.fixture
def notes(at):
    return at("stores", "create", "Notes", "--json").json["id"]


def test_a_store_is_created_shown_listed_changed_archived_and_deleted(at):
    created = at(
        "stores", "create", "Notes", "--description", "Tea", "--metadata", "a=1", "--metadata", "b=2=3", "--json"
    )
    id = created.json["id"]
    assert created.json["metadata"] == {"a": "1", "b": "2=3"}
    at("stores", "create", "Other")
    assert [row.split("\t")[2:] for row in at("stores", "list").text.splitlines()] == [
        ["active", "Other"],
        ["active", "Notes"],
    ]
    assert at("stores", "show", "Notes").text.splitlines()[:3] == [f"id\t{id}", "name\tNotes", "description\tTea"]
    changed = at("stores", "update", id, "--name", "New", "--description", "", "--metadata", "a=", "--json").json
    assert (changed["name"], changed["description"], changed["metadata"]) == ("New", "", {"b": "2=3"})
    assert at("stores", "archive", "New", "--yes").text == f"Archived store {id}\n"
    assert [each["name"] for each in at("stores", "list", "--json").json["stores"]] == ["Other"]
    archived = at("stores", "list", "--archived", "--json").json["stores"]
    assert [(each["name"], each["archived_at"] is not None) for each in archived] == [("Other", False), ("New", True)]
    refused = at("memories", "create", id, "/a", "x", ok=False)
    assert (refused.code, refused.err[:22]) == (1, "error: invalid_value: ")
    assert at("stores", "delete", id, "--yes").text == f"Deleted store {id}\n"
    assert at("stores", "show", id, ok=False).err.startswith("error: not_found: ")


def test_a_name_that_two_stores_have_names_neither(at, notes):
    other = at("stores", "create", "Notes", "--json").json["id"]
    done = at("stores", "show", "Notes", ok=False)
    assert done.code == 2
    assert notes in done.err
    assert other in done.err


def test_what_is_for_good_asks_first_and_where_nobody_can_be_asked_it_wants_yes(at, notes):
    at("memories", "create", "Notes", "/a", "x")
    version = at("versions", "list", "Notes", "--json").json["versions"][0]["id"]
    for command in (
        ("stores", "archive", notes),
        ("stores", "delete", notes),
        ("stores", "undo", notes, "--user", "ann", "--since", "2026-01-01"),
        ("memories", "delete", notes, "/a"),
        ("versions", "redact", notes, version),
    ):
        done = at(*command, ok=False)
        assert (done.code, "say --yes" in done.err) == (2, True)
    assert at("memories", "view", notes, "/a").out == b"x"


def test_memories_are_created_viewed_changed_moved_and_deleted(at, notes):
    created = at("memories", "create", notes, "/prefs/tea.md", "- green")
    assert created.text.startswith("Created /prefs/tea.md (7 bytes, version memver_")
    taken = at("memories", "create", notes, "/prefs/tea.md", "x", ok=False)
    assert (taken.code, taken.err.startswith("error: already_exists: ")) == (1, True)
    Path("long.md").write_bytes("茶\r\n".encode())
    at("memories", "update", notes, "/prefs/tea.md", "--file", "long.md")
    assert at("memories", "view", "Notes", "/prefs/tea.md").out == "茶\r\n".encode()
    moved = at("memories", "update", notes, "/prefs/tea.md", "--move-to", "/tea.md", "--json").json
    assert (moved["path"], moved["content_size_bytes"]) == ("/tea.md", 5)
    at("memories", "update", notes, moved["id"], "both", "--move-to", "/prefs/both.md")
    at("memories", "create", notes, "/z", stdin=b"from a pipe")
    listed = at("memories", "list", notes).text.splitlines()
    assert [line.split("\t")[:2] for line in listed] == [["/prefs/", ""], ["/z", "11"]]
    deep = at("memories", "list", notes, "/prefs/", "-r", "--json").json["memories"]
    assert [each["path"] for each in deep] == ["/prefs/both.md"]
    version = deep[0]["memory_version_id"]
    nothing = at("memories", "update", notes, "/prefs/both.md", ok=False)
    assert (nothing.code, "Standard input is empty" in nothing.err) == (2, True)
    stale = at("memories", "update", notes, "/prefs/both.md", "x", "--expect", "memver_old", ok=False)
    assert stale.err.startswith("error: version_mismatch: ")
    assert "files" not in stale.err
    at("memories", "update", notes, "/prefs/both.md", "x", "--expect", version)
    assert at("memories", "delete", notes, "/prefs/both.md", "--expect", version, "--yes", ok=False).code == 1
    at("memories", "delete", notes, "/prefs/both.md", "--yes")
    assert at("memories", "view", notes, "/prefs/both.md", ok=False).err.startswith("error: not_found: ")
    assert at("memories", "view", notes, "prefs/both.md", ok=False).code == 2


def test_versions_are_listed_compared_restored_and_redacted(at, notes):
    at("memories", "create", notes, "/a.md", "one\n")
    at("memories", "update", notes, "/a.md", "two\n")
    rows = [line.split("\t") for line in at("versions", "list", notes).text.splitlines()]
    assert [row[1] for row in rows] == ["modified", "created"]
    assert all(row[3] == "/a.md" and row[4] for row in rows)
    second, first = (row[2] for row in rows)
    assert "-one\n+two\n" in at("versions", "diff", notes, second).text
    assert "-two\n+one\n" in at("versions", "diff", notes, second, first, "--json").json["diff"]
    assert at("versions", "view", notes, first).out == b"one\n"
    restored = at("versions", "restore", notes, first, "--json").json
    assert at("memories", "view", notes, "/a.md").out == b"one\n"
    assert at("versions", "redact", notes, restored["memory_version_id"], "--yes", ok=False).err.startswith(
        "error: conflict: "
    )
    assert at("versions", "redact", notes, second, "--yes").text == f"Redacted version {second}\n"
    gone = at("versions", "view", notes, second, ok=False)
    assert "it is redacted" in gone.err
    listed = at("versions", "list", notes, "--memory", "/a.md", "--limit", "2", "--json").json["versions"]
    assert [(each["operation"], each["path"]) for each in listed] == [("modified", "/a.md"), ("modified", None)]
    assert at("versions", "list", notes, "--operation", "deleted").out == b""
    assert at("versions", "list", notes, "--since", "2999-01-01", "--until", "2999-01-02").out == b""
    assert at("versions", "list", notes, "--since", "soon", ok=False).code == 2
    intact = at("stores", "verify", notes).text
    assert intact.startswith("Intact: 3 versions, head ")
    assert at("stores", "verify", notes, "--head", intact.split()[-1]).text == intact
    assert at("stores", "verify", notes, "--head", "0" * 64, ok=False).code == 1


def test_a_store_is_searched_listed_as_it_was_and_what_an_author_wrote_is_undone(at, notes):
    at("memories", "create", notes, "/tea.md", "no\nLikes 绿茶 a lot")
    moment = at("memories", "list", notes, "--json").json["memories"][0]["created_at"]
    at("memories", "update", notes, "/tea.md", "Likes nothing")
    assert at("stores", "search", notes, "nothing").text == "/tea.md:1:Likes nothing\n"
    assert at("stores", "search", notes, "nothing", "--prefix", "/prefs/").out == b""
    assert at("stores", "search", notes, "绿茶", "--json").json == {"hits": []}
    before = at("memories", "list", notes, "--at", moment, "--json").json["memories"]
    assert [each["operation"] for each in before] == ["created"]
    by = at("versions", "list", notes, "--json").json["versions"][0]["created_by"]
    option = "--user" if by["type"] == "user_actor" else "--by-key"
    author = by.get("user_id") or by["api_key_id"]
    since = at("versions", "list", notes, "--json").json["versions"][0]["created_at"]
    undone = at("stores", "undo", notes, option, author, "--since", since, "--yes")
    assert undone.text == "restored\t/tea.md\n"
    assert at("stores", "search", notes, "绿茶").text == "/tea.md:2:Likes 绿茶 a lot\n"
    assert at("stores", "undo", notes, "--since", since, "--yes", ok=False).code == 2


def test_who_finds_or_undoes_nothing_on_a_terminal_is_told(run, terminal):
    run("keys", "create", "--data", "data")
    run("stores", "create", "Notes", "--data", "data")
    run("files", "create", "a.md", "tea", "--memory", "a.db")
    since = ("--since", "2026-01-01", "--yes", "--data", "data")
    for args, said in (
        (("stores", "search", "Notes", "coffee", "--data", "data"), "Nothing was found."),
        (("files", "grep", "coffee", "--memory", "a.db"), "Nothing was found."),
        (("stores", "undo", "Notes", "--session", "sesn_0", *since), "There was nothing to undo."),
    ):
        shown = terminal(*args)
        shown.until(said)
        assert shown.end() == 0
    assert run("stores", "search", "Notes", "coffee", "--data", "data").err == ""


def test_a_place_is_named_and_only_one(run, monkeypatch):
    assert "--url URL with --key KEY, or --data DIR" in run("stores", "list").err
    assert run("stores", "list", "--url", "http://x").code == 2
    assert run("stores", "list", "--url", "http://x", "--key", "k", "--data", "d").code == 2
    for url in ("file:///x", "http://x:abc", "http://x:99999", "http://[x", "http://x\ny", "http://ann:pw@x"):
        no_address = run("stores", "list", "--url", url, "--key", "k")
        assert (no_address.code, no_address.err.startswith("error: usage: --url is the http or https")) == (2, True)
        assert "pw" not in no_address.err
    no_key = run("stores", "list", "--url", "http://x", "--key", "a b")
    assert (no_key.code, no_key.err.startswith("error: usage: --key is one or more printable")) == (2, True)
    missing = run("stores", "list", "--data", "nowhere", "--json")
    assert (missing.code, missing.json["error"]) == (3, "unknown_memory")
    assert not Path("nowhere").exists()
    run("keys", "create", "--data", "data")
    assert run("stores", "list", "--data", "data", "--workspace", "other").err.startswith("error: not_found: ")
    monkeypatch.setenv("MEMSHELF_DATA", "data")
    assert run("stores", "list").code == 0
    monkeypatch.setenv("MEMSHELF_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("MEMSHELF_KEY", "secret-key")
    assert "both set" in run("stores", "list").err
    assert run("stores", "list", "--data", "data").code == 0
    unreachable = run("stores", "list", "--url", "http://127.0.0.1:1")
    assert (unreachable.code, unreachable.err.startswith("error: unavailable: ")) == (3, True)
    assert "secret-key" not in unreachable.err


def test_the_other_dialect_is_spoken_too(run, service):
    where = ("--url", service.url, "--key", service.new_key("zhipu"), "--dialect", "zhipu")
    assert run("stores", "create", "Notes", *where).code == 0
    run("memories", "create", "Notes", "/e\u0301.md", "x", *where)
    versions = run("versions", "list", "Notes", "--json", *where).json["versions"]
    assert (versions[0]["path"], versions[0]["created_by"]["type"]) == ("/\xe9.md", "user_actor")


def test_what_is_no_memory_store_is_unavailable(run):
    import http.server
    import threading

    class Elsewhere(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *args):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Elsewhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = run("stores", "list", "--url", f"http://127.0.0.1:{server.server_port}", "--key", "k")
        server.shutdown()
    assert (done.code, done.err) == (
        3,
        "error: unavailable: The server's answer has no data: it is no memory store's.\n",
    )


def test_it_runs_as_a_program():
    assert program("stores", "--help").code == 0
    assert b"undo" in program("stores", "--help").out


def test_a_memory_takes_as_much_as_a_store_does(at, notes):
    most = b"x" * 102_400
    at("memories", "create", notes, "/a.md", stdin=most)
    at("memories", "update", notes, "/a.md", stdin=b"y" + most[1:])
    assert at("memories", "view", notes, "/a.md").out == b"y" + most[1:]
    assert "102400" in at("memories", "create", notes, "/b.md", stdin=most + b"x", ok=False).err
