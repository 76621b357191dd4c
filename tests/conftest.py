"""What tests of every kind may ask for."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import HealthCheck, settings

from postgres_server import PostgresServer, programs

# How long an example takes is the machine's affair, which may be busy.
settings.register_profile("memshelf", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("memshelf")


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


@pytest.fixture
def pass_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Lets seconds pass at once for whatever waits in the event loop that runs.

    So a time limit is reached because it is its turn, and not because the machine is busy.
    """
    passed = 0.0

    def pass_time(seconds: float) -> None:
        nonlocal passed
        loop = asyncio.get_running_loop()
        if not passed:
            time = loop.time
            monkeypatch.setattr(loop, "time", lambda: time() + passed)
        passed += seconds

    return pass_time
