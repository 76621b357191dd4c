"""`memshelf records`: adding, finding and changing records, and carrying them from one place to another."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import program

from memshelf import NewRecord, Origin, SqliteRecordStore
from memshelf.testing.mem0 import FakeMem0


@pytest.fixture
def memory(monkeypatch):
    monkeypatch.setenv("MEMSHELF_MEMORY", "user.db")
    monkeypatch.delenv("MEMSHELF_DATABASE", raising=False)
    return "user.db"


def _texts(run, *options: str) -> list[str]:
    return [record["text"] for record in run("records", "list", "--json", *options).json["records"]]


def test_records_are_found_by_meaning_in_both_languages(run, memory):
    for text in ("Likes green tea.", "周末常去西湖散步", "Plays the cello."):
        assert run("records", "add", text).code == 0
    assert "Likes green tea." in run("records", "search", "她喜欢喝什么？").text.splitlines()[0]
    found = run("records", "search", "a walk by the lake", "--limit", "1", "--json").json
    assert [record["text"] for record in found["records"]] == ["周末常去西湖散步"]
    assert 0 < found["records"][0]["score"] <= 1
    assert run("records", "search", "quantum chromodynamics lattice").code == 0


def test_an_added_record_says_from_whom_and_when_it_is(run, memory):
    added = run("records", "add", "- a list\n", "--at", "2026-05-01T12:00+00:00", "--thread", "chat", "--json").json
    assert (added["text"], added["thread"], added["at"]) == ("- a list\n", "chat", "2026-05-01T12:00:00+00:00")
    assert added["origin"]["kind"] == "user"
    assert added["origin"]["principal_id"].startswith("cli:")
    piped = run("records", "add", "--json", stdin="绿茶\u2028\n".encode()).json
    assert piped["text"] == "绿茶\u2028"


def test_a_record_is_updated_replaced_and_deleted(run, memory):
    first = run("records", "add", "Lives in Paris.", "--json").json
    run("records", "add", "Lives in Lyon.", "--replaces", first["id"])
    found = run("records", "search", "where does she live, in Paris?", "--json").json["records"]
    assert [record["text"] for record in found] == ["Lives in Lyon.", "Lives in Paris."]
    updated = run("records", "update", first["id"], "Lived in Paris.", "--json").json
    assert (updated["id"], updated["text"]) == (first["id"], "Lived in Paris.")
    refused = run("records", "rm", first["id"])
    assert (refused.code, refused.err.splitlines()[0]) == (2, "error: usage: There is nobody to ask: say --yes.")
    assert run("records", "rm", first["id"], "--yes").text == "Deleted 1 record\n"
    gone = run("records", "rm", first["id"], "--yes", "--json")
    assert (gone.code, gone.json["error"]) == (1, "record_not_found")
    assert _texts(run) == ["Lives in Lyon."]
    assert b"Paris" not in b"".join(path.read_bytes() for path in Path().glob("user.db*"))


def test_when_one_of_the_records_is_not_there_none_is_deleted(run, memory):
    added = [run("records", "add", text, "--json").json["id"] for text in ("tea", "coffee")]
    refused = run("records", "rm", *added, "rec_none", "--yes")
    assert (refused.code, "nothing changed" in refused.err) == (1, True)
    assert _texts(run) == ["tea", "coffee"]
    assert run("records", "rm", *added, *added, "--yes").text == "Deleted 2 records\n"


def test_every_record_of_a_namespace_and_no_other_is_deleted(run, memory):
    run("records", "add", "theirs", "--namespace", "theirs")
    run("records", "add", "a secret marmalade")
    assert run("records", "rm", "--all", "--yes").text == "Deleted every record of default\n"
    assert _texts(run) == []
    assert _texts(run, "--memory", "user.db#theirs") == ["theirs"]
    assert b"marmalade" not in b"".join(path.read_bytes() for path in Path().glob("user.db*"))


def test_a_record_is_shown_whole_with_all_that_is_known_of_it(run, memory):
    text = "Likes green tea. " * 40 + "\u2028\n第二行"
    first = run("records", "add", text, "--at", "2026-05-01T12:00Z", "--thread", "chat", "--json").json
    second = run("records", "add", "Likes black tea.", "--replaces", first["id"], "--json").json
    shown = run("records", "show", first["id"]).text
    fields, _, rest = shown.partition("\n\n")
    assert rest == f"{text}\n"
    known = dict(line.split("\t") for line in fields.splitlines())
    assert known.pop("updated_at").endswith("Z")
    assert known.pop("origin").startswith("user cli:")
    assert known == {
        "id": first["id"], "at": "2026-05-01T12:00:00Z", "thread": "chat", "replaced_by": second["id"],
    }  # fmt: skip
    run("records", "update", second["id"], "Likes black tea now.")
    both = run("records", "show", second["id"], first["id"], "--json").json["records"]
    assert [each["text"] for each in both] == ["Likes black tea now.", text]
    assert both == run("records", "list", "--json").json["records"][::-1]
    assert "\nrevised\tyes\n" in run("records", "show", second["id"]).text


def test_when_one_of_the_records_to_show_is_not_there_none_is_printed(run, memory):
    added = run("records", "add", "tea", "--json").json["id"]
    missing = run("records", "show", added, "rec_none")
    assert (missing.code, missing.text) == (1, "")
    assert missing.err == "error: record_not_found: There is no record 'rec_none' here; nothing changed.\n"
    assert run("records", "show").err.startswith("error: usage: Missing argument 'ID...'.")
    assert run("records", "show", added, "--namespace", "ann").code == 3


def test_a_list_that_is_cut_says_how_to_see_the_whole(run, terminal, memory):
    record = run("records", "add", "tea \x1b[31m" * 30, "--json").json["id"]
    hint = "Long texts are cut; --json has all of them."
    for command in (("list",), ("search", "tea")):
        shown = terminal("records", *command, "--memory", memory)
        assert shown.end() == 0
        assert ("…" in shown.seen, hint in shown.seen) == (True, True)
    shown = terminal("records", "show", record, "--memory", memory)
    assert shown.end() == 0
    assert ("…" in shown.seen, "tea \\x1b[31m" * 30 in shown.seen) == (False, True)
    run("records", "update", record, "tea")
    shown = terminal("records", "list", "--memory", memory)
    assert shown.end() == 0
    assert hint not in shown.seen


def test_pages_follow_one_another(run, memory):
    for each in range(3):
        run("records", "add", f"record {each}")
    page = run("records", "list", "--limit", "2", "--json").json
    assert [record["text"] for record in page["records"]] == ["record 0", "record 1"]
    rest = run("records", "list", "--cursor", page["next_cursor"])
    assert rest.text.endswith("record 2\n")
    assert run("records", "list", "--cursor", "x", "--json").json["error"] == "invalid_cursor"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["list", "--memory", "nowhere.db"], 3, "error: unknown_memory: There is no memory at nowhere.db."),
        (["list", "--namespace", "b"], 3, "error: unknown_memory: user.db holds no records of b. Namespaces"),
        (["list", "--memory", "."], 2, "error: usage: Records are kept in a SQLite file"),
        (["list", "--memory", "user.db#a", "--namespace", "b"], 2, "error: usage: user.db#a names a namespace"),
        (["list", "--memory", "user.db", "--database", "postgresql://x"], 2, "error: usage: Say where the records"),
        (["list", "--database", "mysql://x"], 2, "error: usage: Invalid value for --database"),
        (["list", "--namespace", "a\nb"], 2, "error: usage: Invalid value for --namespace"),
        (["add", "tea", "--namespace", ""], 2, "error: usage: Invalid value for --namespace"),
        (["add", " "], 1, "error: invalid_text:"),
        (["add", "tea", "--at", "soon"], 2, "error: usage: Invalid value for --at"),
        (["add", "tea", "--replaces", "rec_none"], 1, "error: record_not_found:"),
        (["rm"], 2, "error: usage: Give the IDs of records, or --all."),
        (["import"], 2, "error: usage: Give a FILE, or --mem0 URL."),
        (["import", "--mem0", "http://localhost:1"], 2, "error: usage: Say whose records"),
        (["import", "--mem0", "ftp://x", "--user", "ann"], 2, "error: usage: --mem0 is the http or https address"),
        (
            ["import", "--mem0", "https://api.mem0.ai", "--user", "ann"],
            2,
            "error: usage: mem0's platform asks for a key: --m",
        ),
        (
            ["import", "--mem0", "http://x", "--user", "ann", "--mem0-key", "a b"],
            2,
            "error: usage: --mem0-key is one or",
        ),
        (["import", "--mem0", "http://x", "--user", "a b"], 2, "error: usage: --user is 1 to 256 printable characters"),
        (["import", "--mem0", "http://127.0.0.1:1", "--user", "ann"], 3, "error: unavailable:"),
        (["import", "nowhere.jsonl"], 3, "error: unavailable: nowhere.jsonl: No such file"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(run, memory, arguments, code, message):
    run("records", "add", "tea")
    ended = run("records", *arguments)
    assert (ended.code, ended.err[: len(message)]) == (code, message)


def test_a_server_that_is_not_there_is_no_failure_of_the_database(run, memory):
    ended = run("records", "import", "--mem0", "http://127.0.0.1:1", "--user", "ann")
    assert ended.err == "error: unavailable: The server could not be asked (ConnectError).\n"


@pytest.mark.parametrize("name", ["records.jsonl", "records.jsonl.gz", "-"])
def test_what_is_exported_is_imported_with_all_that_is_known_of_it(run, memory, name):
    first = run("records", "add", "Lives in Paris.\x00\u2028", "--thread", "chat", "--json").json
    run("records", "add", "Lives in Lyon.", "--at", "2026-05-01", "--replaces", first["id"])
    last = run("records", "add", "住在巴黎", "--json").json
    run("records", "update", last["id"], "住在里昂")
    before = run("records", "list", "--json").json["records"]
    exported = run("records", "export", name)
    assert exported.code == 0
    for expected in ("3 records added, 0 were", "0 records added, 3 were"):
        imported = run("records", "import", name, "--memory", "copy.db#ann", stdin=exported.out)
        assert imported.text == f"Imported: {expected} there already\n"
    after = run("records", "list", "--memory", "copy.db#ann", "--json").json["records"]
    assert [record.get("revised") for record in after] == [None, None, True]
    assert after[0].pop("replaced_by") == after[1]["id"]
    assert before[0].pop("replaced_by") == before[1]["id"]
    assert {record.pop("id") for record in after}.isdisjoint(record.pop("id") for record in before)
    assert after == before


async def test_a_record_of_which_nobody_knows_the_origin_stays_one(run, memory):
    origins = [None, Origin("run"), Origin(None, "ann", "call", kind="user"), Origin(kind="import")]
    async with SqliteRecordStore("user.db", embedder=None) as store:
        await store.add_many(NewRecord(text=f"tea {number}", origin=each) for number, each in enumerate(origins))
    await asyncio.to_thread(run, "records", "export", "out.jsonl")
    await asyncio.to_thread(run, "records", "import", "out.jsonl", "--memory", "copy.db")
    async with SqliteRecordStore("copy.db", embedder=None) as store:
        assert [record.origin for record in (await store.list(limit=9)).records] == origins


_OF_TWO = '{"text":"tea","user_id":"bob"}\n{"text":"cake","user_id":"ann"}\n{"text":"rain"}\n'


def test_an_import_for_a_user_of_whom_the_file_has_nothing_names_those_it_has_and_makes_nothing(run, memory):
    Path("mem0.jsonl").write_text(_OF_TWO)
    refused = run("records", "import", "mem0.jsonl", "--user", "zoe")
    assert (refused.code, refused.text) == (1, "")
    assert refused.err == (
        "error: not_found: The file has no records of zoe. Users whose records it has: ann, bob. "
        "Nothing was imported.\n"
    )
    refused = run("records", "import", "-", "--user", "zoe", "--json", stdin=b'{"text":"tea"}\n')
    assert (refused.code, refused.json["error"]) == (1, "not_found")
    assert "it has: none." in refused.json["message"]
    assert not Path("user.db").exists()


def test_an_import_that_mixes_the_records_of_several_users_says_whose_they_are(run, memory):
    Path("mem0.jsonl").write_text(_OF_TWO)
    mixed = run("records", "import", "mem0.jsonl")
    assert (mixed.code, mixed.text) == (0, "Imported: 3 records added, 0 were there already\n")
    assert mixed.err == (
        "warning: The file has records of several users, which are mixed: ann, bob.\n"
        "To import those of one of them: --user NAME, with a --namespace of their own.\n"
        "New memory: there was none at user.db.\n"
    )
    again = run("records", "import", "mem0.jsonl", "--json").json
    assert again == {"namespace": "default", "added": 0, "present": 3, "users": ["ann", "bob"]}
    of_one = run("records", "import", "mem0.jsonl", "--user", "ann", "--namespace", "ann", "--json")
    assert of_one.json == {"namespace": "ann", "added": 1, "present": 0}
    assert of_one.err == "New namespace ann: user.db had no records of it.\n"
    of_one = run("records", "import", "-", "--json", stdin=b'{"text":"tea","user_id":"bob"}\n{"text":"rain"}\n')
    assert (of_one.code, of_one.err, "users" in of_one.json) == (0, "", False)


def test_the_names_of_users_in_a_file_cannot_reach_the_terminal_as_they_are(run, memory):
    Path("mem0.jsonl").write_text('{"text":"a","user_id":"\\u001b]0;x"}\n{"text":"b","user_id":"\\ud800"}\n')
    assert "mixed: \\x1b]0;x, \\ud800." in run("records", "import", "mem0.jsonl").err
    refused = run("records", "import", "mem0.jsonl", "--user", "ann")
    assert (refused.code, "\\x1b]0;x, \\ud800." in refused.err) == (1, True)


_SEEN = [
    {"text": "tea", "att": "2026-05-01", "Text": "x"},
    {"text": "cake", "att": None, "user_id": "ann"},
    {"text": "rain", "score": 0.5, "replaced_by": "rec_1", "metadata": {"att": 1}},
]


def test_fields_that_are_not_known_are_named_once_with_how_many_records_have_them(run, memory):
    Path("in.jsonl").write_text("".join(json.dumps(each) + "\n" for each in _SEEN))
    imported = run("records", "import", "in.jsonl")
    assert (imported.code, imported.text) == (0, "Imported: 3 records added, 0 were there already\n")
    assert imported.err == (
        "warning: Some fields are not known, and not imported: Text (in 1 record), att (in 2 records).\n"
        "Those of a record are text, id, at, updated_at, revised, thread, origin, replaces.\n"
        "New memory: there was none at user.db.\n"
    )
    again = run("records", "import", "in.jsonl", "--user", "ann", "--namespace", "ann", "--json")
    assert again.json == {"namespace": "ann", "added": 1, "present": 0, "ignored": {"att": 1}}
    Path("in.jsonl").write_text('{"text": "a", "\\u001b]0;x\\ud800": 1}')
    assert "imported: \\x1b]0;x\\ud800 (in 1 record)." in run("records", "import", "in.jsonl").err


def test_what_is_listed_or_exported_has_no_unknown_fields(run, memory):
    first = run("records", "add", "Lives in Paris.", "--thread", "chat", "--json").json["id"]
    second = run("records", "add", "Lives in Lyon.", "--replaces", first, "--json").json["id"]
    run("records", "update", second, "Lives in Lyons.")
    listed = [
        *run("records", "list", "--json").json["records"],
        *run("records", "search", "Lyon", "--json").json["records"],
    ]
    lines = "".join(json.dumps(each) + "\n" for each in listed).encode() + run("records", "export", "-").out
    assert (
        run("records", "import", "-", "--memory", "copy.db", stdin=lines).err
        == "New memory: there was none at copy.db.\n"
    )


def test_ids_may_be_numbers_and_times_seconds_or_milliseconds_since_1970(run, memory):
    items = [
        {"id": 1, "text": "tea", "at": 1777636800},
        {"id": "2", "text": "cake", "created_at": 1777636800.5, "replaces": 1},
        {"id": 3, "memory": "rain", "created_at": 1777636800123, "updated_at": 1777636801, "user_id": 7, "thread": 9},
        {"id": 4, "text": "moon", "at": -14182940, "replaces": 2},
        {"id": 5, "text": "zero", "at": 0},
    ]
    Path("in.json").write_text(json.dumps(items))
    assert run("records", "import", "in.json").err == "New memory: there was none at user.db.\n"
    records = run("records", "list", "--json").json["records"]
    assert [each["at"] for each in records] == [
        "2026-05-01T12:00:00+00:00",
        "2026-05-01T12:00:00.500000+00:00",
        "2026-05-01T12:00:00.123000+00:00",
        "1969-07-20T20:17:40+00:00",
        "1970-01-01T00:00:00+00:00",
    ]
    assert records[2]["updated_at"] == "2026-05-01T12:00:01+00:00"
    assert records[2]["thread"] == "9"
    assert [each.get("replaced_by") for each in records[:2]] == [records[1]["id"], records[3]["id"]]
    assert run("records", "import", "in.json", "--json").json["present"] == 5
    assert run("records", "import", "in.json", "--user", "7", "--namespace", "b", "--json").json["added"] == 1


def test_an_export_replaces_no_file_unless_told_to(run, memory):
    run("records", "add", "tea")
    Path("out.jsonl").write_text("mine")
    assert run("records", "export", "out.jsonl").code == 2
    assert Path("out.jsonl").read_text() == "mine"
    assert run("records", "export", "out.jsonl", "--force", "--json").json == {"file": "out.jsonl", "records": 1}


@pytest.mark.parametrize(
    "document",
    [
        '{"results": [%s]}', "[%s]", '{"memories": [\n%s\n]}', '{\n  "results":\n [%s]\n}',
    ],
)  # fmt: skip
def test_what_mem0_exports_is_imported(run, memory, document):
    items = [
        {"id": "1", "memory": "Likes tea", "user_id": "ann", "created_at": "2026-05-01T10:00:00-07:00", "hash": "x"},
        {"id": "2", "memory": "喜欢绿茶", "user_id": "ann", "metadata": {"a": [1]}, "updated_at": None},
        {"id": "4", "memory": "Likes cake", "user_id": "ann", "updated_at": "2026-05-02T10:00:00Z"},
        {"id": "3", "memory": "Not hers", "user_id": "bob"},
    ]
    Path("mem0.json").write_text(document % ",".join(json.dumps(item) for item in items))
    assert run("records", "import", "mem0.json", "--user", "ann", "--json").json["added"] == 3
    records = run("records", "list", "--json").json["records"]
    assert [record["text"] for record in records] == ["Likes tea", "喜欢绿茶", "Likes cake"]
    assert records[2]["updated_at"] == "2026-05-02T10:00:00+00:00"
    assert records[0]["at"] == "2026-05-01T17:00:00+00:00"
    assert records[0]["origin"]["kind"] == "import"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b'{"text": "a"}\n{"text": "b"\n', "Line 2 is no JSON: Expecting ',' delimiter at character 13. Expected are"),
        (b"hello\nworld\n", "Line 1 is no JSON: Expecting value at character 1. Expected are JSON lines with a `text`"),
        (b'{"text": "a"}\n[]\n', "Line 2 is no JSON object. Expected are"),
        (b'{"text": "a"}\n\n{"memory": 5}\n', "Line 3 has no text."),
        (b'{"text": "a"}\n{"text": " "}\n', "Line 2: A record's text is not blank."),
        (b'{"text": "a"}\n{"text": "\\ud800"}\n', "Line 2: A record's text is not valid Unicode."),
        (b'{"text": "a"}\n{"text": "\xff"}\n', "Line 2 is no JSON: it is not UTF-8 text."),
        (b'[{"text": "a"},\n{"text": "b"},\n{"text": "\xff"}]\n', "Line 3 is no JSON: it is not UTF-8 text."),
        (b'[{"text": "a"},\n{"text": "b",}]\n', "Line 2 is no JSON: "),
        (b'{"text": "a", "at": "soon"}\n', "Line 1: `at` is an ISO 8601 time, such as"),
        (b'{"text": "a", "updated_at": "0001-01-01T00:00+14:00"}\n', "Line 1: `updated_at` is an ISO 8601 time"),
        (b'{"text": "a", "at": true}\n', "Line 1: `at` is an ISO 8601 time, such as"),
        (b'{"text": "a", "at": [5]}\n', "Line 1: `at` is an ISO 8601 time, such as"),
        (b'{"text": "a", "at": NaN}\n', "Line 1: `at` is an ISO 8601 time, such as"),
        (b'{"text": "a", "at": -1e300}\n', "Line 1: `at` is an ISO 8601 time, such as"),
        (b'{"text": "a", "at": 1%s}\n' % (b"0" * 400), "Line 1: `at` is an ISO 8601 time, such as"),
        (b'{"text": "a", "at": 1777636800000000}\n', "Line 1: `at` is an ISO 8601 time, such as"),
        (b'{"text": "a", "at": "1777636800"}\n', "Line 1: `at` is an ISO 8601 time, such as"),
        (b'{"text": "a", "id": 1.5}\n', "Line 1: `id` is a text or a whole number."),
        (b'{"text": "a", "replaces": false}\n', "Line 1: `replaces` is a text or a whole number."),
        (b'{"text": "a", "thread": "a\\nb"}\n', "Line 1: a thread's name is printable."),
        (b'{"text": "a", "origin": {"kind": "devil"}}\n', "Line 1: `origin.kind` is one of"),
        (b'{"text": "a", "origin": {"run_id": "\\u0000"}}\n', "Line 1: Origin.run_id has no NUL"),
        (b'{"a": 1}\n', "Line 1 has no text. Expected are JSON lines"),
        (b'{"results": 5}', "Line 1 has no text."),
        (b'{"a":\n1}\n', "There are no records in it. Expected are JSON lines"),
        (b'{"text": "a"\n', "Line 1 is no JSON: Expecting ',' delimiter at character 13."),
        (b'[{"text": "a"},\n{"text": "b"}\n\n', "Line 2 is no JSON: Expecting ',' delimiter at character 14."),
        (b"[[[[", "Line 1 is no JSON: "),
        (b"[" * 100_000, "Line 1 is no JSON: it is nested too deeply."),
        (b'{"text": "a"}\n{"text": %s}\n' % (b"9" * 5_000), "Line 2 is no JSON: "),
        (b"[{}]", "Record 1 has no text."),
        (gzip.compress(b'{"text": "a"}\n', mtime=0)[:-6], "The file is compressed, and damaged."),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused_as_a_whole(run, memory, lines, message):
    Path("records.jsonl").write_bytes(lines)
    refused = run("records", "import", "records.jsonl", "--json")
    assert (refused.code, refused.json["error"]) == (1, "invalid_file")
    assert refused.json["message"].startswith(message)
    assert refused.err.splitlines()[-1] == "The file is records.jsonl."
    assert not Path("user.db").exists()


@pytest.mark.parametrize(
    ("command", "has_file"),
    [
        (("records", "add", "-tea"), False),
        (("records", "add", "tea", "--file", "c.md"), False),
        (("records", "search", "tea", "--limt", "2"), False),
        (("files", "create", "a.md", "-tea"), True),
    ],
)
def test_only_a_command_that_reads_files_says_that_it_does(run, memory, command, has_file):
    refused = run(*command)
    assert (refused.code, "Put -- before text" in refused.err) == (2, True)
    assert ("--file." in refused.err) == has_file


def test_namespaces_are_listed_with_how_many_records_they_hold(run, memory):
    for namespace in ("ann", "ann", "bob"):
        run("records", "add", "tea", "--namespace", namespace)
    run("records", "rm", "--all", "--yes", "--namespace", "bob")
    listed = run("records", "namespaces", "--json", "--memory", "user.db#ann").json["namespaces"]
    assert listed == [{"namespace": name, "records": count} for name, count in (("ann", 2), ("bob", 0))]
    assert run("records", "namespaces").text == "ann\t2\nbob\t0\n"
    missing = run("records", "namespaces", "--memory", "nowhere.db")
    assert (missing.code, missing.err.splitlines()) == (
        3,
        [
            "error: unknown_memory: There is no memory at nowhere.db.",
            "Check --memory; `memshelf records add` makes a new memory.",
        ],
    )
    assert not Path("nowhere.db").exists()
    Path("broken.db").write_bytes(b"SQLite format 3\0" + b"x" * 4_000)
    assert run("records", "namespaces", "--memory", "broken.db").err.splitlines()[-1].startswith("broken.db is damaged")


def test_a_namespace_that_was_typed_wrong_is_answered_with_what_there_is(run, memory):
    for number in range(12):
        run("records", "add", "tea", "--namespace", f"user-{number:02}")
    missing = run("records", "list", "--namespace", "user-1")
    names = ", ".join(f"user-{number:02}" for number in range(10))
    assert f"holds no records of user-1. Namespaces that it holds: {names} and 2 more.\n" in missing.err
    assert "`memshelf records namespaces` lists them" in missing.err


def test_a_damaged_database_is_named_and_a_backup_advised(run, memory):
    run("records", "add", "tea")
    Path("damaged.db").write_bytes(Path("user.db").read_bytes()[:3_000])
    for command in ("records", "files"):
        refused = run(command, "rm" if command == "files" else "list", *(["a.md", "-y"] if command == "files" else []),
                      "--memory", "damaged.db")  # fmt: skip
        assert (refused.code, refused.err.splitlines()[-1]) == (
            3,
            "damaged.db is damaged: restore it from a backup.",
        )


def test_a_database_that_cannot_be_made_is_named(run, memory):
    refused = run("records", "add", "tea", "--memory", "/dev/null/user.db")
    assert (refused.code, refused.err.splitlines()[-1]) == (3, "The database is /dev/null/user.db.")


def test_an_empty_file_has_no_records(run, memory):
    assert run("records", "import", "-", stdin=b"\n").text == "Imported: 0 records added, 0 were there already\n"


def test_an_import_that_stops_at_a_record_goes_on_from_there(run, memory):
    lines = [json.dumps({"text": f"record {each}"}) for each in range(70)]
    lines.append(json.dumps({"text": "corrected", "replaces": "rec_none"}))
    Path("records.jsonl").write_text("\n".join(lines))
    stopped = run("records", "import", "records.jsonl")
    assert (stopped.code, stopped.err.splitlines()[-1]) == (1, "64 records added before; call it again to go on.")
    Path("records.jsonl").write_text("\n".join(lines[:-1]))
    assert run("records", "import", "records.jsonl").text.startswith("Imported: 6 records added, 64 were")
    assert _texts(run, "--limit", "200") == [f"record {each}" for each in range(70)]


_INTERRUPTED_AFTER_A_BATCH = """
import os, signal, sys
from memshelf.cli import main, record_transfer

async def commit(store, new, done, go=record_transfer._commit):
    some = bool(new)
    await go(store, new, done)
    if some:
        os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
record_transfer._commit = commit
sys.exit(main(sys.argv[1:]))
"""


def test_an_import_that_is_interrupted_says_how_far_it_came_and_goes_on_from_there(run, memory):
    Path("records.jsonl").write_text("".join(f'{{"text": "record {each}"}}\n' for each in range(200)))
    command = ["records", "import", "records.jsonl"]
    for added, present in ((64, 0), (64, 64)):
        stopped = subprocess.run(
            [sys.executable, "-c", _INTERRUPTED_AFTER_A_BATCH, *command], capture_output=True, text=True, timeout=100
        )
        counts = f"{added} records added, {present} were there already"
        assert (stopped.returncode, stopped.stdout) == (130, "")
        assert stopped.stderr == f"Stopped: at least {counts}; call it again to go on.\n"
    assert run(*command).text == "Imported: 72 records added, 128 were there already\n"


def test_a_pipe_is_imported_as_a_file_is(run, memory):
    os.mkfifo("pipe")
    with subprocess.Popen([sys.executable, "-m", "memshelf", "records", "import", "pipe"]) as importing:
        Path("pipe").write_text('{"text": "tea"}\n{"text": "coffee"}\n')
    assert importing.returncode == 0
    assert _texts(run) == ["tea", "coffee"]


def test_imports_of_the_same_at_the_same_time_add_it_once(run, memory):
    lines = [json.dumps({"text": f"fact {each % 290}", "thread": "chat"}) for each in range(300)]
    Path("in.jsonl").write_text("\n".join(lines))
    run("records", "add", "fact 7", "--thread", "chat")
    command = [sys.executable, "-m", "memshelf", "records", "import", "in.jsonl", "--json"]
    imports = [subprocess.Popen(command, stdout=subprocess.PIPE) for _ in range(3)]
    ended = [json.loads(each.communicate(timeout=60)[0]) for each in imports]
    assert sum(each["added"] for each in ended) == 299
    assert {each["added"] + each["present"] for each in ended} == {300}
    assert sorted(_texts(run, "--limit", "1000")) == sorted(f"fact {each % 290}" for each in range(300))


def test_the_same_text_twice_in_a_file_is_two_records(run, memory):
    Path("records.jsonl").write_text('{"text": "tea"}\n{"text": "tea"}\n')
    run("records", "add", "tea")
    assert run("records", "import", "records.jsonl", "--json").json == {
        "namespace": "default", "added": 1, "present": 1,
    }  # fmt: skip
    assert _texts(run) == ["tea", "tea"]


def test_reindexing_makes_records_of_another_model_findable_by_meaning(run, memory):
    run("records", "add", "Likes green tea.")
    with sqlite3.connect("user.db") as connection:
        connection.execute("UPDATE embedding_models SET version = 'of old'")
    connection.close()
    assert run("records", "reindex").text == "Indexed 1 record\n"
    assert run("records", "reindex", "--json").json == {"namespace": "default", "indexed": 0}
    assert len(run("records", "search", "她喝什么？", "--json").json["records"]) == 1


def test_a_terminal_shows_the_times_at_the_ends_of_the_calendar(run, terminal, memory):
    lines = [{"text": "first", "at": -62135596800}, {"text": "last", "at": "9999-12-31T23:59:59Z"}]
    Path("records.jsonl").write_text("\n".join(map(json.dumps, lines)))
    run("records", "import", "records.jsonl")
    west = terminal("records", "list", env={"MEMSHELF_MEMORY": memory, "TZ": "UTC+5"})
    west.until("0001-01-01T00:00:00Z")
    west.until("9999-12-31 18:59:59")
    assert west.end() == 0
    east = terminal("records", "list", env={"MEMSHELF_MEMORY": memory, "TZ": "UTC-8"})
    east.until("0001-01-01 08:00:00")
    east.until("9999-12-31T23:59:59Z")
    assert east.end() == 0


def test_a_terminal_shows_a_table_and_a_bar(run, terminal, memory):
    Path("records.jsonl").write_text("".join(f'{{"text": "record {each} \\u001b[31m"}}\n' for each in range(100)))
    importing = terminal("records", "import", "records.jsonl", env={"MEMSHELF_MEMORY": memory})
    assert importing.end() == 0
    assert "Importing  [####" in importing.seen
    assert "100%" in importing.seen
    listing = terminal("records", "search", "record 7", "--limit", "1", env={"MEMSHELF_MEMORY": memory})
    assert listing.end() == 0
    assert "SCORE  TIME" in listing.seen
    assert "record 7 \\x1b[31m" in listing.seen
    removing = terminal("records", "rm", "--all", env={"MEMSHELF_MEMORY": memory})
    removing.until("Delete every record of default for good? [y/N]: ")
    removing.send("n\n")
    assert removing.end() == 1
    assert len(_texts(run, "--limit", "200")) == 100


async def test_a_mem0_server_is_imported_with_its_key_and_once():
    server = FakeMem0("mem0_oss", api_key="k")
    for each in range(5):
        server.put("ann", f"likes tea number {each}")
    server.put("bob", "not hers")
    async with server.served() as url:
        command = ("records", "import", "--mem0", url, "--user", "ann", "--memory", "user.db#ann", "--json")
        refused = await asyncio.to_thread(program, *command)
        assert (refused.code, refused.json["error"]) == (3, "unavailable")
        for counts in ({"added": 5, "present": 0}, {"added": 0, "present": 5}):
            imported = await asyncio.to_thread(program, *command, env={"MEM0_API_KEY": "k"})
            assert imported.json == {"namespace": "ann", **counts, "left_out": 0}
    listed = await asyncio.to_thread(program, "records", "list", "--memory", "user.db#ann", "--json")
    assert [record["text"] for record in listed.json["records"]] == [f"likes tea number {each}" for each in range(5)]
    assert {record["origin"]["kind"] for record in listed.json["records"]} == {"import"}


async def test_a_record_of_a_server_that_can_be_none_here_keeps_no_other_away():
    server = FakeMem0("mem0_oss")
    blank, _, long = [server.put("ann", text) for text in (" ", "likes tea", "x" * 100_001)]
    server.put("ann", "likes coffee")
    command = ("records", "import", "--user", "ann", "--mem0-key", "k", "--memory", "user.db#ann")
    async with server.served() as url:
        first = await asyncio.to_thread(program, *command, "--mem0", url)
        again = await asyncio.to_thread(program, *command, "--mem0", url, "--json")
    assert (first.code, first.text) == (1, "Imported: 2 records added, 0 were there already, 2 left out\n")
    assert first.err.splitlines() == [
        f"Left out {blank}: A record's text is not blank.",
        f"Left out {long}: A record's text has at most 100000 characters, not 100001.",
        "New memory: there was none at user.db.",
    ]
    assert again.json == {"namespace": "ann", "added": 0, "present": 2, "left_out": 2}


async def test_a_postgresql_database_holds_records_too(postgres_server, tmp_path):
    place = ("--database", postgres_server.dsn, "--namespace", str(tmp_path))
    missing = await asyncio.to_thread(program, "records", "list", *place)
    assert (missing.code, missing.err[:36]) == (3, "error: unknown_memory: The database ")
    added = await asyncio.to_thread(program, "records", "add", "Likes tea.", *place)
    assert added.code == 0
    found = await asyncio.to_thread(program, "records", "search", "tea", *place)
    assert found.text.endswith("Likes tea.\n")


def test_yesterday_is_a_day_of_the_local_time_zone_also_when_clocks_are_changed(run, monkeypatch):
    try:
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv("TZ", "America/New_York")
            time.tzset()
            for text, at in (("late", "2026-10-31T23:30-04:00"), ("early", "2026-11-01T00:30-04:00")):
                run("records", "add", f"standup {text}", "--at", at, "--memory", "r.db")
            search = ("records", "search", "What standup was there yesterday?", "--memory", "r.db", "--json", "--now")
            for now, found in (("2026-11-01T12:00-05:00", "late"), ("2026-11-02T12:00-05:00", "early")):
                assert run(*search, now).json["records"][0]["text"] == f"standup {found}"
    finally:
        time.tzset()


@pytest.mark.parametrize("rest", ['{"text":"tea"}\n\n{"text":"coffee"}\n', '[{"text":"tea"},\n{"text":"coffee"}]'])
def test_lines_of_nothing_before_the_first_record_are_no_damage(run, rest):
    Path("records.jsonl").write_text(f"\n \r\n{rest}")
    assert run("records", "import", "records.jsonl", "--memory", "r.db", "--json").json["added"] == 2
    Path("records.jsonl").write_text(f"\n\n{rest}{{")
    refused = run("records", "import", "records.jsonl", "--memory", "r.db")
    assert "Line 6 is no JSON" in refused.err if rest.startswith("{") else "Line 4 is no JSON" in refused.err
