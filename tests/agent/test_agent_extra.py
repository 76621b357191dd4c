"""The optional package stays behind its door."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "pydantic_ai":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
"""
NAMES = ("AgentSpec", "HarnessBuilder", "HarnessState", "FileMemoryCapability", "ToolPermissions")


def _run(program):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_package_gives_the_name_of_the_extra(name):
    done = _run(BLOCKED + f"from memshelf import {name}")
    assert done.returncode == 1
    assert done.stderr.strip().endswith(
        'ModuleNotFoundError: Agents need the extra "agent", which is not installed: pip install "memshelf[agent]"'
    )


def test_what_needs_no_package_works_without_it():
    done = _run(BLOCKED + "from memshelf import FileMount, MemoryCursors, DirectoryFileStore, FileMemoryLimits")
    assert done.stderr == ""
    assert done.returncode == 0


def test_importing_memshelf_imports_no_optional_package():
    program = """
        import sys
        import memshelf
        assert not {"pydantic_ai", "pydantic", "openai"} & set(sys.modules), sorted(sys.modules)
        memshelf.FileMount
        assert not {"pydantic_ai", "pydantic", "openai"} & set(sys.modules), sorted(sys.modules)
    """
    done = _run(program)
    assert done.stderr == ""
    assert done.returncode == 0


def test_another_missing_package_is_not_taken_for_the_extra():
    program = BLOCKED.replace('"pydantic_ai":', '"httpx2":') + "import memshelf.agent"
    done = _run(program)
    assert "No module named 'httpx2" in done.stderr
    assert "memshelf[agent]" not in done.stderr


def test_building_needs_no_key():
    program = """
        import os
        for name in ("OPENAI_API_KEY", "MEMSHELF_MODEL"):
            os.environ.pop(name, None)
        from memshelf import AgentSpec, FileMemoryCapability, FileMount, HarnessBuilder, InProcessFileStore
        memory = FileMemoryCapability([FileMount("user", InProcessFileStore(), "write")])
        HarnessBuilder().build(AgentSpec(model="openai-responses:gpt-5"), output_type=str, capabilities=(memory,))
    """
    done = _run(program)
    assert done.stderr == ""
    assert done.returncode == 0
