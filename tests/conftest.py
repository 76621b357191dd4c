"""What tests of every kind may ask for."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from postgres_server import PostgresServer, programs


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A PostgreSQL server for all tests of this process: each takes a memory or a schema of its own."""
    if programs() is None and not os.environ.get("CI"):
        pytest.skip("There is no PostgreSQL server here.")
    server = PostgresServer()
    try:
        yield server
    finally:
        server.stop()
