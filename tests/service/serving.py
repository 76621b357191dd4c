"""Real processes of `memshelf serve`, for tests."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from memshelf.service.accounts import Accounts
from memshelf.service.data import engine_for

SECONDS = 60


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Mapping[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def error(self) -> str:
        """The type of the error that this is; the envelope is checked on the way."""
        body = self.json
        assert set(body) == {"type", "error", "request_id"}
        assert body["type"] == "error"
        assert body["request_id"] == self.headers["request-id"]
        assert body["error"]["message"]
        return body["error"]["type"]


class Service:
    """One process that serves, until `stop` or `kill`."""

    def __init__(self, *where: str, log: Path, options: tuple[str, ...] = (), host: str = "127.0.0.1") -> None:
        self.where = where
        self.log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "memshelf", "serve", *where, "--host", host, "--port", "0", *options],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("memshelf serves "), f"{line!r}, and the log: {log.read_text()}"
        self.url = line.split()[-1]
        self.port = int(self.url.rpartition(":")[2])
        self.key = ""

    def first_key(self) -> str:
        """The key that a first start prints."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip().startswith("msk_"):
                self.key = line.strip()
                return self.key
        raise AssertionError("no key was printed")

    def new_key(self, workspace: str = "default") -> str:
        """As `memshelf keys create` makes one, without the time that it takes to start a process."""
        option, place = self.where
        engine = engine_for(place, None) if option == "--data" else engine_for(None, place)

        async def create() -> str:
            try:
                return await Accounts(engine).create_key(workspace)
            finally:
                await engine.aclose()

        return asyncio.run(create())

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(SECONDS)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(SECONDS)

    def close(self) -> None:
        if self.process.poll() is None:
            self.kill()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        key: str | None = None,
        headers: Mapping[str, str] | None = None,
        data: bytes | None = None,
    ) -> Reply:
        """A request as any client might send it. `data` goes out as it is; `body` as JSON."""
        sent = {"authorization": f"Bearer {self.key if key is None else key}"}
        if body is not None:
            data = json.dumps(body).encode()
        if data is not None:
            sent["content-type"] = "application/json"
        request = urllib.request.Request(self.url + path, data=data, method=method, headers={**sent, **(headers or {})})
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return Reply(answer.status, dict(answer.headers), answer.read())
        except HTTPError as error:
            with error:
                return Reply(error.code, dict(error.headers), error.read())

    def get(self, path: str, **options: Any) -> Reply:
        return self.call("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Reply:
        return self.call("POST", path, body, **options)

    def delete(self, path: str, **options: Any) -> Reply:
        return self.call("DELETE", path, **options)

    def store(self, name: str = "Notes", **options: Any) -> str:
        """The id of a new store."""
        created = self.post("/v1/memory_stores", {"name": name}, **options)
        assert created.status == 200, created.data
        return str(created.json["id"])

    def memory(self, store: str, path: str, content: str = "x", **options: Any) -> Any:
        """A new memory, as the service answers it."""
        created = self.post(f"/v1/memory_stores/{store}/memories", {"path": path, "content": content}, **options)
        assert created.status == 200, created.data
        return created.json


def memshelf(*arguments: str) -> str:
    """What a command prints, which must succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "memshelf", *arguments],
        capture_output=True,
        text=True,
        timeout=SECONDS,
        env={name: value for name, value in os.environ.items() if not name.startswith("MEMSHELF_")},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
