"""SessionLog: rows, boundaries, seals, forks, and files that others have damaged."""

from __future__ import annotations

import json
import logging
import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from memshelf import MemoryStoreError, SessionLog
from memshelf.storage.ids import Mint

MOMENT = datetime(2026, 4, 1, 12, 30, tzinfo=UTC)


@pytest.fixture
def log(tmp_path):
    return SessionLog("s1", tmp_path / "sessions", durable=False)


def _contents(rows):
    return [row["content"] for row in rows]


def _refusal(code):
    return pytest.raises(MemoryStoreError, check=lambda error: error.code == code)


def _damage(log, data: bytes):
    with open(log.path, "ab") as file:
        file.write(data)


# --- rows -------------------------------------------------------------------------------------------------------------


def test_a_row_has_the_keys_that_readers_rely_on(tmp_path):
    log = SessionLog("s1", tmp_path, mint=Mint(lambda: MOMENT, lambda n: b"\x01" * n))
    row = log.append("assistant", "hi", tool_calls=[])
    assert row == {
        "type": "assistant",
        "id": row["id"],
        "parent_id": None,
        "session_id": "s1",
        "timestamp": "2026-04-01T12:30:00.000000Z",
        "content": "hi",
        "tool_calls": [],
    }
    assert json.loads(Path(log.path).read_text()) == row


def test_each_row_names_the_one_before_it_also_across_objects(log):
    first, second = log.append("user", "a"), log.append("assistant", "b")
    third = SessionLog("s1", log.directory).append("user", "c")
    assert (second["parent_id"], third["parent_id"]) == (first["id"], second["id"])
    assert log.append("user", "d")["parent_id"] == third["id"]
    assert len({row["id"] for row in log.load()}) == 4


@pytest.mark.parametrize(
    "content",
    ["plain", "绿茶", "", None, ["a", {"url": "x"}], {"text": "hi"}, 7, True, "a\nb\r\n", "\u2028\u2029\u0085\x00\x1f"],
)
def test_content_of_any_json_kind_survives(log, content):
    log.append("user", content)
    assert _contents(log.load()) == [content]


@given(st.text(st.characters(codec=None)))
def test_any_text_survives_and_takes_one_line(tmp_path_factory, text):
    log = SessionLog("s1", tmp_path_factory.mktemp("log"), durable=False)
    log.append("user", text)
    assert Path(log.path).read_text(encoding="utf-8").splitlines(keepends=True)[1:] == []
    joined = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")  # JSON joins two halves of a pair
    assert _contents(log.load()) == [joined]


@pytest.mark.parametrize("content", [b"bytes", {1, 2}, float("nan"), float("inf"), object()])
def test_what_is_no_json_is_refused_and_nothing_is_written(log, content):
    log.append("user", "before")
    with _refusal("invalid_value"):
        log.extend([{"type": "user", "content": "first"}, {"type": "user", "content": content}])
    assert _contents(log.load()) == ["before"]


def test_a_content_that_holds_itself_is_refused(log):
    content: list = []
    content.append(content)
    with _refusal("invalid_value"):
        log.append("user", content)


@pytest.mark.parametrize(
    "row", [{"type": "human"}, {}, {"type": "user", "id": "1"}, {"type": "user", "session_id": "x"}]
)
def test_what_is_no_row_is_refused(log, row):
    with _refusal("invalid_value"):
        log.extend([row])
    assert not log.exists()


def test_rows_given_together_stand_together(log):
    rows = log.extend([{"type": "user", "content": n} for n in range(3)])
    assert _contents(log.load()) == [0, 1, 2]
    assert [row["parent_id"] for row in rows] == [None, rows[0]["id"], rows[1]["id"]]


# --- where it is ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "session_id",
    [
        "",
        "..",
        ".",
        "../x",
        "a/b",
        "a\\b",
        "a/../b",
        "a..b",
        "/abs",
        ".hidden",
        "-x",
        "a\nb",
        "a\0b",
        "a b",
        "x" * 129,
        "茶" * 67,
    ],
)
def test_an_id_that_could_lead_elsewhere_is_refused(tmp_path, session_id):
    with _refusal("invalid_value"):
        SessionLog(session_id, tmp_path)


@pytest.mark.parametrize("session_id", ["my-session-001", "a.b", "工作", "alice@example.com", "x" * 128, "9"])
def test_ordinary_ids_are_their_files_name(tmp_path, session_id):
    log = SessionLog(session_id, tmp_path)
    log.append("user", "hi")
    assert os.listdir(tmp_path) == [f"{session_id}.jsonl"]


def test_an_id_means_the_same_session_in_either_unicode_form(tmp_path):
    SessionLog("cafe\u0301", tmp_path).append("user", "hi")
    assert _contents(SessionLog("café", tmp_path).load()) == ["hi"]


def test_file_and_directory_are_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        log = SessionLog("s1", tmp_path / "a" / "b")
        log.append("user", "hi")
        log.export(tmp_path / "out.jsonl")
        forked = log.fork("s2")
    finally:
        os.umask(before)
    assert [stat.S_IMODE(os.stat(path).st_mode) for path in (log.path, forked.path, tmp_path / "out.jsonl")] == [
        0o600
    ] * 3
    assert [stat.S_IMODE((tmp_path / part).stat().st_mode) for part in ("a", "a/b")] == [0o700, 0o700]
    assert (tmp_path / "a/b/.gitignore").read_text() == "*\n"


def test_a_directory_that_exists_is_left_as_it_is(tmp_path):
    tmp_path.chmod(0o755)
    SessionLog("s1", tmp_path).append("user", "hi")
    assert (stat.S_IMODE(tmp_path.stat().st_mode), os.listdir(tmp_path)) == (0o755, ["s1.jsonl"])


def test_making_the_object_and_reading_touch_nothing(log):
    assert log.load() == log.search("x") == log.seal() == list(log.rows()) == []
    assert not log.delete()
    assert not os.path.exists(log.directory)


def test_a_link_in_the_files_place_is_not_followed(log, tmp_path):
    log.append("user", "hi")
    (tmp_path / "elsewhere").write_text("private")
    os.unlink(log.path)
    os.symlink(tmp_path / "elsewhere", log.path)
    for use in (lambda: log.append("user", "x"), log.load):
        with _refusal("unavailable"):
            use()
    assert (tmp_path / "elsewhere").read_text() == "private"


def test_a_relative_directory_stays_the_same_when_the_process_moves(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = SessionLog("s1")
    log.append("user", "a")
    monkeypatch.chdir("/")
    log.append("user", "b")
    assert _contents(SessionLog("s1", tmp_path / ".sessions").load()) == ["a", "b"]


def test_a_system_that_refuses_is_unavailable(tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to("nowhere")
    for directory in ("file", "file/below", "dangling", "dangling/below"):
        with _refusal("unavailable"):
            SessionLog("s1", tmp_path / directory).append("user", "hi")


def test_a_row_for_which_the_disk_has_no_room_is_taken_back_whole(log, monkeypatch):
    log.append("user", "before")
    real = os.write

    def full(descriptor, data):
        if len(data) > 100:
            return real(descriptor, bytes(data[:100]))
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with _refusal("unavailable"):
        log.append("user", "x" * 150)
    monkeypatch.undo()
    log.append("user", "after")
    assert _contents(log.load()) == ["before", "after"]


def test_a_sync_that_fails_is_unconfirmed(tmp_path, monkeypatch):
    def refuse(descriptor):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    with _refusal("write_unconfirmed"):
        SessionLog("s1", tmp_path).append("user", "hi")


def test_a_session_that_is_made_or_removed_without_being_confirmed_is_not_told_to_be_unchanged(tmp_path, monkeypatch):
    log = SessionLog("s1", tmp_path)
    log.append("user", "hi")
    real = os.fsync

    def refuse(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(5, "Input/output error")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", refuse)
    with _refusal("write_unconfirmed"):
        log.fork("copy")
    assert _contents(SessionLog("copy", log.directory).load())[:1] == ["hi"]
    with _refusal("write_unconfirmed"):
        log.delete()
    assert not log.exists()


def test_what_is_durable_is_synced_and_what_is_not_is_not(tmp_path, monkeypatch):
    synced = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda descriptor: (synced.append(os.fstat(descriptor).st_mode), real(descriptor)))
    SessionLog("s1", tmp_path / "new").append("user", "hi")
    directory, file = stat.S_IFDIR, stat.S_IFREG
    assert [stat.S_IFMT(mode) for mode in synced] == [directory, directory, file, directory, directory]
    SessionLog("s2", tmp_path / "other", durable=False).append("user", "hi")
    assert len(synced) == 5


# --- damage -----------------------------------------------------------------------------------------------------------


def test_a_line_torn_anywhere_loses_only_itself_and_the_next_row_does_not_glue_to_it(tmp_path):
    whole = SessionLog("whole", tmp_path)
    whole.append("user", "first")
    kept = Path(whole.path).read_bytes()
    whole.append("assistant", "第二行 🍵")
    data = Path(whole.path).read_bytes()
    for cut in range(len(kept), len(data)):
        log = SessionLog(f"cut{cut}", tmp_path, durable=False)
        Path(log.path).write_bytes(data[:cut])
        # Only its line end was missing: it is whole.
        expected = ["first", "第二行 🍵"] if cut == len(data) - 1 else ["first"]
        assert _contents(log.load()) == expected
        log.append("user", "next")
        assert _contents(log.load()) == [*expected, "next"]
        assert log.load()[-1]["parent_id"] == log.load()[-2]["id"]


def test_what_is_no_row_is_skipped_with_a_warning_that_tells_no_content(log, caplog):
    log.append("user", "before")
    _damage(
        log,
        b'[1]\n"text"\n7\nnull\n{"no": "type"}\n{"type": 3}\n{"type":"user","id":[1]}\nsecret {\n\xff\xfe\n'
        + b"[" * 100_000
        + b"\n",
    )
    log.append("user", "after")
    with caplog.at_level(logging.WARNING):
        assert _contents(log.load()) == ["before", "after"]
        assert _contents(log.rows()) == ["before", "after"]
    assert [record.message for record in caplog.records] == [
        f"Session s1: skipped what is no row, in line 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 of {log.path}",
        f"Session s1: skipped what is no row, in line 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 of {log.path}",
    ]


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_the_lines_that_are_no_rows_are_numbered_from_the_first(log, caplog, end):
    for number in range(3):
        log.append("user", f"{number} {'x' * 70_000}")
    _damage(log, b"\n\n")
    log.boundary("so far")
    _damage(log, b'{"torn' + end)
    with caplog.at_level(logging.WARNING):
        assert _contents(log.load()) == ["so far"]
        assert len(list(log.rows())) == 4
    said = f"Session s1: skipped what is no row, in line 7 of {log.path}"
    assert [record.message for record in caplog.records] == [said, said]


def test_of_many_lines_that_are_no_rows_some_are_named(log, caplog):
    log.append("user", "before")
    _damage(log, b"[]\n" * 12)
    with caplog.at_level(logging.WARNING):
        assert _contents(log.load()) == ["before"]
    assert [record.message for record in caplog.records] == [
        f"Session s1: skipped what is no row, in line 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ... of {log.path}"
    ]


def test_a_number_that_json_does_not_know_costs_neither_its_row_nor_a_fork(log):
    log.append("user", "begin")
    _damage(log, b'{"type":"tool","id":"r","content":[NaN,-Infinity,1e999,0.5]}\n')
    assert _contents(log.load()) == ["begin", [None, None, None, 0.5]]
    assert _contents(log.fork("s2").load())[:2] == ["begin", [None, None, None, 0.5]]


def test_a_row_that_nests_deeply_hides_neither_itself_nor_others_from_search_and_listings(log):
    nested = b'{"type":"user","id":"r","content":' + b"[" * 900 + b'"tea"' + b"]" * 900 + b"}\n"
    log.append("system", "begin")
    _damage(log, nested)
    assert [row["id"] for row in log.search("tea")] == ["r"]
    assert [info.preview for info in SessionLog.list_sessions(log.directory)] == ["tea"]


def test_blank_lines_and_foreign_rows_are_no_damage(log, caplog):
    log.append("user", "a")
    _damage(log, b'\n  \n{"type":"user","content":"by hand"}\n{"type":"newer","content":1}\n')
    with caplog.at_level(logging.WARNING):
        assert _contents(log.load()) == ["a", "by hand", 1]
    assert caplog.records == []


def test_a_log_that_an_editor_saved_with_a_bom_keeps_its_first_row(log, caplog):
    log.append("user", "a")
    Path(log.path).write_bytes(b"\xef\xbb\xbf" + Path(log.path).read_bytes())
    log.append("user", "b")
    with caplog.at_level(logging.WARNING):
        assert _contents(log.load()) == _contents(log.rows()) == ["a", "b"]
    assert [each.preview for each in SessionLog.list_sessions(log.directory)] == ["a"]
    assert caplog.records == []


def test_a_tail_of_zeros_as_a_power_loss_leaves_it_loses_nothing_else(log):
    log.append("user", "a")
    _damage(log, b"\0" * 5_000)
    log.append("user", "b")
    assert _contents(log.load()) == ["a", "b"]


@pytest.mark.parametrize("size", [65_000, 65_536, 200_000, 5_000_000])
def test_rows_larger_than_a_block_are_read_from_either_end(log, size):
    log.extend([{"type": "user", "content": "x" * size}, {"type": "user", "content": "茶" * (size // 3)}])
    assert [len(content) for content in _contents(log.load())] == [size, size // 3]
    assert log.load() == list(log.rows())


@given(st.lists(st.integers(0, 40_000), max_size=30))
def test_both_directions_read_the_same_rows(tmp_path_factory, sizes):
    log = SessionLog("s1", tmp_path_factory.mktemp("log"), durable=False)
    log.extend([{"type": "user", "content": "x" * size} for size in sizes])
    assert list(log.rows()) == log.load()
    assert len(log.load()) == len(sizes)


# --- boundaries -------------------------------------------------------------------------------------------------------


def test_resume_begins_at_the_last_boundary_and_all_rows_stay(log):
    log.append("user", "a")
    log.boundary("first summary")
    log.append("user", "b")
    log.boundary("second summary")
    log.append("user", "c")
    assert _contents(log.load()) == ["second summary", "c"]
    assert _contents(log.rows()) == ["a", "first summary", "b", "second summary", "c"]
    assert {row["content"] for row in log.search("summary")} == {"first summary", "second summary"}


def test_rows_that_a_boundary_keeps_follow_it_in_their_order(log):
    log.append("user", "old")
    kept = [log.append("user", "question"), log.append("assistant", "calls")]
    log.append("tool", "not kept")
    log.boundary("summary", keep=[row["id"] for row in reversed(kept)])
    log.append("user", "next")
    assert _contents(log.load()) == ["summary", "question", "calls", "next"]


def test_what_lies_before_a_boundary_is_not_even_read(log, monkeypatch):
    log.extend([{"type": "user", "content": "x" * 1_000} for _ in range(3_000)])
    kept = log.append("user", "kept")
    log.boundary("summary", keep=[kept["id"]])
    read = []
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda descriptor, n, at: (read.append(n), real(descriptor, n, at))[1])
    assert _contents(log.load()) == ["summary", "kept"]
    assert sum(read) < 100_000


@pytest.mark.parametrize("keep", ['["gone"]', "7", '[["x"]]', "null"])
def test_a_boundary_that_keeps_what_is_not_there_keeps_the_rest(log, keep):
    log.append("user", "old")
    _damage(log, b'{"type":"compact_boundary","content":"summary","keep":%s}\n' % keep.encode())
    log.append("user", "next")
    assert _contents(log.load()) == ["summary", "next"]


def test_rows_that_were_taken_back_are_left_out_of_a_resume_and_stay_in_the_file(log):
    log.append("user", "first")
    rows = log.extend([{"type": "user", "content": "oops"}, {"type": "event", "content": None, "event": "interrupted"}])
    log.retract([row["id"] for row in rows])
    log.append("user", "second")
    assert [row["content"] for row in log.load() if row["type"] == "user"] == ["first", "second"]
    assert [row["content"] for row in log.rows() if row["type"] == "user"] == ["first", "oops", "second"]
    assert [row["content"] for row in log.search("oops")] == ["oops"]


def test_a_row_that_stands_twice_is_resumed_once(tmp_path):
    log = SessionLog("s", tmp_path)
    log.append("user", "tea?")
    log.append("assistant", "green")
    whole = Path(log.path).read_bytes()
    Path(log.path).write_bytes(
        whole * 2 + b'{"type":"user","id":"1","content":"a"}\n{"type":"user","id":"1","content":"b"}\n'
    )
    assert [row["content"] for row in log.load()] == ["tea?", "green", "a", "b"], "an id alone makes no row the same"
    assert len(list(log.rows())) == 6


@pytest.mark.parametrize("rows", ["7", "[7, null]", '{"a": 1}', '["nobody"]'])
def test_a_retraction_of_nothing_retracts_nothing(log, rows):
    log.append("user", "first")
    _damage(log, b'{"type":"event","event":"retracted","rows":%s}\n' % rows.encode())
    assert log.load()[0]["content"] == "first"


# --- seals ------------------------------------------------------------------------------------------------------------


def _calls(*ids):
    return [{"id": each, "name": f"tool_{each}", "args": {}} for each in ids]


def test_a_call_without_a_result_is_answered_as_interrupted_and_the_turn_ends(log):
    log.append("user", "do it", run_id="r1")
    log.append("assistant", "", tool_calls=_calls("1", "2"), run_id="r1")
    log.append("tool", "done", tool_call_id="1", tool_name="tool_1", run_id="r1")
    sealed = log.seal()
    assert [row["type"] for row in sealed] == ["tool", "event"]
    result, event = sealed
    assert (result["tool_call_id"], result["tool_name"], result["outcome"], result["run_id"]) == (
        "2",
        "tool_2",
        "interrupted",
        "r1",
    )
    assert "may or may not have taken effect" in result["content"]
    assert event["event"] == "interrupted"
    assert log.load()[-2:] == sealed
    assert log.seal() == []


def test_a_call_is_not_answered_by_the_result_of_another_runs_call_with_its_id(log):
    for run in ("r1", "r2"):
        log.append("user", "do it", run_id=run)
        log.append("assistant", "", tool_calls=_calls("1"), run_id=run)
    log.append("tool", "done", tool_call_id="1", tool_name="tool_1", run_id="r1")
    assert [row.get("run_id") for row in log.seal()] == ["r2", None]


def test_a_question_that_nobody_answered_ends_its_turn(log):
    log.append("user", "hello?")
    assert [row["event"] for row in log.seal()] == ["interrupted"]
    assert log.seal() == []
    log.append("user", "hello again?")
    assert len(log.seal()) == 1


def test_a_turn_that_ended_is_not_sealed(log):
    log.append("user", "hi")
    log.append("assistant", "hello")
    assert log.seal() == []
    log.append("user", "compute")
    log.append("assistant", "", tool_calls=_calls("1"))
    log.append("tool", "42", tool_call_id="1")
    log.append("event", event="completed")
    assert log.seal() == []


def test_a_turn_that_waits_for_approval_is_sealed_only_when_it_is_given_up(log):
    log.append("user", "delete it")
    log.append("assistant", "", tool_calls=_calls("1"))
    log.append("event", event="suspended", pending=[{"tool_call_id": "1"}])
    assert log.seal() == []
    assert [row["type"] for row in log.seal(suspended=True)] == ["tool", "event"]


def test_a_seal_looks_no_further_back_than_resume_does(log):
    log.append("assistant", "", tool_calls=_calls("1"))
    log.boundary("summary")
    assert log.seal() == []


def test_calls_that_somebody_wrote_badly_are_no_obstacle(log):
    log.append("user", "hi")
    for calls in ('"x"', "[7]", '[{"id": 1, "name": "x"}]', "null", '[{"id": "1"}]'):
        _damage(log, b'{"type":"assistant","content":"a","tool_calls":%s}\n' % calls.encode())
    log.append("event", event="completed")
    assert log.seal() == []
    assert len(log.search("a")) == 5


# --- forks ------------------------------------------------------------------------------------------------------------


def test_a_fork_has_the_rows_up_to_a_point_and_says_where_it_is_from(log):
    first, second = log.append("user", "a"), log.append("assistant", "b")
    log.append("user", "c")
    forked = log.fork("s2", at=second["id"])
    assert forked.session_id == "s2"
    rows = forked.load()
    assert rows[:2] == [{**first, "session_id": "s2"}, {**second, "session_id": "s2"}]
    [origin] = rows[2:]
    assert (origin["event"], origin["from_session"], origin["from_row"]) == ("forked", "s1", second["id"])
    forked.append("user", "d")
    assert _contents(log.load()) == ["a", "b", "c"]
    assert forked.load()[-1]["parent_id"] == origin["id"]


def test_a_whole_fork_has_all_rows_also_those_before_a_boundary(log):
    log.append("user", "a")
    log.boundary("summary")
    log.append("user", "b")
    forked = log.fork("s2")
    assert _contents(forked.rows())[:3] == ["a", "summary", "b"]
    assert _contents(forked.load())[:2] == ["summary", "b"]


def test_a_fork_to_a_session_that_exists_is_refused_and_appends_nothing(log):
    log.append("user", "a")
    other = SessionLog("s2", log.directory)
    other.append("user", "theirs")
    for target in ("s2", "s1"):
        with _refusal("already_exists"):
            log.fork(target)
    assert (_contents(other.load()), _contents(log.load())) == (["theirs"], ["a"])
    assert sorted(os.listdir(log.directory)) == [".gitignore", "s1.jsonl", "s2.jsonl"]


@pytest.mark.parametrize("at", ["row_x", ""])
def test_a_fork_at_a_row_that_is_not_there_makes_nothing(log, at):
    log.append("user", "a")
    with _refusal("not_found"):
        log.fork("s2", at=at)
    assert not SessionLog("s2", log.directory).exists()


def test_a_session_that_is_not_there_cannot_be_forked_or_exported(log, tmp_path):
    for use in (lambda: log.fork("s2"), lambda: log.export(tmp_path / "x")):
        with _refusal("not_found"):
            use()


# --- list, rename, export, delete -------------------------------------------------------------------------------------


def test_sessions_are_listed_last_used_first_with_name_and_preview(tmp_path):
    assert SessionLog.list_sessions(tmp_path / "nowhere") == []
    for number, (session_id, text) in enumerate([("old", "第一个问题"), ("new", "x" * 500)]):
        log = SessionLog(session_id, tmp_path)
        log.append("system", "Be kind.")
        log.append("user", text)
        os.utime(log.path, (1_000 + number, 1_000 + number))
    SessionLog("old", tmp_path).rename("  Tea \n and  coffee ")
    os.utime(tmp_path / "old.jsonl", (1_000, 1_000))
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "..evil.jsonl").write_text("x")
    (tmp_path / "folder.jsonl").mkdir()
    (tmp_path / "empty.jsonl").touch()
    os.utime(tmp_path / "empty.jsonl", (1, 1))
    new, old, empty = SessionLog.list_sessions(tmp_path)
    assert (new.session_id, new.name, new.preview) == ("new", None, "x" * 119 + "…")
    assert (old.session_id, old.name, old.preview) == ("old", "Tea and coffee", "第一个问题")
    assert (empty.session_id, empty.preview, empty.size) == ("empty", "", 0)
    assert (new.updated_at - old.updated_at).total_seconds() == 1
    assert new.size == (tmp_path / "new.jsonl").stat().st_size


@pytest.mark.parametrize("directory", ["loop", "x" * 5_000])
def test_a_directory_of_sessions_that_cannot_be_read_is_unavailable(tmp_path, directory):
    (tmp_path / "loop").symlink_to("loop")
    with _refusal("unavailable"):
        SessionLog.list_sessions(tmp_path / directory)


def test_the_last_name_counts_and_a_text_that_looks_like_one_does_not(log):
    log.append("user", '"event":"renamed","name":"fake"')
    log.rename("first")
    log.rename("second")
    log.append("user", '{"type":"event","event":"renamed","name":"fake"}')
    [info] = SessionLog.list_sessions(log.directory)
    assert info.name == "second"


@pytest.mark.parametrize("name", ["", " \n ", "x" * 201, "a\x1bb"])
def test_a_name_that_cannot_be_shown_is_refused(log, name):
    with _refusal("invalid_value"):
        log.rename(name)


def test_an_export_has_every_row_and_replaces_nothing(log, tmp_path):
    log.append("user", "a")
    log.boundary("summary")
    _damage(log, b"torn {")
    log.export(tmp_path / "out.jsonl")
    assert [json.loads(line)["content"] for line in (tmp_path / "out.jsonl").read_text().splitlines()] == [
        "a",
        "summary",
    ]
    with _refusal("already_exists"):
        log.export(tmp_path / "out.jsonl")
    with _refusal("unavailable"):
        log.export(tmp_path / "nowhere" / "out.jsonl")
    assert sorted(os.listdir(tmp_path)) == ["out.jsonl", "sessions"]


def test_a_session_is_created_of_the_rows_of_another_whole_or_not_at_all(log):
    log.append("user", "茶\ud800\u2028", run_id="r")
    log.boundary("summary")
    log.append("assistant", "b", tool_calls=[{"id": "call_1", "name": "f", "args": {}}])
    copy = SessionLog("copy", log.directory)
    copy.create(log.rows())
    assert list(copy.rows()) == [{**row, "session_id": "copy"} for row in log.rows()]
    assert _contents(copy.load()) == _contents(log.load())
    assert copy.append("user", "c")["parent_id"] == list(log.rows())[-1]["id"]
    with _refusal("already_exists"):
        copy.create(log.rows())
    for rows in ([], [{"content": "no type"}], [{"type": "user", "id": 5}], [{"type": "user", "content": {1, 2}}]):
        with _refusal("invalid_value"):
            SessionLog("none", log.directory).create(rows)
    assert sorted(os.listdir(log.directory)) == [".gitignore", "copy.jsonl", "s1.jsonl"]


def test_an_export_to_markdown_is_a_transcript(tmp_path):
    log = SessionLog("s1", tmp_path, mint=Mint(lambda: MOMENT))
    log.append("user", "What is `x`?")
    log.append("assistant", "I look.", tool_calls=[{"id": "1", "name": "view", "args": {"path": "绿茶.md"}}])
    log.append("tool", {"text": "has ``` in it"}, tool_call_id="1", tool_name="view")
    log.append("assistant", "Tea \ud800.")
    log.rename("not shown")
    log.export(tmp_path / "s1.md")
    assert (tmp_path / "s1.md").read_text() == (
        "## User (2026-04-01 12:30:00)\n\nWhat is `x`?\n\n"
        '## Assistant (2026-04-01 12:30:00)\n\nI look.\n\n```\nview({"path": "绿茶.md"})\n```\n\n'
        '## Result of view\n\n````\n{\n  "text": "has ``` in it"\n}\n````\n\n'
        "## Assistant (2026-04-01 12:30:00)\n\nTea ?.\n\n"
    )


def test_a_deleted_session_is_gone_and_can_begin_again(log):
    log.append("user", "a")
    assert log.delete()
    assert not log.delete()
    assert log.load() == []
    assert log.append("user", "b")["parent_id"] is None
