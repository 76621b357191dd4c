"""What the benchmarks found, as a page of the documentation in each language."""

from __future__ import annotations

import os
import platform
import sqlite3
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from tests.postgres_server import programs

from bench.measure import Table

__all__ = ["write"]

_DOCS = Path(__file__).parent.parent / "docs"

_ENGLISH = """# Benchmarks

English · [简体中文](zh-CN/benchmarks.md)

What memshelf costs. Most tables compare memshelf with a reference, measured in the same run: a named peer, the raw cost
of the same work, or a fixed time that it should stay below. `ratio` is memshelf divided by the reference, and `aim` is
what the ratio should be; some aims are not reached yet. Times are medians.

Compare the ratios rather than the times, which depend on the machine. `make bench` measures everything and writes this
page. This was measured on:

* {machine}
* {versions}
* {date}, while the machine had a load of {load} at the start

"""

_CHINESE = """# 性能

[English](../benchmarks.md) · 简体中文

memshelf 的开销。多数表把 memshelf 与在同一次运行中测得的参照值（`reference`）相比：所列的同类项目、同样工作的最低代价，
或者不应超过的固定时间。`ratio` 是 memshelf 与参照值之比，`aim` 是希望达到的比值，有些还没有达到。时间取中位数。

请比较比值，不要比较时间，时间因机器而异。全部数据由 `make bench` 测量，本页也由它写成。这次的测量环境：

* {machine}
* {versions}
* {date}，开始时机器的负载为 {load}

"""


def write(tables: Sequence[Table], *, load: float) -> None:
    """`load` is what the machine had to do besides."""
    facts = {
        "machine": f"{os.cpu_count()} × {_processor()}, {platform.system()} {platform.release()}",
        "versions": ", ".join(_versions()),
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "load": f"{load:.1f}",
    }
    shown = "\n".join(map(_markdown, tables))
    (_DOCS / "benchmarks.md").write_text(_ENGLISH.format(**facts) + shown, encoding="utf-8")
    (_DOCS / "zh-CN" / "benchmarks.md").write_text(_CHINESE.format(**facts) + shown, encoding="utf-8")


def _markdown(table: Table) -> str:
    sides = ["---" if not at else "---:" for at in range(len(table.columns))]
    lines = [f"| {' | '.join(row)} |" for row in (table.columns, sides, *table.rows)]
    return "\n".join([f"## {table.title}", "", *lines, ""])


def _versions() -> list[str]:
    packages = [f"{name} {version(name)}" for name in ("memshelf", "fastapi", "uvicorn", "asyncpg")]
    found = [f"Python {platform.python_version()}", f"SQLite {sqlite3.sqlite_version}", *packages]
    if (server := programs()) is not None:
        answer = subprocess.run([server / "postgres", "--version"], capture_output=True, text=True, check=True)
        found.append(f"PostgreSQL {answer.stdout.split()[2]}")
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.machine()
