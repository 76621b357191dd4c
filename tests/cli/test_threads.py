"""`memshelf threads`, on what `memshelf chat` and session logs have written."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from responses_api import message

from memshelf import SessionLog

MEMORY = ("-m", "user=user.db")
THREADS = ".memshelf/threads"


@pytest.fixture
def work():
    """A thread as other programs may have written it."""
    log = SessionLog("work", THREADS, durable=False)
    log.append("user", "我喜欢喝绿茶")
    log.append(
        "assistant", "Noted.", tool_calls=[{"id": "1", "name": "memory_file_create", "args": {"path": "tea.md"}}]
    )
    log.append("tool", "done", tool_call_id="1", tool_name="memory_file_create")
    log.append("assistant", "好的。")
    return log


def test_a_chat_is_a_thread_that_can_be_listed_shown_and_gone_on_with(run, model):
    model.will([message("好的。")], [message("绿茶。")])
    run("chat", *MEMORY, "--thread", "t", "I drink 绿茶.")
    [listed] = run("threads", "list", "--json").json["threads"]
    assert (listed["thread"], listed["name"], listed["preview"]) == ("t", None, "I drink 绿茶.")
    shown = run("threads", "show", "t").text
    assert "I drink 绿茶." in shown
    assert "好的。" in shown
    assert "memory-context" not in shown
    assert run("threads", "resume", "t", *MEMORY, "What do I drink?").text == "绿茶。\n"
    assert "I drink 绿茶." in json.dumps(model.requests[1]["input"], ensure_ascii=False)


def test_resume_goes_on_only_with_a_thread_that_exists(run, model):
    ran = run("threads", "resume", "nobody", *MEMORY, "hello")
    assert (ran.code, model.requests) == (3, [])
    SessionLog("somebody", THREADS).append("user", "x")
    ran = run("threads", "resume", "nobody", *MEMORY, "hello")
    assert (ran.code, model.requests) == (1, [])
    assert "not_found: There is no thread nobody" in ran.err


def test_a_list_in_a_pipe_has_one_line_a_thread(run, work):
    SessionLog("other", THREADS).append("user", "x")
    SessionLog("other", THREADS).rename("Tea\ttime")
    lines = run("threads", "list").text.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["other", "work"]
    assert lines[0].split("\t")[3] == "Tea time"
    assert lines[1].split("\t")[3] == "我喜欢喝绿茶"


def test_where_there_are_no_threads_the_list_is_empty(run):
    Path(THREADS).mkdir(parents=True)
    assert (run("threads", "list").code, run("threads", "list").out) == (0, b"")
    assert run("threads", "list", "--json").json == {"threads": []}
    assert list(Path(THREADS).iterdir()) == []


def test_an_empty_list_on_a_terminal_says_where_it_looked(terminal):
    Path("empty").mkdir()
    shown = terminal("threads", "list", "--threads", "empty")
    shown.until("There are no threads in empty.")
    assert shown.end() == 0


def test_show_prints_a_transcript_or_every_row(run, work):
    text = run("threads", "show", "work").text
    assert text.count("## ") == 4
    assert 'memory_file_create({"path": "tea.md"})' in text
    rows = run("threads", "show", "work", "--json").json["rows"]
    assert rows == list(work.rows())


def test_control_characters_cannot_reach_a_terminal(terminal):
    SessionLog("t", THREADS).append("user", "evil \x1b]0;owned\x07")
    for command in (("show", "t"), ("list",), ("search", "evil")):
        shown = terminal("threads", *command)
        assert shown.end() == 0
        assert "\x1b]0" not in shown.seen
        assert "\\x1b]0;owned" in shown.seen


def test_search_finds_chinese_and_calls_in_all_threads_or_in_one(run, work):
    SessionLog("other", THREADS).append("user", "红茶和绿茶")
    found = run("threads", "search", "绿茶", "--json").json["rows"]
    assert {(row["session_id"], row["content"]) for row in found} == {("work", "我喜欢喝绿茶"), ("other", "红茶和绿茶")}
    [line] = run("threads", "search", "绿茶", "--thread", "work").text.splitlines()
    name, _, row, kind, text = line.split("\t")
    assert (name, row, kind, text) == ("work", next(work.rows())["id"], "user", "我喜欢喝绿茶")
    assert "memory_file_create tea.md" in run("threads", "search", "tea.md").text
    assert len(run("threads", "search", "绿茶", "--limit", "1").text.splitlines()) == 1
    assert (run("threads", "search", "nothing").code, run("threads", "search", "nothing").out) == (0, b"")


def test_a_fork_goes_its_own_way_from_a_row_on(run, work):
    at = next(work.rows())["id"]
    assert run("threads", "fork", "work", "early", "--at", at).text == "Forked work to early (1 row)\n"
    assert run("threads", "fork", "work", "copy", "--json").json == {"thread": "copy", "from": "work", "rows": 4}
    assert next(SessionLog("early", THREADS).rows())["content"] == "我喜欢喝绿茶"
    taken = run("threads", "fork", "work", "copy")
    assert (taken.code, "already_exists" in taken.err) == (1, True)
    gone = run("threads", "fork", "work", "other", "--at", "row_x")
    assert (gone.code, "not_found" in gone.err) == (1, True)
    assert not Path(THREADS, "other.jsonl").exists()


@pytest.mark.parametrize("name", ["work.jsonl", "work.jsonl.gz", "-"])
def test_what_is_exported_is_imported_under_its_name_or_another_and_replaces_nothing(run, work, name):
    rows = list(work.rows())
    exported = run("threads", "export", "work", name).out
    taken = run("threads", "import", name, stdin=exported)
    assert (taken.code, taken.err) == (1, "error: already_exists: Session work exists already.\n")
    imported = run("threads", "import", name, "copy", "--json", stdin=exported)
    assert imported.json == {"thread": "copy", "rows": 4}
    assert list(SessionLog("copy", THREADS).rows()) == [{**row, "session_id": "copy"} for row in rows]
    elsewhere = run("threads", "import", name, "--threads", "elsewhere", stdin=exported)
    assert elsewhere.text == "Imported work (4 rows)\n"
    assert list(SessionLog("work", "elsewhere").rows()) == rows == list(work.rows())


def test_what_is_no_export_is_refused_as_a_whole(run, work):
    whole = run("threads", "export", "work", "-").out
    for content, said in (
        (run("threads", "show", "work").out, "Line 1 is no row of a thread"),
        (whole + b'{"torn', "Line 5 is no row of a thread"),
        (b"\n", "There are no rows in it"),
    ):
        Path("bad.jsonl").write_bytes(content)
        refused = run("threads", "import", "bad.jsonl", "new")
        assert refused.code == 1
        assert refused.err.startswith(f"error: invalid_file: {said}")
        assert refused.err.endswith("The file is bad.jsonl.\n")
    unnamed = run("threads", "import", "-", stdin=b'{"type": "user", "content": "hi"}\n')
    assert (unnamed.code, "give a NEW_THREAD" in unnamed.err) == (2, True)
    assert run("threads", "import", "-", "../x", stdin=whole).code == 2
    assert [each.session_id for each in SessionLog.list_sessions(THREADS)] == ["work"]


def test_export_writes_markdown_or_json_lines_and_replaces_nothing(run, work):
    assert run("threads", "export", "work", "out.md").text == "Exported work to out.md\n"
    run("threads", "export", "work", "out.jsonl")
    assert Path("out.md").read_text() == run("threads", "show", "work").text
    assert [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()] == list(work.rows())
    before = Path("out.md").stat()
    again = run("threads", "export", "work", "out.md")
    assert (again.code, "out.md exists; say --force" in again.err) == (2, True)
    assert Path("out.md").stat().st_mtime_ns == before.st_mtime_ns
    assert run("threads", "export", "work", "out.md", "--force", "--json").json == {"thread": "work", "file": "out.md"}
    assert (oct(Path("out.md").stat().st_mode)[-3:], Path("out.md").stat().st_ino != before.st_ino) == ("600", True)
    assert run("threads", "export", "work", "-").out == Path("out.jsonl").read_bytes()
    run("threads", "export", "work", "out.md.gz")
    assert gzip.decompress(Path("out.md.gz").read_bytes()) == Path("out.md").read_bytes()


def test_rm_deletes_after_a_yes_and_not_what_somebody_holds(run, model, terminal, work):
    asked = run("threads", "rm", "work")
    assert (asked.code, "say --yes" in asked.err, work.exists()) == (2, True, True)
    chat = terminal("chat", *MEMORY, "--thread", "work")
    chat.until("> ")
    held = run("threads", "rm", "work", "--yes")
    assert (held.code, "in use" in held.err, work.exists()) == (3, True, True)
    chat.send("\x04")
    assert chat.end() == 0
    assert run("threads", "rm", "work", "--yes").text == "Deleted work\n"
    assert run("threads", "list").text == ""
    assert run("threads", "rm", "work", "--yes").code == 1
    SessionLog("work", THREADS).append("user", "hello")
    assert run("threads", "rm", "work", "--json").json["error"] == "usage"
    assert run("threads", "rm", "work", "--json", "--yes").json == {"thread": "work", "deleted": True}


@pytest.mark.parametrize("command", ["show", "rm", "resume"])
@pytest.mark.parametrize("name", ["../x", "..", "a/b", ""])
def test_a_name_that_leads_elsewhere_is_a_usage_error(run, command, name):
    options = (*MEMORY, "--model", "test") if command == "resume" else ()
    ran = run("threads", command, name, *options)
    assert (ran.code, "no thread name" in ran.err) == (2, True)


def test_the_sessions_of_an_agent_are_threads_too(run):
    SessionLog("s1", ".sessions").append("user", "hello")
    assert run("threads", "show", "s1", "--threads", ".sessions").text.endswith("\n\nhello\n\n")


def test_threads_need_no_extra():
    code = (
        "import sys; sys.modules['pydantic_ai'] = sys.modules['pydantic'] = None; from memshelf.cli import main;"
        "sys.exit(main(['threads', 'list', '--threads', '.']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
