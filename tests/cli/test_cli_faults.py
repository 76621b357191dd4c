"""Commands on a disk that fails: what is said to have failed has left nothing, and what was made is said to be."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from command_line import Run


@pytest.fixture
def memory(run: Run) -> str:
    for name in ("a.md", "d/b.md", "d/e/c.md"):
        run("files", "create", name, f"text of {name}", "--memory", "memory.db")
    return "memory.db"


def test_an_export_to_a_folder_that_fails_on_the_way_leaves_the_folder_empty(run, memory, monkeypatch):
    real = os.open

    def full(path, flags, *mode, **options):
        if str(path).endswith("out/d/e/c.md"):
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        return real(path, flags, *mode, **options)

    with monkeypatch.context() as broken:
        broken.setattr(os, "open", full)
        failed = run("files", "export", "--folder", "out", "--memory", memory)
    assert (failed.code, failed.err) == (3, "error: unavailable: out/d/e/c.md: No space left on device.\n")
    assert list(Path("out").iterdir()) == []
    assert run("files", "export", "--folder", "out", "--memory", memory).text == "Exported 3 files to out\n"


def test_an_export_to_a_folder_takes_nothing_back_that_others_put_there_meanwhile(run, memory, monkeypatch):
    real = os.open

    def late(path, flags, *mode, **options):
        if str(path).endswith("out/d/b.md"):
            Path(path).write_text("theirs")
        return real(path, flags, *mode, **options)

    with monkeypatch.context() as others:
        others.setattr(os, "open", late)
        failed = run("files", "export", "--folder", "out", "--memory", memory)
    assert (failed.code, failed.err) == (3, "error: unavailable: out/d/b.md: File exists.\n")
    assert [path.as_posix() for path in Path("out").rglob("*")] == ["out/d", "out/d/b.md"]
    assert Path("out/d/b.md").read_text() == "theirs"


def test_an_export_that_is_in_place_and_that_the_disk_does_not_confirm_is_said_to_be(run, memory, monkeypatch):
    def refuse(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr("memshelf.cli.carried.sync_directory", refuse)
    done = run("files", "export", "user.memshelf.gz", "--memory", memory)
    assert (done.code, done.err.split(":")[1].strip()) == (3, "write_unconfirmed")
    assert Path("user.memshelf.gz").exists()


def test_an_export_that_fails_leaves_neither_a_file_nor_a_part_of_one(run, memory, monkeypatch):
    def refuse(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    before = sorted(os.listdir())
    assert run("files", "export", "user.memshelf.gz", "--memory", memory).code == 3
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("command", [("ls",), ("verify",), ("create", "new.md", "text")])
def test_a_database_that_was_emptied_beside_its_log_is_damaged_and_keeps_its_log(run, memory, command, monkeypatch):
    monkeypatch.setattr("memshelf.storage.sqlite_connection._MAKING", 0.05)
    Path(memory).write_bytes(b"")
    Path(f"{memory}-wal").write_bytes(b"log")
    done = run("files", *command, "--memory", memory)
    assert done.code == 3
    assert f"{memory} was emptied" in done.err
    assert Path(f"{memory}-wal").read_bytes() == b"log"
