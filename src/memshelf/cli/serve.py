"""`memshelf serve` and `verify`: the HTTP API, and whether the history that it keeps holds."""

from __future__ import annotations

import asyncio
import errno
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict
from importlib import import_module
from typing import TYPE_CHECKING

import click

from memshelf.arguments import checked_dsn
from memshelf.cli import render
from memshelf.cli.command import (
    Unavailable,
    WholeNumber,
    WholeNumberIn,
    asynchronous,
    disk_paths,
    head_option,
    json_option,
    one_of,
)
from memshelf.cli.memory import disk_path, say_where
from memshelf.errors import MemoryStoreError
from memshelf.limits import StoreLimits
from memshelf.service.data import DATABASE_NAME, engine_for, has_data, require_writable
from memshelf.storage.transaction import Engine
from memshelf.stores.retention import Retention
from memshelf.stores.shelf import Shelf
from memshelf.stores.verification import every_store, verified

if TYPE_CHECKING:
    from memshelf.service.app import Beside
    from memshelf.service.config import Rate

__all__ = [
    "WORKSPACE",
    "chosen_data",
    "data_option",
    "database_option",
    "engine_of",
    "keep_recent_option",
    "keep_versions_option",
    "opened_engine",
    "postgres_url",
    "retention_of",
    "serve",
    "verify",
]

WORKSPACE = "default"
"""The workspace of a first key."""

data_option = click.option(
    "--data",
    metavar="DIR",
    envvar="MEMSHELF_DATA",
    show_envvar=True,
    shell_complete=disk_paths,
    help="The directory that holds the service's SQLite database.",
)
database_option = click.option(
    "--database",
    metavar="URL",
    envvar="MEMSHELF_DATABASE",
    show_envvar=True,
    help="A PostgreSQL database to use instead, such as postgresql://user@host/name.",
)
keep_versions_option = click.option(
    "--keep-versions",
    type=WholeNumber(),
    metavar="DAYS",
    help="Keep a version for this many days, at least 30, after it stopped being current; then erase it.",
)
keep_recent_option = click.option(
    "--keep-recent",
    type=WholeNumber(),
    metavar="N",
    help="Keep the N newest versions of a memory that exists, however old.  [default: 10]",
)


def retention_of(days: int | None, recent: int | None) -> Retention | None:
    """What the two options say together."""
    if days is None:
        if recent is not None:
            raise click.UsageError("--keep-recent says what --keep-versions spares: give both.")
        return None
    try:
        return Retention(days) if recent is None else Retention(days, recent)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


_RATE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(?:/([0-9]{1,9}))?")


def _rate(text: str) -> Rate:
    """`10` a second, or `10/20`: with a burst of 20."""
    from memshelf.service.config import Rate

    if parts := _RATE.fullmatch(text):
        per_second = float(parts[1])
        with suppress(ValueError):  # nothing, or a burst of nothing
            return Rate(per_second, int(parts[2] or max(1, round(per_second))))
    raise click.BadParameter(f"{text!r} is no rate; give 10 for 10 a second, or 10/20 for that with a burst of 20.")


@click.command()
@data_option
@database_option
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Where to listen.")
@click.option(
    "--port",
    type=WholeNumberIn(0, 65_535),
    default=8080,
    show_default=True,
    metavar="N",
    help="0 takes any free one, and says which.",
)
@click.option("--strict-headers", is_flag=True, help="Require the protocol headers that the platforms require.")
@click.option(
    "--memories",
    type=WholeNumberIn(1),
    default=StoreLimits().memories,
    show_default=True,
    metavar="N",
    help="How many memories a store may hold.",
)
@keep_versions_option
@keep_recent_option
@click.option("--read-rate", type=_rate, metavar="N[/BURST]", help="How many reads per second each key may make.")
@click.option("--write-rate", type=_rate, metavar="N[/BURST]", help="How many writes per second each key may make.")
@click.option("--no-console", is_flag=True, help="Do not serve the web console.")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="What goes to standard error, as one JSON object a line; never paths or contents.",
)
def serve(
    data: str | None,
    database: str | None,
    host: str,
    port: int,
    *,
    strict_headers: bool,
    memories: int,
    keep_versions: int | None,
    keep_recent: int | None,
    read_rate: Rate | None,
    write_rate: Rate | None,
    no_console: bool,
    log_level: str,
) -> None:
    """Serve the HTTP API of memory stores, and a web console at /console.

    With a new data directory or database, it makes a workspace and a first key, and prints the key once. Several
    processes may serve one directory or one database. SIGINT and SIGTERM let it finish what it has begun.

    Every version is kept, unless --keep-versions says for how long; then it looks for what has expired once a day.

    \b
    Examples:
      memshelf serve --data ./data
      memshelf serve --data ./data --port 0 --log-level warning
      memshelf serve --database postgresql://memshelf@localhost/memshelf --host 0.0.0.0
    """
    data, database = chosen_data(data, database)
    _require_service()
    from memshelf.service import logs, server
    from memshelf.service.config import ServiceConfig

    config = ServiceConfig(
        limits=StoreLimits(memories=memories),
        strict_headers=strict_headers,
        retention=retention_of(keep_versions, keep_recent),
        reads=read_rate,
        writes=write_rate,
    )
    if data is not None:
        require_writable(disk_path(data))
    try:
        listener = server.bound(host, port)  # first: a key that was made, and then not shown, would be lost
    except OSError as error:
        hint = " Choose another with --port." if error.errno == errno.EADDRINUSE else ""
        raise Unavailable(f"{error.filename}: {error.strerror}.{hint}") from None
    secret = asyncio.run(_first_key(data, database))
    logs.configure(log_level)
    address = f"[{host}]" if ":" in host else host
    url = f"http://{address}:{listener.getsockname()[1]}"

    untold = [secret] if secret is not None else []

    def tell_key() -> None:
        for key in untold:
            render.line(f"A first API key, for the workspace {WORKSPACE}; it is shown only now:")
            render.line(f"  {key}")
            render.line("Try it:")
            render.line(f"  curl {url}/v1/memory_stores -H 'authorization: Bearer {key}'")
        untold.clear()
        sys.stdout.flush()

    def started() -> None:
        render.line(f"memshelf serves {url}")
        for path in beside:
            render.line(f"The web console is at {url}{path}")
        tell_key()

    beside = {} if no_console else _console()
    log = logs.RequestLog(sys.stderr if log_level in ("debug", "info") else None)
    try:
        server.run(Shelf(engine_of(data, database), config.limits), config, listener, log, started, beside)
    finally:
        tell_key()  # also when it was interrupted or failed before it served: nobody can find the key out later


def _console() -> Beside:
    from memshelf.console.app import Console
    from memshelf.console.page import ROOT

    return {ROOT: Console}


async def _first_key(data: str | None, database: str | None) -> str | None:
    from memshelf.service.accounts import Accounts

    async with opened_engine(data, database, create=True) as engine:
        return await Accounts(engine).first_key(WORKSPACE)


@click.command()
@data_option
@database_option
@json_option
@head_option
@click.argument("store", metavar="[STORE_ID]", required=False)
@asynchronous
async def verify(data: str | None, database: str | None, store: str | None, head: str | None, *, as_json: bool) -> None:
    """Check the history of every memory store of a service, or of STORE_ID: no version was altered, removed or
    reordered.

    Keep the heads that are printed somewhere else, and give a store's head to a later check of it: whoever can rewrite
    the database can forge a whole history, but none that leads through that head. A service may run meanwhile.

    \b
    Examples:
      memshelf verify --data ./data
      memshelf verify memstore_0199 --data ./data --json
    """
    if head is not None and store is None:
        raise click.UsageError("--head is one store's: say which STORE_ID.")
    async with opened_engine(data, database) as engine:
        store_ids = await every_store(engine)
        if store is not None and store not in store_ids:
            raise MemoryStoreError("not_found", f"There is no memory store {store}.")
        reports = {id: await verified(engine, id, head) for id in ([store] if store is not None else store_ids)}
    intact = all(report.intact for report in reports.values())
    if as_json:
        shown = [{"store": id, "intact": report.intact, **asdict(report)} for id, report in reports.items()]
        render.document({"intact": intact, "stores": shown})
    else:
        for id, report in reports.items():
            for problem in report.problems:
                render.line(f"{id}: {render.visible_line(problem)}")
            state = "intact" if report.intact else "damaged"
            render.line(f"{id}: {state}, {render.counted(report.versions, 'version')}, head {report.head}")
    if not intact:
        raise click.exceptions.Exit(1)


@asynccontextmanager
async def opened_engine(data: str | None, database: str | None, *, create: bool = False) -> AsyncIterator[Engine]:
    """The engine of a service's data. `unknown_memory` when there is none, unless it may be created."""
    data, database = chosen_data(data, database)
    engine = engine_of(data, database)
    if not create and data is not None and not has_data(disk_path(data)):
        raise MemoryStoreError("unknown_memory", f"There is no service's data in {data}.")
    try:
        yield engine
    except MemoryStoreError as error:
        if data is not None:
            say_where(error, str(disk_path(data) / DATABASE_NAME))
        raise
    finally:
        await engine.aclose()


def chosen_data(data: str | None, database: str | None) -> tuple[str | None, str | None]:
    """Either the directory or the database, and `None` for the other. A usage error for what cannot be one, whatever
    extras are installed."""
    wanted = "Say where the data is: --data DIR or --database URL, and not both."
    name, value = one_of({"data": data, "database": database}, wanted)
    if name == "database":
        return None, postgres_url(value)
    disk_path(value)
    return value, None


def postgres_url(value: str) -> str:
    """The URL of a database that a user typed, or a usage error."""
    try:
        return checked_dsn(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--database") from None


def engine_of(data: str | None, database: str | None) -> Engine:
    """The engine of what was chosen; `Unavailable` without the extra that it needs."""
    try:
        return engine_for(disk_path(data) if data is not None else None, database)
    except ModuleNotFoundError as error:
        raise Unavailable(str(error)) from None


def _require_service() -> None:
    try:
        import_module("memshelf.service.server")
        import_module("jinja2")
    except ModuleNotFoundError as error:
        raise Unavailable(
            f'memshelf serve needs the extra "service": pip install "memshelf[service]" ({error}).'
        ) from None
