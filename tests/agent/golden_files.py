"""Texts that are kept byte for byte. tests/golden/README.md says how to update them."""

from __future__ import annotations

import os
from pathlib import Path

_GOLDEN = Path(__file__).parent.parent / "golden"


def compare(name: str, text: str) -> None:
    path = _GOLDEN / name
    if os.environ.get("MEMSHELF_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(text.encode())
    assert path.read_bytes().decode() == text
