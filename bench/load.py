"""A load client, in a process of its own: it writes requests that were made before, and times the answers.

It does as little as it can between two requests, so that on two cores the service is what is measured. `drive` starts
it; `python -m bench.load` is it.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import uvloop

__all__ = ["Load", "drive", "request"]

_WARM_UP = 0.3
_PATIENCE = 60.0


@dataclass(frozen=True, slots=True)
class Load:
    """What came of it. Times are in seconds; `busy` is the share of one core that the client itself took."""

    per_second: float
    p50: float
    p95: float
    p99: float
    busy: float


def request(method: str, path: str, key: str, body: object = None) -> str:
    """A request as it goes over the wire."""
    data = json.dumps(body) if body is not None else ""  # ASCII, so characters are bytes
    head = f"{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {key}\r\n"
    if body is not None:
        head += f"content-type: application/json\r\ncontent-length: {len(data)}\r\n"
    return f"{head}\r\n{data}"


def drive(port: int, clients: Sequence[Sequence[str]], seconds: float) -> Load:
    """Each client has a connection, and sends its requests round and round, the next one after the answer to the one
    before. An answer other than 200 ends it all."""
    task = json.dumps({"port": port, "clients": clients, "seconds": seconds})
    command = [sys.executable, "-m", "bench.load"]
    done = subprocess.run(command, input=task, capture_output=True, text=True, timeout=seconds + _PATIENCE, check=False)
    if done.returncode:
        raise RuntimeError(f"The load client failed:\n{done.stderr}")
    return Load(**json.loads(done.stdout))


class _Client(asyncio.Protocol):
    def __init__(self, requests: Sequence[bytes]) -> None:
        self._requests = requests
        self._next = 0
        self._sent = 0.0
        self._received = b""
        self.taken: list[float] = []
        self.deadline = float("inf")
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as it is for TCP
        self._transport = transport
        self._send()

    def _send(self) -> None:
        data = self._requests[self._next]
        self._next = (self._next + 1) % len(self._requests)
        self._sent = time.perf_counter()
        self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        if self._received:
            data = self._received + data
        head = data.find(b"\r\n\r\n")
        if head < 0 or len(data) < head + 4 + _length(data, head):
            self._received = data
            return
        self._received = b""
        now = time.perf_counter()
        self.taken.append(now - self._sent)
        if data[9:12] != b"200":
            self._end(RuntimeError(data[:2000].decode("latin-1")))
        elif now > self.deadline:
            self._end(None)
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or RuntimeError("The service closed the connection."))

    def _end(self, error: Exception | None) -> None:
        if self.ended.done():
            return
        if error is not None:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(None)
        self._transport.close()


_LENGTH = b"content-length: "


def _length(data: bytes, head: int) -> int:
    at = data.index(_LENGTH, 0, head) + len(_LENGTH)
    return int(data[at : data.index(b"\r", at)])


async def _run(port: int, clients: list[list[str]], seconds: float) -> Load:
    loop = asyncio.get_running_loop()
    made = [_Client([each.encode("latin-1") for each in requests]) for requests in clients]
    for client in made:
        await loop.create_connection(lambda client=client: client, "127.0.0.1", port)  # type: ignore[misc]  # bound now
    ended = asyncio.gather(*(client.ended for client in made))
    await asyncio.wait([ended], timeout=_WARM_UP)
    for client in made:
        client.taken.clear()
        client.deadline = time.perf_counter() + seconds
    started, worked = time.perf_counter(), time.process_time()
    await ended
    passed = time.perf_counter() - started
    busy = (time.process_time() - worked) / passed
    taken = sorted(each for client in made for each in client.taken)

    def quantile(share: float) -> float:
        return taken[min(len(taken) - 1, int(share * len(taken)))]

    return Load(len(taken) / passed, quantile(0.5), quantile(0.95), quantile(0.99), busy)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        print(json.dumps(asdict(runner.run(_run(**json.load(sys.stdin))))))
