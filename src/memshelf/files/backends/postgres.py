"""File memories in a PostgreSQL database: for more than one machine."""

from __future__ import annotations

from memshelf.files.backends.sql.store import SqlFileStore
from memshelf.files.format import FileFormat
from memshelf.storage.ids import Mint
from memshelf.storage.postgres import PostgresEngine

__all__ = ["PostgresFileStore"]


class PostgresFileStore(SqlFileStore):
    """The file memory named `memory` in a PostgreSQL database, which holds any number of them.

    The tables are in the schema of that name, which is created and migrated when it is first used: the role that the
    DSN names needs the right to create it, or to create tables in it. Any number of processes and machines may use one
    database at once. Stores of one database share their connections; `aclose` closes them with the last of these
    stores, and a closed store opens again when used.

    What was written is as safe as the server's own commits: `synchronous_commit` and `fsync` are its settings. When
    the connection is lost during a commit, the outcome is not known: `write_unconfirmed`.

    `redact` and `purge` leave nothing that a query or an index could find, and vacuum the tables. What the server
    keeps beyond that is its administrator's: free parts of pages until they are overwritten (`VACUUM FULL` rewrites
    them), the write-ahead log until it is recycled, and every replica, archive and backup.

    `mint` is where times, ids and salts come from.
    """

    def __init__(
        self,
        dsn: str,
        memory: str = "default",
        *,
        format: FileFormat | None = None,
        schema: str = "memshelf",
        mint: Mint | None = None,
    ) -> None:
        super().__init__(PostgresEngine(dsn, schema), memory, format=format, mint=mint)
