"""`memshelf versions expire`, on both engines."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[1] / "service"))
from aged import prepared


@pytest.fixture(params=["sqlite", "postgresql"])
def where(request):
    """Where the data is, as options of the command line."""
    if request.param == "sqlite":
        return ("--data", "data")
    return ("--database", request.getfixturevalue("postgres_server").new_database())


def test_it_counts_then_erases_then_finds_nothing(run, where):
    store, _ = prepared(where, "secret", "茶", "now")
    expire = ("versions", "expire", *where, "--keep-versions", "30", "--keep-recent", "1")
    line = f"{store}: 2 versions, 9 bytes\n"
    assert run(*expire, "--dry-run").text == f"{line}Would erase 2 versions\n"
    assert run(*expire, store, "--dry-run", "--json").json == {
        "dry_run": True,
        "stores": [{"store": store, "versions": 2, "bytes": 9}],
    }
    assert run(*expire, "--yes").text == f"{line}Erased 2 versions\n"
    assert run(*expire, "--yes").text == "Erased 0 versions\n"
    listed = run("versions", "list", store, *where).text.splitlines()
    assert [line.split("\t")[3] for line in listed] == ["/a.md", "(redacted)", "(redacted)"]
    assert run("verify", *where).text.startswith(f"{store}: intact, 3 versions")


def test_a_store_whose_versions_expired_is_carried_elsewhere_as_it_is(run, where):
    store, _ = prepared(where, "secret", "茶", "now")
    run("memories", "create", store, "/gone.md", "x", *where)
    run("memories", "delete", store, "/gone.md", "--yes", *where)
    run("versions", "expire", *where, "--keep-versions", "30", "--keep-recent", "1", "--yes")
    assert run("stores", "export", store, "archive", *where).text == "Exported 5 versions to archive\n"
    assert run("stores", "import", "archive", "--data", "other").code == 0
    for command in (("versions", "list"), ("memories", "list"), ("stores", "verify")):
        there = run(*command, store, "--json", "--data", "other").json
        assert there == run(*command, store, "--json", *where).json


@pytest.mark.parametrize("where", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ((), 2, "Say for how many days versions are kept"),
        (("--keep-versions", "29"), 2, "kept for 30 to 36,500 days, not 29."),
        (("--keep-versions", "30", "--keep-recent", "0"), 2, "newest versions are kept, not 0."),
        (("--keep-versions", "30"), 2, "say --dry-run or --yes"),
        (("--keep-versions", "30", "memstore_1", "--yes"), 1, "no memory store memstore_1"),
    ],
)
def test_what_is_refused_changes_nothing(run, where, arguments, code, message):
    prepared(where, "old", "now")
    before = Path("data/memshelf.db").read_bytes()
    done = run("versions", "expire", *where, *arguments)
    assert (done.code, done.out) == (code, b"")
    assert message in done.err
    assert Path("data/memshelf.db").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--keep-versions", "7"), "kept for 30 to 36,500 days, not 7."),
        (("--keep-versions", "100000"), "kept for 30 to 36,500 days, not 100000."),
        (("--keep-recent", "7"), "give both"),
    ],
)
def test_a_service_does_not_start_with_less(run, arguments, message):
    done = run("serve", "--data", "data", *arguments)
    assert (done.code, done.out) == (2, b"")
    assert message in done.err
    assert not Path("data").exists()


def test_looking_creates_nothing(run):
    done = run("versions", "expire", "--data", "nothing", "--keep-versions", "30", "--yes")
    assert (done.code, "unknown_memory" in done.err) == (3, True)
    assert not Path("nothing").exists()
