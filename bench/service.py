"""`memshelf serve` over HTTP: reads beside an empty endpoint, durable updates beside raw commits, and what each
operation takes."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

from tests.postgres_server import PostgresServer, programs

from bench.hosted import Filled, content, empty_endpoint, fill, new_database, service
from bench.load import Load, drive, request
from bench.measure import Ratio, show, show_figures
from bench.raw import postgres_commit, sqlite_commit
from bench.slow_disk import available, slow_disk

__all__ = ["run"]

SMALL, LARGE = 1_000, 100_000
CLIENTS = (1, 8, 32)
OPERATIONS = ("read", "update", "list", "search", "versions")
DEPTHS = (0, 1, 4, 12)

_SECONDS = 2.0
_ROUNDS = 5
_SYNCS = (1, 5)
"""How many milliseconds a sync takes longer on a slower disk."""
_OPTIONS = ("--log-level", "warning")  # as the empty endpoint logs no requests either


async def run(place: Path) -> None:
    _reads(await fill(_sqlite(place / "small"), _paths(SMALL)), await fill(_sqlite(place / "large"), _paths(LARGE)))
    ratios: list[Ratio] = []
    figures: list[tuple[str, ...]] = []

    async def measure(engine: str, where: tuple[str, str], raw: Callable[[int], Awaitable[float]]) -> None:
        filled = await fill(where, _paths(SMALL))
        with service(filled.where, *_OPTIONS) as port:
            ratios.extend(await _updates(engine, port, filled, raw))
            for what in OPERATIONS:
                for clients in CLIENTS:
                    load = drive(port, _requests(filled, what, clients), _SECONDS)
                    figures.append(_row(engine, what, clients, load))

    await measure(
        "SQLite", _sqlite(place / "updates"), lambda n: asyncio.to_thread(sqlite_commit, place / f"raw-{n}.db")
    )
    if programs() is not None:
        server = PostgresServer(durable=True)
        try:
            database = await new_database(server, "memshelf_bench")
            await measure("PostgreSQL", ("--database", database), lambda _: postgres_commit(server.dsn))
        finally:
            server.stop()
    show("Service, durable updates over HTTP", ratios)
    if available():
        for milliseconds in _SYNCS:
            with slow_disk(milliseconds):
                slower = await _on_slow_disk(place / f"{milliseconds}-ms")
            show(f"Service, durable updates over HTTP where a sync takes {milliseconds} ms longer", slower)
    show_figures(
        f"Service, every operation over HTTP, {SMALL:,} memories",
        ("engine", "operation", "clients", "requests", "p50", "p95", "p99"),
        figures,
    )


async def _on_slow_disk(place: Path) -> list[Ratio]:
    """Durable updates on both engines. What is measured is in processes of its own, which the disk is slow for."""

    async def sqlite_raw(each: int) -> float:
        command = [sys.executable, "-m", "bench.raw", str(place / f"raw-{each}.db")]
        return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)

    filled = await fill(_sqlite(place), _paths(SMALL))
    with service(filled.where, *_OPTIONS) as port:
        ratios = await _updates("SQLite", port, filled, sqlite_raw)
    if programs() is not None:
        server = PostgresServer(durable=True)
        try:
            filled = await fill(("--database", await new_database(server, "memshelf_bench")), _paths(SMALL))
            with service(filled.where, *_OPTIONS) as port:
                ratios += await _updates("PostgreSQL", port, filled, lambda _: postgres_commit(server.dsn))
        finally:
            server.stop()
    return ratios


async def _updates(engine: str, port: int, filled: Filled, raw: Callable[[int], Awaitable[float]]) -> list[Ratio]:
    commits: list[float] = []
    loads: dict[int, list[Load]] = {1: [], CLIENTS[-1]: []}
    for round in range(_ROUNDS):
        commits.append(await raw(round))
        for clients, found in loads.items():
            found.append(drive(port, _requests(filled, "update", clients), _SECONDS))
    commit = statistics.median(commits)
    alone = statistics.median(load.p50 for load in loads[1])
    rates = {clients: statistics.median(load.per_second for load in found) for clients, found in loads.items()}
    together = CLIENTS[-1]
    return [
        Ratio(f"{engine}: durable update", alone, commit, "one raw durable commit", "at most 2x"),
        Ratio(f"{engine}: {together} clients update", rates[together], rates[1], "one client", "at least 8x", True),
    ]


def _sqlite(place: Path) -> tuple[str, str]:
    return "--data", str(place)


def _paths(count: int) -> list[str]:
    """A tree in which every directory that is listed has the same shape, at whatever depth it is."""
    deep = ["/" + "".join(f"level-{level}/" for level in range(depth)) for depth in DEPTHS]
    listed = [f"{directory}a-{number:02}.md" for directory in deep for number in range(40)]
    return listed + [f"/z/{n % 100}/{n}.md" for n in range(count - len(listed))]


def _reads(small: Filled, large: Filled) -> None:
    with ExitStack() as stack:
        empty = stack.enter_context(empty_endpoint())
        ports = {filled: stack.enter_context(service(filled.where, *_OPTIONS)) for filled in (small, large)}
        nothing = [[request("GET", "/empty", small.key)]] * CLIENTS[-1]
        found: dict[str, list[float]] = {"empty": [], "small": [], "large": []}
        for _ in range(_ROUNDS):  # in turns, so that whatever else the machine does hits all alike
            found["empty"].append(drive(empty, nothing, _SECONDS).per_second)
            for name, filled in (("small", small), ("large", large)):
                load = drive(ports[filled], _requests(filled, "read", CLIENTS[-1]), _SECONDS)
                found[name].append(load.per_second)
        rate = {name: statistics.median(each) for name, each in found.items()}
        ratios = [
            Ratio(
                f"read, {size:,} memories",
                rate[name],
                rate["empty"],
                "an empty FastAPI endpoint",
                "at least 0.5x",
                True,
            )
            for name, size in (("small", SMALL), ("large", LARGE))
        ]
        ratios.append(
            Ratio(f"read, {LARGE:,} memories", rate["large"], rate["small"], f"{SMALL:,} memories", "no growth", True)
        )
        ratios += _lists(ports[large], large)
    show(f"Service, reads over HTTP, {CLIENTS[-1]} clients", ratios)


def _lists(port: int, filled: Filled) -> list[Ratio]:
    """The same page, of directories of the same shape, at different depths."""
    prefixes = {depth: "/" + "".join(f"level-{level}/" for level in range(depth)) for depth in DEPTHS}
    found: dict[int, list[float]] = {depth: [] for depth in DEPTHS}
    for _ in range(_ROUNDS):
        for depth, prefix in prefixes.items():
            asked = request(
                "GET", f"/v1/memory_stores/{filled.store}/memories?limit=20&path_prefix={prefix}", filled.key
            )
            found[depth].append(drive(port, [[asked]], _SECONDS / 2).p50)
    times = {depth: statistics.median(each) for depth, each in found.items()}
    return [
        Ratio(f"list of 20, {depth} levels down", times[depth], times[0], "the root", "the same")
        for depth in DEPTHS
        if depth
    ]


def _requests(filled: Filled, what: str, clients: int) -> list[list[str]]:
    """The requests of each client, which has memories of its own."""
    store, count = f"/v1/memory_stores/{filled.store}", 64
    pick = [
        filled.memories[(client * 997 + n * 7919) % len(filled.memories)]
        for client in range(clients)
        for n in range(count)
    ]
    made: list[str] = []
    for n, id in enumerate(pick):
        match what:
            case "read":
                made.append(request("GET", f"{store}/memories/{id}", filled.key))
            case "update":
                id = filled.memories[n // count]  # again and again the same one: each content differs from the last
                made.append(request("POST", f"{store}/memories/{id}", filled.key, {"content": content(n)}))
            case "list":
                made.append(request("GET", f"{store}/memories?limit=20&path_prefix=/z/{n % 100}/", filled.key))
            case "search":
                path = f"/v1/memshelf/memory_stores/{filled.store}/search?query=word{n % 50}"
                made.append(request("GET", path, filled.key))
            case "versions":
                made.append(request("GET", f"{store}/memory_versions?limit=20&memory_id={id}", filled.key))
    return [made[at : at + count] for at in range(0, len(made), count)]


def _row(engine: str, what: str, clients: int, load: Load) -> tuple[str, ...]:
    times = (f"{each * 1e3:.2f} ms" for each in (load.p50, load.p95, load.p99))
    return engine, what, str(clients), f"{load.per_second:,.0f}/s", *times
