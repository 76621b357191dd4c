"""What a service's data holds, byte for byte."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg


def bytes_at(where: tuple[str, ...]) -> bytes:
    """Everything: for SQLite the raw files, for PostgreSQL every row of every table. Nothing is there at first."""
    option, place = where
    if option == "--data":
        return b"".join(path.read_bytes() for path in sorted(Path(place).glob("*")))
    return asyncio.run(_rows(place))


async def _rows(dsn: str) -> bytes:
    connection = await asyncpg.connect(dsn)
    try:
        found = b""
        for (table,) in await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'memshelf'"):
            for row in await connection.fetch(f'SELECT * FROM memshelf."{table}"'):
                found += b"\0".join(
                    value if isinstance(value, bytes) else str(value).encode() for value in row.values()
                )
        return found
    finally:
        await connection.close()
