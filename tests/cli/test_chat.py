"""`memshelf chat`, through the real OpenAI provider against a server on this machine."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from command_line import Held
from responses_api import function_call, message

MEMORY = ("-m", "user=user.db")


def _create(call_id="call_1", path="prefs/language.md", content="Reply in Chinese.\n"):
    return [function_call("memory_file_create", call_id, memory="user", path=path, content=content)]


def _shown(request) -> str:
    """Everything that a request shows the model."""
    return json.dumps(request["input"], ensure_ascii=False)


def _said(request) -> list[str]:
    """What the user and the assistant said in a request, without the memory context."""
    contents = [item.get("content", "") for item in request["input"]]
    parts = [[each] if isinstance(each, str) else [part["text"] for part in each] for each in contents]
    return [part for each in parts for part in each if part and "<memory-context" not in part]


def test_a_new_conversation_knows_what_an_earlier_one_stored(run, model):
    model.will(_create(), [message("好的。")], [message("你喜欢中文。")])
    first = run("chat", *MEMORY, "I prefer answers in Chinese. Remember that.")
    assert (first.code, first.text) == (0, "好的。\n")
    thread, new = first.err.splitlines()  # also where nobody looks: a script has no other way to go on with it
    assert thread.startswith("Thread ")
    assert Path(f".memshelf/threads/{thread.split()[-1]}.jsonl").exists()
    assert new == "New memory user: there is none at user.db yet."
    assert run("files", "view", "prefs/language.md", "-m", "user.db").text == "Reply in Chinese.\n"
    [version] = run("files", "history", "-m", "user.db", "--json").json["versions"]
    assert version["origin"]["principal_id"].startswith("cli:")
    assert version["origin"]["tool_call_id"] == "call_1"
    assert version["origin"]["run_id"]
    second = run("chat", *MEMORY, stdin=b"What do you know about me?")
    assert (second.code, second.text) == (0, "你喜欢中文。\n")
    assert "New memory" not in second.err
    asked = _shown(model.requests[2])
    assert "prefs/language.md: Reply in Chinese." in asked
    assert "Remember that" not in asked


def test_a_thread_goes_on_under_its_name_and_sees_only_what_changed(run, model):
    run("files", "create", "a.md", "tea", "-m", "user.db")
    model.will([message("one")], [message("two")], [message("three")])
    run("chat", *MEMORY, "--thread", "work", "first")
    run("chat", *MEMORY, "--thread", "work", "second")
    run("files", "create", "b.md", "coffee", "-m", "user.db")
    run("chat", *MEMORY, "--thread", "work", "third")
    assert _said(model.requests[2]) == ["first", "one", "second", "two", "third"]
    shown = _shown(model.requests[2])
    assert shown.count("<memory-context") == 2
    assert 'kind=\\"changes\\"' in shown
    assert shown.count("a.md: tea") == 1


def test_readme_is_always_shown_in_full_and_others_on_request(run, model):
    run("files", "create", "README.md", "index\nof all", "-m", "user.db")
    run("files", "create", "style.md", "short\nwords", "-m", "user.db")
    model.will([message("ok")], [message("ok")])
    run("chat", *MEMORY, "hello")
    run("chat", *MEMORY, "--always-load", "style.md", "hello")
    first, second = map(_shown, model.requests)
    assert "of all" in first
    assert "words" not in first
    assert "of all" in second
    assert "words" in second


def test_memories_have_names_and_an_access(run, model):
    run("files", "create", "a.md", "tea", "-m", "team.db#notes")
    run("files", "create", "b.md", "coffee", "-m", "folder")
    model.will([message("ok")])
    ran = run("chat", "-m", "team=team.db#notes:read", "-m", "own=folder:write", "hello")
    assert (ran.code, ran.text) == (0, "ok\n")
    tools = {tool["name"]: tool["parameters"]["properties"]["memory"]["enum"] for tool in model.requests[0]["tools"]}
    assert tools["memory_file_view"] == ["team", "own"]
    assert tools["memory_file_edit"] == ["own"]


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("-m", "user.db"), 2, "NAME=PATH"),
        (("-m", "User=user.db"), 2, "such as user or team-notes"),
        (("-m", "user=mem:rw"), 2, "use :read or :write"),
        (("-m", "user=mem:ro"), 2, "use :read or :write"),
        (("-m", "user=user.db#notes:raed"), 2, "use :read or :write"),
        (("-m", "user=mem:"), 2, "use :read or :write"),
        (("-m", "a=a.db", "-m", "a=b.db"), 2, "Two mounts"),
        (("-m", "a=nowhere.db:read"), 3, "unknown_memory"),
        (("-m", "a=/dev/null/a.db"), 3, "unavailable: /dev/null/a.db cannot be made: /dev/null is not a folder."),
        (("-m", "a=/dev/null/a"), 3, "unavailable: /dev/null/a cannot be made: /dev/null is not a folder."),
        ((*MEMORY, "--thread", "../x"), 2, "no thread name"),
        ((*MEMORY, "--thread", ".."), 2, "no thread name"),
        ((*MEMORY, "--thread", "a/b"), 2, "no thread name"),
        ((*MEMORY, "--new"), 2, "--thread"),
        ((*MEMORY, "--ask", "memory.file.nothing"), 2, "no file tool"),
        ((*MEMORY, "--always-load", "../x"), 2, "always_load"),
    ],
)
def test_what_cannot_be_run_is_refused_before_the_model_is_asked(run, model, arguments, code, says):
    ran = run("chat", *arguments, "hello")
    assert (ran.code, ran.out) == (code, b"")
    assert says in ran.err
    assert model.requests == []
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("path", ["shared/a.db", "shared/new/a.db", "shared/a"])
def test_a_new_memory_in_a_folder_that_cannot_be_written_is_refused(run, model, monkeypatch, path):
    shared = Path("shared").absolute()
    shared.mkdir()
    allowed = os.access  # whoever runs the tests may be root, who may write everywhere
    monkeypatch.setattr(os, "access", lambda each, mode, **how: each != shared and allowed(each, mode, **how))
    ran = run("chat", "-m", f"a={path}", "hello")
    assert (ran.code, model.requests, list(shared.iterdir())) == (3, [], [])
    assert ran.err == f"error: unavailable: {path} cannot be made: the folder {shared} cannot be written.\n"


def test_a_question_that_no_request_can_carry_is_refused_before_the_model_is_asked(run, model):
    ran = run("chat", *MEMORY, "caf\udce9")
    assert (ran.code, model.requests) == (2, [])
    assert ran.err.startswith("error: usage: The question is UTF-8 text; this is not.\n")


def test_without_a_model_the_error_names_the_option_and_the_variable(run):
    ran = run("chat", *MEMORY, "hello")
    assert (ran.code, ran.err.count("\n")) == (2, 2)
    assert "--model" in ran.err
    assert "MEMSHELF_MODEL" in ran.err


@pytest.mark.parametrize(
    ("name", "says"), [("openai-responses:gpt-5", "OPENAI_API_KEY"), ("nobody:nothing", "nobody"), ("gpt", "gpt")]
)
def test_a_model_that_cannot_be_used_is_one_line_and_keeps_the_thread(run, model, monkeypatch, name, says):
    model.will([message("one")])
    run("chat", *MEMORY, "--thread", "t", "first")
    before = Path(".memshelf/threads/t.jsonl").read_bytes()
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.delenv("OPENAI_BASE_URL")
    ran = run("chat", *MEMORY, "--thread", "t", "--model", name, "second")
    assert (ran.code, ran.out) == (3, b"")
    assert ran.err.startswith("error: unavailable: ")
    assert ran.err.count("\n") == 1
    assert says in ran.err
    assert "Agent(" not in ran.err
    assert Path(".memshelf/threads/t.jsonl").read_bytes() == before


def test_a_model_without_its_key_is_refused_before_the_first_prompt(terminal):
    chat = terminal("chat", *MEMORY, "--model", "openai-responses:gpt-5")
    assert chat.end() == 3
    assert "OPENAI_API_KEY" in chat.seen
    assert "> " not in chat.seen
    assert not Path(".memshelf").exists()


def test_a_name_without_a_provider_is_told_how_models_are_named(run):
    assert "provider:name, such as openai-responses:gpt-5" in run("chat", *MEMORY, "--model", "gpt-5", "hello").err


def test_the_model_test_answers_without_a_key(run):
    ran = run("chat", *MEMORY, "--model", "test", "hello")
    assert (ran.code, "memory_file_view" in ran.text) == (0, True)


def test_a_path_with_a_colon_is_a_memory_if_it_exists_or_its_access_is_named(run, model):
    run("files", "create", "a.md", "x", "-m", "mem:rw")
    run("files", "create", "a.md", "x", "-m", "user.db#a:b")
    model.will([message("ok")])
    mounts = ("-m", "a=mem:rw", "-m", "b=user.db#a:b", "-m", "c=new:folder:write")
    assert run("chat", *mounts, "hello").code == 0


def test_a_conversation_begins_with_the_memories_that_it_has(run, model, terminal):
    run("files", "create", "a.md", "x", "-m", "team.db#notes")
    run("files", "create", "a.md", "x", "-m", "folder")
    run("files", "create", "b.md", "x", "-m", "folder")
    chat = terminal("chat", *MEMORY, "-m", "team=team.db#notes:read", "-m", "own=folder")
    chat.until("Memory user: user.db (write, new)")
    chat.until("Memory team: team.db#notes (read, 1 file)")
    chat.until("Memory own: folder (write, 2 files)")
    chat.until("> ")
    assert not Path("user.db").exists()
    chat.send("\x04")
    assert chat.end() == 0


def test_a_chat_that_is_left_at_once_leaves_no_thread_behind(model, terminal):
    chat = terminal("chat", *MEMORY)
    chat.until("> ")
    chat.send("\x04")
    assert chat.end() == 0
    assert [path.name for path in Path(".memshelf/threads").iterdir()] == [".gitignore"]


@pytest.mark.parametrize("farewell", ["exit", "quit", "/exit", "/quit", " Exit ", "退出"])
def test_a_line_that_only_says_exit_leaves_and_is_not_sent_to_the_model(model, terminal, farewell):
    model.will([message("one")])
    chat = terminal("chat", *MEMORY, "--thread", "t")
    chat.until("Thread t. For help: /help. To leave: Ctrl-D, or exit. To go on with it later: --thread t\r\n")
    chat.until("> ")
    chat.send("exit what?\n")
    chat.until("one")
    chat.until("> ")
    chat.send(f"{farewell}\n")
    assert chat.end() == 0
    assert [_said(request) for request in model.requests] == [["exit what?"]]


def test_a_model_that_fails_is_one_line_and_keeps_the_thread(run, model):
    model.will([message("one")], 400, [message("three")])
    run("chat", *MEMORY, "--thread", "t", "first")
    failed = run("chat", *MEMORY, "--thread", "t", "second")
    assert (failed.code, failed.out, failed.err.count("\n")) == (3, b"", 1)
    assert "400" in failed.err
    run("chat", *MEMORY, "--thread", "t", "third")
    assert _said(model.requests[2]) == ["first", "one", "third"]


def test_a_thread_whose_first_question_failed_is_none(run, model):
    model.will(400, [message("two")])
    assert run("chat", *MEMORY, "--thread", "t", "first").code == 3
    assert [path.name for path in Path(".memshelf/threads").iterdir()] == [".gitignore"]
    assert run("chat", *MEMORY, "--thread", "t", "--new", "second").text == "two\n"
    assert _said(model.requests[1]) == ["second"]


def test_a_missing_extra_is_named(run):
    code = (
        "import sys; sys.modules['pydantic_ai'] = None; from memshelf.cli import main;"
        "sys.exit(main(['chat', '-m', 'user=user.db', '--model', 'test', 'hello']))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "memshelf[agent]" in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_threads_are_private_and_ignored_by_version_control(run, model):
    os.umask(0o022)
    model.will([message("one")])
    run("chat", *MEMORY, "--thread", "工作", "first")
    threads = Path(".memshelf/threads")
    assert stat.S_IMODE(threads.stat().st_mode) == 0o700
    assert stat.S_IMODE((threads / "工作.jsonl").stat().st_mode) == 0o600
    assert (threads / ".gitignore").read_text() == "*\n"
    assert sorted(path.name for path in threads.iterdir()) == [".gitignore", "工作.jsonl"]


def test_new_refuses_a_thread_that_exists(run, model):
    model.will([message("one")])
    run("chat", *MEMORY, "--thread", "t", "--new", "first")
    ran = run("chat", *MEMORY, "--thread", "t", "--new", "second")
    assert (ran.code, "exists already" in ran.err, len(model.requests)) == (2, True, 1)


def test_what_is_damaged_in_a_thread_is_skipped_with_a_warning_and_the_rest_goes_on(run, model):
    model.will([message("one")], [message("two")])
    run("chat", *MEMORY, "--thread", "t", "first")
    thread = Path(".memshelf/threads/t.jsonl")
    with thread.open("ab") as file:
        file.write(b'[]\n{"torn')
    ran = run("chat", *MEMORY, "--thread", "t", "second")
    assert (ran.code, ran.text) == (0, "two\n")
    first = thread.read_bytes().splitlines().index(b"[]") + 1
    named = f"line {first}, {first + 1} of {thread.absolute()}"
    assert ran.err == f"warning: Session t: skipped what is no row, in {named}\n"
    assert _said(model.requests[1]) == ["first", "one", "second"]
    assert b'[]\n{"torn\n{' in thread.read_bytes()


@pytest.mark.parametrize("content", ["gone", None, 5, "x", ["x"], {"user": 5}, {"user": ["x"]}, {"user": "x"}])
def test_cursors_that_were_edited_by_hand_cost_neither_the_thread_nor_a_memory(run, model, content):
    run("files", "create", "a.md", "Likes green tea.", "-m", "user.db")
    model.will([message("one")], [message("two")])
    run("chat", *MEMORY, "--thread", "t", "first")
    thread = Path(".memshelf/threads/t.jsonl")
    rows = [json.loads(line) for line in thread.read_text().splitlines()]
    assert (rows[-1]["event"], list(rows[-1]["content"])) == ("cursors", ["user"])
    rows[-1].pop("content") if content == "gone" else rows[-1].update(content=content)
    edited = "".join(json.dumps(row) + "\n" for row in rows)
    thread.write_text(edited)
    ran = run("chat", *MEMORY, "--thread", "t", "second")
    assert (ran.code, ran.text, ran.err) == (0, "two\n", "")
    assert _said(model.requests[1]) == ["first", "one", "second"]
    assert _shown(model.requests[1]).count("a.md") > _shown(model.requests[0]).count("a.md")  # shown once more
    assert thread.read_text().startswith(edited)


@pytest.mark.parametrize("args", [5, ["x"], None, "{", True])
def test_a_call_whose_arguments_were_edited_by_hand_does_not_end_the_thread(run, model, args):
    model.will(_create(), [message("Done.")], [message("two")])
    run("chat", *MEMORY, "--thread", "t", "first")
    thread = Path(".memshelf/threads/t.jsonl")
    rows = [json.loads(line) for line in thread.read_text().splitlines()]
    [call] = next(row["tool_calls"] for row in rows if row.get("tool_calls"))
    call["args"] = args
    thread.write_text("".join(json.dumps(row) + "\n" for row in rows))
    ran = run("chat", *MEMORY, "--thread", "t", "second")
    assert (ran.code, ran.text) == (0, "two\n")


def test_where_nobody_can_be_asked_an_ask_is_a_refusal(run, model):
    model.will(_create(), [message("I may not.")])
    ran = run("chat", *MEMORY, "--ask", "memory.file.*", "--allow", "memory.file.view", "remember this")
    assert (ran.code, ran.text) == (0, "I may not.\n")
    assert "permission_denied" in _shown(model.requests[1])
    assert run("files", "ls", "-m", "user.db").text == ""


@pytest.mark.parametrize("rule", ["delete", "file.*", "memory_file_delete", "memory.file.remove", "thread.summarize"])
def test_a_rule_that_applies_to_no_tool_of_a_chat_is_refused_instead_of_ignored(run, model, rule):
    ran = run("chat", *MEMORY, "--deny", rule, "remember this")
    assert (ran.code, ran.out, model.requests) == (2, b"", [])
    assert f"Tool permission {rule}: " in ran.err
    assert "memory.file.delete" in ran.err


def test_an_answer_is_streamed_and_its_control_characters_cannot_reach_the_terminal(model, terminal):
    model.will([message("evil \x1b]0;owned\x07 绿茶 and a second half")])
    chat = terminal("chat", *MEMORY, "hello")
    assert chat.end() == 0
    assert f" --thread {chat.seen.split()[1][:-1]}\r\n" in chat.seen
    assert chat.seen.endswith("\r\nevil \\x1b]0;owned\\x07 绿茶 and a second half\r\n")
    assert "\x1b]0" not in chat.seen


def test_an_approval_is_asked_with_the_call_shown(run, model, terminal):
    model.will(_create("call_1"), _create("call_2", path="b.md"), [message("Stored one.")])
    chat = terminal("chat", *MEMORY, "--ask", "memory.file.create", "--thread", "t")
    chat.until("> ")
    chat.send("remember this\n")
    chat.until('memory_file_create {"memory": "user", "path": "prefs/language.md", "content": "Reply in Chinese.\\n"}')
    chat.until("Allow this call? [y/N]: ")
    chat.send("perhaps\n")
    chat.until("say y or n, 是 or 否")
    chat.until("Allow this call? [y/N]: ")
    chat.send("是\n")
    chat.until('"path": "b.md"')
    chat.until("Allow this call? [y/N]: ")
    chat.send("否\n")
    chat.until("Refused.")
    chat.until("Stored one.")
    chat.until("> ")
    chat.send("\x04")
    assert chat.end() == 0
    assert chat.seen.count("memory_file_create") == 3  # one was asked twice
    assert [row.split("\t")[0] for row in run("files", "ls", "-r", "-m", "user.db").text.splitlines()] == [
        "prefs/language.md"
    ]
    assert "did not approve" in _shown(model.requests[2])


def test_a_call_that_waits_for_approval_is_asked_again_when_the_thread_goes_on(run, model, terminal):
    model.will(_create(), [message("Stored.")])
    first = terminal("chat", *MEMORY, "--ask", "memory.file.create", "--thread", "t")
    first.until("> ")
    first.send("remember this\n")
    first.until("[y/N]: ")
    first.interrupt()
    first.until("Stopped.")
    first.until("> ")
    first.interrupt()
    assert first.end() == 0
    second = terminal("chat", *MEMORY, "--ask", "memory.file.create", "--thread", "t")
    second.until("Allow this call? [y/N]: ")
    second.send("y\n")
    second.until("Stored.")
    second.until("> ")
    second.send("\x04")
    assert second.end() == 0
    assert run("files", "view", "prefs/language.md", "-m", "user.db").text == "Reply in Chinese.\n"


def test_ctrl_c_stops_an_answer_and_the_conversation_goes_on(run, model, terminal):
    model.will([message("one")], Held([message("first half, second half")]), [message("three")], [message("four")])
    chat = terminal("chat", *MEMORY, "--thread", "t")
    chat.until("> ")
    chat.send("first\n")
    chat.until("one")
    chat.until("> ")
    chat.send("second\n")
    chat.until("first half")
    chat.send("\x03")
    chat.until("Stopped.")
    chat.until("> ")
    chat.send("third\n")
    chat.until("three")
    chat.until("> ")
    chat.interrupt()
    assert chat.end() == 0
    assert "Traceback" not in chat.seen
    assert run("chat", *MEMORY, "--thread", "t", "fourth").text == "four\n"
    said = _said(model.requests[3])
    assert said[:2] == ["first", "one"]
    assert said[-3:] == ["third", "three", "fourth"]
    assert "second half" not in "".join(said)


def test_ctrl_c_ends_a_single_question_with_130(run, model, terminal):
    model.will([message("one")], Held([message("first half, second half")]))
    run("chat", *MEMORY, "--thread", "t", "first")
    chat = terminal("chat", *MEMORY, "--thread", "t", "second")
    chat.until("first half")
    chat.send("\x03")
    assert chat.end() == 130
    assert "Traceback" not in chat.seen
    rows = [json.loads(line) for line in Path(".memshelf/threads/t.jsonl").read_text().splitlines()]
    assert [row["type"] for row in rows if row["type"] != "event"] == ["user", "assistant"] * 2
    assert rows[-1]["event"] == "cursors"


def test_a_killed_process_loses_no_question_and_holds_nothing(run, model, terminal):
    model.will([message("one")], Held([message("first half, second half")]), [message("three")])
    chat = terminal("chat", *MEMORY, "--thread", "t")
    chat.until("> ")
    chat.send("first\n")
    chat.until("one")
    chat.until("> ")
    chat.send("second\n")
    chat.until("first half")
    os.kill(chat.process.pid, signal.SIGKILL)
    chat.process.wait()
    assert run("chat", *MEMORY, "--thread", "t", "third").text == "three\n"
    assert _said(model.requests[2]) == ["first", "one", "second", "third"]


def test_a_second_process_on_a_thread_is_refused_while_the_first_has_it(run, model, terminal):
    model.will([message("other")])
    chat = terminal("chat", *MEMORY, "--thread", "t")
    chat.until("> ")
    refused = run("chat", *MEMORY, "--thread", "t", "hello")
    assert (refused.code, refused.out) == (3, b"")
    assert "in use by another process" in refused.err
    assert run("chat", *MEMORY, "--thread", "other", "hello").code == 0
    chat.send("\x04")
    assert chat.end() == 0


def test_an_interactive_failure_is_shown_and_the_conversation_goes_on(model, terminal):
    model.will(400, [message("two")])
    chat = terminal("chat", *MEMORY)
    chat.until("Thread ")
    chat.until("> ")
    chat.send("first\n")
    chat.until("error: ")
    chat.until("> ")
    chat.send("  \n")
    chat.until("> ")
    chat.send("second\n")
    chat.until("two")
    chat.until("> ")
    chat.send("\x04")
    assert chat.end() == 0
    assert _said(model.requests[1]) == ["second"]


def test_an_empty_question_is_a_usage_error(run, model):
    ran = run("chat", *MEMORY, stdin=b"  \n")
    assert (ran.code, model.requests) == (2, [])


def test_what_the_model_does_is_shown_once_with_its_outcome(run, model, terminal):
    run("files", "create", "prefs/language.md", "x", "-m", "user.db")
    model.will(_create("call_1"), _create("call_2", path="b.md"), [message("Done.")])
    chat = terminal("chat", *MEMORY, "hello")
    assert chat.end() == 0
    taken, made = (line for line in chat.seen.splitlines() if line.startswith("·"))
    assert taken.endswith('"prefs/language.md","content":"Reply in Chinese.\\n"}: failed')
    assert made.endswith('"b.md","content":"Reply in Chinese.\\n"}')


def test_a_conversation_has_a_workspace_whose_entries_a_later_session_recalls(run, model):
    saved = function_call(
        "save_memory", "call_1", title="Tea", content="Drinks green tea.", memory_type="user", description="tea drinks"
    )
    model.will([saved], [message("Noted.")], [message("Green tea.")])
    place = ("--workspace", "notes", "--user", "ann")
    assert run("chat", *place, "--session", "one", "I drink green tea. Remember that.").text == "Noted.\n"
    [entry] = run("workspace", "list", *place, "--json").json["entries"]
    assert (entry["title"], entry["source"]) == ("Tea", "confirmed")
    assert run("chat", *place, "--session", "two", "Which tea do I drink?").text == "Green tea.\n"
    assert "Drinks green tea." in _shown(model.requests[2])
    assert "Remember that" not in _shown(model.requests[2])
    assert {each["thread"] for each in run("threads", "list", "--json").json["threads"]} == {"one", "two"}
    model.will([message("As I said.")])
    assert run("threads", "resume", "two", *place, "Again?").text == "As I said.\n"
    assert "Which tea do I drink?" in _shown(model.requests[3])


def test_a_conversation_says_that_it_begins_with_a_new_user(run, model):
    model.will(*[[message("Hello.")] for _ in range(5)])
    notes = Path("notes").absolute()

    def said(*command: str) -> list[str]:
        ran = run(*command, "-w", "notes", "hi")
        assert (ran.code, ran.text) == (0, "Hello.\n")
        return [line for line in ran.err.splitlines() if line.startswith("New user")]

    assert said("chat") == []  # nobody has a memory there, and nobody is named
    new = f"New user ann: {notes} holds no memory of ann yet. Users that it knows: none."
    assert said("chat", "--user", "ann") == [new]
    run("workspace", "add", "Tea", "Green.", "-w", "notes", "--user", "ann")
    assert said("chat", "--user", "ann") == []
    new = f"New user anm: {notes} holds no memory of anm yet. Users that it knows: ann."
    assert said("chat", "--user", "anm", "--thread", "t") == [new]
    assert said("threads", "resume", "t", "--user", "anm") == [new]


def test_rules_that_are_no_text_are_told_of_and_the_conversation_goes_on_with_the_others(run, model):
    root = Path(run("workspace", "init", "--workspace", "notes").text.strip())
    (root / "AGENTS.md").write_bytes(b"\xff\xfe")
    Path("AGENTS.md").write_text("Use tabs.\n")
    model.will([message("Hello.")])
    ran = run("chat", "--workspace", "notes", "--session", "one", "Hi.")
    assert (ran.code, ran.text) == (0, "Hello.\n")
    assert f"warning: Agents are not told the rules in {root}/AGENTS.md: it is not UTF-8 text" in ran.err
    assert "Use tabs." in model.requests[0]["instructions"]


@pytest.mark.parametrize(
    "arguments", [("hello",), ("--user", "ann", *MEMORY, "hello"), ("-w", "n", "--user", "", "hi")]
)
def test_a_conversation_without_a_memory_or_with_a_user_of_none_is_a_usage_error(run, model, arguments):
    refused = run("chat", *arguments)
    assert (refused.code, model.requests) == (2, [])


def test_help_says_what_can_be_typed_and_is_not_sent_to_the_model(model, terminal):
    chat = terminal("chat", *MEMORY)
    chat.until("For help: /help.")
    chat.until("> ")
    chat.send("/help\n")
    chat.until("To leave: Ctrl-D, or a line that is only exit, quit or 退出.")
    chat.until("> ")
    chat.send("/退出\n")
    assert chat.end() == 0
    assert model.requests == []


def test_a_workspace_that_is_no_folder_is_refused_before_the_model_is_asked(run, model):
    Path("notes").write_text("no folder")
    ran = run("chat", "-w", "notes", "hi")
    assert (ran.code, ran.err) == (3, "error: unknown_memory: notes is no workspace: it is not a folder.\n")
    assert model.requests == []
