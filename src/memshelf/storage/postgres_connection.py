"""Opening one connection to a PostgreSQL database, and what its errors mean."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass

from memshelf.errors import MemoryStoreError
from memshelf.storage.postgres_migrations import migrate

try:
    import asyncpg
except ModuleNotFoundError as missing:
    if missing.name != "asyncpg":
        raise
    raise ModuleNotFoundError(
        'PostgreSQL needs the extra "postgres", which is not installed: pip install "memshelf[postgres]"',
        name="asyncpg",
    ) from missing

__all__ = [
    "CONNECTING",
    "PATIENCE",
    "Place",
    "close",
    "connect",
    "is_lost",
    "is_refused_for_now",
    "is_transient",
    "reason",
    "refusal",
    "unavailable",
    "unconfirmed",
]

PATIENCE = 30.0
"""How many seconds to wait for others who hold what is needed before the database is `unavailable`."""

CONNECTING = 10.0
"""How many seconds a server may take for what waits for nobody: to let us in, and to begin a transaction."""

_ANSWERING = 2 * PATIENCE
_OLDEST = 13


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tables are: a schema of a database."""

    dsn: str
    schema: str

    @property
    def quoted(self) -> str:
        """The schema's name as SQL has it."""
        escaped = self.schema.replace('"', '""')
        return f'"{escaped}"'


async def connect(place: Place, *, query_only: bool) -> asyncpg.Connection:
    """A connection of the running event loop, to a schema that is created and migrated when needed. `unavailable`.

    Names of tables mean those of the schema, whatever the server's settings say. Nobody waits longer than `PATIENCE`
    for a lock, and the server ends a transaction of which nothing was heard for twice as long.
    """
    settings = {
        "application_name": "memshelf",
        "search_path": place.quoted,
        "client_encoding": "UTF8",
        "jit": "off",  # it takes longer to compile our queries than to run them
        "lock_timeout": f"{PATIENCE:g}s",
        "idle_in_transaction_session_timeout": f"{_ANSWERING:g}s",
        "default_transaction_isolation": "repeatable read" if query_only else "read committed",
        "default_transaction_read_only": "on" if query_only else "off",
    }
    try:
        connection = await asyncpg.connect(
            place.dsn, server_settings=settings, timeout=CONNECTING, command_timeout=_ANSWERING
        )
    except (OSError, ValueError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise unavailable(error) from (None if type(error) is ValueError else error)
    try:
        _require_new_enough(connection)
        await _require_kept(connection, settings)
        await migrate(connection, place.schema, place.quoted)
    except BaseException as error:
        connection.terminate()
        if isinstance(error, Exception) and not isinstance(error, MemoryStoreError):
            raise unavailable(error) from error
        raise
    return connection


def _require_new_enough(connection: asyncpg.Connection) -> None:
    if connection.get_server_version().major < _OLDEST:
        version = connection.get_settings().server_version
        raise MemoryStoreError("unavailable", f"PostgreSQL {_OLDEST} or newer is needed; this server is {version}.")


async def _require_kept(connection: asyncpg.Connection, settings: dict[str, str]) -> None:
    # A pooler can be told to drop what it does not know. Tables would then be made in whatever schema comes first, and
    # what is read would not be of one moment.
    names = ["search_path", "default_transaction_isolation", "default_transaction_read_only"]
    dropped = await connection.fetchval(
        "SELECT min(name) FROM unnest($1::text[], $2::text[]) AS sent (name, value) "
        "WHERE current_setting(name) <> value",
        names,
        [settings[name] for name in names],
    )
    if dropped is not None:
        raise MemoryStoreError(
            "unavailable",
            f"A pooler on the way to the database drops what a connection sets ({dropped}): connect to the server "
            "itself. Nothing changed.",
        )


async def close(connection: asyncpg.Connection) -> None:
    """End a connection that nobody uses; the server need not be there."""
    with contextlib.suppress(OSError, TimeoutError, asyncpg.PostgresError, asyncpg.InterfaceError):
        await connection.close(timeout=CONNECTING)


def is_lost(connection: asyncpg.Connection, error: BaseException) -> bool:
    """Whether the connection came to its end, by whatever cause. One to a server that became a standby is of no use
    either, while a new one may reach the server that takes its place."""
    if isinstance(error, asyncpg.PostgresError) and (error.sqlstate or "")[:3] in ("57P", "080"):
        return True
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return True
    return isinstance(error, OSError | TimeoutError | asyncpg.InternalClientError) or bool(connection.is_closed())


def is_refused_for_now(error: MemoryStoreError) -> bool:
    """Whether the server has as many connections as it takes."""
    return isinstance(error.__cause__, asyncpg.TooManyConnectionsError)


def is_transient(error: BaseException) -> bool:
    """Whether the server undid a transaction for the sake of another one, and the same may succeed now."""
    return isinstance(error, asyncpg.DeadlockDetectedError | asyncpg.SerializationError)


def unavailable(error: Exception) -> MemoryStoreError:
    """The refusal that stands for an error of the server or of the way to it."""
    if isinstance(error, MemoryStoreError):
        return error
    return MemoryStoreError("unavailable", f"The database could not do it ({reason(error)}); nothing changed.")


def unconfirmed(error: Exception) -> MemoryStoreError:
    """The refusal that stands for the loss of a commit's answer."""
    return MemoryStoreError(
        "write_unconfirmed",
        f"The database did not confirm the write ({reason(error)}): it may or may not have happened. Read before you "
        "write again.",
    )


# Connection, transaction state, authorization, catalogue, rollback, resources, limits of what an index can hold,
# state of objects, operator, system, corruption: what no change of the statement would help against.
_NOT_THE_STATEMENT = frozenset({"08", "25", "28", "3D", "40", "53", "54", "55", "57", "58", "XX"})
# No right to a table, and no such table: all statements are of tables that were there, as while a backup is restored.
_NOT_OURS = frozenset({"42501", "42P01"})


def refusal(error: Exception) -> Exception:
    """`unavailable` for what the server could not do; any other error, such as a mistake in a statement, as it is."""
    if isinstance(error, MemoryStoreError):
        return error.with_traceback(None)  # it leads to the job, which is to have the error, and would hold itself
    if isinstance(error, asyncpg.PostgresError):
        state = error.sqlstate or ""
        return unavailable(error) if state[:2] in _NOT_THE_STATEMENT or state in _NOT_OURS else error
    if isinstance(error, OSError | TimeoutError | asyncpg.InternalClientError):
        return unavailable(error)
    return error


def reason(error: BaseException) -> str:
    """What went wrong, for a message: never the DSN."""
    if isinstance(error, MemoryStoreError) and error.__cause__ is not None:
        return reason(error.__cause__)
    if isinstance(error, asyncio.TimeoutError):
        return "no answer in time"
    if type(error) is ValueError:  # of the parser of addresses: what it repeats may be part of a password
        return "its address cannot be read; what is special in a password, such as / or @, is percent-encoded"
    said = (error.strerror if isinstance(error, OSError) else None) or str(error)
    return said.partition("\n")[0] or type(error).__name__  # details follow on other lines
