"""SessionLog on a disk that fails while it is read, closed or tidied up, and after a writer that was killed."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from pathlib import Path

import pytest

from memshelf import MemoryStoreError, SessionLog


@pytest.fixture
def log(tmp_path):
    log = SessionLog("s1", tmp_path / "sessions", durable=False)
    log.append("user", "first")
    log.append("assistant", "second")
    return log


def _refusal(code):
    return pytest.raises(MemoryStoreError, check=lambda error: error.code == code)


def _failing(monkeypatch, name, *, when=lambda *_: True, with_errno=errno.EIO, first=False):
    """Let `os.<name>` fail, before it does what it does or after it."""
    real = getattr(os, name)

    def fail(*arguments, **options):
        failing = when(*arguments)
        result = None if failing and first else real(*arguments, **options)
        if failing:
            raise OSError(with_errno, os.strerror(with_errno))
        return result

    monkeypatch.setattr(os, name, fail)


@pytest.mark.parametrize(
    "use",
    [
        lambda log: log.load(),
        lambda log: list(log.rows()),
        lambda log: log.search("first"),
        lambda log: log.seal(),
        lambda log: log.fork("copy"),
        lambda log: log.export(f"{log.directory}/copy.md"),
        lambda log: SessionLog(log.session_id, log.directory).append("user", "third"),
    ],
)
def test_a_log_that_cannot_be_read_is_unavailable_and_nothing_is_made_of_it(log, monkeypatch, use):
    before = Path(log.path).read_bytes()
    _failing(monkeypatch, "pread", first=True)
    with _refusal("unavailable"):
        use(log)
    monkeypatch.undo()
    assert os.listdir(log.directory).count("s1.jsonl") == 1
    assert {name for name in os.listdir(log.directory) if name.startswith(("copy", ".memshelf"))} == set()
    assert Path(log.path).read_bytes() == before


def test_a_log_of_which_nobody_can_say_whether_it_is_there_is_neither_empty_nor_missing(log, monkeypatch):
    log.append("assistant", None, tool_calls=[{"id": "c", "name": "tool", "args": {}}])
    _failing(monkeypatch, "lstat", first=True)
    for use in (log.exists, log.seal, lambda: log.export(f"{log.directory}/copy.md")):
        with _refusal("unavailable"):
            use()


def test_what_is_read_in_small_pieces_is_the_same(log, monkeypatch):
    log.extend([{"type": "user", "content": "x" * 1000} for _ in range(200)])
    whole = log.load()
    real = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: real(fd, min(size, 1 + size // 3), at))
    assert log.load() == list(log.rows()) == whole


def test_a_session_that_cannot_be_read_is_listed_without_what_is_in_it_and_a_warning_says_so(log, monkeypatch, caplog):
    _failing(monkeypatch, "pread", first=True)
    (info,) = SessionLog.list_sessions(log.directory)
    assert (info.session_id, info.name, info.preview) == ("s1", None, "")
    assert info.size == os.path.getsize(log.path)
    assert "Session s1" in caplog.text
    assert "Input/output error" in caplog.text


def test_rows_of_which_a_part_cannot_be_taken_back_are_unconfirmed(log, monkeypatch):
    real = os.write

    def full(descriptor, data):
        if len(data) > 100:
            return real(descriptor, bytes(data[:100]))
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    _failing(monkeypatch, "ftruncate", first=True)
    with _refusal("write_unconfirmed"):
        log.extend([{"type": "user", "content": "x" * 150}])
    monkeypatch.undo()
    log.append("user", "after")
    assert [row["content"] for row in log.load()] == ["first", "second", "after"]


def test_a_row_that_was_refused_is_no_rows_parent(log, monkeypatch):
    last = log.load()[-1]["id"]
    _failing(monkeypatch, "write", with_errno=errno.ENOSPC, first=True)
    with _refusal("unavailable"):
        log.append("user", "refused")
    monkeypatch.undo()
    # Somebody else's row, as long as the one that was refused: the file ends where that one would have.
    other = SessionLog("s1", log.directory, durable=False).append("user", "written")
    assert (other["parent_id"], log.append("user", "next")["parent_id"]) == (last, other["id"])


def test_a_file_that_was_written_and_fails_when_it_is_closed_is_unconfirmed(log, monkeypatch):
    _failing(monkeypatch, "close")
    with _refusal("write_unconfirmed"):
        log.append("user", "third")
    assert [row["content"] for row in log.load()] == ["first", "second", "third"]  # what is read needs no confirmation


def test_a_lock_that_cannot_be_released_is_released_by_closing(log, monkeypatch):
    real = fcntl.flock

    def refuse(descriptor, operation):
        if operation == fcntl.LOCK_UN:
            raise OSError(errno.EIO, "Input/output error")
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", refuse)
    log.append("user", "third")
    monkeypatch.undo()
    SessionLog("s1", log.directory).append("user", "fourth")
    assert [row["content"] for row in log.load()][2:] == ["third", "fourth"]


def test_a_copy_is_made_although_what_it_was_staged_in_cannot_be_removed(log, monkeypatch):
    _failing(monkeypatch, "unlink", first=True)
    assert [row["content"] for row in log.fork("copy").load()][:2] == ["first", "second"]
    monkeypatch.undo()
    left = [name for name in os.listdir(log.directory) if name.startswith(".memshelf-")]
    assert left
    log.fork("another")
    assert not set(left).intersection(os.listdir(log.directory))


def test_what_a_killed_writer_left_goes_and_what_a_living_one_writes_stays(log):
    names = [f".memshelf-{character * 16}.new" for character in "abc"]
    for name in names:
        with open(f"{log.directory}/{name}", "w") as left:
            left.write("half a row")
    foreign = Path(log.directory, ".memshelf-of-somebody-else.new")
    foreign.touch()
    with open(f"{log.directory}/{names[0]}") as living:
        fcntl.flock(living, fcntl.LOCK_EX)
        log.fork("copy")
    assert {each.name for each in Path(log.directory).glob(".memshelf-*")} == {names[0], foreign.name}


def test_a_directory_whose_making_was_not_confirmed_is_confirmed_before_a_row_in_it_is(tmp_path, monkeypatch):
    directory = tmp_path / "above" / "sessions"
    _failing(monkeypatch, "fsync", first=True)
    with _refusal("unavailable"):
        SessionLog("s1", directory).append("user", "refused")
    monkeypatch.undo()
    synced, real = [], os.fsync

    def fsync(descriptor):
        synced.append((status := os.fstat(descriptor)).st_ino)
        real(descriptor)
        return status

    monkeypatch.setattr(os, "fsync", fsync)
    SessionLog("s1", directory).append("user", "kept")
    assert {os.stat(each).st_ino for each in (tmp_path, tmp_path / "above", directory)} <= set(synced)


def test_a_directory_that_cannot_be_kept_out_of_version_control_is_not_left_behind(tmp_path, monkeypatch):
    _failing(monkeypatch, "open", when=lambda path, *_: str(path).endswith(".gitignore"), first=True)
    with _refusal("unavailable"):
        SessionLog("s1", tmp_path / "sessions").append("user", "refused")
    monkeypatch.undo()
    assert not (tmp_path / "sessions").exists()
    SessionLog("s1", tmp_path / "sessions").append("user", "kept")
    assert (tmp_path / "sessions" / ".gitignore").read_text() == "*\n"
    assert stat.S_IMODE((tmp_path / "sessions").stat().st_mode) == 0o700


def test_a_session_whose_directory_goes_while_it_is_made_is_unavailable(log, monkeypatch):
    real = os.link

    def late(source, target, **options):
        shutil.rmtree(log.directory)
        real(source, target, **options)

    monkeypatch.setattr(os, "link", late)
    with _refusal("unavailable"):
        log.fork("s2")
    assert not os.path.lexists(log.directory)


def test_a_session_in_a_directory_that_is_a_link_to_nowhere_is_unavailable(log, tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    with _refusal("unavailable"):
        SessionLog("s2", tmp_path / "link").create([{"type": "user", "content": "first"}])
    with _refusal("unavailable"):
        log.export(tmp_path / "link" / "s1.md")
    assert not os.path.lexists(tmp_path / "nowhere")
