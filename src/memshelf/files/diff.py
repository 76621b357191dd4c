"""The unified diff between two versions of a file, as a pure function."""

from __future__ import annotations

import difflib

from memshelf.errors import MemoryStoreError
from memshelf.files.model import Version

__all__ = ["unified"]


def unified(old: Version | None, new: Version) -> str:
    """The unified diff between two versions; `None` stands for no file. `not_found` when one of them is redacted."""
    before, after = _lines(old), _lines(new)
    named = old is not None and old.operation != "deleted"
    sides = difflib.unified_diff(
        before,
        after,
        fromfile=f"a/{old.path}" if old is not None and named else "/dev/null",
        tofile="/dev/null" if new.operation == "deleted" else f"b/{new.path}",
        fromfiledate=old.id if old is not None else "",
        tofiledate=new.id,
    )
    return "".join(each if each.endswith("\n") else f"{each}\n\\ No newline at end of file\n" for each in sides)


def _lines(version: Version | None) -> list[str]:
    if version is None or version.operation == "deleted":
        return []
    if version.text is None:
        raise MemoryStoreError("not_found", f"Version {version.id} is redacted: its content is gone.")
    lines = version.text.split("\n")
    return [f"{each}\n" for each in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
