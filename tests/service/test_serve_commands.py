"""`memshelf serve`, `keys` and `verify`, as a newcomer and as a script use them."""

from __future__ import annotations

import json
import os
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from serving import SECONDS, memshelf

from memshelf import mask_secrets
from memshelf.cli import main
from memshelf.service import data

pytestmark = pytest.mark.parametrize(
    "engine", ["sqlite"], indirect=True, scope="session"
)  # PostgreSQL has its own below


def refused(*arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "memshelf", *arguments], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.stdout == ""
    assert done.returncode != 0
    return done.returncode, done.stderr


def test_an_empty_directory_becomes_a_service_with_a_key_that_is_shown_once(start, tmp_path):
    data = tmp_path / "deep" / "data"
    first = start("--data", str(data))
    assert first.url.startswith("http://127.0.0.1:")
    key = first.first_key()
    assert first.get("/v1/memory_stores").json == {"data": [], "next_page": None}
    store = first.store()
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert stat.S_IMODE((data / "memshelf.db").stat().st_mode) == 0o600
    assert first.stop() == 0
    again = start("--data", str(data))
    again.key = key
    assert again.get(f"/v1/memory_stores/{store}").status == 200
    assert again.stop() == 0
    assert again.process.stdout is not None
    assert again.process.stdout.read() == f"The web console is at {again.url}/console\n"  # and no other key


def test_the_console_is_served_unless_it_is_not_wanted(start):
    service = start()
    assert service.get("/console/sign-in").headers["content-type"] == "text/html; charset=utf-8"
    without = start(*service.where, options=("--no-console",))
    assert without.get("/console/sign-in").error == "not_found_error"
    assert without.stop() == 0
    assert without.process.stdout is not None
    assert without.process.stdout.read() == ""


def test_the_command_that_is_shown_works(start):
    service = start()
    assert service.process.stdout is not None
    for line in service.process.stdout:
        if "curl" in line:
            break
    done = subprocess.run(
        ["bash", "-c", line.strip().replace("curl", "curl -s", 1)], capture_output=True, timeout=SECONDS
    )
    assert json.loads(done.stdout) == {"data": [], "next_page": None}


def test_two_first_starts_at_once_make_one_key(engine, tmp_path):
    command = [sys.executable, "-m", "memshelf", "serve", "--data", str(tmp_path / "data"), "--port", "0"]
    processes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(2)
    ]
    told = ""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("memshelf serves ")
        process.send_signal(signal.SIGTERM)
        told += process.stdout.read()
        process.stdout.close()
        assert process.wait(SECONDS) == 0
    assert told.count("msk_") == 2  # the key, and the command to try it with
    assert "msk_" not in mask_secrets(told)
    assert len(memshelf("keys", "list", "--data", str(tmp_path / "data")).splitlines()) == 1


def test_it_listens_on_loopback_unless_told_otherwise(start):
    service = start()
    with socket.create_connection(("127.0.0.1", service.port), timeout=SECONDS):
        pass
    family = socket.AF_INET
    with socket.socket(family) as other:
        other.bind(("127.0.0.2", service.port))  # nobody listens there, so that it is free
    wide = start(host="0.0.0.0")
    with socket.create_connection(("127.0.0.2", wide.port), timeout=SECONDS):
        pass


def test_a_port_that_is_taken_is_an_error_on_one_line(start, tmp_path):
    service = start()
    code, told = refused("serve", "--data", str(tmp_path / "other"), "--port", str(service.port))
    assert code == 3
    assert told.splitlines() == [
        f"error: unavailable: 127.0.0.1:{service.port}: Address already in use. Choose another with --port."
    ]
    assert start("--data", str(tmp_path / "other")).first_key()  # it was not made and lost before


def test_ctrl_c_ends_it_without_an_error(start):
    service = start()
    service.process.send_signal(signal.SIGINT)
    assert service.process.wait(SECONDS) == 0
    assert "Traceback" not in service.log.read_text()


def test_ctrl_c_twice_ends_it_at_once_and_without_an_error(start):
    service = start()
    service.first_key()
    start_of_a_request = f"POST /v1/memory_stores HTTP/1.1\r\nx-api-key: {service.key}\r\ncontent-length: 5\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port), timeout=SECONDS) as slow:
        slow.sendall(start_of_a_request.encode())
        assert service.get("/v1/memory_stores").status == 200
        service.process.send_signal(signal.SIGINT)
        while "Waiting for connections" not in service.log.read_text():  # else both signals may come as one
            assert service.process.poll() is None
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(15) == 0  # it would wait 20 seconds for the request
    assert "Traceback" not in service.log.read_text()
    assert "memshelf.db-wal" not in os.listdir(service.where[1])  # the database was closed


def test_the_first_key_is_shown_also_when_the_service_does_not_start(engine, tmp_path):
    code = (
        "import sys; from memshelf.cli import main; from memshelf.service import server\n"
        "def interrupted(*_): raise KeyboardInterrupt\n"
        "server.run = interrupted; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "serve", "--data", str(tmp_path), "--port", "0"]
    first, second = (subprocess.run(command, capture_output=True, text=True, timeout=SECONDS) for _ in range(2))
    assert (first.returncode, first.stderr, first.stdout.count("msk_")) == (130, "", 2)
    assert (second.returncode, second.stdout) == (130, "")
    assert len(memshelf("keys", "list", "--data", str(tmp_path)).splitlines()) == 1


def test_keys_for_scripts(start):
    service = start()
    first = service.first_key()
    key = memshelf("keys", "create", *service.where, "--workspace", "team")
    assert key.endswith("\n")
    assert key.strip().isalnum() or "_" in key
    assert len(key.splitlines()) == 1
    service.store("mine")
    assert service.get("/v1/memory_stores", key=key.strip()).json["data"] == []
    same = memshelf("keys", "create", *service.where, "--workspace", "team").strip()
    store = service.store("theirs", key=same)
    assert [each["id"] for each in service.get("/v1/memory_stores", key=key.strip()).json["data"]] == [store]
    listed = json.loads(memshelf("keys", "list", *service.where, "--json"))["keys"]
    assert [(each["workspace"], each["hint"], each["revoked_at"]) for each in listed] == [
        ("default", first[-4:], None),
        ("team", key.strip()[-4:], None),
        ("team", same[-4:], None),
    ]
    assert memshelf("keys", "revoke", listed[1]["id"], *service.where) == f"Revoked {listed[1]['id']}\n"
    memshelf("keys", "revoke", listed[1]["id"], *service.where)
    service.get("/v1/memory_stores", key=key.strip())
    code, told = refused("keys", "revoke", "apikey_missing", *service.where)
    assert (code, told.splitlines()[0]) == (1, "error: not_found: There is no key apikey_missing.")
    rows = memshelf("keys", "list", *service.where).splitlines()
    assert [row.split("\t")[1] for row in rows] == [each["id"] for each in listed]
    assert [bool(row.split("\t")[3]) for row in rows] == [False, True, False]


def test_a_revoked_key_is_refused_within_a_moment(start):
    service = start()
    service.first_key()
    key = service.new_key()
    assert service.get("/v1/memory_stores", key=key).status == 200
    listed = json.loads(memshelf("keys", "list", *service.where, "--json"))["keys"]
    memshelf("keys", "revoke", listed[-1]["id"], *service.where)
    deadline = time.monotonic() + 5
    while service.get("/v1/memory_stores", key=key).status != 401:
        assert time.monotonic() < deadline


@pytest.mark.parametrize("command", [("keys", "list"), ("keys", "revoke", "apikey_1"), ("verify",)])
def test_looking_creates_nothing(engine, tmp_path, command):
    code, told = refused(*command, "--data", str(tmp_path / "nothing"))
    assert code == 3
    assert "unknown_memory" in told
    assert not (tmp_path / "nothing").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        ("serve",),
        ("keys", "create"),
        ("verify",),
        ("serve", "--data", "x", "--port", "70000"),
        ("serve", "--data", "x", "--read-rate", "fast"),
        ("serve", "--data", "x", "--write-rate", "0"),
        ("serve", "--data", "x", "--write-rate", "1/0"),
        ("serve", "--data", "x", "--read-rate", "nan/5"),
        ("serve", "--data", "x", "--read-rate", "inf/5"),
        ("serve", "--data", "x", "--read-rate", "1_0"),
        ("serve", "--data", "x", "--read-rate", "10/ 20"),
        ("serve", "--data", "x", "--read-rate", "１０"),
        ("serve", "--data", "x", "--keep-versions", "9_0"),
        ("serve", "--database", "mysql://x"),
    ],
)
def test_a_command_line_that_is_wrong(engine, tmp_path, monkeypatch, arguments):
    monkeypatch.chdir(tmp_path)
    code, told = refused(*arguments)
    assert (code, told.split(":")[:2]) == (2, ["error", " usage"])
    assert os.listdir(tmp_path) == []


def test_a_foreign_database_is_refused_and_left_alone(engine, tmp_path):
    with sqlite3.connect(tmp_path / "memshelf.db") as foreign:
        foreign.execute("CREATE TABLE theirs (x)")
    foreign.close()
    before = (tmp_path / "memshelf.db").read_bytes()
    code, told = refused("serve", "--data", str(tmp_path), "--port", "0")
    assert (code, told.splitlines()[0].split(":")[1]) == (3, " unavailable")
    assert (tmp_path / "memshelf.db").read_bytes() == before


def test_a_database_that_cannot_be_written_is_not_served(engine, tmp_path, monkeypatch, capsys):
    memshelf("keys", "create", "--data", str(tmp_path))
    monkeypatch.setattr(data, "may_write", lambda path: False)  # what root is never told
    assert main(["serve", "--data", str(tmp_path), "--port", "0"]) == 3
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"error: unavailable: {tmp_path}/memshelf.db is read-only for this user")
    assert main(["keys", "list", "--data", str(tmp_path)]) == 0, "it can be looked at"


def test_verify_finds_what_was_tampered_with(start):
    service = start()
    service.first_key()
    whole, damaged = service.store("whole"), service.store("damaged")
    for store in (whole, damaged):
        for number in range(3):
            service.memory(store, f"/{number}", "x")
    assert memshelf("verify", *service.where).splitlines() == [
        line for line in memshelf("verify", *service.where).splitlines() if ": intact, 3 versions, head " in line
    ]
    service.stop()
    with sqlite3.connect(Path(service.where[1]) / "memshelf.db") as intruder:
        intruder.execute(
            "UPDATE file_versions SET content = x'79' WHERE seq = 2 AND memory_id = "
            "(SELECT memory_id FROM stores WHERE id = ?)",
            (damaged,),
        )
    intruder.close()
    done = subprocess.run(
        [sys.executable, "-m", "memshelf", "verify", *service.where, "--json"], capture_output=True, timeout=SECONDS
    )
    report = json.loads(done.stdout)
    assert (done.returncode, report["intact"]) == (1, False)
    assert [(each["store"], each["intact"]) for each in report["stores"]] == [(whole, True), (damaged, False)]
    assert "version 2" in report["stores"][1]["problems"][0]
    assert memshelf("verify", whole, *service.where).startswith(f"{whole}: intact")
    head = report["stores"][0]["head"]
    assert memshelf("verify", whole, "--head", head, *service.where).startswith(f"{whole}: intact")
    assert "which STORE" in refused("verify", "--head", head, *service.where)[1]
    code, told = refused("verify", "memstore_missing", *service.where)
    assert (code, told.split(":")[1]) == (1, " not_found")


def test_options_reach_the_service(start):
    service = start(options=("--read-rate", "1/2", "--strict-headers", "--log-level", "warning"))
    service.first_key()
    headers = {"anthropic-version": "2023-06-01", "anthropic-beta": "agent-memory-2026-07-22"}
    assert service.get("/v1/memory_stores").status == 400
    assert service.get("/v1/memory_stores", headers=headers).status == 200
    assert service.get("/v1/memory_stores", headers=headers).status == 429
    assert service.log.read_text() == ""
