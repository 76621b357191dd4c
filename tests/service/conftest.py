"""Services that tests talk to: one of each kind for a whole test process, each test in a workspace of its own."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from postgres_server import PostgresServer

sys.path.append(str(Path(__file__).parent))
from serving import Service

DATABASES = ("sqlite", "postgresql")
_numbers = itertools.count()


@pytest.fixture(scope="session", params=DATABASES)
def engine(request: pytest.FixtureRequest) -> str:
    """Which database a service uses."""
    return str(request.param)


@pytest.fixture(scope="session")
def place(
    request: pytest.FixtureRequest, engine: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], tuple[str, ...]]:
    """A new place for a service's data, as options of the command line."""

    def place() -> tuple[str, ...]:
        if engine == "sqlite":
            return ("--data", str(tmp_path_factory.mktemp("data")))
        server: PostgresServer = request.getfixturevalue("postgres_server")
        return ("--database", server.new_database())

    return place


@pytest.fixture(scope="session")
def shared_service(place: Callable[[], tuple[str, ...]], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    service = Service(*place(), log=tmp_path_factory.mktemp("log") / "service.log")
    yield service
    service.close()


@pytest.fixture(scope="session")
def second_process(shared_service: Service) -> Iterator[Service]:
    service = Service(*shared_service.where, log=shared_service.log.with_name("second.log"))
    yield service
    service.close()


@pytest.fixture(params=[1, 2], ids=["one process", "two processes"])
def services(request: pytest.FixtureRequest, service: Service) -> list[Service]:
    """One or two processes on one database, in a workspace that nobody else uses."""
    if request.param == 1:
        return [service]
    second: Service = request.getfixturevalue("second_process")
    second.key = service.key
    return [service, second]


@pytest.fixture
def service(shared_service: Service) -> Service:
    """A service, with the key of a workspace that nobody else uses."""
    shared_service.key = shared_service.new_key(f"workspace {next(_numbers)}")
    return shared_service


@pytest.fixture
def start(place: Callable[[], tuple[str, ...]], tmp_path: Path) -> Iterator[Callable[..., Service]]:
    """Start a service that only this test uses, by default in a place of its own."""
    started: list[Service] = []

    def start(*where: str, options: tuple[str, ...] = (), host: str = "127.0.0.1") -> Service:
        service = Service(*(where or place()), log=tmp_path / "service.log", options=options, host=host)
        started.append(service)
        return service

    yield start
    for service in started:
        service.close()
