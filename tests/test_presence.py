"""What stands at a path."""

from __future__ import annotations

import errno
import os

import pytest

from memshelf.presence import is_directory, is_file, stands


def test_what_stands_at_a_path_is_told_also_behind_links(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    found = {name: (stands(tmp_path / name), is_file(tmp_path / name)) for name in ("file", "link")}
    assert found == {"file": (True, True), "link": (True, True)}
    assert (stands(tmp_path), is_directory(tmp_path), is_file(tmp_path)) == (True, True, False)
    for name in ("nothing", "dangling", "circle", "file/below", "\0"):
        path = tmp_path / name
        assert (stands(path), is_directory(path), is_file(path)) == (False, False, False)


@pytest.mark.parametrize("ask", [stands, is_directory, is_file])
@pytest.mark.parametrize("code", [errno.EIO, errno.EACCES])
def test_what_the_system_does_not_say_is_no_answer(tmp_path, monkeypatch, ask, code):
    def refuse(path, **options):
        raise OSError(code, os.strerror(code), str(path))

    monkeypatch.setattr("memshelf.presence.os.stat", refuse)
    with pytest.raises(OSError, match=os.strerror(code)):
        ask(tmp_path)
