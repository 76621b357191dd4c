"""`memshelf mcp` as a client starts it: a process that speaks on its standard streams."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from memshelf import DirectoryFileStore, Origin, SqliteFileStore
from memshelf.cli import main

COMMAND = [sys.executable, "-m", "memshelf", "mcp"]
CLIENT = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "hand", "version": "1"}}
SECONDS = 60


@asynccontextmanager
async def served(*arguments: str):
    parameters = StdioServerParameters(command=COMMAND[0], args=[*COMMAND[1:], *arguments], env=dict(os.environ))
    async with Client(stdio_client(parameters)) as client:
        yield client


async def test_what_one_conversation_stores_the_next_one_knows(tmp_path):
    database = tmp_path / "m.db"
    where = ("-m", f"user={database}", "-r", f"facts={database}", "-w", str(tmp_path / "workspace"), "--user", "ann")
    async with served(*where) as client:
        file = {"memory": "user", "path": "prefs/语言.md", "content": "Answers in Chinese."}
        assert not (await client.call_tool("memory_file_create", file)).is_error
        assert not (await client.call_tool("memory_record_add", {"memory": "facts", "text": "安喝绿茶。"})).is_error
        entry = {"title": "Role", "content": "Writes Go.", "memory_type": "user", "description": "job"}
        assert not (await client.call_tool("save_memory", entry)).is_error
    async with served(*where) as client:
        shown = (await client.call_tool("memory_context", {"about": "绿茶 job"})).content[0].text
    assert all(each in shown for each in ("prefs/语言.md: Answers in Chinese.", "安喝绿茶。", "Writes Go."))
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("m.db")] == ["m.db"]  # closed, in one file
    async with SqliteFileStore(database) as store:
        (version,) = (await store.versions()).versions
    assert version.origin.principal_id.startswith("cli:")


async def test_two_clients_of_one_memory_overwrite_nothing_of_each_other(tmp_path):
    where = ("-m", f"team={tmp_path / 'team'}")
    async with served(*where) as one, served(*where) as other:
        await one.call_tool("memory_file_create", {"memory": "team", "path": "log.md", "content": "begun"})

        async def appends(client, name):
            for number in range(20):
                line = {"memory": "team", "path": "log.md", "content": f"{name} {number}"}
                assert not (await client.call_tool("memory_file_append", line)).is_error

        await asyncio.gather(appends(one, "one"), appends(other, "other"))
    lines = (tmp_path / "team" / "log.md").read_text().splitlines()
    assert sorted(lines[1:]) == sorted(f"{name} {number}" for name in ("one", "other") for number in range(20))


def _line(**message: object) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def _begins_namespaces() -> bool:
    unshare = shutil.which("unshare")
    if unshare is None:
        return False
    return not subprocess.run([unshare, "--pid", "--fork", "true"], capture_output=True, check=False).returncode


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_what_was_acknowledged_outlives_any_end(tmp_path, end):
    process = subprocess.Popen(
        [*COMMAND, "--memory", f"user={tmp_path / 'm.db'}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    arguments = {"memory": "user", "path": "a.md", "content": "kept"}
    try:
        process.stdin.write(_line(id=1, method="initialize", params=CLIENT))
        process.stdin.write(_line(method="notifications/initialized"))
        process.stdin.write(b"nonsense\n\xff\xfe\n[]\n")  # what is no message is answered or skipped, and ends nothing
        process.stdin.write(
            _line(id=2, method="tools/call", params={"name": "memory_file_create", "arguments": arguments})
        )
        process.stdin.flush()
        answers = iter(process.stdout.readline, b"")
        acknowledged = next(answer for line in answers if (answer := json.loads(line)).get("id") == 2)
        assert not acknowledged["result"]["isError"]
        process.send_signal(end)
        assert process.wait(SECONDS) == -end  # at once, though the client has not hung up
    finally:
        process.kill()
        process.communicate()
    async with SqliteFileStore(tmp_path / "m.db") as store:
        assert (await store.read("a.md")).text == "kept"
        assert (await store.versions()).versions[0].origin.run_id.startswith("hand ")


@pytest.mark.skipif(not _begins_namespaces(), reason="needs the right to begin a PID namespace")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_first_process_of_a_container(tmp_path, end):
    command = ["unshare", "--pid", "--fork", "--kill-child", *COMMAND, "--memory", f"user={tmp_path}"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(_line(id=1, method="initialize", params=CLIENT))
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["id"] == 1
        (first,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(first), end)
        assert process.wait(SECONDS) == 128 + end
    finally:
        process.kill()
        process.communicate()


def test_what_is_no_valid_request_is_refused_and_ends_nothing(tmp_path):
    process = subprocess.Popen([*COMMAND, "-m", f"user={tmp_path}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    half = {"memory": "user", "path": "a.md", "content": "half of an emoji: \ud83d"}
    try:
        process.stdin.write(_line(id=1, method="initialize", params=CLIENT))
        process.stdin.write(_line(method="notifications/initialized"))
        process.stdin.write(_line(id=2, method="tools/call", params={"name": "memory_file_create", "arguments": half}))
        process.stdin.write(_line(id="three", method="\ud83d"))
        process.stdin.write(_line(id=4, method=123))
        process.stdin.write(
            _line(id=True, method=1)
            + _line(id="\ud83d", method="ping")
            + _line(method="\ud83d")
            + b"[" * 100_000
            + b"\n"
        )
        process.stdin.write(_line(id=5, method="ping"))
        process.stdin.flush()
        answers = {}
        while 5 not in answers:
            answer = json.loads(process.stdout.readline())
            answers[answer["id"]] = answer
        assert answers.keys() == {1, 2, "three", 4, 5}
        for refused in (2, "three", 4):
            assert "was not carried out" in answers[refused]["error"]["message"]
        process.stdin.close()
        assert process.wait(SECONDS) == 0
        assert process.stdout.read() == b""
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert list(tmp_path.iterdir()) == []


def test_what_was_asked_before_the_client_hung_up_is_done_and_answered(tmp_path):
    asked = [_line(id=1, method="initialize", params=CLIENT), _line(method="notifications/initialized")]
    for number in range(20):
        arguments = {"memory": "user", "path": f"{number}.md", "content": "kept"}
        call = {"name": "memory_file_create", "arguments": arguments}
        asked.append(_line(id=f"call-{number}", method="tools/call", params=call))
    command = [*COMMAND, "--memory", f"user={tmp_path / 'm.db'}"]
    ended = subprocess.run(command, input=b"".join(asked), capture_output=True, timeout=SECONDS, check=True)
    answers = {answer["id"]: answer["result"] for answer in map(json.loads, ended.stdout.splitlines())}
    assert answers.keys() == {1, *(f"call-{number}" for number in range(20))}
    assert not any(result.get("isError") for result in answers.values())


def test_a_client_that_no_longer_reads_leaves_no_traceback(tmp_path):
    process = subprocess.Popen(
        [*COMMAND, "--memory", f"user={tmp_path}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        process.stdout.close()
        process.stdin.write(_line(id=1, method="initialize", params=CLIENT))
        process.stdin.close()
        assert process.wait(SECONDS) == 0
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.wait()
        process.stderr.close()


async def test_a_memory_may_be_read_only(tmp_path):
    await DirectoryFileStore(tmp_path).write("a.md", "one", expected=None, origin=Origin())
    async with served("-m", f"user={tmp_path}:read") as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == {
            "memory_context",
            "memory_file_view",
            "memory_file_grep",
        }
        assert [each.name for each in (await client.list_resources()).resources] == ["user/a.md"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "There is no memory."),
        (["-m", "user"], 2, "is not NAME=PATH"),
        (["-m", "User=x"], 2, "mount name"),
        (["-m", "user=x:admin"], 2, "no access"),
        (["-m", "user=x:read"], 3, "There is no memory at x."),
        (["-m", "user=x", "-r", "user=y.db"], 2, "Two mounts are named user"),
        (["-r", "facts=."], 2, "records are kept in a SQLite file"),
        (["-r", "facts=y.db:read"], 3, "There is no memory at y.db."),
        (["-r", "facts=none/such/y.db#"], 2, "nothing follows the #"),
        (["-s", "team=memstore_1"], 2, "--url"),
        (["-s", "team=memstore_1", "--url", "ftp://x", "--key", "k"], 2, "--url"),
        (["-m", "user=x", "--user", "ann"], 2, "--user goes with --workspace"),
        (["-w", "x", "--user", ""], 2, "--user"),
    ],
)
def test_what_cannot_be_served_is_said(arguments, code, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["mcp", *arguments]) == code
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.out == ""
    assert list(tmp_path.iterdir()) == []
