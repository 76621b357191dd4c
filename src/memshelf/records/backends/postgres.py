"""Record memories in a PostgreSQL database: for more than one machine."""

from __future__ import annotations

from memshelf.credentials import SecretsPolicy
from memshelf.records.backends.sql.store import SqlRecordStore
from memshelf.records.recall import EmbedderChoice
from memshelf.storage.ids import Mint
from memshelf.storage.postgres import PostgresEngine

__all__ = ["PostgresRecordStore"]


class PostgresRecordStore(SqlRecordStore):
    """The records of `namespace` in a PostgreSQL database, which may hold other namespaces and file memories too.

    The tables are in the schema of that name, which is created and migrated when it is first used: the role that the
    DSN names needs the right to create it, or to create tables in it. Any number of processes and machines may use one
    database at once. Stores of one database share their connections; each keeps an index of its namespace in memory,
    2 KB a short record, and a search first reads what others have changed since. No extension of the server is needed.

    What was written is as safe as the server's own commits. When the connection is lost during a commit, the outcome
    is not known: `write_unconfirmed`. `purge` erases as far as `PostgresFileStore.purge` does.

    `embedder` is the bundled model if the extra `embed` is installed; `None` recalls by words only. `secrets` is
    what becomes of a text with credentials in it: `warn` keeps it and logs that, `mask` puts a placeholder in their
    place, `refuse` is `invalid_text`, `off` does not look. `mint` is where times and ids come from.
    """

    def __init__(
        self,
        dsn: str,
        namespace: str = "default",
        *,
        embedder: EmbedderChoice = "default",
        max_chars: int = 100_000,
        secrets: SecretsPolicy = "warn",
        schema: str = "memshelf",
        mint: Mint | None = None,
    ) -> None:
        super().__init__(
            PostgresEngine(dsn, schema), namespace, embedder=embedder, max_chars=max_chars, secrets=secrets, mint=mint
        )
