"""Other packages, each in an environment of its own, asked to do the same work.

Environments are made on first use under `.venv-peers`. A peer that cannot be had here (no matching interpreter, no
network) answers `None`, and the benchmark falls back to a naive reference and says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["A13N_LISTING", "AGENTICA_RECALL", "HARNESS_WRITES", "ask"]

_PEERS = Path(__file__).parent.parent / ".venv-peers"

A13N_LISTING = """
import asyncio, json, sys, time, statistics
from a13n_harness.providers.memory import DirectoryFileStore

async def main(root):
    store = DirectoryFileStore(root)
    taken = []
    for _ in range(3):
        started = time.perf_counter()
        cursor = (await store.changes(None)).cursor
        await store.list()
        taken.append(time.perf_counter() - started)
    print(json.dumps(statistics.median(taken)))

asyncio.run(main(sys.argv[1]))
"""

HARNESS_WRITES = """
import asyncio, json, sys, time, statistics
from pydantic_ai_harness.memory import SqliteMemoryStore

async def main(database):
    store = SqliteMemoryStore(database=database)
    version = (await store.write("a.md", "start", expected_version=None)).version
    taken = []
    for each in range(100):
        started = time.perf_counter()
        version = (await store.write("a.md", f"{each} " * 200, expected_version=version)).version
        taken.append(time.perf_counter() - started)
    print(json.dumps(statistics.median(taken)))

asyncio.run(main(sys.argv[1]))
"""

AGENTICA_RECALL = """
import asyncio, json, sys, tempfile
from pathlib import Path
from agentica import Workspace

async def main(folder, described, kind):
    sys.path.insert(0, folder)
    from figures import figure
    rows = lambda name: [json.loads(line) for line in (Path(folder) / name).read_text().splitlines()]
    memories, queries = rows("memories.jsonl"), rows("queries.jsonl")
    with tempfile.TemporaryDirectory() as place:
        workspace = Workspace(place)
        workspace.initialize()
        for each in memories:
            await workspace.write_memory_entry(
                title=each["title"], content=each["content"], memory_type=each["type"],
                description=each["description"] if described == "1" else "",
            )
        found = []
        for query in queries:
            text = await workspace.get_relevant_memories(query=query["q"], limit=10) or ""
            places = {each["id"]: text.find(each["content"]) for each in memories}
            found.append(sorted((id for id, at in places.items() if at >= 0), key=places.get))
        print(json.dumps(figure(queries, found, kind)))

asyncio.run(main(*sys.argv[1:]))
"""


def ask(requirement: str, python: str, script: str, *arguments: str) -> float | None:
    """Run `script` where `requirement` is installed, on Python `python` ("3.13"), and return the number it prints."""
    interpreter = _environment(requirement, python)
    if interpreter is None:
        return None
    answer = subprocess.run([interpreter, "-c", script, *arguments], capture_output=True, text=True, check=False)
    if answer.returncode:
        print(f"  ({requirement} failed: {answer.stderr.strip().splitlines()[-1:]})")
        return None
    return float(json.loads(answer.stdout))


def _environment(requirement: str, python: str) -> str | None:
    home = _PEERS / requirement.replace("=", "-")
    interpreter = home / "bin" / "python"
    if (home / "ready").exists():
        return str(interpreter)
    base = _interpreter(python)
    if base is None:
        print(f"  ({requirement} needs Python {python}, which is not here)")
        return None
    shutil.rmtree(home, ignore_errors=True)
    for command in ([base, "-m", "venv", str(home)], [str(interpreter), "-m", "pip", "install", "-q", requirement]):
        if subprocess.run(command, capture_output=True, check=False).returncode:
            print(f"  ({requirement} could not be installed)")
            return None
    (home / "ready").touch()
    return str(interpreter)


def _interpreter(python: str) -> str | None:
    if sys.version_info[:2] == tuple(map(int, python.split("."))):
        return sys.executable
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = [*sorted(pyenv.glob(f"{python}.*/bin/python{python}")), shutil.which(f"python{python}")]
    for candidate in filter(None, found):
        probe = [str(candidate), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        answer = subprocess.run(probe, capture_output=True, text=True, check=False)
        if answer.stdout.strip() == python:
            return str(candidate)
    return None
