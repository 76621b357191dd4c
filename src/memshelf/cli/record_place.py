"""Which records a command speaks of, and opening them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec

import click

from memshelf.cli import render
from memshelf.cli.command import disk_paths, one_of
from memshelf.cli.memory import locate, say_where, some_of
from memshelf.cli.serve import database_option, engine_of, postgres_url
from memshelf.errors import MemoryStoreError
from memshelf.presence import stands
from memshelf.storage.sqlite_engine import SqliteEngine
from memshelf.storage.transaction import Engine, Row, Transaction

if TYPE_CHECKING:
    from memshelf.records.backends.sql.store import SqlRecordStore

__all__ = ["RecordPlace", "namespaces_of", "on_record_database", "on_records", "opened_records"]

Params = ParamSpec("Params")

_DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class RecordPlace:
    """A namespace of a SQLite file, or of a PostgreSQL database. `text` is how the user named it."""

    text: str
    engine: Engine
    namespace: str
    exists: bool


_memory_option = click.option(
    "--memory",
    "-m",
    metavar="PATH",
    envvar="MEMSHELF_MEMORY",
    show_envvar=True,
    shell_complete=disk_paths,
    help="A SQLite file, which may hold file memories too; PATH#NAME names a namespace of it.",
)
_namespace_option = click.option("--namespace", metavar="NAME", help="Whose records.  [default: default]")


def on_records(
    command: Callable[Concatenate[RecordPlace, Params], Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    """Give a command the options that say which records, and run it in an event loop with their place."""
    return on_record_database(_namespace_option(command))


def on_record_database(
    command: Callable[Concatenate[RecordPlace, Params], Coroutine[Any, Any, None]],
) -> Callable[..., None]:
    """The same for all namespaces of a file or a database."""

    @functools.wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        place = _place(kwargs.pop("memory"), kwargs.pop("database"), kwargs.pop("namespace", None))
        asyncio.run(command(place, *args, **kwargs))

    for option in (database_option, _memory_option):
        run = option(run)
    return run


@asynccontextmanager
async def opened_records(place: RecordPlace, *, create: bool = False) -> AsyncIterator[SqlRecordStore]:
    """The record memory at a place. One that does not exist is `unknown_memory`, unless it may be created."""
    from memshelf.records.backends.sql.store import SqlRecordStore  # it loads NumPy, which other commands do not need

    try:
        store = SqlRecordStore(place.engine, place.namespace)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--namespace") from None
    with _saying_where(place):
        try:
            missing = await _missing(place)
            if missing is not None and not create:
                raise missing
            yield store
            if missing is not None:
                _say_new(place)
        finally:
            await store.aclose()


async def namespaces_of(place: RecordPlace) -> list[tuple[str, int]]:
    """The namespaces of a file or a database, with how many records are in each. `unknown_memory` for no such file."""
    with _saying_where(place):
        try:
            if (missing := _missing_file(place)) is not None:
                raise missing
            return [(name, count) for name, count in await place.engine.read(_counted, single=True)]
        finally:
            await place.engine.aclose()


@contextmanager
def _saying_where(place: RecordPlace) -> Iterator[None]:
    try:
        yield
    except MemoryStoreError as error:
        if isinstance(place.engine, SqliteEngine):
            say_where(error, place.text)
        raise


def _say_new(place: RecordPlace) -> None:
    said = f"New namespace {place.namespace}: {place.text} had no records of it."
    render.note(render.visible_line(said if place.exists else f"New memory: there was none at {place.text}."))


def _missing_file(place: RecordPlace) -> MemoryStoreError | None:
    if place.exists:
        return None
    error = MemoryStoreError("unknown_memory", f"There is no memory at {place.text}.")
    error.add_note("Check --memory; `memshelf records add` makes a new memory.")
    return error


async def _missing(place: RecordPlace) -> MemoryStoreError | None:
    """Why there are no such records; `None` if there are."""
    if (missing := _missing_file(place)) is not None:
        return missing
    names = [name for (name,) in await place.engine.read(_names, single=True)]
    if place.namespace in names:
        return None
    error = MemoryStoreError(
        "unknown_memory",
        f"{place.text} holds no records of {place.namespace}. Namespaces that it holds: {some_of(names)}.",
    )
    error.add_note("Check --namespace; `memshelf records namespaces` lists them with how many records are in each.")
    return error


async def _names(transaction: Transaction) -> Sequence[Row]:
    return await transaction.fetch("SELECT name FROM record_namespaces ORDER BY name")


async def _counted(transaction: Transaction) -> Sequence[Row]:
    return await transaction.fetch(
        "SELECT name, (SELECT count(*) FROM records r WHERE r.namespace_id = n.id) FROM record_namespaces n "
        "ORDER BY name"
    )


def _place(memory: str | None, database: str | None, namespace: str | None) -> RecordPlace:
    """Either the file or the database; what is typed goes before what the environment says."""
    wanted = "Say where the records are: --memory PATH or --database URL, and not both."
    name, value = one_of({"memory": memory, "database": database}, wanted)
    if name == "database":
        engine = engine_of(None, postgres_url(value))
        return RecordPlace("The database", engine, _DEFAULT if namespace is None else namespace, exists=True)
    place = locate(value)
    if place.kind == "directory":
        raise click.UsageError(
            f"Records are kept in a SQLite file, such as --memory memory.db; {value} is not one, nor does its name "
            "end in .db, .sqlite or .sqlite3."
        )
    if namespace is not None and place.memory not in (_DEFAULT, namespace):
        raise click.UsageError(f"{value} names a namespace, and --namespace another.")
    chosen = place.memory if namespace is None else namespace
    return RecordPlace(str(place.path), SqliteEngine(place.path), chosen, exists=stands(place.path))
