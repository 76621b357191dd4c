"""Texts that are kept byte for byte. tests/golden/README.md says how to update them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

_GOLDEN = Path(__file__).parent / "golden"


def tools(script: Any) -> str:
    """The tools that the model was given with its first request, as they stand in a file."""
    shown = [
        {"name": tool.name, "description": tool.description, "parameters": tool.parameters_json_schema}
        for tool in script.infos[0].function_tools
    ]
    return json.dumps(shown, indent=2, ensure_ascii=False) + "\n"


def compare(name: str, text: str) -> None:
    path = _GOLDEN / name
    if os.environ.get("MEMSHELF_UPDATE_GOLDEN"):
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(text.encode())
    assert path.read_bytes().decode() == text
