"""Timing, and the table that every benchmark prints."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

__all__ = ["SHOWN", "Ratio", "Table", "median_async", "median_sync", "show", "show_figures"]


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


SHOWN: list[Table] = []
"""Every table of this run."""


@dataclass(frozen=True, slots=True)
class Ratio:
    """`ours` beside `reference`, both in seconds (or both per second), and what was aimed at."""

    what: str
    ours: float
    reference: float
    against: str
    aim: str
    per_second: bool = False

    def row(self) -> tuple[str, str, str, str, str]:
        ratio = self.ours / self.reference if self.reference else float("nan")
        times = f"{ratio:.2f}x" if ratio >= 0.1 else f"1/{1 / ratio:.0f}"
        return self.what, _number(self.ours, self.per_second), _number(self.reference, self.per_second), times, self.aim


def median_sync(work: Callable[[int], object], rounds: int) -> float:
    """The median seconds of `work(round)`."""
    taken: list[float] = []
    for each in range(rounds):
        started = time.perf_counter()
        work(each)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


async def median_async(work: Callable[[int], Awaitable[object]], rounds: int) -> float:
    taken: list[float] = []
    for each in range(rounds):
        started = time.perf_counter()
        await work(each)
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def show(title: str, ratios: list[Ratio]) -> None:
    rows = [(*ratio.row(), ratio.against) for ratio in ratios]
    _show(Table(title, ("", "memshelf", "reference", "ratio", "aim", "against"), tuple(rows)))


def show_figures(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    """A table of what was measured, beside nothing else."""
    _show(Table(title, columns, tuple(rows)))


def _show(table: Table) -> None:
    SHOWN.append(table)
    print(f"\n{table.title}")
    widths = [max(map(len, column)) for column in zip(table.columns, *table.rows, strict=True)]
    for row in (table.columns, *table.rows):
        first, *others = (
            cell.ljust(width) if not at else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        print(f"  {'  '.join([first, *others])}".rstrip())


def _number(value: float, per_second: bool) -> str:
    if per_second:
        return f"{value:,.0f}/s"
    return f"{value * 1e3:.3f} ms" if value >= 1e-4 else f"{value * 1e6:.1f} us"
