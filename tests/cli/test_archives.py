"""Archives of stores and of SQLite memories, and plain folders of Markdown: out and in again, whole or not at all."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import sys
from functools import cache
from pathlib import Path

import pytest

from memshelf.files.chain import Facts, commitment, genesis, link
from memshelf.origin import Origin

sys.path.append(str(Path(__file__).parents[1] / "service"))
from serving import Service
from stored import bytes_at

SECRET = "correct horse battery staple"


@pytest.fixture
def where(request):
    """Where the data of a name is, as options: a directory, or a PostgreSQL database."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return lambda data: ("--data", data)
    server = request.getfixturevalue("postgres_server")
    return cache(lambda data: ("--database", server.new_database()))


on_both = pytest.mark.parametrize("where", ["sqlite", "postgresql"], indirect=True)


@pytest.fixture
def at(run, where):
    """Run a command on the local data of a name."""

    def at(data, *args, ok=True, **options):
        done = run(*args, *where(data), **options)
        assert (done.code == 0) is ok, done.err
        return done

    return at


@pytest.fixture
def notes(run, at, where):
    """A store with a history of every kind, in the data `from`."""
    run("keys", "create", *where("from"))
    id = at("from", "stores", "create", "Notes", "--description", "茶", "--metadata", "a=1", "--json").json["id"]
    at("from", "memories", "create", id, "/a.md", SECRET)
    at("from", "memories", "update", id, "/a.md", "Likes 绿茶.\r\n")
    at("from", "memories", "create", id, "/d/b.md", "---\ndescription: Bee\n---\nb")
    at("from", "memories", "update", id, "/d/b.md", "moved", "--move-to", "/c.md")
    at("from", "memories", "create", id, "/gone.md", "x")
    at("from", "memories", "delete", id, "/gone.md", "--yes")
    first = at("from", "versions", "list", id, "--json").json["versions"][-1]["id"]
    at("from", "versions", "redact", id, first, "--yes")
    return id


def everything(at, data, id):
    memories = at(data, "memories", "list", id, "-r", "--json").json
    versions = at(data, "versions", "list", id, "--json").json["versions"]
    full = [at(data, "versions", "view", id, each["id"], "--json").json for each in versions]
    return (
        at(data, "stores", "show", id, "--json").json,
        memories,
        full,
        at(data, "stores", "verify", id, "--json").json,
    )


@on_both
def test_a_store_comes_back_with_its_ids_times_authors_and_chain(at, notes):
    at("from", "stores", "archive", notes, "--yes")
    assert at("from", "stores", "export", notes, "notes.gz").text == "Exported 6 versions to notes.gz\n"
    assert at("to", "stores", "import", "notes.gz").text == (
        f"Imported store {notes}: 6 versions added, 0 were there already\n"
    )
    before, after = everything(at, "from", notes), everything(at, "to", notes)
    assert before == after
    assert before[3]["intact"]
    assert len(before[2]) == 6
    assert before[2][-1]["redacted_by"] is not None


@on_both
def test_imported_again_it_changes_nothing_and_a_later_archive_adds_what_is_new(at, notes):
    at("from", "stores", "export", notes, "early")
    at("from", "memories", "update", notes, "/c.md", "later")
    at("from", "stores", "export", notes, "late")
    at("to", "stores", "import", "early")
    for archive, added, present in (("early", 0, 6), ("late", 1, 6), ("late", 0, 7), ("early", 0, 7)):
        assert at("to", "stores", "import", archive, "--json").json == {
            "store": notes, "added": added, "present": present
        }  # fmt: skip
    assert everything(at, "from", notes) == everything(at, "to", notes)
    at("to", "memories", "create", notes, "/new.md", "goes on")
    assert everything(at, "to", notes)[3]["versions"] == 8


@on_both
def test_an_archive_does_not_bring_back_what_was_redacted_after_it(at, notes):
    version = at("from", "versions", "list", notes, "--json").json["versions"][-3]["id"]
    at("from", "stores", "export", notes, "early")
    at("from", "versions", "redact", notes, version, "--yes")
    at("from", "stores", "import", "early")
    assert at("from", "versions", "view", notes, version, "--json").json["content"] is None


@on_both
def test_a_store_with_another_history_or_in_another_workspace_is_left_alone(at, notes):
    at("from", "stores", "export", notes, "archive")
    at("to", "stores", "import", "archive")
    at("from", "memories", "update", notes, "/c.md", "here")
    at("to", "memories", "update", notes, "/c.md", "there")
    at("from", "stores", "export", notes, "here")
    at("from", "memories", "update", notes, "/c.md", "further than there")
    at("from", "stores", "export", notes, "further")
    before = everything(at, "to", notes)
    for archive in ("here", "further"):
        assert at("to", "stores", "import", archive, ok=False).err.startswith("error: conflict: ")
    other = at("to", "stores", "import", "archive", "--workspace", "other", ok=False)
    assert other.err.startswith("error: conflict: ")
    assert everything(at, "to", notes) == before


@on_both
def test_nothing_of_what_was_redacted_is_in_an_archive(at, where, notes):
    at("from", "stores", "export", notes, "archive")
    assert b"Likes" in Path("archive").read_bytes()
    assert SECRET.encode() not in Path("archive").read_bytes()
    at("to", "stores", "import", "archive")
    assert b"Likes" in bytes_at(where("to"))
    assert SECRET.encode() not in bytes_at(where("to"))


def test_a_service_gives_the_same_archive_as_its_data(at, where, run, notes, tmp_path):
    at("from", "stores", "export", notes, "local")
    service = Service(*where("from"), log=tmp_path / "log")
    try:
        there = ("--url", service.url, "--key", service.new_key())
        assert run("stores", "export", notes, "served", *there).code == 0
        assert run("stores", "import", "served", *there).code == 2
    finally:
        service.close()
    assert Path("served").read_bytes() == Path("local").read_bytes()


def test_an_archive_goes_through_pipes(at, notes):
    out = at("from", "stores", "export", notes, "-").out
    at("to", "stores", "import", "-", stdin=out)
    assert everything(at, "from", notes) == everything(at, "to", notes)


def test_an_archive_is_not_written_over_and_not_left_half_written(at, run, notes):
    Path("archive").write_text("mine")
    assert at("from", "stores", "export", notes, "archive", ok=False).code == 2
    assert Path("archive").read_text() == "mine"
    at("from", "stores", "export", notes, "archive", "--force")
    assert at("from", "stores", "export", "memstore_none", "other", ok=False).code == 1
    assert {path.name for path in Path().iterdir()} - {"from"} == {"archive"}


# Damage


@pytest.fixture
def archive(at, notes):
    at("from", "stores", "export", notes, "archive")
    return Path("archive").read_bytes().splitlines(keepends=True)


@pytest.fixture
def refused(at, where):
    """How the import of such a file is refused."""

    def refused(data):
        Path("damaged").write_bytes(data)
        done = at("to", "stores", "import", "damaged", ok=False)
        assert (done.code, done.err.startswith("error: invalid_file: ")) == (1, True), done.err
        assert done.err.splitlines()[-1] == "The file is damaged."
        assert bytes_at(where("to")) == b"", "what is damaged is refused before anything is made"
        return done.err

    return refused


def test_an_archive_that_was_cut_anywhere_is_refused(refused, archive):
    whole = b"".join(archive)
    for end in (0, 1, len(archive[0]), len(whole) // 2, len(whole) - len(archive[-1]), len(whole) - 1):
        refused(whole[:end])


def test_an_archive_of_which_any_line_was_changed_removed_repeated_or_moved_is_refused(refused, archive):
    for at_line in (1, 4, 6):
        line = archive[at_line]
        altered = line.replace(b'"created_at":1', b'"created_at":2')
        refused(b"".join([*archive[:at_line], *archive[at_line + 1 :]]))
        refused(b"".join([*archive[:at_line], line, line, *archive[at_line + 1 :]]))
        refused(
            b"".join([*archive[:at_line], altered, *archive[at_line + 1 :]]),
        )
    refused(b"".join([archive[0], archive[2], archive[1], *archive[3:]]))
    refused(b"".join([*archive, b"{}\n"]))
    assert "format" in refused(b"".join([archive[0].replace(b'"format":1', b'"format":2'), *archive[1:]]))
    for other in (b'{"hello": 1}\n', b"# Notes\n", b"Notes", b"[]\n"):
        assert "This is no archive of memshelf's, as `export` writes it" in refused(other)
    refused(b"\x00\xff\n")
    refused(gzip.compress(b"".join(archive))[:-9])
    refused(b"[" * 100_000 + b"\n")


def forged(archive, change, *, store=None):
    """An archive with a chain, numbers and a hash that are right again after `change` has been at its versions."""
    header, *versions, _ = (json.loads(line) for line in archive)
    header["store"].update(store or {})
    versions = change(versions) or versions
    previous = genesis(header["epoch"])
    for seq, each in enumerate(versions, start=1):
        each["seq"] = seq
        if each["redacted_at"] is None and each["path"] is not None:
            if each["content"] is not None:
                data = each["content"].encode()
                each["sha256"], each["size"] = hashlib.sha256(data).hexdigest(), len(data)
            each["commitment"] = commitment(
                bytes.fromhex(each["salt"]), each["path"], each["sha256"], each["size"]
            ).hex()
        facts = Facts(
            id=each["id"], seq=seq, file_id=each["file_id"], parent_id=each["parent_id"], operation=each["operation"],
            moved=each["moved"], origin=Origin(**each["origin"]), created_at=each["created_at"],
            commitment=bytes.fromhex(each["commitment"]),
        )  # fmt: skip
        previous = link(previous, facts)
        each["link"] = previous.hex()
    body = b"".join(json.dumps(each).encode() + b"\n" for each in (header, *versions))
    end = {"type": "end", "versions": len(versions), "head": previous.hex(), "sha256": hashlib.sha256(body).hexdigest()}
    return body + json.dumps(end).encode() + b"\n"


def _set(number, **fields):
    def change(versions):
        versions[number].update(fields)

    return change


def test_a_forged_archive_that_no_writes_could_have_made_is_refused(at, refused, archive):
    honest = forged(archive, lambda versions: versions)
    for change in (
        _set(2, path="../../outside"),
        _set(2, path="/absolute"),
        _set(2, path="a\u200bb"),
        _set(2, path="x/" * 30 + "x"),
        _set(3, path="a.md/below"),
        _set(3, path="a.md"),
        _set(3, moved=False),
        _set(1, parent_id="memver_other"),
        _set(1, operation="created"),
        _set(1, id=json.loads(archive[1])["id"]),
        _set(4, file_id=json.loads(archive[1])["file_id"]),
        _set(5, operation="modified"),
        _set(5, operation="removed"),
        _set(2, created_at=-1),
        _set(2, created_at=2**63),
        _set(2, created_at="now"),
        _set(2, content="\ud800"),
        _set(2, path=None),
        _set(0, content="back again"),
    ):
        try:
            data = forged(archive, change)
        except (UnicodeEncodeError, TypeError, AttributeError):
            data = b"".join(archive).replace(b'"content":"Likes', b'"content":"\\ud800')
        assert data != honest
        refused(data)
    for store in ({"id": "memstore_1"}, {"name": ""}, {"created_at": "soon"}, {"metadata": {"a": 1}}, {"metadata": []}):
        refused(forged(archive, lambda versions: versions, store=store))
    Path("honest").write_bytes(honest)
    at("to", "stores", "import", "honest")


@on_both
def test_stores_are_carried_from_one_engine_to_the_other_and_back(run, at, where, notes, postgres_server):
    others = {"--data": ("--database", postgres_server.new_database()), "--database": ("--data", "other")}
    other = others[where("from")[0]]
    at("from", "stores", "export", notes, "here")
    assert run("stores", "import", "here", *other).text.endswith(" 6 versions added, 0 were there already\n")
    run("stores", "export", notes, "there", *other)
    at("back", "stores", "import", "there")
    at("back", "stores", "export", notes, "again")
    assert Path("here").read_bytes() == Path("there").read_bytes() == Path("again").read_bytes()
    assert run("verify", *other).text == at("from", "verify").text


@on_both
def test_a_version_that_is_in_another_store_is_refused_as_a_whole(at, archive):
    Path("one").write_bytes(b"".join(archive))
    Path("two").write_bytes(forged(archive, lambda versions: versions, store={"id": "memstore_" + "0" * 32}))
    at("to", "stores", "import", "one")
    assert "in another memory" in at("to", "stores", "import", "two", ok=False).err
    assert len(at("to", "stores", "list", "--archived", "--json").json["stores"]) == 1


# File memories


def test_a_sqlite_memory_comes_back_with_its_history(run, at, archive):
    run("files", "create", "a.md", "one", "--memory", "a.db#x")
    run("files", "edit", "a.md", "one", "two", "--memory", "a.db#x")
    run("files", "mv", "a.md", "d/b.md", "--memory", "a.db#x")
    assert run("files", "export", "x.gz", "--memory", "a.db#x").text == "Exported 3 versions to x.gz\n"
    assert (
        run("files", "import", "x.gz", "--memory", "b.db").text == "Imported: 3 versions added, 0 were there already\n"
    )
    assert run("files", "import", "x.gz", "--memory", "b.db", "--json").json["added"] == 0
    for command in (("history",), ("verify",), ("ls", "-r")):
        one = run("files", *command, "--memory", "a.db#x", "--json").json
        other = run("files", *command, "--memory", "b.db", "--json").json
        assert {**one, "memory": ""} == {**other, "memory": ""}
    run("files", "create", "mine.md", "x", "--memory", "c.db")
    assert run("files", "import", "x.gz", "--memory", "c.db").err.startswith("error: conflict: ")
    assert run("files", "import", "x.gz", "--memory", "plain").code == 2
    assert run("files", "export", "y", "--memory", "plain").code == 3
    wrong = at("to", "stores", "import", "x.gz", ok=False)
    assert "memshelf files import" in wrong.err
    assert run("files", "import", "archive", "--memory", "d.db").code == 0
    assert run("files", "view", "c.md", "--memory", "d.db").out == b"moved"


# Folders


@pytest.fixture
def folder():
    for path, text in {"a.md": "one", "d/e/茶.md": "绿茶\r\n", "d/page.markdown": "", "notes.txt": "text"}.items():
        place = Path("notes", path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(text.encode())
    for path in (".git/x.md", ".hidden.md"):
        Path("notes", path).parent.mkdir(exist_ok=True)
        Path("notes", path).write_text("hidden")
    Path("outside.md").write_text("outside")
    Path("notes/link.md").symlink_to(Path("outside.md").absolute())
    return "notes"


@pytest.mark.parametrize("memory", ["memory.db", "memory"])
def test_a_folder_becomes_a_memory_and_a_memory_a_folder(run, folder, memory):
    done = run("files", "import", folder, "--memory", memory, "--json").json
    assert done == {"created": ["a.md", "d/page.markdown", "d/e/茶.md"], "updated": [], "unchanged": [], "refused": []}
    Path(folder, "a.md").write_text("two")
    again = run("files", "import", folder, "--all", "--memory", memory)
    assert again.text == "Imported: 1 created, 1 updated, 2 unchanged, 0 refused\n"
    assert run("files", "export", "--folder", "out", "--memory", memory).text == "Exported 4 files to out\n"
    found = {path.relative_to("out").as_posix(): path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    assert found == {"a.md": b"two", "d/e/茶.md": "绿茶\r\n".encode(), "d/page.markdown": b"", "notes.txt": b"text"}
    assert run("files", "export", "--folder", "out", "--memory", memory).code == 2


def test_an_import_says_how_many_files_it_passed_over_as_not_markdown(run, folder):
    done = run("files", "import", folder, "--memory", "memory.db")
    assert done.err == (
        "New memory: there was none at memory.db.\nPassed over, as not Markdown: 1 file; --all imports them too.\n"
    )
    assert run("files", "import", folder, "--all", "--memory", "memory.db").err == ""


def test_a_folder_that_is_exported_is_private_whatever_the_umask(run, folder):
    run("files", "import", folder, "--memory", "memory.db")
    before = os.umask(0)
    try:
        run("files", "export", "--folder", "above/out", "--memory", "memory.db")
    finally:
        os.umask(before)
    made = [Path("above"), *Path("above").rglob("*")]
    assert {path: oct(path.stat().st_mode) for path in made if path.stat().st_mode & 0o077} == {}
    assert Path("above/out/d/page.markdown").exists()


def test_a_folder_becomes_memories_of_a_store_and_the_other_way(run, at, where, folder):
    run("keys", "create", *where("from"))
    at("from", "stores", "create", "Notes")
    assert at("from", "memories", "import", "Notes", folder).text == (
        "Imported: 3 created, 0 updated, 0 unchanged, 0 refused\n"
    )
    assert at("from", "memories", "import", "Notes", folder, "--json").json["unchanged"][0] == "a.md"
    by = at("from", "versions", "list", "Notes", "--json").json["versions"][0]["created_by"]
    assert by["type"] == "user_actor"
    assert at("from", "memories", "export", "Notes", "out", "--json").json == {"folder": "out", "files": 3}
    assert Path("out/d/e/茶.md").read_bytes() == "绿茶\r\n".encode()


def test_a_file_that_is_refused_does_not_stop_the_others(run, folder):
    Path(folder, "bad.md").write_bytes(b"\xff\xfe")
    Path(folder, "open.md").write_text("---\nnever closed\n")
    done = run("files", "import", folder, "--memory", "memory.db", "--json")
    assert done.code == 1
    assert [(each["path"], each["error"]) for each in done.json["refused"]] == [
        ("bad.md", "invalid_file"),
        ("open.md", "invalid_file"),
    ]
    assert len(done.json["created"]) == 3


def test_what_cannot_be_read_is_said_and_does_not_stop_the_others(run, folder, monkeypatch):
    closed = {Path(folder, "closed"), Path(folder, "closed.md")}
    Path(folder, "closed").mkdir()
    Path(folder, "closed.md").write_text("x")
    scandir, read_bytes = os.scandir, Path.read_bytes

    def opened(found, path):
        if Path(path) in closed:
            raise PermissionError(13, "Permission denied", str(path))
        return found(path)

    monkeypatch.setattr(os, "scandir", lambda path: opened(scandir, path))
    monkeypatch.setattr(Path, "read_bytes", lambda path: opened(read_bytes, path))
    done = run("files", "import", folder, "--memory", "memory.db", "--json")
    assert done.code == 1
    assert sorted((each["path"], each["error"], each["message"]) for each in done.json["refused"]) == [
        ("closed.md", "unavailable", "It cannot be read: Permission denied."),
        ("closed/", "unavailable", "It cannot be read: Permission denied."),
    ]
    assert len(done.json["created"]) == 3


def test_of_two_files_whose_names_are_the_same_in_unicode_one_is_refused(run, folder):
    for name in ("cafe\u0301.md", "caf\u00e9.md"):
        Path(folder, name).write_text(ascii(name))
    if len(list(Path(folder).glob("caf*"))) == 1:
        pytest.skip("this file system does not tell the two apart")
    done = run("files", "import", folder, "--memory", "memory.db", "--json")
    assert done.code == 1
    assert [(each["path"], each["error"]) for each in done.json["refused"]] == [("caf\u00e9.md", "already_exists")]
    assert (len(done.json["created"]), done.json["updated"]) == (4, [])
