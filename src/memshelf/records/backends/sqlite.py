"""Record memories in a SQLite database file: the embedded default."""

from __future__ import annotations

import os

from memshelf.credentials import SecretsPolicy
from memshelf.records.backends.sql.store import SqlRecordStore
from memshelf.records.recall import EmbedderChoice
from memshelf.storage.ids import Mint
from memshelf.storage.sqlite_engine import SqliteEngine

__all__ = ["SqliteRecordStore"]


class SqliteRecordStore(SqlRecordStore):
    """The records of `namespace` in a SQLite database file, which may hold other namespaces and file memories too.

    Many processes may use one file at once, on one machine. The file is created, 0600, when it is first used. Stores on
    the same file share their connections; each keeps an index of its namespace in memory, 2 KB a short record.

    `embedder` is the bundled model if the extra `embed` is installed; `None` recalls by words only. `secrets` is
    what becomes of a text with credentials in it: `warn` keeps it and logs that, `mask` puts a placeholder in their
    place, `refuse` is `invalid_text`, `off` does not look. With `durable`, what was written survives a power cut;
    without, only the end of the process. `mint` is where times and ids come from.
    """

    def __init__(
        self,
        database: str | os.PathLike[str],
        namespace: str = "default",
        *,
        embedder: EmbedderChoice = "default",
        max_chars: int = 100_000,
        secrets: SecretsPolicy = "warn",
        durable: bool = True,
        mint: Mint | None = None,
    ) -> None:
        super().__init__(
            SqliteEngine(database, durable=durable),
            namespace,
            embedder=embedder,
            max_chars=max_chars,
            secrets=secrets,
            mint=mint,
        )
